"""What tokens cost, by the table of `genai-prices` (the extra `prices`).

`@holdfast.step(usage=holdfast.priced)` records the price with the answer: tables age, and what was
paid does not.
"""

import functools
import importlib
from typing import Any

from msgspec.structs import replace

from holdfast.model.journal import Usage
from holdfast.model.prices import NO_PRICES, Prices
from holdfast.policy.usage import Cached, cached_of, usage_of

TABLE = "genai_prices"
NOT_CACHED = Cached()


def priced(answer: object) -> Usage | None:
    """The usage that an answer reports, with its price; for `usage=` of a step.

    A price that the answer names itself stands. A model that the table does not know has none, nor
    has any where the table is not installed: an answer that was paid for is recorded all the same.
    """
    found = usage_of(answer)
    return None if found is None else with_price(found, cached_of(answer))


def with_price(usage: Usage, cached: Cached = NOT_CACHED, own: Prices = NO_PRICES) -> Usage:
    """The usage with the price of its tokens, where it has none.

    That is the user's own for its model, else the table's, if it knows one.
    """
    said = None if usage.model is None else own.get(usage.model)
    if usage.usd is None and said is not None:
        return replace(usage, usd=said.of(usage))
    table = _loaded(TABLE)
    is_counted = usage.tokens_in is not None or usage.tokens_out is not None
    if usage.usd is not None or usage.model is None or not is_counted or table is None:
        return usage
    counted = table.Usage(
        input_tokens=usage.tokens_in,
        output_tokens=usage.tokens_out,
        cache_read_tokens=cached.read or None,
        cache_write_tokens=cached.written or None,
    )
    try:
        found = table.calc_price(counted, usage.model)
    except (LookupError, ValueError):  # Not known, or counts that contradict each other.
        return usage
    return replace(usage, usd=float(found.total_price))


@functools.cache
def _loaded(library: str) -> Any:  # noqa: ANN401 a module that may be missing
    """The library, or None where it is not installed."""
    try:
        return importlib.import_module(library)
    except ImportError:
        return None
