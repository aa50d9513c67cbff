"""What is kept and why: a pure plan over checkpoints and runs, made before anything goes.

A rule keeps, it never removes: what goes is what no rule keeps. Without a rule that speaks of
checkpoints all of them are kept, and likewise runs. Whatever the rules say, these stay: what is
pinned, what a fork or another branch grows from, a run that has not ended, the newest point of a
run, and its two newest checkpoints that verify.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.model.limits import seconds, size_of

GENERATIONS_MIN = 2
"""Checkpoints of a run that verify, and stay whatever the rules say."""

_UNITS: Final = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """Rules; what is left out keeps nothing by itself.

    `last`, `within` (seconds, or `"7d"`) and `every` (one in so many turns) speak of the
    checkpoints of each run, `runs_last` and `runs_within` of runs that have ended, `quota` (bytes,
    or `"2GB"`) of the store.
    """

    last: int | None = None
    within: float | str | None = None
    every: int | None = None
    runs_last: int | None = None
    runs_within: float | str | None = None
    quota: int | str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, at the line where it was written."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not _READ.get(name, _count)(value) > 0:
                msg = f"retention: {name} is {value!r}; it is a number above 0, or left out"
                raise ValueError(msg)

    @property
    def speaks_of_checkpoints(self) -> bool:
        """Whether any checkpoint may go."""
        return any(rule is not None for rule in (self.last, self.within, self.every))

    @property
    def speaks_of_runs(self) -> bool:
        """Whether any run may go by a rule; one may go for the quota too."""
        return self.runs_last is not None or self.runs_within is not None


def _count(value: object) -> int:
    if type(value) is not int:
        msg = f"{value!r} is no whole number"
        raise ValueError(msg)
    return value


_READ: Final[Mapping[str, Callable[[Any], float]]] = {
    "within": seconds,
    "runs_within": seconds,
    "quota": size_of,
}
"""How the rules are read that people write with a unit."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint or run that may go; `held_by` are facts that keep it whatever the rules say."""

    id: str
    at: float
    turn: int = 0
    bytes: int = 0
    held_by: Sequence[str] = ()


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a candidate: kept for these reasons; without one it goes."""

    id: str
    why: Sequence[str]

    @property
    def is_kept(self) -> bool:
        """Whether it stays."""
        return bool(self.why)


def checkpoints(
    found: Sequence[Candidate], rules: Retention, now: float, verifies: Callable[[str], bool]
) -> list[Fate]:
    """The fates of one run's checkpoints, given oldest first.

    `verifies` says of a checkpoint whether it can really be restored. It is asked of the newest
    ones only, until enough do.
    """
    if not rules.speaks_of_checkpoints:
        return [Fate(id=each.id, why=("no rule speaks of checkpoints",)) for each in found]
    why = [list(each.held_by) for each in found]
    _keep_by_rules(found, why, now, last=rules.last, within=rules.within)
    if rules.every is not None:
        _keep_apart(found, why, rules.every)
    sound = 0
    for place in range(len(found) - 1, -1, -1):
        if sound == GENERATIONS_MIN:
            break
        if verifies(found[place].id):
            sound += 1
            word = "newest that verifies" if sound == 1 else "second newest that verifies"
            why[place].append(word)
    return _fates(found, why)


def runs(found: Sequence[Candidate], rules: Retention, now: float, *, used: int) -> list[Fate]:
    """The fates of the runs of a store, given oldest first; `used` are the store's bytes now."""
    why = [list(each.held_by) for each in found]
    if rules.speaks_of_runs:
        _keep_by_rules(found, why, now, last=rules.runs_last, within=rules.runs_within)
    else:
        for reasons in why:
            reasons.append("no rule speaks of runs")
    if rules.quota is not None:
        _make_room(found, why, used - size_of(rules.quota))
    return _fates(found, why)


def _keep_by_rules(
    found: Sequence[Candidate],
    why: list[list[str]],
    now: float,
    *,
    last: int | None,
    within: float | str | None,
) -> None:
    age_s = None if within is None else seconds(within)
    for place, each in enumerate(found):
        if last is not None and len(found) - place <= last:
            why[place].append(f"among the last {last}")
        if age_s is not None and now - each.at <= age_s:
            why[place].append(f"younger than {_age(age_s)}")


def _age(age_s: float) -> str:
    unit_s, word = next((u for u in _UNITS if age_s >= u[0]), _UNITS[-1])
    return f"{age_s / unit_s:g} {word}"


def _keep_apart(found: Sequence[Candidate], why: list[list[str]], turns: int) -> None:
    """Keep the oldest, and one in so many turns; asked again later, the same ones are kept."""
    due: int | None = None
    for place, each in enumerate(found):
        if due is None or each.turn >= due:
            due = each.turn + turns
            why[place].append(f"one in {turns} turns")


def _make_room(found: Sequence[Candidate], why: list[list[str]], too_many: int) -> None:
    """Let go of the oldest runs that nothing but a rule keeps, until the quota is met."""
    for place, each in enumerate(found):
        if not why[place]:
            too_many -= each.bytes
    for place, each in enumerate(found):
        if too_many <= 0:
            return
        if why[place] and not each.held_by:
            why[place].clear()
            too_many -= each.bytes


def _fates(found: Sequence[Candidate], why: list[list[str]]) -> list[Fate]:
    return [Fate(id=each.id, why=tuple(why[place])) for place, each in enumerate(found)]
