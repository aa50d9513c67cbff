"""When a run is saved: after how much work, at which events; and when an answer counts as kept."""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import TypeAlias, TypeVar

import msgspec

from holdfast.errors import UsageError
from holdfast.model.limits import seconds as seconds_of
from holdfast.model.limits import short_repr
from holdfast.model.sections import is_name

N = TypeVar("N", int, float)

_COUNTS = ("turns", "steps", "tokens")
_RULE = re.compile(r"\s*(?P<word>[a-z_]+)\s*(?:=\s*(?P<value>[\w.]+)\s*)?")

COUNT_MAX = 10**12
"""Beyond this nobody counts turns, steps or tokens; `never()` says it better."""

DURABLE, BOUNDED, ASYNC = DURABILITIES = ("durable", "bounded", "async")
BOUND_S = 0.1
"""With `bounded`: answers that are older than this are on the disk when the next one is given."""
LOSES: Mapping[str, str] = {
    DURABLE: "nothing that was answered",
    BOUNDED: f"the steps of the last {BOUND_S * 1000:.0f} ms, never an effect",
    ASYNC: "the steps since the last commit, never an effect",
}
"""What a crash may cost, by durability; always the newest, without a gap before them."""


class Cadence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When a checkpoint is made: whichever comes first. One that says nothing is `never()`."""

    turns: int | None = None
    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    on_child: bool = False
    before_irreversible: bool = False
    is_adaptive: bool = False

    def __post_init__(self) -> None:
        """Refuse a cadence that cannot be meant, at the line where it was written."""
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value <= COUNT_MAX):
                most = f" to {COUNT_MAX:,}" if type(value) is int and value > 1 else ""
                msg = f"every({name}=) takes a whole number from 1{most}, not {short_repr(value)}"
                raise ValueError(msg)
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            msg = f"every(seconds=) takes a time from more than 0 on, not {self.seconds!r}"
            raise ValueError(msg)

    def __or__(self, other: "Cadence") -> "Cadence":
        """Both: whichever comes first."""
        if not isinstance(other, Cadence):
            return NotImplemented
        return Cadence(
            turns=_sooner(self.turns, other.turns),
            steps=_sooner(self.steps, other.steps),
            tokens=_sooner(self.tokens, other.tokens),
            seconds=_sooner(self.seconds, other.seconds),
            on_child=self.on_child or other.on_child,
            before_irreversible=self.before_irreversible or other.before_irreversible,
            is_adaptive=self.is_adaptive or other.is_adaptive,
        )

    def __str__(self) -> str:
        """As `cadence_of` reads it."""
        said = [f"{name}={value}" for name in _COUNTS if (value := getattr(self, name))]
        # In digits however long or short it is: a power of ten is no duration as people write it.
        said += [f"seconds={Decimal(repr(self.seconds)).normalize():f}"] if self.seconds else []
        said += [word for word in _EVENTS if _EVENTS[word]() | self == self]
        return " | ".join(said) or "never"


Snapshots: TypeAlias = Mapping[str, "Cadence | str"] | str
"""Sections of the state and when to save each by itself, or a text that says so."""


class Pace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is said of the saving of a run; None leaves it to whoever is asked next.

    `snapshot` gives sections of the state a cadence of their own.
    """

    checkpoint: Cadence | None = None
    snapshot: dict[str, Cadence] | None = None
    durability: str | None = None

    def over(self, other: "Pace") -> "Pace":
        """What this says and, where it says nothing, what `other` does."""
        return Pace(
            checkpoint=other.checkpoint if self.checkpoint is None else self.checkpoint,
            snapshot=other.snapshot if self.snapshot is None else self.snapshot,
            durability=other.durability if self.durability is None else self.durability,
        )


def every(
    *,
    turns: int | None = None,
    steps: int | None = None,
    tokens: int | None = None,
    seconds: float | str | None = None,
) -> Cadence:
    """A checkpoint after so much work since the one before, whichever comes first.

    `turns` counts at the end of turns: every `turns`-th is one. `tokens` are those that answers and
    streams report. `seconds` also pass while a step runs. Without any, every turn.
    """
    if turns is steps is tokens is seconds is None:
        turns = 1
    passed = None if seconds is None else seconds_of(seconds)
    return Cadence(turns=turns, steps=steps, tokens=tokens, seconds=passed)


