"""What the journal and the outside ledger say of a run when they are laid side by side."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from holdfast.drill.ledger import Line
from holdfast.engine.reading import key_of
from holdfast.model.journal import Answer, Call, Resumed, Retried, Spawned
from holdfast.report.episodes import Ending, Episode, entries_of, episodes, lines_of
from holdfast.store.reader import Reader, Run


def family(reader: Reader, run: Run) -> list[Run]:
    """A run, and the children that it and they began on any branch: what one task came to."""
    found = [run]
    for each in found:
        entries = entries_of(lines_of(reader, each))
        begun = {entry.id: None for entry in entries if isinstance(entry, Spawned)}
        found += [child for id_ in begun if (child := reader.find(id_)) is not None]
    return found


def episodes_of(
    reader: Reader, kin: Sequence[Run], struck_at: float | None, lines: Sequence[Line]
) -> list[Episode]:
    """The episodes of a task; the first after the strike begins there, known from outside.

    A process that dies failed then, not at its last record, and a hang begins before its call is
    given up. What damage took away has to be caught up with too.
    """
    deaths = {} if struck_at is None else {1: struck_at}
    lost = next((line.counts["had"] for line in lines if line.what == "damaged"), 0)
    run, *children = kin
    found = episodes(lines_of(reader, run), deaths=deaths, had={1: int(lost)})
    for child in children:
        found += _its_own(episodes(lines_of(reader, child), deaths=deaths), found)
    found.sort(key=lambda each: each.failed_at)
    if struck_at is None:
        return found
    for index, each in enumerate(found):
        if each.caught_up_at is None or each.caught_up_at > struck_at:
            at = min(each.failed_at, struck_at)
            found[index] = msgspec.structs.replace(each, failed_at=at)
            break
    return found


def _its_own(found: Iterable[Episode], known: Sequence[Episode]) -> Iterator[Episode]:
    """Those that a child got over while nothing was wrong with those above it.

    A process that dies takes a run and its children with it: one failure. What a child does not get
    over is a failure of its parent.
    """
    for each in found:
        is_over = each.ending in (Ending.RECOVERED, Ending.PERSON)
        if is_over and not any(_is_within(each, other) for other in known):
            yield each


def _is_within(one: Episode, other: Episode) -> bool:
    """Whether both were open at a time."""
    ends = [math.inf if each.caught_up_at is None else each.caught_up_at for each in (one, other)]
    return one.failed_at <= ends[1] and other.failed_at <= ends[0]


def asked_twice(reader: Reader, kin: Sequence[Run], lines: Sequence[Line]) -> int:
    """Steps of a task whose answer stands on their run's line and that were asked again since."""
    return sum(
        _asked_twice(reader, run, [line for line in lines if line.run == run.body.id])
        for run in kin
    )


def _asked_twice(reader: Reader, run: Run, lines: Sequence[Line]) -> int:
    asked = Counter((line.call, line.epoch) for line in lines if line.what == "asked")
    head, epoch = run.row.head, 1
    answered: dict[str, int] = {}
    retried: Counter[tuple[str, int]] = Counter()
    for placed in reader.rows(head, reader.first(head), reader.end(head)):
        for entry in placed.row.entries:
            match entry:
                case Resumed():
                    epoch = entry.epoch
                case Answer():
                    answered[_place(entry.call)] = epoch
                case Retried():
                    retried[_place(entry.call), epoch] += 1
                case _:
                    pass
    return sum(
        max(0, count - 1 - retried[call, at]) if at == answered[call] else count
        for (call, at), count in asked.items()
        if call in answered and at >= answered[call]
    )


def _place(call: Call) -> str:
    """A call by its place in the run, as the process that makes it tells it."""
    return hashlib.sha256(repr(key_of(call)).encode()).digest()[:16].hex()


def excess(did: Mapping[str, int], expected: Mapping[str, int]) -> int:
    """How many effects were done that the reference did not do, or less often."""
    return sum(max(0, count - expected.get(what, 0)) for what, count in did.items())


def shortfall(did: Mapping[str, int], expected: Mapping[str, int]) -> int:
    """How many effects of the reference were not done."""
    return excess(expected, did)
