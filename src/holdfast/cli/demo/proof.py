"""What was promised and what was measured, counted from logs outside the store.

The journal is read only to know, at each kill, which answers were recorded and which effects stood
in doubt.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.cli.demo.child import RUN
from holdfast.cli.demo.world import BANK, COST, MAIL, MODEL, lines
from holdfast.model.journal import Answer, Declined, Entry, Happened, Intended, TurnEnded
from holdfast.store.codec import values
from holdfast.store.reader import Reader


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """An effect that a kill left with an intent and no outcome."""

    key: str
    effect: str
    ticket: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What stood when a life had ended.

    `asked` counts the calls the model had got, `recorded` names the questions with an answer in
    the journal, `known_by` says of each effect with an outcome what knew it.
    """

    asked: int
    recorded: frozenset[str]
    turns: int
    doubts: tuple[Doubt, ...]
    known_by: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The numbers of a demo."""

    seed: int
    kills: int
    lives: int
    turns: int
    turns_done: int
    answers_recorded: int
    answers_asked_twice: int
    answers_lost_in_flight: int
    effects_done: int
    effects_done_twice: int
    effects_missing: int
    in_doubt: int
    in_doubt_happened: int
    in_doubt_did_not: int
    in_doubt_repeated: int
    in_doubt_left: int
    is_result_same: bool
    cost_per_turn_ms: float
    bytes_stored: int
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether every promise was kept."""
        broken = (
            self.turns - self.turns_done,
            self.answers_asked_twice,
            self.effects_done_twice,
            self.effects_missing,
            self.in_doubt_left,
        )
        return self.is_result_same and not any(broken)


def look(reader: Reader, world: Path) -> Look:
    """Read what stands now."""
    recorded: set[str] = set()
    turns = 0
    doubts: dict[str, Doubt] = {}
    known_by: dict[str, str] = {}
    for entry in _journal(reader):
        match entry:
            case Answer():
                recorded.add(_decoded(entry.value)["question"])
            case TurnEnded():
                turns += 1
            case Intended():
                ticket = _decoded(entry.args)["ticket"]
                doubts[entry.key] = Doubt(key=entry.key, effect=entry.call.name, ticket=ticket)
            case Happened() | Declined():
                doubts.pop(entry.key, None)
                known_by[entry.key] = entry.how
            case _:
                pass
    return Look(
        asked=len(lines(world / MODEL)),
        recorded=frozenset(recorded),
        turns=turns,
        doubts=tuple(doubts.values()),
        known_by=known_by,
    )


def _journal(reader: Reader) -> Iterable[Entry]:
    run = reader.find(RUN)
    if run is not None:
        head = run.row.head
        for placed in reader.rows(head, reader.first(head), reader.end(head)):
            yield from placed.row.entries


def _decoded(data: bytes) -> Any:  # noqa: ANN401 what the demo's own agent recorded
    return values.decode(data)


def asked_twice(world: Path, looks: Sequence[Look]) -> int:
    """Calls that the model got although the answer was recorded already.

    What is asked in one life is recorded before the agent goes on, so a second time in the same
    life counts too.
    """
    asked = [line["question"] for line in lines(world / MODEL)]
    ends = [0, *(each.asked for each in looks)]
    known = [frozenset(), *(each.recorded for each in looks)]
    twice = 0
    for (begin, end), recorded in zip(pairwise(ends), known, strict=False):
        life = asked[begin:end]
        again = sum(question in recorded for question in life)
        twice += again + len(life) - len(set(life))
    return twice


def lost_in_flight(world: Path) -> int:
    """Questions whose first answer no kill had left the time to record: asked once more."""
    asked = Counter(line["question"] for line in lines(world / MODEL))
    return asked.total() - len(asked)


def effects(world: Path) -> Counter[tuple[str, str, object]]:
    """How often each effect happened: what the bank booked and the mail server delivered."""
    booked = [("refund", it["ticket"], it["cents"]) for it in lines(world / BANK)]
    mailed = [("mail", it["ticket"], it["text"]) for it in lines(world / MAIL) if it["is_new"]]
    return Counter([*booked, *mailed])


def settled(looks: Sequence[Look]) -> Counter[str]:
    """How the effects that stood in doubt came to their outcome, each counted once."""
    keys = {doubt.key for each in looks for doubt in each.doubts}
    return Counter(looks[-1].known_by.get(key, "nothing") for key in keys)


def cost_per_turn_ms(world: Path) -> float:
    """The median of a turn's time that was not spent in the world outside."""
    costs = [line["own_ms"] for line in lines(world / COST)]
    return float(statistics.median(costs))


def bytes_in(folder: Path) -> int:
    """The size of every file of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
