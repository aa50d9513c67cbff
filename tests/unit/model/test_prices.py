"""Prices as a user says them."""

import pytest

from holdfast.model.journal import Usage
from holdfast.model.prices import Price, prices_of


def test_prices_are_read_for_each_model() -> None:
    assert {
        "home-made-7": Price(usd_in=0.5, usd_out=1.5),
        "llama3:8b": Price(usd_in=2.0, usd_out=3.0),
        "local": Price(usd_in=0.0, usd_out=0.0),
    } == prices_of("home-made-7: 0.50 / 1.50; llama3:8b: $2/$3 ;local: 0;")
    assert {} == prices_of("")


@pytest.mark.parametrize("text", ["0.5", "m: 1/2/3", ": 1/2", "m: cheap", "m: -1/2", "m:"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no price|not a sum"):
        prices_of(text)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage("m", 10**6, 10**6), 2.0),
        (Usage("m", None, 2 * 10**6), 3.0),
        (Usage("m", 0, 0), 0.0),
        (Usage("m"), None),
    ],
)
def test_a_usage_costs_what_was_counted_of_it(usage: Usage, usd: float | None) -> None:
    assert usd == Price(usd_in=0.5, usd_out=1.5).of(usage)
