"""The points of a run that can be seen again: found by name, listed, restored, compared.

Reads what is committed, takes no lease and needs no agent, so a run may go on meanwhile.
"""

import contextlib
import datetime as dt
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.capture.diff import Change, diff
from holdfast.engine.good import offering, offering_known
from holdfast.engine.restore import PrunedAway, beside_at, held_at, is_there, rows_at
from holdfast.engine.roots import examine
from holdfast.engine.seek import rows_from_turn
from holdfast.errors import Damaged, UnknownCheckpoint
from holdfast.model.branches import Forked, Settled
from holdfast.model.ids import Point, branch_of, parse_point, point_id, row_id, seq_of
from holdfast.model.journal import (
    ENDED,
    Answer,
    Entry,
    Facts,
    Finished,
    Happened,
    Kept,
    Mark,
    Pruned,
    Redone,
    Resumed,
    Saved,
    Started,
    Streamed,
    TurnEnded,
    Usage,
)
from holdfast.ondemand import OnDemand
from holdfast.policy.usage import total
from holdfast.store.codec.values import registry
from holdfast.store.codec.vault import Guard, guarded
from holdfast.store.reader import Placed, Reader, Run, first_row
from holdfast.store.reference import length

if TYPE_CHECKING:
    from holdfast.engine import checkpoint as forms
    from holdfast.engine.checkpoint import Checkpoint
else:
    forms = OnDemand("holdfast.engine.checkpoint")

Place = TurnEnded | Saved | Kept | Finished | Forked | Settled
"""An entry at which the state is known."""

_TURN = re.compile(r"(?P<run>.+)@(?P<turn>\d{1,9})")


