"""Garbage collection: a plan of what goes and why the rest stays, then its execution.

The rules (`policy/retention`) judge checkpoints and ended runs. A run goes whole. Of a run that
stays, rows go that no kept point needs and that record nothing but answers and saves: effects,
questions and beginnings are never pruned. Large values go when no row names them.
"""

import contextlib
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.engine.logs import log
from holdfast.engine.needed import rows_to, rows_used
from holdfast.engine.points import Points
from holdfast.engine.restore import is_there
from holdfast.errors import (
    Damaged,
    NotStorable,
    RunErased,
    StoreError,
    UnknownCheckpoint,
    UsageError,
)
from holdfast.model.ids import Point, branch_of, parse_point, point_id, row_id, seq_of
from holdfast.model.journal import (
    Answer,
    Based,
    Kept,
    LoopLeft,
    Noted,
    Raised,
    Saved,
    Streamed,
    TurnEnded,
)
from holdfast.model.run import Status
from holdfast.policy import retention
from holdfast.policy.retention import Candidate, Fate, Retention
from holdfast.store.backends import sweep
from holdfast.store.gc import kin, objects, pins, rows, runs, space
from holdfast.store.open import Opened
from holdfast.store.reader import Reader, Run
from holdfast.store.steady import steadily
from holdfast.store.verify import Progress, verify

if TYPE_CHECKING:
    from holdfast.engine.checkpoint import Checkpoint

COLLECT_S = 3600.0
"""Automatic collections are so far apart, whichever process makes them."""

PART_S = 3600.0
"""A half-written file this old belongs to nobody who still means to name it."""

ENDED = frozenset({Status.FINISHED, Status.FAILED, Status.CANCELLED})
_PRUNABLE = (Answer, Raised, Noted, TurnEnded, LoopLeft, Kept, Based, Saved, Streamed)
"""Entries that only serve to restore or replay a point of the run."""

MADE_OF_WHAT_STAYS = "its rows stay: others need them, they say what was done, or are new"
"""Why a checkpoint stays that no rule keeps."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What garbage collection would do: the fate of every run and checkpoint, and its size.

    `values` are large ones that nothing would name then; `parts` are files that a crash left
    half-written.
    """

    runs: Sequence[Fate]
    checkpoints: Sequence[Fate]
    rows: int
    values: int
    bytes: int
    parts: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing would go."""
        return not (self.rows or self.values or self.parts) and all(f.is_kept for f in self.runs)


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What garbage collection did; `passed_over` were taken up or forked meanwhile, and stay."""

    runs: Sequence[str]
    rows: int
    values: int
    passed_over: Sequence[str]
    parts: int = 0


