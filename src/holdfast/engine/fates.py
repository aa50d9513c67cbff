"""What a repair does to a damaged run, and what is lost by it, as people read it."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from holdfast.model.ids import Point, branch_of, point_id
from holdfast.model.journal import TurnEnded
from holdfast.model.run import RunBody, Status
from holdfast.store.backends.base import RunRow
from holdfast.store.reader import Placed
from holdfast.store.repair.sift import Sifted, Stray

Act = Literal["filed", "cut", "carried", "lost"]


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair does to one damaged run, and what is lost.

    `filed`: its catalog row is made anew. `cut`: rows from the first bad one on are moved aside.
    `carried`: so they are, and the newest state that restores is kept. `lost`: nothing is left.
    `turns_lost` counts those of rows that can still be read.
    `effects_done` were done after what is left, as rows say that are moved aside. `module` is that
    of its agent, where it is known.
    """

    run: str
    number: int
    act: Act
    why: str
    point: str | None = None
    turns_kept: int = 0
    turns_lost: int = 0
    rows_lost: int = 0
    checkpoints_lost: list[str] = []
    effects_unsure: list[str] = []
    status: Status | None = None
    effects_done: list[str] = []
    module: str = ""


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was found: its catalog row and entry, where those are sound, and its branches.

    `claims` are entries of catalog rows that fail their hashes; `gone` are rows that were
    acknowledged and are not there; `indexed` those that the index says to hold intents; `kin` are
    branches of other runs with the same ledger; `strays` those of its own that cannot be kept.
    """

    no: int
    row: RunRow | None
    body: RunBody | None
    claims: list[RunBody]
    branches: list[Sifted]
    faults: list[str]
    gone: list[int]
    indexed: list[int]
    kin: list[Sifted] = []
    strays: list[Stray] = []

    @property
    def is_sound(self) -> bool:
        """Whether every row is there and true."""
        return self.row is not None and not self.faults and not self.gone

    @property
    def line(self) -> int | None:
        """The number of the run that its line of forks began with; None for a child."""
        origin = None if self.body is None else self.body.origin
        if origin is None:
            return self.no
        return None if origin.is_child else origin.ledger or self.no

    @property
    def name(self) -> str:
        """The run's id, or what it is called where that is lost."""
        return f"lost-{self.no}" if self.body is None else self.body.id


def is_kin(one: Patient, other: Patient) -> bool:
    """Whether two runs do their effects behind one fence: a run and its forks, children apart."""
    return one is not other and None not in (one.line, other.line) and one.line == other.line


def nothing_left(patient: Patient) -> Fate:
    """The fate of a run of which not even the start can be read."""
    why = patient.faults[0] if patient.faults else "its first row is lost"
    rows = sum(len(each.kept) + len(each.lost) for each in patient.branches)
    rows += sum(map(len, _gone(patient)))
    return Fate(run=patient.name, number=patient.no, act="lost", why=why, rows_lost=rows)


def fate_of(
    patient: Patient,
    body: RunBody,
    act: Act,
    line: Sequence[Placed],
    point: Point | None,
    *,
    effects: tuple[list[str], list[str]],
) -> Fate:
    """The fate of a run of which `line` is left, and `point` the newest that can be restored.

    `effects` are those unsure, and those done.
    """
    lost = [placed for each in patient.branches for placed in each.rest]
    kept = {
        entry.turn
        for placed in line
        for entry in placed.row.entries
        if isinstance(entry, TurnEnded)
    }
    gone = {
        entry.turn: point_id(body.id, (placed.id, index))
        for placed in lost
        for index, entry in enumerate(placed.row.entries)
        if isinstance(entry, TurnEnded) and entry.turn not in kept
    }
    marked = [
        gone[entry.turn]
        for placed in lost
        for entry in placed.row.entries
        if isinstance(entry, TurnEnded) and entry.mark is not None and entry.turn in gone
    ]
    return Fate(
        run=body.id,
        number=patient.no,
        act=act,
        why=_why(patient),
        point=None if point is None else point_id(body.id, point),
        turns_kept=len(kept),
        turns_lost=max([len(gone), *(turn + 1 - len(kept) for turn in gone)]),
        rows_lost=sum(len(each.lost) for each in patient.branches) + sum(map(len, _gone(patient))),
        checkpoints_lost=marked,
        effects_unsure=effects[0],
        status=body.status,
        effects_done=effects[1],
        module=body.module,
    )


def _gone(patient: Patient) -> list[range]:
    """The rows that were acknowledged and are not there: also those before the one noted last."""
    ends = {each.branch.no: max(each.end, each.lost.stop - 1) for each in patient.branches}
    return [range(ends.get(branch_of(row), row - 1) + 1, row + 1) for row in patient.gone]


def _why(patient: Patient) -> str:
    besides = [each.why for each in patient.kin if each.why]
    gone = [_told(rows) for rows in _gone(patient)]
    return (patient.faults or gone or besides or ["acknowledged rows are gone"])[0]


def _told(rows: range) -> str:
    last = f" to {rows[-1]:#x}" if len(rows) > 1 else ""
    why = "what turns ended in them is not known"
    return f"acknowledged rows are gone, {rows[0]:#x}{last}; {why}"