class Points:
    """Every point of every run of one store."""

    def __init__(self, reader: Reader, path: Path) -> None:
        self._reader, self.path = reader, path

    def of(self, run: Run, *, every_turn: bool) -> "list[Checkpoint]":
        """The points of a run on all of its branches, oldest first."""
        teller = _Teller(self._reader, run.body.id)
        known: dict[int, list[Point]] = {}
        found: list[Checkpoint] = []
        is_pruned = False
        for branch, end in self._reader.lineage(run):
            before = _newest(known.get(branch.parent, []), branch.grown_from)
            mine = known[branch.no] = [] if before is None else [before]
            for placed in self._reader.rows(branch.no, first_row(branch), end[0]):
                is_pruned = is_pruned or isinstance(placed.row.entries[0], Pruned)
                for index, entry in _places(placed):
                    point = placed.id, index
                    if point >= end:
                        continue
                    if _is_copy(placed, index):
                        mine.append((row_id(branch.parent, seq_of(placed.id)), index))
                        continue
                    if every_turn or _is_marked(entry):
                        with contextlib.suppress(PrunedAway):  # In this moment.
                            found.append(self._told(teller, entry, point, mine))
                    if not _is_snapshot(entry):
                        mine.append(point)
        if not is_pruned:
            return found
        return [each for each in found if is_there(self._reader, _point(each))]

    def _told(
        self, teller: "_Teller", entry: Place, point: Point, before: Sequence[Point]
    ) -> "Checkpoint":
        if isinstance(entry, Finished | Forked | Settled):
            return teller.tell(point, rows_at(self._reader, point))
        parent = before[-1] if before else None
        turn = entry.turn
        return teller.form(point, entry, parent, turn, (entry.used, entry.steps))

    def restore(self, name: str, of: Run | None = None) -> "tuple[Checkpoint, dict[Any, Any]]":
        """A point and the state there, as plain containers.

        `Damaged` if that is not the state it was made of.
        """
        run = of or self._run_of(name)
        if run is None:
            return self.at(*self.find(name, of))
        with offering_known(self._reader, run, self.at), self.offering(run):
            return self.at(*self.find(name, of))

    def offering(self, run: Run) -> contextlib.AbstractContextManager[None]:
        """Let `Damaged` name the newest point of the run that restores."""
        return offering(self._reader, run, self.at)

    def at(self, run: Run, point: Point) -> "tuple[Checkpoint, dict[Any, Any]]":
        """The point at that place of the run's journal, and the state there."""
        name = point_id(run.body.id, point)
        try:
            return self._at(run, point)
        except PrunedAway:
            why = f"garbage collection removed what {name} was made of"
            raise UnknownCheckpoint(name, str(self.path), why) from None

    def _at(self, run: Run, point: Point) -> "tuple[Checkpoint, dict[Any, Any]]":
        rows = rows_at(self._reader, point)
        told = _Teller(self._reader, run.body.id).tell(point, rows)
        entry = rows[-1].row.entries[point[1]]
        upgrades, lost = registry.upgrades, dict[str, str]()

        def read() -> Any:  # noqa: ANN401 the user's own
            state, missing = held_at(self._reader, rows, point)
            lost.update((str(name), str(error)) for name, error in missing.items())
            return state

        examined = examine(read, _mark(entry), run.body.id)
        # What passed a migration is not what was hashed; the rows it came from were checked.
        is_as_stored = upgrades == registry.upgrades
        if not examined.is_true and not lost and is_as_stored:
            raise Damaged(f"checkpoint {told.id}", "its state does not match its root")
        degraded = {**examined.notes, **lost}
        return told.model_copy(update={"degraded": degraded}), examined.state

    def state(self, point: Point) -> dict[Any, Any]:
        """The state at a point, as plain containers."""
        owner = self._reader.owner(branch_of(point[0]))
        return self.restore(point_id(owner.body.id, point), owner)[1]

    def diff(self, before: str, after: str) -> list[Change]:
        """What is different from one point to another."""
        return self.compare(before, after)[0]

    def compare(self, before: str, after: str) -> tuple[list[Change], list[str]]:
        """The same, and what was not compared because a point came back without it."""
        (first, old), (second, new) = self.restore(before), self.restore(after)
        with guarded(Guard(cuts=False)):
            changes = diff(old, new)
        return changes, sorted({*first.degraded.values(), *second.degraded.values()})

    def changes(self, now: str, then: str, only: Sequence[str] | None) -> list[Change]:
        """What going back to a point changes, in the sections `only` or in all.

        To a snapshot a run goes back with the sections beside it too, as they were then.
        """
        old, (point, new) = self.restore(now)[1], self.restore(then)
        unknown: Collection[Any] = ()
        if point.sections is not None and only is None:
            at = self.find(then)[1]
            found = beside_at(self._reader, rows_at(self._reader, at), at)
            new, unknown = (new, old.keys() - new.keys()) if found is None else found
        named = [*old, *new] if only is None else only
        asked = {name for name in named if name not in unknown}
        with guarded(Guard(cuts=False)):
            return diff(*({name: it[name] for name in it if name in asked} for it in (old, new)))

    def _run_of(self, name: str) -> Run | None:
        """The run that the name of a point begins with."""
        return self._reader.find(name) or self._reader.find(name.rpartition("@")[0])

    def find(self, name: str, of: Run | None = None) -> tuple[Run, Point]:
        """A point by its id, as `run@turn`, or as a run's id: its newest.

        Where it is one `of` a run, another run with an id like `run@turn` is not meant.
        """
        run = None if of is not None and of.body.id != name else self._reader.find(name)
        if run is not None:
            return run, self.newest(run)
        parsed = parse_point(name)
        if parsed is not None:
            run = self._reader.find(parsed[0])
            if run is not None and self._is_place(run, parsed[1]):
                return run, parsed[1]
        turn = _TURN.fullmatch(name)
        if turn is not None:
            run = self._reader.find(turn["run"])
            if run is not None:
                return run, self._turn(run, int(turn["turn"]))
        raise UnknownCheckpoint(name, str(self.path))

    def _is_place(self, run: Run, point: Point) -> bool:
        row, index = point
        for branch, end in self._reader.lineage(run):
            if branch.no == branch_of(row) and first_row(branch) <= row and point < end:
                return any(n == index for n, _ in _places(self._reader.row(row)))
        return False

    def back(self, run: Run) -> Iterator[tuple[Point, Place]]:
        """The points of the run's head, newest first."""
        for placed in self._reader.back(run.row.head):
            for index, entry in reversed(list(_places(placed))):
                yield (placed.id, index), entry

    def newest(self, run: Run, *, is_end_too: bool = True) -> Point:
        """The newest point on the run's head; the end of the run is one only if `is_end_too`."""
        for placed in self._reader.back(run.row.head):
            for index, entry in reversed(list(_places(placed))):
                if not _is_snapshot(entry) and (is_end_too or not isinstance(entry, Finished)):
                    return placed.id, index
        why = f"no turn of run {run.body.id!r} has ended yet"
        raise UnknownCheckpoint(run.body.id, str(self.path), why)

    def _turn(self, run: Run, turn: int) -> Point:
        found: Point | None = None
        is_past = False  # A later turn has ended, so this one had; if it is missing, gc took it.
        for placed in rows_from_turn(self._reader, run.row.head, turn):
            for index, entry in _places(placed):
                # Of the turn in which the run ended, its end is the only point.
                at = placed.row.turn if isinstance(entry, Finished) else entry.turn
                if not isinstance(entry, Saved | Kept) and at == turn:
                    found = placed.id, index
                is_past = is_past or (isinstance(entry, TurnEnded) and entry.turn > turn)
            if is_past:
                break
        if found is not None:
            return found
        name = f"{run.body.id}@{turn}"
        why = f"turn {turn} of run {run.body.id!r} has not ended"
        if is_past:
            why = f"garbage collection removed what {name} was made of"
        raise UnknownCheckpoint(name, str(self.path), why)