class Collector:
    """Plans and collects the garbage of one store at one moment."""

    def __init__(self, opened: Opened, rules: Retention, now: float) -> None:
        _check(rules)
        self._opened, self._rules, self._now = opened, rules, now
        self._reader = opened.reader
        self._points = Points(opened.reader, opened.path)
        self._seen = rows.look(opened)  # First: what comes later may need what is judged idle.
        self._runs = list(self._reader.runs())[::-1]
        self._needs = kin.needs(opened, self._runs)

    def plan(self) -> Plan:
        """Say what would go and why the rest stays; changes nothing."""
        return steadily(self._plan)

    def _plan(self) -> Plan:
        self._forget_gone()
        judged = self._judge_runs()
        left = [run for run in self._runs if judged[run.body.id].is_kept]
        points = {run.body.id: self._judge_points(run) for run in left}
        gone = self._prunable(left, points)
        pruned = {id_ for ids in gone.values() for id_ in ids}
        named = objects.Named(
            self._opened, runs={run.row.no for run in self._runs if run not in left}, rows=pruned
        )
        return Plan(
            runs=list(judged.values()),
            checkpoints=[self._left(fate, pruned) for fates in points.values() for fate in fates],
            rows=len(pruned),
            values=len(objects.unnamed(self._opened, named)),
            bytes=sum(self._size(run) for run in self._runs if run not in left),
            parts=len(self._opened.objects.parts(self._now - PART_S)),
        )

    def collect(self, progress: Progress | None = None) -> Collected:
        """Do it. A damaged store is refused: what looks like garbage there may be all that is left.

        Others may go on writing; what they take up meanwhile is passed over.
        """
        report = verify(self._opened, progress=progress)
        if not report.is_whole:
            first = report.findings[0]
            why = "garbage is not collected in a damaged store; `holdfast verify` lists the damage"
            raise Damaged(first.where, f"{first.why}; {why}")
        judged = self._judge_runs()
        gone: list[str] = []
        passed: list[str] = []
        for family in self._families(judged):
            is_gone = runs.remove(self._opened, family)
            (gone if is_gone else passed).extend(run.body.id for run in family)
        count = 0
        for (place, branch), ids in steadily(self._idle_rows).items():
            owner = self._runs[place]
            done = rows.prune(self._opened, owner, branch, ids, self._now, seen=self._seen)
            count += done
            if not done:
                passed.append(owner.body.id)
        named = objects.Named(self._opened)
        removed = objects.remove(self._opened, named, objects.unnamed(self._opened, named))
        if gone or count:
            space.give_back(self._opened)
        parts = self._opened.objects.sweep(self._now - PART_S)
        return Collected(
            runs=[run for run in judged if run in gone],
            rows=count,
            values=len(removed),
            passed_over=passed,
            parts=parts,
        )

    def _families(self, judged: Mapping[str, Fate]) -> list[list[Run]]:
        """The runs that go, newest first; with the owner of a ledger all that share it."""
        going = [run for run in reversed(self._runs) if not judged[run.body.id].is_kept]
        owners = {run.row.no for run in going}
        families: dict[int, list[Run]] = {}
        for run in going:  # What a run grew from, or began it, is older.
            key = run.ledger if run.ledger in owners else run.row.no
            families.setdefault(key, []).append(run)
        return list(families.values())

    def _forget_gone(self) -> None:
        """Leave out runs that were removed since they were read, by this collection or another."""
        find = self._opened.records.run
        self._runs = [run for run in self._runs if find(run.row.kid) is not None]

    def _idle_rows(self) -> dict[tuple[int, int], set[int]]:
        """Rows that may go of the runs that are left."""
        self._forget_gone()
        points = {run.body.id: self._judge_points(run) for run in self._runs}
        return self._prunable(self._runs, points)

    def _judge_runs(self) -> dict[str, Fate]:
        held = {run.row.no: self._held_by(run) for run in self._runs}
        while True:
            judged = self._judge_by_rules(held)
            kept = {run.row.no for run in self._runs if judged[run.body.id].is_kept}
            needed = [
                each
                for each in self._needs
                if each.by in kept and each.of in held and each.why not in held[each.of]
            ]
            if not needed:
                return judged
            for each in needed:
                held[each.of].append(each.why)

    def _judge_by_rules(self, held: Mapping[int, Sequence[str]]) -> dict[str, Fate]:
        found = [
            Candidate(
                id=run.body.id,
                at=run.body.ended or run.body.created,
                bytes=self._size(run) if self._rules.quota is not None else 0,
                held_by=held[run.row.no],
            )
            for run in self._runs
        ]
        used = self._used() if self._rules.quota is not None else 0
        fates = retention.runs(found, self._rules, self._now, used=used)
        return {fate.id: fate for fate in fates}

    def _held_by(self, run: Run) -> list[str]:
        facts = []
        if run.body.status not in ENDED:
            facts.append(f"it has not ended: {run.body.status}")
        elif self._opened.leases.is_held(run.row.no):
            facts.append("a process works on it")
        if any(pin[0] == run.row.no for pin in self._seen.pins):
            facts.append("pinned")
        return facts

    def _judge_points(self, run: Run) -> list[Fate]:
        if not self._rules.speaks_of_checkpoints:
            return []
        known: list[Checkpoint] = self._points.of(run, every_turn=False)
        known = known or self._points.of(run, every_turn=True)
        candidates = [
            Candidate(
                id=each.id,
                at=each.at.timestamp(),
                turn=each.turn or 0,
                held_by=self._pinned(run, each.id),
            )
            for each in known
        ]
        judged = retention.checkpoints(candidates, self._rules, self._now, self._verifies)
        return [*judged, *self._pinned_besides(run, {each.id for each in known})]

    def _pinned_besides(self, run: Run, known: Container[str]) -> Iterator[Fate]:
        """Pinned points that no rule speaks of: any turn's end may be pinned, and the run's."""
        for no, *point in sorted(self._seen.pins):
            name = point_id(run.body.id, (point[0], point[1]))
            if no == run.row.no and tuple(point) != pins.WHOLE_RUN and name not in known:
                with contextlib.suppress(UnknownCheckpoint):  # A repair may have lost it.
                    self._points.find(name, run)
                    yield Fate(id=name, why=("pinned",))

    def _pinned(self, run: Run, point: str) -> list[str]:
        pinned = ["pinned"] if (run.row.no, *_point(point)) in self._seen.pins else []
        return [*pinned, "its run is pinned"] if self._is_pinned_whole(run) else pinned

    def _is_pinned_whole(self, run: Run) -> bool:
        return (run.row.no, *pins.WHOLE_RUN) in self._seen.pins

    def _verifies(self, point: str) -> bool:
        try:
            self._points.restore(point)
        except (Damaged, UnknownCheckpoint, RunErased):  # The latter: others collect or erase too.
            return False
        except NotStorable:  # It holds what this program does not know, such as a class.
            return self._is_there(point)
        return True

    def _is_there(self, name: str) -> bool:
        """Whether all that a point is made of is there, each row as it was written."""
        try:
            return is_there(self._reader, _point(name))
        except Damaged:
            return False

    def _left(self, fate: Fate, gone: set[int]) -> Fate:
        """The fate of a checkpoint once rows are gone: it stays if all it is made of does."""
        point = _point(fate.id)
        if not fate.is_kept and point[0] not in gone:
            with contextlib.suppress(Damaged):
                made = list(rows_to(self._reader, branch_of(point[0]), point)) if gone else []
                needed = {placed.id for placed in made} | rows_used(self._reader, made)
                if gone.isdisjoint(needed):
                    return Fate(id=fate.id, why=(MADE_OF_WHAT_STAYS,))
        return fate

    def _prunable(
        self, left: Sequence[Run], points: Mapping[str, Sequence[Fate]]
    ) -> dict[tuple[int, int], set[int]]:
        """Rows that no kept point needs, by the place of their run in `_runs` and their branch."""
        if not self._rules.speaks_of_checkpoints:
            return {}
        needed: set[int] = set()
        busy: set[int] = set()  # branches of pinned runs, and of those that a process works on
        for run in left:
            kept = [_point(fate.id) for fate in points[run.body.id] if fate.is_kept]
            needed |= _needed(self._reader, run, kept)
            if self._opened.leases.is_held(run.row.no) or self._is_pinned_whole(run):
                busy.update(branch.no for branch in self._reader.line(run.row.head))
            if self._is_pinned_whole(run):
                busy.update(branch.no for branch in self._reader.branches(run))
        gone: dict[tuple[int, int], set[int]] = {}
        for place, run in enumerate(self._runs):
            if run not in left:
                continue
            for branch in self._reader.branches(run):
                if branch.no in busy:
                    continue
                ids = set(self._idle(branch.no, needed))
                if ids:
                    gone[place, branch.no] = ids
        return gone

    def _idle(self, branch: int, needed: set[int]) -> Iterator[int]:
        """Packed rows of a branch that nobody needs and that hold nothing that must stay."""
        row = next(each for each in self._reader.line(branch) if each.no == branch)
        first = row_id(branch, seq_of(row.at) + 1 if row.parent else 0)
        loose, _ = self._opened.records.tail(branch)
        last = loose - 1 if loose >= 0 else self._reader.end(branch)
        for placed in self._reader.rows(branch, first, last) if first <= last else ():
            entries = placed.row.entries
            is_plain = all(isinstance(entry, _PRUNABLE) for entry in entries)
            if placed.id not in needed and is_plain:
                yield placed.id

    def _size(self, run: Run) -> int:
        with self._opened.records.alone() as link:
            return sweep.size(link, run.row.no)

    def _used(self) -> int:
        used = 0
        for path in self._opened.path.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # Others remove files meanwhile.
                used += path.stat().st_size if path.is_file() else 0
        return used


