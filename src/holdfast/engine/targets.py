"""Where a rollback goes, as people say it: a point, the newest that is sound, before an effect."""

from typing import Any, cast

from holdfast.capture.tracked import TrackedDict
from holdfast.engine import agents
from holdfast.engine.fork import Cut, cut_at, find_cut
from holdfast.engine.points import Points
from holdfast.engine.validate import Validator, first_fault
from holdfast.errors import HoldfastError, UnknownAgent, UnknownCheckpoint, UsageError
from holdfast.model.ids import Point
from holdfast.model.journal import Finished, Intended, Kept, Saved
from holdfast.store.reader import Reader, Run

NEWEST_VALID = "newest-valid"
BEFORE = "before:"
START = "start"


class Targets:
    """Finds targets of rollbacks."""

    def __init__(self, reader: Reader, points: Points) -> None:
        self._reader, self._points = reader, points

    def find(self, run: Run, to: str) -> Cut:
        """The target that `to` names."""
        if to == f"{run.body.id}@{NEWEST_VALID}":
            return self._newest_valid(run)
        if to == f"{run.body.id}@{START}":
            start = self._reader.row(self._reader.first(run.row.head))
            return Cut(at=start, point=(start.id, 0), turn=-1)
        if to.startswith(f"{run.body.id}@{BEFORE}"):
            return self._before(run, to.removeprefix(f"{run.body.id}@{BEFORE}"))
        return find_cut(self._reader, self._points, run, to)

    def newest(self, run: Run) -> Cut:
        """The newest point of the run's head."""
        return find_cut(self._reader, self._points, run, None)

    def _newest_valid(self, run: Run) -> Cut:
        """The newest point whose state can be restored and passes the agent's validators.

        Where the agent is not declared here, being restored as it was saved is all that counts.
        """
        checks = _checks(run)
        for point in self._back(run):
            try:
                state = self._points.state(point)
            except HoldfastError:
                continue
            if first_fault(checks, cast("TrackedDict", state)) is None:
                return cut_at(self._reader, point)
        why = f"no point of run {run.body.id} is sound"
        raise UnknownCheckpoint(f"{run.body.id}@{NEWEST_VALID}", "", why)

    def _before(self, run: Run, key: str) -> Cut:
        """The newest point before an effect, which is named by its key or how that begins."""
        found: set[str] = set()
        at: Point | None = None
        for placed in self._reader.back(run.row.head):
            for index, entry in enumerate(placed.row.entries):
                if isinstance(entry, Intended) and key and entry.key.startswith(key):
                    found.add(entry.key)
                    at = placed.id, index
        if at is None or len(found) > 1:
            what = "several effects have keys that begin" if found else "no effect has a key"
            msg = (
                f"{what} with {key!r} on the head of run {run.body.id}; "
                f"`holdfast rollback {run.body.id} --to start --dry-run` lists them with their keys"
            )
            raise UsageError(msg)
        for point in self._back(run):
            if point < at:
                return cut_at(self._reader, point)
        start = self._reader.row(self._reader.first(run.row.head))
        return Cut(at=start, point=(start.id, 0), turn=-1)

    def _back(self, run: Run) -> list[Point]:
        """Points of the head to go back to, newest first."""
        return [
            point
            for point, entry in self._points.back(run)
            if not isinstance(entry, Finished)
            and not (isinstance(entry, Saved | Kept) and entry.only is not None)
        ]


def _checks(run: Run) -> tuple[Validator[Any], ...]:
    try:
        return agents.find(run.body.agent, run.body.module).validate
    except UnknownAgent:
        return ()