class _Teller:
    """Says of points of one run what is known of them."""

    def __init__(self, reader: Reader, run: str) -> None:
        self._reader, self._run = reader, run
        self._facts: dict[int, Facts | None] = {}

    def tell(self, point: Point, rows: Sequence[Placed]) -> "Checkpoint":
        """The point whose rows these are."""
        place, index = rows[-1], point[1]
        entry = place.row.entries[index]
        assert isinstance(entry, Place)
        parent = self._before(point, rows)
        if isinstance(entry, Finished):
            return self.form(point, entry, parent, place.row.turn, _counted(rows))
        if isinstance(entry, Forked | Settled):
            return self.form(point, entry, parent, entry.turn, _counted(rows))
        return self.form(point, entry, parent, entry.turn, (entry.used, entry.steps))

    def _before(self, point: Point, rows: Sequence[Placed]) -> Point | None:
        """The point before this one on its line of history."""
        branch = branch_of(point[0])
        first = self._reader.first(branch)
        at = len(rows) - 1
        placed, end = rows[at], point[1]
        while True:
            for index, entry in reversed(list(_places(placed))):
                if index < end and not _is_snapshot(entry):
                    return self._home(placed, index)
            if placed.id == first:
                return None
            at -= 1
            placed = rows[at] if at >= 0 else self._reader.before(branch, placed.id)
            end = len(placed.row.entries)

    def _home(self, placed: Placed, index: int) -> Point:
        """Where a point really stands: a turn run anew begins with a copy of the end before."""
        if not _is_copy(placed, index):
            return placed.id, index
        branch = self._reader.line(branch_of(placed.id))[-1]
        return row_id(branch.parent, seq_of(placed.id)), index

    def form(
        self,
        point: Point,
        entry: Place,
        parent: Point | None,
        turn: int,
        count: tuple[Usage, int],
    ) -> "Checkpoint":
        """The point in the API's form."""
        mark, facts = _mark(entry), None
        if mark is not None:
            facts = self._facts_of(mark.life)
        used, steps = count
        saved = _bytes_of(entry)
        return forms.Checkpoint(
            id=point_id(self._run, point),
            run=self._run,
            kind=_kind(entry),
            at=dt.datetime.fromtimestamp(entry.at, dt.UTC),
            turn=turn if turn >= 0 else None,
            step=steps,
            parent=None if parent is None else point_id(self._run, parent),
            branch=branch_of(point[0]),
            root=None if mark is None else mark.root.hex(),
            sections=entry.only if isinstance(entry, Saved | Kept) else None,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            model=used.model if mark is None else mark.model,
            parameters={} if mark is None else mark.parameters,
            environment={} if facts is None else facts.environment,
            error=None if mark is None else mark.error,
            code=None if facts is None else facts.code,
            tools=None if facts is None else facts.tools,
            prompts=None if facts is None else facts.prompts,
            libraries={} if facts is None else facts.libraries,
            python=None if facts is None else facts.python,
            platform=None if facts is None else facts.platform,
            holdfast=None if facts is None else facts.holdfast,
            bytes=length(saved),
            blocked_ms=None if mark is None else mark.blocked_s * 1000,
            label=None if mark is None else mark.label,
        )

    def _facts_of(self, life: int) -> Facts | None:
        """Which program a life was; None where its beginning is lost, which hides no state."""
        if life not in self._facts:
            self._facts[life] = None
            with contextlib.suppress(Damaged):
                first = self._reader.row(life).row.entries[0]
                self._facts[life] = first.facts if isinstance(first, Started | Resumed) else None
        return self._facts[life]


def _point(told: "Checkpoint") -> Point:
    parsed = parse_point(told.id)
    assert parsed is not None, "a point's id names it"
    return parsed[1]


def _places(placed: Placed) -> Iterator[tuple[int, Place]]:
    for index, entry in enumerate(placed.row.entries):
        if isinstance(entry, Place) and not (
            isinstance(entry, Forked | Settled) and entry.turn < 0
        ):
            yield index, entry


def _bytes_of(entry: Place) -> bytes:
    """What a point added to the store."""
    whole = entry.state if isinstance(entry, Saved | Kept) else None
    return whole or entry.delta or b""


def _is_copy(placed: Placed, index: int) -> bool:
    """Whether an entry stands on an older branch too (see `redo`)."""
    return any(isinstance(entry, Redone) for entry in placed.row.entries[index + 1 :])


def _is_snapshot(entry: Place) -> bool:
    return isinstance(entry, Saved | Kept) and entry.only is not None


def _is_marked(entry: Place) -> bool:
    return _mark(entry) is not None


def _mark(entry: Entry) -> Mark | None:
    return entry.mark if isinstance(entry, TurnEnded | Saved | Kept) else None


def _kind(entry: Place) -> Literal["checkpoint", "snapshot", "recovery point"]:
    if _is_snapshot(entry):
        return "snapshot"
    return "checkpoint" if _is_marked(entry) else "recovery point"


def _newest(points: Sequence[Point], end: Point) -> Point | None:
    return next((point for point in reversed(points) if point < end), None)


def _counted(rows: Sequence[Placed]) -> tuple[Usage, int]:
    """Usage and answers of a run at the end of these rows, which begin with a base or the run."""
    used, steps = Usage(), 0
    for placed in rows:
        for entry in placed.row.entries:
            if isinstance(entry, TurnEnded):
                used, steps = entry.used, entry.steps
            elif isinstance(entry, Streamed):
                steps += entry.how == ENDED
                used = total([used, Usage(tokens_out=entry.tokens)])
            elif isinstance(entry, Answer | Happened):
                steps += 1
                used = used if entry.usage is None else total([used, entry.usage])
    return used, steps
