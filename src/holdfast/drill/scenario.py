"""A scenario: the agent's input, what stands in for its tools, the faults and the promises.

agent = "support:support"
cases = 6
stall = "2s"
input = { customer = "customer-{case}" }

[stubs]
model = "support_world:model"

[promises]
recovery_s = 20
"""

import hashlib
import math
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import UsageError
from holdfast.model.limits import CLOCKS, seconds
from holdfast.report.metrics import Targets

CASE = "{case}"
CASES_MAX = 1000
SHARES = ("recovery_failures", "recovery_share", "breaches")
AMOUNTS = ("recovery_s", "bytes_per_run", "overhead", "max_recovery_s")


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a drill is made of; each field is a line of the file.

    `input` are the agent's arguments by name, `cases` how many different ones there are: `{case}`
    in a text is the number of the case. `stall` is how long a run may record nothing before it
    counts as hung. `stubs` stand in for steps and effects. `scale` multiplies their pauses.
    `share` of the runs get a fault; `unscaled` runs without one are made to measure the overhead.
    `ignore` names sections of the state that may differ from the reference.
    """

    agent: str | None = None
    input: dict[str, Any] = {}
    cases: int = 1
    stall: float | str = "5s"
    stubs: dict[str, str] = {}
    faults: list[str] = []
    share: float = 0.5
    scale: float = 1.0
    unscaled: int = 0
    ignore: list[str] = []
    promises: Targets = Targets()

    def arguments(self, case: int) -> dict[str, Any]:
        """The agent's arguments in a case."""
        filled = _filled(self.input, case)
        assert isinstance(filled, dict)
        return filled

    def check(self) -> None:
        """Refuse what cannot be meant."""
        if not 1 <= self.cases <= CASES_MAX:
            msg = f"cases is a whole number from 1 to {CASES_MAX}, not {self.cases}"
            raise UsageError(msg)
        if not 0 <= self.share <= 1:
            msg = f"share is the part of the runs with a fault, from 0 to 1, not {self.share}"
            raise UsageError(msg)
        if not (math.isfinite(self.scale) and self.scale > 0):
            msg = f"scale is what pauses are multiplied by, above 0, not {self.scale}"
            raise UsageError(msg)
        if self.unscaled < 0:
            raise UsageError(f"unscaled is a number of runs, from 0, not {self.unscaled}")
        for name, count in Counter(self.faults).items():
            if count > 1:
                raise UsageError(f"fault {name} is named {count} times; name each once")
        _check_promises(self.promises)
        try:
            seconds(self.stall)
        except ValueError as error:
            raise UsageError(f"stall: {error}") from None


def read(path: Path) -> Scenario:
    """The scenario in a file; `UsageError` says where it is wrong."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        made = msgspec.convert(found, Scenario)
        _refuse_unknown(found.get("promises", {}))
    except OSError as error:
        raise UsageError(f"scenario {path} cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"scenario {path}: {error}") from error
    made.check()
    return made


def digest(scenario: Scenario) -> str:
    """A scenario by all that it says: results of two that differ do not belong together."""
    return hashlib.sha256(msgspec.json.encode(scenario, order="sorted")).hexdigest()[:16]


def _refuse_unknown(promises: Iterable[str]) -> None:
    """A promise that is misspelt would be judged by its default."""
    known = Targets.__struct_fields__
    for name in promises:
        if name not in known:
            raise UsageError(f"promises: there is no {name!r}; those are {', '.join(known)}")


def _check_promises(promises: Targets) -> None:
    for name in SHARES:
        if not 0 < (value := getattr(promises, name)) < 1:
            raise UsageError(f"promises: {name} is a share between 0 and 1, not {value}")
    for name in AMOUNTS:
        value = getattr(promises, name)
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"promises: {name} is a number above 0, not {value}")
    if promises.clock not in CLOCKS:
        msg = f"promises: clock is {' or '.join(CLOCKS)}, not {promises.clock!r}"
        raise UsageError(msg)


def _filled(value: Any, case: int) -> Any:  # noqa: ANN401 whatever a scenario holds
    match value:
        case str():
            return value.replace(CASE, str(case))
        case dict():
            return {name: _filled(each, case) for name, each in value.items()}
        case list():
            return [_filled(each, case) for each in value]
        case _:
            return value