def collect_when_due(opened: Opened, rules: Retention, now: float) -> None:
    """Collect garbage unless somebody did within the hour; what goes wrong is logged, not raised.

    Whoever closes a store has done its work; that garbage is left is no failure of it.
    """
    try:
        if 0 <= now - pins.collected(opened) < COLLECT_S:
            return
        pins.note_collected(opened, now)
        done = Collector(opened, rules, now).collect()
    except StoreError as error:
        log.warning("garbage was not collected: %s", error)
    else:
        log.info("garbage collected: %d runs, %d rows", len(done.runs), done.rows)


def _needed(reader: Reader, run: Run, kept: Sequence[Point]) -> set[int]:
    """The rows that a restart of a run needs, and that its kept points are restored from."""
    history = reader.history(run)
    found: set[int] = set()
    for rows_of_one in (
        [*history.rows, *history.outside],
        *(list(rows_to(reader, branch_of(point[0]), point)) for point in kept),
    ):
        found.update(placed.id for placed in rows_of_one)
        found |= rows_used(reader, rows_of_one)
    return found


def _point(name: str) -> Point:
    parsed = parse_point(name)
    if parsed is None:
        msg = f"{name!r} names no point of a run; take one from `holdfast show RUN --checkpoints`"
        raise UsageError(msg)
    return parsed[1]


def _check(rules: object) -> None:
    if not isinstance(rules, Retention):
        msg = f"rules of retention are holdfast.Retention(last=…), not {rules!r:.80}"
        raise UsageError(msg)
