"""A new run that shares the history of another up to a point: a branch grown from its row."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from holdfast.capture.paths import parse, put
from holdfast.clock import Clock
from holdfast.engine.outcomes import begun_elsewhere
from holdfast.engine.points import Points
from holdfast.engine.restore import PrunedAway, edited_at, is_there, place_of
from holdfast.errors import UnknownCheckpoint, UsageError
from holdfast.model.branches import Forked, Settled
from holdfast.model.ids import Point, branch_of, point_id
from holdfast.model.journal import (
    Based,
    Declined,
    Entry,
    Finished,
    Happened,
    Intended,
    Kept,
    Saved,
    TurnEnded,
)
from holdfast.model.run import Holder, Origin, RunBody
from holdfast.store import writer
from holdfast.store.backends.sweep import pruned_key
from holdfast.store.graves import refuse_erased
from holdfast.store.open import Opened
from holdfast.store.reader import Placed, Reader, Run
from holdfast.store.steady import refuse_gone


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What `store.fork` is asked for.

    `has_own_ledger`: its effects are its own, whatever was done in the run it comes from.
    """

    id: str
    at: str | None = None
    edits: Mapping[str, object] = msgspec.field(default_factory=dict)
    reason: str | None = None
    has_own_ledger: bool = False


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Where a branch grows from: the row, with the entries that are kept of it.

    `turn` is the turn that ended there; -1 in the middle of a turn and before the first.
    """

    at: Placed
    point: Point
    turn: int


def fork(opened: Opened, points: Points, clock: Clock, run: Run, wanted: Fork) -> None:
    """Make the fork, in one small commit. The run itself is not touched and may be at work."""
    refuse_erased(opened.records, opened.reader.seals, wanted.id)
    while not _is_made(opened, points, clock, run, wanted):
        refuse_gone(opened.reader, run, opened.path)
        if opened.reader.find(wanted.id) is not None:
            msg = f"there is a run {wanted.id} in this store already; give the fork another id"
            raise UsageError(msg)
        # Else rows of its history were pruned in this moment: what it needs may be gone.


def _is_made(opened: Opened, points: Points, clock: Clock, run: Run, wanted: Fork) -> bool:
    """Commit the fork, if nobody removes what it grows from meanwhile."""
    cut = find_cut(opened.reader, points, run, wanted.at)
    prunings = _prunings(opened, cut.point)
    if any(prunings.values()):
        refuse_pruned(opened, run, cut.point)
    now = clock.now()
    holder = Holder(pid=os.getpid(), host=os.uname().nodename, since=now)
    named = point_id(run.body.id, cut.point)
    origin = run.body.origin
    root = run.body.id if origin is None else origin.root
    if wanted.has_own_ledger:
        ledger = Origin(run=run.body.id, point=named, root=wanted.id)
    else:
        ledger = Origin(run=run.body.id, point=named, root=root, ledger=run.ledger)
    body = RunBody(
        id=wanted.id,
        agent=run.body.agent,
        module=run.body.module,
        version=run.body.version,
        created=now,
        holder=holder,
        origin=ledger,
    )
    try:
        delta = edited(opened, cut, wanted.edits)
    except PrunedAway:
        raise _pruned(opened.path, run, cut.point) from None
    forked = Forked(now, run.body.id, cut.at.id, cut.turn, delta, holder, wanted.reason)
    entries: list[Entry] = [forked, *left_open(opened.reader, cut, now)]
    return writer.fork(opened.committer, opened.reader.seals, body, cut.at, entries, notes=prunings)


def _prunings(opened: Opened, point: Point) -> dict[str, bytes | None]:
    """What is noted of rows that were pruned in the history of a point: keys and values."""
    keys = [pruned_key(branch.no) for branch in opened.reader.line(branch_of(point[0]))]
    return {key: opened.records.note(key) for key in keys}


def refuse_pruned(opened: Opened, run: Run, point: Point) -> None:
    """Refuse to go on from a point that garbage collection has taken something of."""
    if not is_there(opened.reader, point):
        raise _pruned(opened.path, run, point)


def _pruned(path: Path, run: Run, point: Point) -> UnknownCheckpoint:
    name = point_id(run.body.id, point)
    why = f"garbage collection removed what {name} was made of"
    return UnknownCheckpoint(name, str(path), why)


def find_cut(reader: Reader, points: Points, run: Run, name: str | None) -> Cut:
    """Where a branch grows from to go on at a point of the run; None is its newest.

    Where no turn has ended and no checkpoint was made, that is its beginning.
    """
    if name is None:
        try:
            point = points.newest(run, is_end_too=False)
        except UnknownCheckpoint:
            start = reader.row(reader.first(run.row.head))
            return Cut(at=start, point=(start.id, 0), turn=-1)
    else:
        found, point = points.find(name, run)
        if found.row.no != run.row.no:
            msg = f"{name} is a point of run {found.body.id}, not of {run.body.id}"
            raise UsageError(msg)
    try:
        is_end = isinstance(place_of(reader, point)[1], Finished)
        cut = cut_at(reader, point)
    except PrunedAway:
        raise _pruned(points.path, run, point) from None
    if is_end:
        msg = (
            f"{name} is the end of run {run.body.id}, and nothing comes after it; name an older "
            f"point (`holdfast show {run.body.id} --every-turn` lists them)"
        )
        raise UsageError(msg)
    return cut


def cut_at(reader: Reader, point: Point) -> Cut:
    """Where a branch grows from to go on at a point."""
    placed, entry = place_of(reader, point)
    end = point[1] + 1
    if any(isinstance(after, Based) for after in placed.row.entries[end : end + 1]):
        end += 1  # The whole state there: it is read instead of all that came before.
    turn = entry.turn if isinstance(entry, TurnEnded | Forked | Settled) else -1
    return Cut(at=reader.cut(placed, end), point=point, turn=turn)


def left_open(reader: Reader, cut: Cut, now: float) -> list[Declined]:
    """Effects of the turn that is open at a point, begun and not known to be over there.

    They belong to the line of history that began them. On the new one they are not begun: if they
    are asked for, the ledger says what became of them.
    """
    entry = cut.at.row.entries[-1]
    if not isinstance(entry, Saved | Kept):
        return []
    begun: dict[str, Intended] = {}
    over: set[str] = set()
    for placed in reader.back(branch_of(cut.at.id), cut.at.id):
        entries = cut.at.row.entries if placed.id == cut.at.id else placed.row.entries
        for each in reversed(entries):
            if isinstance(each, TurnEnded | Based):
                return [begun_elsewhere(meant.call, meant.key, now) for meant in begun.values()]
            if isinstance(each, Happened | Declined):
                over.add(each.key)
            elif isinstance(each, Intended) and each.key not in over:
                begun[each.key] = each
    return [begun_elsewhere(meant.call, meant.key, now) for meant in begun.values()]


def edited(opened: Opened, cut: Cut, edits: Mapping[str, object]) -> bytes | None:
    """The change of the state that `edits` make at a point: values by their path."""
    if not edits:
        return None
    if cut.turn < 0:
        msg = "the state can be changed at the end of a turn only; name one, such as run-42@7"
        raise UsageError(msg)
    _refuse_odd(edits)
    state = edited_at(opened.reader, cut.point)
    for path, value in edits.items():
        put(state.root, parse(path), value)
    return state.delta()


def _refuse_odd(edits: object) -> None:
    if not (isinstance(edits, Mapping) and all(isinstance(path, str) for path in edits)):
        msg = (
            "state= of a fork takes new values by their paths, such as "
            f"{{'plan.limit': 50}}, not {edits!r:.80}"
        )
        raise UsageError(msg)
