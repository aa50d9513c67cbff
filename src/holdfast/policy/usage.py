"""Tokens, model and price of an answer, read from the shapes that providers use."""

import math
from collections.abc import Mapping
from typing import NamedTuple, TypeGuard

from holdfast.model.journal import Usage
from holdfast.model.limits import is_sane, short_repr

_REPORTS = ("usage", "usage_metadata", "usageMetadata")
_REPORT_NAMES = frozenset(_REPORTS)
_IN_ALL = ("prompt_tokens", "tokens_in", "prompt_token_count", "promptTokenCount")
_IN_REST = ("input_tokens", "inputTokens")
"""Beside these Anthropic and Bedrock tell of tokens that went through a cache; others within."""
_OUT = (
    "output_tokens",
    "completion_tokens",
    "tokens_out",
    "outputTokens",
    "candidates_token_count",
    "candidatesTokenCount",
)
_THOUGHTS = ("thoughts_token_count", "thoughtsTokenCount")
"""Gemini tells of these beside its output."""
_READ_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens")
_WRITTEN_BESIDE = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_READ_WITHIN = ("cached_content_token_count", "cachedContentTokenCount", *_READ_BESIDE)
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_USD = ("usd", "cost_usd", "cost")
_MODELS = ("model", "model_version", "modelVersion")


class Cached(NamedTuple):
    """How many of the tokens that went in were read from a cache, and written to one."""

    read: int = 0
    written: int = 0


def usage_of(answer: object) -> Usage | None:
    """The usage an answer reports, or None.

    Shapes: OpenAI (both interfaces), Anthropic, Gemini, Bedrock, LangChain, a mapping's `usage`.
    What the answer does not say stays None; a count is never made up. Tokens that went through a
    cache went in as well.
    """
    if type(answer) is dict and _REPORT_NAMES.isdisjoint(answer):
        return None  # Asked of every answer, and most say nothing.
    reported = _reported(answer)
    if reported is None:
        return None
    out, thoughts = _count(reported, _OUT), _count(reported, _THOUGHTS)
    found = Usage(
        model=_model(answer),
        tokens_in=_all_in(reported),
        tokens_out=out if thoughts is None else (out or 0) + thoughts,
        usd=_sum_told(reported),
        provider=_text(answer, "provider"),
    )
    return found if found != Usage() else None


def cached_of(answer: object) -> Cached:
    """What an answer says of a cache: such tokens have a price of their own."""
    reported = _reported(answer)
    details = next((each for name in _DETAILS if (each := _get(reported, name)) is not None), None)
    read = _count(details, ("cached_tokens", "cache_read"))
    written = _count(details, ("cache_write_tokens", "cache_creation"))
    return Cached(
        read=(_count(reported, _READ_WITHIN) or 0) if read is None else read,
        written=(_count(reported, _WRITTEN_BESIDE) or 0) if written is None else written,
    )


def _reported(answer: object) -> object:
    return next((each for name in _REPORTS if (each := _get(answer, name)) is not None), None)


def _all_in(reported: object) -> int | None:
    whole = _count(reported, _IN_ALL)
    rest = _count(reported, _IN_REST)
    if rest is None or whole is not None:
        return whole
    beside = [_count(reported, names) for names in (_READ_BESIDE, _WRITTEN_BESIDE)]
    return rest + sum(each or 0 for each in beside)


def _model(answer: object) -> str | None:
    named = (_text(answer, name) for name in _MODELS)
    model = next((each for each in named if each is not None), None)
    return _text(_get(answer, "response_metadata"), "model_name") if model is None else model


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
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 an answer is not lost because it cannot be asked for its usage
        return None


def _text(value: object, name: str) -> str | None:
    found = _get(value, name)
    return str.__str__(found) if isinstance(found, str) else None


def _count(reported: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        count = _get(reported, name)
        if _is_count(count):
            return int(count)
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
