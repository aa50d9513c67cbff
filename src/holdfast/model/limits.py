"""What the user asks for: service level and retries."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from holdfast.model.failure import FailureKind

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\s*$")
_DOLLARS = re.compile(r"^\s*\$?\s*(\d+(?:\.\d+)?)\s*(?:USD|\$)?\s*$")
_SIZE = re.compile(r"^\s*(\d{1,18}(?:\.\d+)?)\s*(B|kB|KB|MB|GB|TB)?\s*$")
_BYTES = {None: 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
CLOCKS = ("resume", "catch_up")
EXHAUSTED = ("escalate", "fail")
ATTEMPTS_MAX = 100
LARGE = 10**15
"""Seconds or dollars from here on are a slip of the pen."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def seconds(text: float | str) -> float:
    """Read a duration as people write it: `30`, `"30s"`, `"5m"`, `"2h"`."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        value = float(text) if is_sane(text) else math.nan
    else:
        found = _DURATION.match(text) if isinstance(text, str) else None
        if found is None:
            msg = f"{text!r} is not a duration; write it as 30s, 5m, 2h or a number of seconds"
            raise ValueError(msg)
        value = float(found[1]) * _SECONDS[found[2]]
    if not is_sane(value):
        msg = f"a duration is a finite number of seconds from 0 on, not {short_repr(text)}"
        raise ValueError(msg)
    return value


def is_number(value: object) -> bool:
    """Whether it is a number; yes and no are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_sane(number: float) -> bool:
    """Whether an amount can be meant: not negative, and not endless."""
    return 0 <= number < LARGE


def short_repr(value: object) -> str:
    """A value for a message; of whole numbers that are far too long, only that they are."""
    if isinstance(value, int) and not -LARGE <= value <= LARGE:
        return "a number of so many digits"
    return repr(value)


def size_of(text: float | str) -> int:
    """Read a number of bytes as people write it: `1000`, `"500MB"`, `"2 GB"`."""
    found = None if isinstance(text, bool) else _SIZE.match(str(text))
    if found is None:
        msg = f"{text!r} is no size; write it as 500MB, 2GB or a number of bytes"
        raise ValueError(msg)
    return int(float(found[1]) * _BYTES[found[2]])


def dollars(text: float | str) -> float:
    """Read a sum as people write it: `5`, `"$5"`, `"5 USD"`."""
    found: re.Match[str] | None = None
    if isinstance(text, int | float) and not isinstance(text, bool):
        value = float(text) if is_sane(text) else math.nan
    else:
        found = _DOLLARS.match(text) if isinstance(text, str) else None
        if found is None:
            msg = f"{text!r} is not a sum of US dollars; write it as 5, $5 or 5 USD"
            raise ValueError(msg)
        value = float(found[1])
    if not is_sane(value):
        msg = f"a sum is a finite number of US dollars from 0 on, not {short_repr(text)}"
        raise ValueError(msg)
    return value


class SLA(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The promise a run is held to. Recorded with the run; what is not given is not judged.

    `max_recovery` bounds the time from a failure to the run going on (`clock="resume"`) or having
    caught up with what it lost (`clock="catch_up"`); `deadline` the time from its start to its end.
    `availability` is the share of its time that it is on its way: waits before a restart are cut
    to what that leaves. `overhead_cap` is the share of its time that saving may take.
    `turn_usd` is what redoing a turn costs, `recovery_budget` what all recoveries of the run may.
    The stake is `task_usd`, what the finished task is worth, and `breach_usd_per_hour` for as long
    as a person takes to come (`person`), times `criticality`. `on_exhausted="fail"` ends a run that
    nothing may recover as failed; otherwise a person is asked.
    """

    availability: float | None = None
    max_recovery: float | str | None = None
    clock: str | None = None
    recovery_budget: float | str | None = None
    breach_usd_per_hour: float | None = None
    deadline: float | str | None = None
    overhead_cap: float | None = None
    person: float | str | None = None
    task_usd: float | None = None
    turn_usd: float | None = None
    criticality: float | None = None
    on_exhausted: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, at the line where it was written."""
        for name in ("max_recovery", "deadline"):
            value = getattr(self, name)
            if value is not None:
                seconds(value)
        for name in ("availability", "overhead_cap"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 <= value <= 1):
                msg = f"{name} is a share between 0 and 1, not {short_repr(value)}"
                raise ValueError(msg)
        for name in ("breach_usd_per_hour", "task_usd", "turn_usd"):
            if isinstance(value := getattr(self, name), str):  # As people write it: "$5".
                msgspec.structs.force_setattr(self, name, dollars(value))

    def check(self) -> None:
        """Refuse words and sums that say nothing here; older records may hold any."""
        for name in ("recovery_budget", "breach_usd_per_hour", "task_usd", "turn_usd"):
            value = getattr(self, name)
            if value is not None:
                dollars(value)
        if self.person is not None:
            seconds(self.person)
        for name, words in (("clock", CLOCKS), ("on_exhausted", EXHAUSTED)):
            value = getattr(self, name)
            if value is not None and value not in words:
                msg = f"{name} is {' or '.join(map(repr, words))}, not {value!r}"
                raise ValueError(msg)
        raised = self.criticality
        if raised is not None and not (is_number(raised) and is_sane(raised) and raised >= 1):
            msg = f"criticality raises the stake: a number from 1, not {short_repr(raised)}"
            raise ValueError(msg)


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """Ask a call again, in place, when it fails: at most `attempts` times in all.

    The wait before the n-th repetition is drawn between nothing and `base` doubled n - 1 times, at
    most `cap`; a server that asks for more (`Retry-After`) is left alone for that long, if that is
    not beyond `cap`. `on` says which failures: kinds, such as `"transient"`, or exception classes.
    """

    attempts: int = 4
    base: float | str = 0.5
    cap: float | str = 30.0
    on: (
        FailureKind | str | type[BaseException] | Iterable[FailureKind | str | type[BaseException]]
    ) = (FailureKind.TRANSIENT, FailureKind.TIMEOUT)
    kinds: frozenset[FailureKind] = field(init=False, repr=False, compare=False)
    classes: tuple[type[BaseException], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, at the line where it was written."""
        if type(self.attempts) is not int or not 1 <= self.attempts <= ATTEMPTS_MAX:
            msg = f"attempts is a whole number from 1 to {ATTEMPTS_MAX}, not {self.attempts!r}"
            raise ValueError(msg)
        seconds(self.base)
        seconds(self.cap)
        on = (self.on,) if isinstance(self.on, str | type) else tuple(self.on)
        classes = tuple(each for each in on if isinstance(each, type))
        is_known = all(isinstance(each, str | type) for each in on)
        if not is_known or not all(issubclass(each, Exception) for each in classes):
            msg = f"on= takes kinds of failures and classes of exceptions, not {self.on!r}"
            raise ValueError(msg)
        object.__setattr__(self, "classes", classes)
        kinds = frozenset(FailureKind(each) for each in on if isinstance(each, str))
        object.__setattr__(self, "kinds", kinds)
