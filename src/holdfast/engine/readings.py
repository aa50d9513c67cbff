"""What a store tells of its runs: the reading half of `Store`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.capture.diff import Change
from holdfast.clock import SystemClock
from holdfast.engine.budget import Balance, balances
from holdfast.engine.naming import text_of
from holdfast.engine.points import Points
from holdfast.errors import StoreClosed, UnknownRun, UsageError
from holdfast.model.run import RunInfo, Status
from holdfast.ondemand import OnDemand
from holdfast.store.ledger import Ledger
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun
from holdfast.store.steady import steadily, unless_gone

if TYPE_CHECKING:
    from holdfast.engine import follow as following
    from holdfast.engine.checkpoint import Checkpoint
else:
    following = OnDemand("holdfast.engine.follow")


class Readings:
    """Runs, their points and states, read and checked; usable without any agent."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._points = Points(opened.reader, opened.path)
        self._is_closed = False

    @property
    def opened(self) -> Opened:
        """The parts of the open store, for what reads it whole: reports and drills."""
        return self._opened

    @property
    def path(self) -> Path:
        """The directory of the store."""
        return self._opened.path

    def get(self, id: str) -> RunInfo:  # noqa: A002 the public word
        """What the store knows of a run."""
        self._refuse_if_closed()
        return self._info(self._found(id))

    def runs(self, *, limit: int | None = 50, status: Status | str | None = None) -> list[RunInfo]:
        """Runs, newest first; at most `limit`, None for all of them."""
        self._refuse_if_closed()
        wanted = None if status is None else _status_named(status)
        _check_limit(limit)
        return steadily(lambda: self._runs(limit, wanted))

    def _runs(self, limit: int | None, wanted: Status | None) -> list[RunInfo]:
        found: list[RunInfo] = []
        for run in self._opened.reader.runs():
            if limit is not None and len(found) >= limit:
                break
            if wanted is None or run.body.status is wanted:
                found.append(self._info(run))
        return found

    def checkpoints(self, id: str, *, every_turn: bool = False) -> "list[Checkpoint]":  # noqa: A002 the public word
        """The checkpoints and snapshots of a run on all of its branches, oldest first.

        `every_turn` lists the recovery points too: every other turn's end, and the run's.
        """
        self._refuse_if_closed()
        return steadily(lambda: self._points.of(self._found(id), every_turn=every_turn))

    def restore(self, checkpoint: "str | Checkpoint") -> "tuple[Checkpoint, dict[Any, Any]]":
        """What is known of a point of a run, and its state there in ordinary containers.

        A point is named by its id, as `run@turn`, or by the run's id: its newest. The state is
        checked against the root recorded with it: `Damaged` if it is another. The run itself is
        not touched; it may go on meanwhile.
        """
        self._refuse_if_closed()
        name = _named(checkpoint)
        return steadily(lambda: self._points.restore(name))

    def diff(self, before: "str | Checkpoint", after: "str | Checkpoint") -> list[Change]:
        """What is different from one point to another, of the same run or of two, in path order.

        Points are named as for `restore`. Lists are aligned: an insertion is one change.
        """
        self._refuse_if_closed()
        names = _named(before), _named(after)
        return steadily(lambda: self._points.diff(*names))

    def budgets(self, id: str) -> list[Balance]:  # noqa: A002 the public word
        """What a run, its branches and its forks have spent together, by budget."""
        self._refuse_if_closed()
        opened = self._opened
        with self._kept(id) as run:
            return balances(Ledger(opened.committer, opened.reader, run).read())

    def stream(
        self,
        id: str,  # noqa: A002 the public word
        name: str | None = None,
        *,
        offset: int = 0,
        follow: bool = True,
    ) -> Iterator[Any]:
        """The items of a run's newest stream, of that name if one is given, from `offset` on.

        Goes on with what is recorded, also by another process, until the stream is over or nobody
        works on the run; not so with `follow=False`. A stream that is begun anew meanwhile raises
        `StreamReset`: what was read is no part of its answer.
        """
        self._refuse_if_closed()
        if type(offset) is not int or offset < 0:
            msg = f"offset= is a number of items from 0, not {offset!r}"
            raise UsageError(msg)
        run, leases = self._found(id), self._opened.leases
        follower = following.Follower(self._opened.reader, run, leases.is_held)
        if not follow:
            return follower.read(name, offset)
        return follower.follow(name, offset, SystemClock())

    @contextmanager
    def _kept(self, id_: object) -> Iterator[StoredRun]:
        """A run to do something with; if others remove it meanwhile, that is what is said."""
        run = self._found(id_)
        with unless_gone(self._opened.reader, run, self.path):
            yield run

    def _found(self, id_: object) -> StoredRun:
        found = self._opened.reader.find(text := text_of(id_))
        if found is None:
            raise UnknownRun(text, str(self.path))
        return found

    def _info(self, run: StoredRun) -> RunInfo:
        row, body = run.row, run.body
        return RunInfo(
            id=body.id,
            agent=body.agent,
            module=body.module,
            version=body.version,
            status=body.status,
            is_held=self._opened.leases.is_held(row.no),
            created=body.created,
            ended=body.ended,
            holder=body.holder,
            epoch=row.epoch,
            branch=row.head,
            error=body.error,
            origin=body.origin,
        )

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreClosed(str(self.path), "is closed")


def _named(checkpoint: "str | Checkpoint") -> str:
    name = checkpoint if isinstance(checkpoint, str) else getattr(checkpoint, "id", None)
    if isinstance(name, str):
        return name
    msg = f"a point is named by its id, as run@turn or by the run's id, not by {checkpoint!r}"
    raise UsageError(msg)


def _check_limit(limit: object) -> None:
    if limit is not None and not (isinstance(limit, int) and limit >= 0):
        raise UsageError(f"limit= takes a whole number from 0 on, or None, not {limit!r:.80}")


def _status_named(word: Status | str) -> Status:
    try:
        return Status(word)
    except ValueError:
        known = ", ".join(Status).replace("running", "running (also interrupted ones)")
        msg = f"status= takes one of {known}, not {word!r:.80}"
        raise UsageError(msg) from None
