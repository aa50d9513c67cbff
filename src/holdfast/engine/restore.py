"""The state at a point of a run: the newest base before it, and the changes since."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.capture.document import needs
from holdfast.capture.look import read
from holdfast.capture.node import step
from holdfast.capture.state import State
from holdfast.engine.needed import rows_to, rows_used, save_of
from holdfast.errors import Damaged, HoldfastError, NotStorable
from holdfast.model.branches import Forked, Settled
from holdfast.model.ids import Point, branch_of
from holdfast.model.journal import (
    Answer,
    Based,
    Entry,
    Finished,
    Happened,
    Kept,
    LoopLeft,
    Pruned,
    Resumed,
    Row,
    Saved,
    TurnEnded,
)
from holdfast.model.sections import Declared, Section
from holdfast.store.backends.base import Name
from holdfast.store.reader import History, Placed, Reader, Run

Save = tuple[bytes, Point | None]
"""A base or change of the state, and where it stands."""


class PrunedAway(Exception):
    """Garbage collection removed what a row held that a point was made of."""


def state_at(
    reader: Reader,
    rows: Iterable[Placed],
    point: Point | None = None,
    *,
    optional: Collection[str] = (),
    settle: Callable[[], None] | None = None,
) -> State | None:
    """The state at the newest end of a turn or run in `rows`, or where `point` stands in a turn.

    `rows` start at the row of the newest base, or at the run's first. None: no turn has ended.
    A section that cannot be read raises, naming it; of one that is `optional`, or was declared
    so, the state says that it is lost. With `settle`, which waits for what is queued, each later
    save of the state is checked.
    """
    found = _saves_at(reader, rows, point, optional=optional, settle=settle)
    return None if found is None else _build(found)


def edited_at(reader: Reader, point: Point) -> State:
    """The state at the end of a turn, to be changed there by whoever knows only parts of it.

    A section that cannot be read here, and may be missing, is not in it and stays as it is: its
    absence is no change.
    """
    state = state_at(reader, rows_at(reader, point))
    assert state is not None, "a turn has ended there"
    if state.lost:
        state.delta()
    return state


def held_at(
    reader: Reader, rows: Sequence[Placed], point: Point
) -> tuple[dict[Any, Any], dict[Any, HoldfastError]]:
    """What the point at which `rows` end holds, in plain containers, and what was lost of it.

    That is the state there; of a snapshot, its sections.
    """
    entry = rows[-1].row.entries[point[1]]
    if not isinstance(entry, Saved | Kept):
        return _plain(reader, _saves_at(reader, rows))
    if entry.state is not None:
        held = reader.value(entry.state)
        assert isinstance(held, dict)
        return held, {}
    state, lost = _plain(reader, _saves_at(reader, rows, point), entry.only)
    if entry.only is None:
        return state, lost
    return (
        {name: state[name] for name in entry.only if name in state},
        {name: lost[name] for name in entry.only if name in lost},
    )


def beside_at(
    reader: Reader, rows: Sequence[Placed], point: Point
) -> tuple[dict[Any, Any], Collection[Any]] | None:
    """The whole state where a snapshot was made, and what is lost of it, if the journal has it.

    Of a snapshot that was made beside the agent's own line the journal has its sections only.
    """
    entry = rows[-1].row.entries[point[1]]
    assert isinstance(entry, Saved | Kept), "a snapshot is one of the two"
    if entry.state is not None:
        return None
    state, lost = _plain(reader, _saves_at(reader, rows, point), entry.only)
    return state, lost.keys()


def _plain(
    reader: Reader, found: "_Saves | None", only: Collection[str] | None = None
) -> tuple[dict[Any, Any], dict[Any, HoldfastError]]:
    assert found is not None, "a point is the end of a turn, or stands in one"
    root, lost = read(
        found.start[0],
        [data for data, _ in found.deltas],
        found.sources.get,
        places=[at for _, at in (found.start, *found.deltas)],
        aside=reader.chunks,
        ready=found.sources.ready,
    )
    needed = {name: lost[name] for name in lost if only is None or name in only}
    _refuse_lost(needed, found.may_lack)
    return root, lost


class _Saves(NamedTuple):
    """What a state is made of, which of its sections may be lost, and where to find the rest."""

    start: Save
    deltas: list[Save]
    may_lack: Collection[str]
    sources: "Sources"


def _saves_at(
    reader: Reader,
    rows: Iterable[Placed],
    point: Point | None = None,
    *,
    optional: Collection[str] = (),
    settle: Callable[[], None] | None = None,
) -> _Saves | None:
    may_lack = set(optional)
    base: Save | None = None
    deltas: list[Save] = []
    left: list[Save] = []
    is_any = False
    seen: dict[int, Row] = {}
    sources = Sources(reader, seen, settle)
    for placed in _unpruned(rows):
        seen[placed.id] = placed.row
        for index, entry in enumerate(placed.row.entries):
            at = placed.id, index
            match entry:
                case Based():
                    base, deltas, left, is_any = (entry.state, at), [], [], True
                case Resumed() | Forked() | Settled():
                    left = []  # The new life runs the open turn from its start.
                    deltas += _change(entry, at)  # What was changed where a branch began.
                case LoopLeft() | Kept() | Saved():
                    left += _change(entry, at)
                    if point == at:
                        return _loaded(base, [*deltas, *left], may_lack, sources)
                case TurnEnded() | Finished():
                    deltas += [*left, *_change(entry, at)]
                    left, is_any = [], True
                case Declared():
                    may_lack.update(optional_in(entry.sections))
                case _:
                    pass
    return _loaded(base, deltas, may_lack, sources) if is_any else None


def _loaded(
    base: Save | None, deltas: list[Save], may_lack: Collection[str], sources: "Sources"
) -> _Saves:
    fetch = sources.reader.chunks.fetch  # An import may have put a large one aside.
    start = base or (State().base(), None)
    start = fetch(start[0]), start[1]
    sources.load(start[0])
    return _Saves(start, [(fetch(save), at) for save, at in deltas], may_lack, sources)


def optional_in(sections: Mapping[str, Section]) -> list[str]:
    """The sections that a restart may go on without."""
    return [name for name, section in sections.items() if section.is_optional]


def _change(entry: Entry, at: Point) -> list[Save]:
    """The change of the state that an entry holds, if it holds one."""
    save = save_of(entry)
    return [] if save is None else [(save, at)]


def is_there(reader: Reader, point: Point) -> bool:
    """Whether garbage collection has left everything that a point is restored from."""
    rows = list(rows_to(reader, branch_of(point[0]), point))
    used = rows_used(reader, rows)
    named = [placed for placed in reader.some(used) if placed.id in used]
    return not any(is_pruned(placed.row) for placed in [*rows, *named])


def whole_history(reader: Reader, run: Run) -> History:
    """What a restart of the run needs; `Damaged` if any of it was pruned.

    Without its turns' ends a run would begin anew, and nobody would be told.
    """
    history = reader.history(run)
    if any(is_pruned(placed.row) for placed in [*history.rows, *history.outside]):
        raise Damaged(f"run {run.body.id}", "garbage collection removed what it goes on from")
    return history


def _unpruned(rows: Iterable[Placed]) -> Iterator[Placed]:
    for placed in rows:
        if is_pruned(placed.row):
            raise PrunedAway(placed.id)
        yield placed


def is_pruned(row: Row) -> bool:
    """Whether garbage collection removed what a row held."""
    return any(isinstance(entry, Pruned) for entry in row.entries)


def place_of(reader: Reader, point: Point) -> tuple[Placed, Entry]:
    """The row and the entry of a point; `PrunedAway` where they are gone."""
    placed = reader.row(point[0])
    if is_pruned(placed.row):
        raise PrunedAway(placed.id)
    return placed, placed.row.entries[point[1]]


def rows_at(reader: Reader, point: Point) -> list[Placed]:
    """The rows that the state at a point is made of; nothing after the point.

    `PrunedAway` if the point itself is gone; rows before it may be pruned still.
    """
    row, index = point
    placed, _ = place_of(reader, point)
    after = placed.row.entries[index + 1 : index + 2]
    if after and isinstance(after[0], Based):
        return [_cut(placed, index + 2)]  # The whole state, written with that turn's end.
    rows = list(rows_to(reader, branch_of(row), point))
    if is_pruned(rows[-1].row):  # In this moment.
        raise PrunedAway(row)
    return [*rows[:-1], _cut(rows[-1], index + 1)]


def _cut(placed: Placed, end: int) -> Placed:
    return replace(placed, row=replace(placed.row, entries=placed.row.entries[:end]))


def _build(found: _Saves) -> State:
    sources = found.sources
    state = State.restore(
        found.start[0],
        [data for data, _ in found.deltas],
        sources.get,
        places=[at for _, at in (found.start, *found.deltas)],
        aside=sources.reader.chunks,
        goes_on=True,
        check=sources.is_settling,
        ready=sources.ready,
        names_leaves=sources.reader.names_leaves,
    )
    _refuse_lost(state.lost, found.may_lack)
    return state


def _refuse_lost(lost: Mapping[Any, HoldfastError], optional: Collection[str]) -> None:
    for section, error in lost.items():
        if section not in optional:
            raise _naming(section, error) from error


def _naming(section: object, error: HoldfastError) -> HoldfastError:
    """The same error, said of the section."""
    place = f"state{step(section)}"
    match error:
        case Damaged():
            return Damaged(place, f"{error.where}: {error.why}")
        case NotStorable():
            return NotStorable(place, error.type_name, error.why)
        case _:
            return error


class Sources:
    """What a state names instead of repeating it: recorded answers, and what saves wrote."""

    def __init__(
        self, reader: Reader, rows: dict[int, Row], settle: Callable[[], None] | None = None
    ) -> None:
        self.reader, self._rows, self._settle = reader, rows, settle
        self.ready: dict[Name, Any] = {}
        """Values that were read without their rows."""

    @property
    def is_settling(self) -> bool:
        """Whether rows are waited for that are still on their way to the disk."""
        return self._settle is not None

    def load(self, base: bytes) -> None:
        """Read all that a base names at once: one by one would take much longer."""
        needed = needs(base)
        self.ready = self.reader.beside(needed.rows_without())
        due = needed.rows_without(self.ready).difference(self._rows)
        with contextlib.suppress(Damaged):  # Each is read by itself where it is needed.
            self._rows.update((placed.id, placed.row) for placed in self.reader.some(due))

    def get(self, at: tuple[int, ...]) -> object:
        """The value of the answer at a point, or the bytes of the save there.

        With a number behind row and index: the bytes of the answer.
        """
        id_, index, *is_raw = at
        row = self._rows.get(id_)
        if row is None:
            if self._settle is not None:
                self._settle()
            row = self._rows[id_] = self.reader.row(id_).row
        entry = row.entries[index] if 0 <= index < len(row.entries) else None
        if type(entry) is Answer or type(entry) is Happened:
            data = entry.value
            return self.reader.chunks.fetch(data) if is_raw else self.reader.value(data)
        save = None if entry is None or is_raw else save_of(entry)
        if save is None:
            why = f"entry {index} is named as part of the state and is neither answer nor save"
            raise Damaged(f"journal row {id_:#x}", why)
        return self.reader.chunks.fetch(save)
