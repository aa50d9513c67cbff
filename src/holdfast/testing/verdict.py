"""What is wrong with a run that was killed and continued, beside one that nobody disturbed."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from holdfast.capture.diff import Change, diff
from holdfast.testing.points import EFFECT_CALLED, TURN_BEGUN
from holdfast.testing.survive import Played
from holdfast.testing.world import AGENT, NOWHERE, Deed

SHOWN_CHARS = 120
CHANGES_SHOWN = 3

LOCALS = (
    "what a turn leaves in a local or global variable is gone after a crash: "
    "keep in run.state what later turns need"
)
ARGUMENTS = (
    "arguments come from the state, from recorded answers, or from run.now(), run.random and "
    "run.uuid(), which are recorded; a step that shall not see an argument names it in ignore="
)
BETWEEN = (
    "between recorded calls an agent computes from its arguments, its state and recorded answers "
    "alone; whatever else it needs belongs into a step"
)
PROBE = (
    "its probe= said that it was not done, and it was: the probe looks where the effect leaves its "
    "trace, and gives what is found there"
)
BROKEN = "this breaks a promise of Holdfast; please report it with the store that is kept"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and what to do about it."""

    found: str
    so: str


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Undisturbed runs: what each does, and what differs from one to the next."""

    played: Played
    varying: tuple[str, ...]
    loose: frozenset[str]
    """Kinds of deeds that are about something else each time: only their number counts."""


def reference(one: Played, two: Played) -> Reference:
    """What two undisturbed runs of one agent have in common."""
    first, second = Counter(map(str, one.deeds)), Counter(map(str, two.deeds))
    unlike = (first - second) + (second - first)
    kinds = {deed.what for deed in (*one.deeds, *two.deeds) if str(deed) in unlike}
    return Reference(
        played=one,
        varying=tuple(change.path for change in diff(one.ends, two.ends)),
        loose=frozenset(kinds),
    )


def faults(expected: Reference, got: Played) -> list[Fault]:
    """All that is wrong with a run that was killed on its way."""
    found = [*_doubled_effects(got), *_deeds(expected, got)]
    if got.ends is None:
        return [*found, Fault(found=f"after that it did not go on: {got.error}", so=_advice(got))]
    found += _lost_effects(expected, got)
    changes = [
        change
        for change in diff(expected.played.ends, got.ends)
        if not any(_is_within(change.path, place) for place in expected.varying)
    ]
    found += [Fault(found=shown(change), so=_advice(got)) for change in changes[:CHANGES_SHOWN]]
    return found


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _doubled_effects(got: Played) -> Iterator[Fault]:
    """Effects whose function ran again under the same key, though nobody said it may."""
    done = [each for each in got.reached if each.point == EFFECT_CALLED]
    times = Counter(each.key for each in done)
    for each in {each.key: each for each in done}.values():
        if times[each.key] > 1 and not each.is_idempotent:
            found = f"effect {each.what} was done {times[each.key]} times"
            yield Fault(found=found, so=PROBE if each.has_probe else BROKEN)


def _lost_effects(expected: Reference, got: Played) -> Iterator[Fault]:
    """Effects that were done less or more often than without the kill, each key counted once."""
    meant, done = _by_name(expected.played), _by_name(got)
    for name in sorted(meant | done):
        if meant[name] != done[name]:
            yield Fault(
                found=f"{done[name]} effects of {name} were done, without the kill {meant[name]}",
                so=_advice(got),
            )


def _by_name(played: Played) -> Counter[str]:
    done = {each.key: each.what for each in played.reached if each.point == EFFECT_CALLED}
    return Counter(what.partition("(")[0] for what in done.values())


def _deeds(expected: Reference, got: Played) -> Iterator[Fault]:
    """What was done in the world more or less often than without the kill."""

    def name(deed: Deed) -> str:
        return deed.what if deed.what in expected.loose else str(deed)

    meant = Counter(map(name, expected.played.deeds))
    done = Counter(map(name, got.deeds))
    by = {name(deed): deed for deed in (*expected.played.deeds, *got.deeds)}
    for each, deed in by.items():
        told = f"{each} was done {_times(done[each])}, without the kill {_times(meant[each])}"
        if done[each] > meant[each]:
            so = _instead(deed, got, is_new=not meant[each])
            yield Fault(found=f"{told}; it is done by {deed.by}", so=so)
        elif done[each] < meant[each] and got.ends is not None:
            yield Fault(found=told, so=_advice(got))


def _instead(deed: Deed, got: Played, *, is_new: bool) -> str:
    if deed.by in (AGENT, NOWHERE):
        return f"declare the function that does {deed.what} with @holdfast.effect, and call that"
    kind, _, function = deed.by.partition(" ")
    if kind == "step":
        return f"a step may be asked again: declare {function} with @holdfast.effect instead"
    if is_new:  # Nothing was repeated: the agent asked for something else.
        return _advice(got)
    mine = [each for each in got.reached if each.what.partition("(")[0] == _short(function)]
    if any(each.has_probe for each in mine) and not any(each.is_idempotent for each in mine):
        return PROBE
    return (
        f"effect {function} was repeated under its idempotency key: let the world know it again "
        "by that key (crash_world.do(..., once=idempotency_key)), or take away idempotent=True"
    )


def _short(function: str) -> str:
    """As `witness.named` writes it."""
    return function.rpartition("<locals>.")[2]


def _advice(got: Played) -> str:
    if got.kind == "Diverged":
        return ARGUMENTS
    return LOCALS if any(each.point == TURN_BEGUN for each in got.died_at) else BETWEEN


def shown(change: Change) -> str:
    """A difference as a sentence."""
    match change.kind:
        case "added":
            return f"{change.path} is {_brief(change.after)}, without the kill it is not there"
        case "removed":
            return f"{change.path} is missing, without the kill it is {_brief(change.before)}"
        case "changed":
            before, after = _brief(change.before), _brief(change.after)
            return f"{change.path} is {after}, without the kill it is {before}"


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _times(count: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")