def on_child() -> Cadence:
    """A checkpoint whenever a child of the run has ended."""
    return Cadence(on_child=True)


def before_irreversible() -> Cadence:
    """A checkpoint before every effect that declares neither `undo` nor `offset`."""
    return Cadence(before_irreversible=True)


def adaptive() -> Cadence:
    """Checkpoints as often as pays: learnt from what they cost and how often the run fails.

    Besides, whenever `before_irreversible()` makes one.
    """
    return Cadence(is_adaptive=True)


def never() -> Cadence:
    """No checkpoints but those that are asked for; every turn's end is a recovery point still."""
    return Cadence()


def cadence_of(text: str) -> Cadence:
    """Read a cadence as configuration says it: `turns=5 | seconds=30s | before_irreversible`."""
    found = never()
    for part in text.split("|"):
        rule = _RULE.fullmatch(part)
        word, value = (rule["word"], rule["value"]) if rule else ("", None)
        if word in _COUNTS and value is not None and value.isdecimal():
            found |= every(**{word: int(value)})
        elif word == "seconds" and value is not None:
            found |= Cadence(seconds=seconds_of(value))
        elif word in _EVENTS and value is None:
            found |= _EVENTS[word]()
        elif not (word == "never" and value is None):
            msg = (
                f"{part.strip()!r} is no cadence; write turns=N, steps=N, tokens=N, seconds=30s, "
                "on_child, before_irreversible, adaptive or never, with | between them"
            )
            raise ValueError(msg)
    return found


def pace_of(
    checkpoint: Cadence | str | None = None,
    snapshot: Snapshots | None = None,
    durability: str | None = None,
) -> Pace:
    """What the user says of saving, checked at the line where it is said."""
    try:
        cadence = cadence_of(checkpoint) if isinstance(checkpoint, str) else checkpoint
    except ValueError as error:
        raise UsageError(f"checkpoint=: {error}") from None
    if cadence is not None and not isinstance(cadence, Cadence):
        msg = f"checkpoint= takes a cadence, such as holdfast.every(turns=5), not {cadence!r}"
        raise UsageError(msg)
    if durability is not None and durability not in DURABILITIES:
        msg = f"durability=: {durability!r} is not one of {', '.join(DURABILITIES)}"
        raise UsageError(msg)
    kept = None if snapshot is None else _snapshots(snapshot)
    return Pace(checkpoint=cadence, snapshot=kept, durability=durability)


def _snapshots(said: Snapshots) -> dict[str, Cadence]:
    """The cadence of each section; configuration says `memory: turns=1; plan: tokens=1000`."""
    parts = [part.partition(":") for part in said.split(";")] if isinstance(said, str) else []
    given: Iterable[tuple[object, object]] = (
        [(name.strip(), cadence if colon else None) for name, colon, cadence in parts]
        if isinstance(said, str)
        else list(getattr(said, "items", list)())
    )
    found: dict[str, Cadence] = {}
    for name, each in given:
        try:
            cadence = cadence_of(each) if isinstance(each, str) else each
        except ValueError as error:
            raise UsageError(f"snapshot=, section {name!r}: {error}") from None
        if not is_name(name) or not name or not isinstance(cadence, Cadence):
            break
        found[name] = cadence
    else:
        if found or not said:
            return found
    msg = (
        "snapshot= takes sections of the state and the cadence of each, such as "
        f"{{'memory': holdfast.every(turns=1)}} or 'memory: turns=1', not {said!r}"
    )
    raise UsageError(msg)


_EVENTS: Mapping[str, Callable[[], Cadence]] = {
    "on_child": on_child,
    "before_irreversible": before_irreversible,
    "adaptive": adaptive,
}


def _sooner(one: N | None, other: N | None) -> N | None:
    known = [each for each in (one, other) if each is not None]
    return min(known) if known else None
