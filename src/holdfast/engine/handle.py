"""`open` and `Store`: what a user holds. Real clock, chance and environment come in here."""

import os
import random
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from holdfast.capture.diff import Change
from holdfast.clock import Clock, SystemClock
from holdfast.engine import agents, context
from holdfast.engine.agents import Agent
from holdfast.engine.launch import Order
from holdfast.engine.life import Lives
from holdfast.engine.points import Points
from holdfast.engine.resolve import Verdict
from holdfast.errors import StoreClosed, UnknownRun, UsageError
from holdfast.model.ids import check_run_id
from holdfast.model.run import RunInfo, Status
from holdfast.store.leases import STALL_S
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Run as StoredRun

if TYPE_CHECKING:
    from holdfast.engine.checkpoint import Checkpoint

T = TypeVar("T")

DIRECTORY = ".holdfast"
RUNS_MAX = 100_000

_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


def open_path(path: str | os.PathLike[str] | None = None) -> Path:
    """The path a store is opened at: the given one, else `$HOLDFAST_STORE`, else `./.holdfast`."""
    return Path(path or os.environ.get("HOLDFAST_STORE") or DIRECTORY).expanduser()


def open(  # noqa: A001 the public name is holdfast.open
    path: str | os.PathLike[str] | None = None,
    *,
    must_exist: bool = False,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    stall: float = STALL_S,
    environment: Iterable[str] = (),
) -> "Store":
    """Open the store at `path`, `$HOLDFAST_STORE` or `./.holdfast`, making it if it is new.

    `stall` is how many seconds a holder of a run may show no sign of life before another process
    may take the run; `environment` names the variables whose values are recorded with runs;
    `clock` and `chance` are for tests.
    """
    clock = clock or SystemClock()
    opened = open_store(open_path(path), clock, must_exist=must_exist, stall_s=stall)
    names = [environment] if isinstance(environment, str) else environment
    allowed = {name: os.environ[name] for name in names if name in os.environ}
    return Store(opened, clock, chance or random.SystemRandom(), allowed)


