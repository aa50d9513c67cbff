"""Whether what a store lists restores: its checkpoints, pins, and what its runs go on from.

Bytes that are all as they were written may still not make a state: a row may be gone that a point
needs, or a root may be that of another state. Reads only; runs may go on meanwhile.
"""

import contextlib
from collections.abc import Iterator

import msgspec

from holdfast.engine.good import newest_good
from holdfast.engine.points import Points
from holdfast.engine.restore import is_there, whole_history
from holdfast.errors import Damaged, HoldfastError, UnknownCheckpoint
from holdfast.model.failure import REPAIRED
from holdfast.model.ids import Point, parse_point, point_id
from holdfast.model.journal import Failed
from holdfast.store.gc import pins
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import TRIES_MAX, left_of
from holdfast.store.verify import Finding, Progress, Report

POINTS_MAX = 1000
"""So many of a run's checkpoints are tried, the newest, besides those with a label or a pin."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """How many points were restored, and what was found.

    `unknown` hold what this program does not know, such as a class: `unread` says what, of the
    first of them; `left` were not tried.
    """

    findings: list[Finding]
    points: int = 0
    unknown: int = 0
    unread: str = ""
    left: int = 0


def try_points(opened: Opened, progress: Progress | None = None) -> Tried:
    """Restore the checkpoints of every run, its newest point and what is pinned."""
    total = Tried(findings=[])
    runs: list[Run] = []
    with contextlib.suppress(Damaged):  # Of what the catalog cannot list, others tell.
        runs += opened.reader.runs()
    for number, run in enumerate(runs):
        if progress is not None:
            progress(number, len(runs))
        tried = _steady(opened, run)
        total = Tried(
            findings=[*total.findings, *tried.findings],
            points=total.points + tried.points,
            unknown=total.unknown + tried.unknown,
            unread=total.unread or tried.unread,
            left=total.left + tried.left,
        )
    return total


def with_points(report: Report, tried: Tried) -> Report:
    """A report on a store's bytes, with what became of its points."""
    return msgspec.structs.replace(
        report,
        findings=[*report.findings, *tried.findings],
        points=tried.points,
        points_unknown=tried.unknown,
        points_unread=tried.unread,
        points_left=tried.left,
    )


def _steady(opened: Opened, run: Run) -> Tried:
    """What trying a run comes to; again where something is found, until that is the same.

    Garbage collection or an erasure may take away what is being read.
    """
    before: list[Finding] | None = None
    for _ in range(TRIES_MAX):
        found = None
        with contextlib.suppress(Damaged):
            found = left_of(opened.reader, run.body.id)
        if found is None or found.row.no != run.row.no:
            return Tried(findings=[])
        tried = _Trial(opened, found).run()
        if tried.findings in ([], before):
            break
        before = tried.findings
    return tried


class _Trial:
    """One look at one run."""

    def __init__(self, opened: Opened, run: Run) -> None:
        self._reader, self._run = opened.reader, run
        self._points = Points(opened.reader, opened.path)
        self._pins = {pin[1:] for pin in pins.pins(opened) if pin[0] == run.row.no}
        self._faults: dict[tuple[str, str], list[str]] = {}
        self._count = self._unknown = self._left = 0
        self._unread = ""

    def run(self) -> Tried:
        """Try what the run goes on from, and all of its points."""
        self._restart()
        for point in self._listed():
            self._restore(point)
        return Tried(
            findings=list(self._findings()),
            points=self._count,
            unknown=self._unknown,
            unread=self._unread,
            left=self._left,
        )

    def _restart(self) -> None:
        name = f"run {self._run.body.id}"
        try:
            whole_history(self._reader, self._run)
        except Damaged as damage:
            if not self._is_given_up():
                self._note(name, damage)

    def _is_given_up(self) -> bool:
        """Whether a repair has said that nothing is left which the run could go on from."""
        with contextlib.suppress(Damaged):
            last = self._reader.row(self._reader.end(self._run.row.head)).row.entries[-1]
            return isinstance(last, Failed) and last.error.name == REPAIRED
        return False

    def _listed(self) -> list[Point]:
        found = dict.fromkeys(each for each in self._pins if each != pins.WHOLE_RUN)
        with contextlib.suppress(UnknownCheckpoint, Damaged):  # No turn has ended; or see above.
            found[self._points.newest(self._run)] = None
        try:
            listed = self._points.of(self._run, every_turn=False)
        except Damaged as damage:
            self._note(f"run {self._run.body.id}", damage)
            return list(found)
        newest = {each.id for each in listed[-POINTS_MAX:]}
        for each in listed:
            parsed = parse_point(each.id)
            assert parsed is not None, "a point's id names it"
            if each.id in newest or each.label is not None:
                found[parsed[1]] = None
            elif parsed[1] not in found:
                self._left += 1
        return list(found)

    def _restore(self, point: Point) -> None:
        name = point_id(self._run.body.id, point)
        try:
            self._points.at(*self._points.find(name, self._run))
        except Damaged as damage:
            self._note(f"checkpoint {name}", damage)
        except UnknownCheckpoint as error:
            if self._is_missed(point):
                self._note(f"checkpoint {name}", Damaged("", error.why))
        except HoldfastError as error:
            self._unknown += 1
            self._unread = self._unread or f"{name}: {error}"
        else:
            self._count += 1

    def _is_missed(self, point: Point) -> bool:
        """Whether what is gone was to stay, and is not what a repair or a collection took now."""
        with contextlib.suppress(Damaged):
            return is_there(self._reader, point) is (point not in self._pins)
        return False

    def _note(self, what: str, damage: Damaged) -> None:
        self._faults.setdefault((damage.where, damage.why), []).append(what)

    def _findings(self) -> Iterator[Finding]:
        """One for each cause, with the newest point that can be had instead."""
        good = None
        if self._faults:
            with contextlib.suppress(HoldfastError):
                good = newest_good(self._reader, self._run, self._points.at)
        for (where, why), names in self._faults.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield Finding(
                where=f"{names[-1]}{more}",
                why=f"it cannot be restored: {': '.join(filter(None, (where, why)))}",
                run=self._run.body.id,
                good=None if good is None else point_id(self._run.body.id, good),
            )
