"""Tokens, model and price of an answer, read from the shapes that providers use."""

import math
from collections.abc import Mapping
from typing import TypeGuard

from holdfast.model.journal import Usage
from holdfast.model.limits import is_sane, short_repr

_IN = ("input_tokens", "prompt_tokens", "tokens_in")
_OUT = ("output_tokens", "completion_tokens", "tokens_out")
_USD = ("usd", "cost_usd", "cost")


def usage_of(answer: object) -> Usage | None:
    """The usage an answer reports (OpenAI, Anthropic, or a mapping's `usage`), or None.

    What the answer does not say stays None; a count is never made up.
    """
    reported = _get(answer, "usage")
    if reported is None:
        return None
    found = Usage(
        model=_text(answer, "model"),
        tokens_in=_count(reported, _IN),
        tokens_out=_count(reported, _OUT),
        usd=_sum_told(reported),
        provider=_text(answer, "provider"),
    )
    return found if found != Usage() else None


def fault_of(usage: Usage) -> str | None:
    """What in a usage cannot be meant, so that it must not be recorded; None where all can."""
    for name in ("tokens_in", "tokens_out"):
        count = getattr(usage, name)
        if count is not None and not _is_count(count):
            return f"{name} is a whole number from 0, not {short_repr(count)}"
    if usage.usd is not None and not _is_sum(usage.usd):
        return f"usd is a finite number from 0, not {short_repr(usage.usd)}"
    for name in ("model", "provider"):
        text = getattr(usage, name)
        if text is not None and not isinstance(text, str):
            return f"{name} is a text, not {short_repr(text)}"
    return None


def total(usages: list[Usage]) -> Usage:
    """The sum of what is known; a figure nobody reported stays None, several models are all named.

    A sum may be summed up again, so its models are taken apart first.
    """
    models = {m for usage in usages if usage.model is not None for m in usage.model.split(", ")}
    return Usage(
        model=", ".join(sorted(models)) or None,
        tokens_in=_sum([usage.tokens_in for usage in usages]),
        tokens_out=_sum([usage.tokens_out for usage in usages]),
        usd=_total_usd([usage.usd for usage in usages]),
    )


def _get(value: object, name: str) -> object:
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 a dict is known at once
        return value.get(name)
    if isinstance(value, str | bytes | int | float | list | tuple) or value is None:
        return None
    return getattr(value, name, None)


def _text(value: object, name: str) -> str | None:
    found = _get(value, name)
    return found if isinstance(found, str) else None


def _count(reported: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        count = _get(reported, name)
        if _is_count(count):
            return count
    return None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and is_sane(value)


def _sum_told(reported: object) -> float | None:
    for name in _USD:
        usd = _get(reported, name)
        if _is_sum(usd):
            return float(usd)
    return None


def _is_sum(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_sane(value)


def _total_usd(sums: list[float | None]) -> float | None:
    known = [usd for usd in sums if usd is not None]
    return math.fsum(known) if known else None


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
