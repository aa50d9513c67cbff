"""Numbers and what is said about them: medians, ratios, targets, tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Verdict = Literal["met", "MISSED", "not measured"]
Numbers = Mapping[str, object]

UNKNOWN = "n/a"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A promise and the number it is judged by; None if the number could not be had."""

    promise: str
    measured: float | None
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def verdict(self) -> Verdict:
        """Whether the promise was kept in this run."""
        if self.measured is None:
            return "not measured"
        is_kept = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        return "met" if is_kept else "MISSED"

    def as_row(self) -> list[str]:
        """The target as a row of a table."""
        sign = ">=" if self.at_least else "<="
        measured = UNKNOWN if self.measured is None else f"{self.measured:.4g}{self.unit}"
        return [self.promise, f"{sign} {self.limit:g}{self.unit}", measured, self.verdict]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows for people to read."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one subject found."""

    subject: str
    title: str
    table: Table
    targets: Sequence[Target]
    numbers: Numbers
    note: str


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(part * len(ordered) + 0.5) - 1))]


def middle(values: Sequence[float | None]) -> float | None:
    """The median of what was measured, None if nothing was."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def ratio(above: Sequence[float], below: Sequence[float]) -> float | None:
    """The median of `above[i] / below[i]`: neighbours in time share the disk's mood."""
    pairs = zip(above, below, strict=False)
    return middle([a / b for a, b in pairs if b])


def show(value: float | None, form: str = ".2f") -> str:
    """A number for a table."""
    return UNKNOWN if value is None else format(value, form)


def times(value: float | None) -> str:
    """A ratio for a table."""
    return UNKNOWN if value is None else f"{value:.2f}x"
