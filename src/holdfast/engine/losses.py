"""What a rollback loses: turns, and effects that were done since."""

import contextlib
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.engine import tools
from holdfast.engine.depend import Lost, arranged
from holdfast.engine.fork import Cut
from holdfast.engine.outcomes import Entered, Fates
from holdfast.engine.question import show
from holdfast.errors import Damaged
from holdfast.model.ids import Point, branch_of
from holdfast.model.journal import Declined, Entry, Happened, Intended, LoopLeft, TurnEnded, Undone
from holdfast.model.rollback import Take, Taken
from holdfast.store.reader import Reader, Run

UNDOES = ("undo", "offset", "ask")
"""Ways in which an effect is taken back, or may be."""


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """What is lost after a point: turns, one that did not end too, and effects.

    Those are told to people as `effects`, and recorded as `takes`.
    """

    turns: int
    effects: list[Taken]
    takes: list[Take]
    end: int


def losses(reader: Reader, run: Run, cut: Cut, *, is_kept: bool) -> Loss:
    """What a run's head holds after a point, as it is taken back; `is_kept`: all effects stay."""
    fates = Fates(reader, run.ledger)
    own = {branch.no for branch in reader.branches(run)}
    found: list[Lost] = []
    turns, is_open = 0, False
    seen: set[str] = set()
    for at, entry in _after(reader, run.row.head, cut):
        turns += isinstance(entry, TurnEnded)
        is_open = is_open or (not turns and _is_of_turn(entry))
        if not isinstance(entry, Intended) or entry.key in seen:
            continue
        seen.add(entry.key)
        fate = fates.of(Entered(meant=entry, at=at))
        if isinstance(fate, Declined | Undone):
            continue
        kept = ""
        if is_kept:
            kept = "only sections go back"
        elif branch_of(at[0]) not in own:
            kept = "the run that this one comes from did it"
        taken = way(entry, fate, kept=kept or held_elsewhere(fate))
        found.append(Lost(meant=entry, at=at, taken=taken))
    inorder = arranged(reader, found)
    return Loss(
        turns=turns + is_open,
        effects=[each.taken for each in inorder],
        takes=[each.take for each in inorder if each.taken.how != "kept"],
        end=reader.end(run.row.head),
    )


def held_elsewhere(fate: Happened | None) -> str:
    """Why an effect stays that was taken over from another line of history; empty: it was not."""
    is_shared = fate is not None and fate.how == "ledger"
    return "another branch or run of this history holds it too" if is_shared else ""


def forks_on(reader: Reader, run: Run, takes: Sequence[Take]) -> list[str]:
    """The forks whose history holds an effect that is to be taken back, oldest first.

    They are not asked, and go on as if it stood. One that cannot be read is not told.
    """
    undone = [(take.row, take.index) for take in takes if take.move in UNDOES]
    found: list[str] = []
    with contextlib.suppress(Damaged):
        for other in reader.runs() if undone else ():
            origin = other.body.origin
            if origin is None or origin.is_child or other.row.no == run.row.no:
                continue
            with contextlib.suppress(Damaged):
                ends = {each.parent: each.grown_from for each in reader.line(other.row.head)}
                if any(at < ends.get(branch_of(at[0]), (-1, 0)) for at in undone):
                    found.append(other.body.id)
    return found[::-1]


def _is_of_turn(entry: Entry) -> bool:
    """Whether an entry stands for something that was asked or changed inside a turn."""
    if isinstance(entry, LoopLeft):
        return entry.delta is not None
    scope = getattr(getattr(entry, "call", None), "scope", None)
    return isinstance(scope, int) and scope >= 0


def named(reader: Reader, take: Take) -> Taken:
    """An effect of a rollback that is under way."""
    meant = reader.row(take.row).row.entries[take.index]
    assert isinstance(meant, Intended)
    return replace(_taken(meant, take.move), after=take.after)


def _after(reader: Reader, head: int, cut: Cut) -> Iterator[tuple[Point, Entry]]:
    """What a line of history holds that one which ends at a point does not, newest first."""
    target = branch_of(cut.at.id)
    ends = {**reader.ends(target), target: cut.at.id - (not cut.at.is_whole)}
    for placed in reader.back(head):
        if placed.id <= ends.get(branch_of(placed.id), -1):
            return
        kept = len(cut.at.row.entries) if placed.id == cut.at.id else 0
        for index in range(len(placed.row.entries) - 1, kept - 1, -1):
            yield (placed.id, index), placed.row.entries[index]


def way(meant: Intended, fate: Happened | None, *, kept: str = "") -> Taken:
    """How an effect is taken back, or why it is not; `kept` is why it stays in any case."""
    spec = tools.find(meant.call.name, meant.module)
    how, why = "impossible", "it has neither undo= nor offset="
    if kept:
        how, why = "kept", kept
    elif spec is None:
        how = "unknown" if fate is None else "impossible"
        why = f"effect {meant.module}:{meant.call.name} is not declared here; name its module"
    elif fate is None:
        how = "unknown" if spec.probe is None else "ask"
        why = "it is in doubt and has no probe=" if spec.probe is None else ""
    elif spec.undo is not None or spec.offset is not None:
        how, why = "offset" if spec.undo is None else "undo", ""
    return _taken(meant, how, why)


def _taken(meant: Intended, how: str, why: str = "") -> Taken:
    scope = meant.call.scope
    return Taken(
        key=meant.key,
        effect=show(meant.call.name, meant.call.asked),
        turn=scope if isinstance(scope, int) and scope >= 0 else None,
        how=how,
        why=why,
    )