class Store:
    """Where runs are kept, and the verbs on them. Safe for threads; not for use across a fork."""

    def __init__(
        self, opened: Opened, clock: Clock, chance: random.Random, environment: Mapping[str, str]
    ) -> None:
        self._opened, self._clock, self._chance = opened, clock, chance
        self._lives = Lives(opened, clock, chance, environment)
        self._points = Points(opened.reader, opened.path)
        self._is_closed = False
        _stores.add(self)

    @property
    def path(self) -> Path:
        """The directory of the store."""
        return self._opened.path

    @overload
    def run(
        self,
        agent: Agent[..., Coroutine[Any, Any, T]],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    @overload
    def run(
        self,
        agent: Agent[..., T],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    def run(
        self,
        agent: Agent[..., Any],
        /,
        *args: Any,
        id: str | None = None,  # noqa: A002 the public word
        **kwargs: Any,
    ) -> Any:
        """Start the run, continue it where it was, or return its recorded result.

        Without an id a new one is given. A failed run raises `RunFailed`; `restart` tries again.
        """
        return self._lives.carry_out(self._order(agent, id, args, kwargs))

    @overload
    async def arun(
        self,
        agent: Agent[..., Coroutine[Any, Any, T]],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    @overload
    async def arun(
        self,
        agent: Agent[..., T],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    async def arun(
        self,
        agent: Agent[..., Any],
        /,
        *args: Any,
        id: str | None = None,  # noqa: A002 the public word
        **kwargs: Any,
    ) -> Any:
        """`run`, for code under an event loop. A synchronous agent runs in a thread."""
        return await self._lives.acarry_out(self._order(agent, id, args, kwargs))

    def restart(
        self,
        id: str,  # noqa: A002 the public word
        *,
        agent: Agent[..., Any] | None = None,
        redo_turn: bool = False,
        reason: str | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """Continue a run from its newest point with its recorded arguments.

        The agent is found by its recorded name among those this process declares.
        `redo_turn` runs the unfinished turn anew with today's code: recorded steps of that turn
        are dropped (kept on the old branch), effects stand.
        """
        return self._lives.carry_out(self._restart_order(id, agent, reason, is_redo=redo_turn))

    async def arestart(
        self,
        id: str,  # noqa: A002 the public word
        *,
        agent: Agent[..., Any] | None = None,
        redo_turn: bool = False,
        reason: str | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """`restart`, for code under an event loop."""
        return await self._lives.acarry_out(
            self._restart_order(id, agent, reason, is_redo=redo_turn)
        )

    def resolve(self, id: str, key: str, *, happened: bool, outcome: object = None) -> None:  # noqa: A002 the public word
        """Say of an effect in doubt, by its key, whether it happened, and with which outcome."""
        self._refuse_if_closed()
        self._lives.resolve(self._found(id), Verdict(key=key, happened=happened, outcome=outcome))

    def get(self, id: str) -> RunInfo:  # noqa: A002 the public word
        """What the store knows of a run."""
        self._refuse_if_closed()
        return self._info(self._found(id))

    def runs(self, *, limit: int = 50, status: Status | str | None = None) -> list[RunInfo]:
        """Runs, newest first."""
        self._refuse_if_closed()
        wanted = Status(status) if status is not None else None
        found: list[RunInfo] = []
        for run in self._opened.reader.runs():
            if len(found) >= limit:
                break
            if wanted is None or run.body.status is wanted:
                found.append(self._info(run))
        return found

    def checkpoints(self, id: str, *, every_turn: bool = False) -> "list[Checkpoint]":  # noqa: A002 the public word
        """The checkpoints and snapshots of a run on all of its branches, oldest first.

        `every_turn` lists the recovery points too: every other turn's end, and the run's.
        """
        self._refuse_if_closed()
        return self._points.of(self._found(id), every_turn=every_turn)

    def restore(self, checkpoint: "str | Checkpoint") -> "tuple[Checkpoint, dict[Any, Any]]":
        """What is known of a point of a run, and its state there in ordinary containers.

        A point is named by its id, as `run@turn`, or by the run's id: its newest. The state is
        checked against the root recorded with it: `Damaged` if it is another. The run itself is
        not touched; it may go on meanwhile.
        """
        self._refuse_if_closed()
        return self._points.restore(_named(checkpoint))

    def diff(self, before: "str | Checkpoint", after: "str | Checkpoint") -> list[Change]:
        """What is different from one point to another, of the same run or of two, in path order.

        Points are named as for `restore`. Lists are aligned: an insertion is one change.
        """
        self._refuse_if_closed()
        return self._points.diff(_named(before), _named(after))

    def close(self) -> None:
        """Commit what is pending and let go of the store. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._lives.close()
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r}>"

    def _order(
        self, agent: Agent[..., Any], id_: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Order:
        if not isinstance(agent, Agent):
            kind = type(agent).__name__
            msg = f"store.run takes an agent, not {kind}; decorate it with @holdfast.agent"
            raise UsageError(msg)
        self._refuse_if_closed()
        if id_ is None:
            id_ = f"{agent.name.rpartition('.')[2]}-{self._chance.getrandbits(48):012x}"
        if not isinstance(id_, str):
            msg = f"a run id is a string, not {type(id_).__name__} {id_!r}"
            raise UsageError(msg)
        try:
            check_run_id(id_)
        except ValueError as error:
            raise UsageError(str(error)) from None
        return Order(agent=agent, run=id_, args=args, kwargs=kwargs)

    def _restart_order(
        self, id_: str, agent: Agent[..., Any] | None, reason: str | None, *, is_redo: bool
    ) -> Order:
        self._refuse_if_closed()
        body = self._found(id_).body
        return Order(
            agent=agent or agents.find(body.agent, body.module),
            run=id_,
            is_restart=True,
            is_redo=is_redo,
            reason=reason,
        )

    def _found(self, id_: str) -> StoredRun:
        found = self._opened.reader.find(id_)
        if found is None:
            raise UnknownRun(id_, str(self.path))
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
        )

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreClosed(str(self.path), "is closed")

    def _after_fork(self) -> None:
        """In a forked child: the store, its locks and its runs are the parent's."""
        fault = self._opened.abandon()
        self._lives.abandon(fault)


def _named(checkpoint: "str | Checkpoint") -> str:
    return checkpoint if isinstance(checkpoint, str) else checkpoint.id


def _forked() -> None:
    context.forget()
    for store in _stores:
        store._after_fork()  # noqa: SLF001 the fork hook is part of the store


os.register_at_fork(after_in_child=_forked)
