"""What the user asks for: service level and saving cadence."""

import re

import msgspec

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\s*$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def seconds(text: float | str) -> float:
    """Read a duration as people write it: `30`, `"30s"`, `"5m"`, `"2h"`."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        value = float(text)
    else:
        found = _DURATION.match(text) if isinstance(text, str) else None
        if found is None:
            msg = f"{text!r} is not a duration; write it as 30s, 5m, 2h or a number of seconds"
            raise ValueError(msg)
        value = float(found[1]) * _SECONDS[found[2]]
    if not 0 <= value < float("inf"):
        msg = f"a duration is a finite number of seconds, not {text!r}"
        raise ValueError(msg)
    return value


class SLA(msgspec.Struct, frozen=True, kw_only=True):
    """The promise a run is held to. Recorded with the run; what is not given is not judged."""

    availability: float | None = None
    max_recovery: float | str | None = None
    clock: str | None = None
    recovery_budget: float | str | None = None
    breach_usd_per_hour: float | None = None
    deadline: float | str | None = None
    overhead_cap: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, at the line where it was written."""
        for name in ("max_recovery", "deadline"):
            value = getattr(self, name)
            if value is not None:
                seconds(value)
        for name in ("availability", "overhead_cap"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                msg = f"{name} is a share between 0 and 1, not {value!r}"
                raise ValueError(msg)


class Every(msgspec.Struct, frozen=True, kw_only=True):
    """Mark a checkpoint at the end of every `turns`-th turn."""

    turns: int = 1

    def __post_init__(self) -> None:
        """Refuse a cadence that never comes."""
        if type(self.turns) is not int or self.turns < 1:
            msg = f"every(turns=) takes a whole number from 1, not {self.turns!r}"
            raise ValueError(msg)


def every(*, turns: int = 1) -> Every:
    """A checkpoint at the end of every `turns`-th turn."""
    return Every(turns=turns)
