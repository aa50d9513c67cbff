"""What tokens cost, by the table of `genai-prices` (the extra `prices`).

`@holdfast.step(usage=holdfast.priced)` records the price with the answer: tables age, and what was
paid does not.
"""

import functools
import importlib
from typing import Any

from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.journal import Usage
from holdfast.policy.usage import usage_of

TABLE = "genai_prices"


def priced(answer: object) -> Usage | None:
    """The usage that an answer reports, with its price; for `usage=` of a step or effect.

    A price that the answer names itself stands. A model that the table does not know has none.
    """
    found = usage_of(answer)
    if _table() is None:
        msg = "usage=holdfast.priced needs the table of prices: `pip install 'holdfast[prices]'`"
        raise UsageError(msg)
    return None if found is None else with_price(found)


def with_price(usage: Usage) -> Usage:
    """The usage with the price of its tokens, where it has none and the table knows its model."""
    table = _table()
    is_counted = usage.tokens_in is not None or usage.tokens_out is not None
    if usage.usd is not None or usage.model is None or not is_counted or table is None:
        return usage
    counted = table.Usage(input_tokens=usage.tokens_in, output_tokens=usage.tokens_out)
    try:
        found = table.calc_price(counted, usage.model)
    except LookupError:
        return usage
    return replace(usage, usd=float(found.total_price))


@functools.cache
def _table() -> Any:  # noqa: ANN401 a module that may be missing
    """The library, or None where it is not installed."""
    try:
        return importlib.import_module(TABLE)
    except ImportError:
        return None
