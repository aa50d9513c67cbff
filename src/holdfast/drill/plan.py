"""Which run gets which fault, at which moment: a pure function of the seed and the run's number."""

import random
import re
from collections.abc import Mapping

import msgspec

from holdfast.drill.faults import Fault, Where

EDGE = 0.97
"""Up to which part of a reference's moments a fault strikes: lives differ by a moment or two."""
_TASK = re.compile(r"drill--?\d+")


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a drill: its case, and the fault by name, if it gets one."""

    no: int
    case: int
    seed: str
    fault: str | None = None

    @property
    def run(self) -> str:
        """The id of the run."""
        return f"drill-{self.no}"

    def nth(self, fault: Fault, counts: Mapping[str, float]) -> float:
        """Before which moment the fault strikes, of those that the reference had; or after when."""
        known = counts.get(fault.traits.where, 0)
        chance = random.Random(f"{self.seed}/nth")  # noqa: S311 it is to repeat
        if fault.traits.where is Where.TIME:
            return chance.uniform(known * fault.traits.after, known * EDGE)
        first, last = int(known * fault.traits.after), int(known * EDGE)
        return chance.randrange(first, max(first + 1, last))


def is_task(run: str) -> bool:
    """Whether a run of that id is one of the drill's, and no child of one."""
    return _TASK.fullmatch(run) is not None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A whole drill. Runs come in blocks, in which every fault comes equally often."""

    seed: int
    cases: int
    faults: tuple[str, ...]
    share: float

    def trial(self, no: int) -> Trial:
        """The run of that number."""
        block = self._block()
        number, place = divmod(no, len(block))
        random.Random(f"{self.seed}/{number}").shuffle(block)  # noqa: S311 it is to repeat
        case = random.Random(f"{self.seed}/{no}/case").randrange(self.cases)  # noqa: S311 the same
        return Trial(no=no, case=case, seed=f"{self.seed}/{no}", fault=block[place])

    def _block(self) -> list[str | None]:
        """Every fault once, and as many runs without one as the share leaves."""
        if not self.faults or self.share <= 0:
            return [None]
        # The smallest block that has the share, up to a hundredth.
        struck = len(self.faults)
        calm = round(100 * struck * (1 - self.share) / self.share)
        rounds = next(n for n in (1, 2, 4, 5, 10, 20, 25, 50, 100) if calm * n % 100 == 0)
        return [*self.faults * rounds, *[None] * (calm * rounds // 100)]
