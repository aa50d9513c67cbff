"""What a person types becomes what a function says it takes, and nothing of it is lost."""

import pytest
from typing_extensions import TypedDict

import holdfast
from holdfast.engine.fitted import fitted_arguments


class Order(TypedDict):
    symbol: str


def desk(run: holdfast.Run, order: Order, limit: int = None, *, most: dict[int, str]) -> None:  # type: ignore[assignment]  # as many write it  # noqa: RUF013
    """An agent."""


@pytest.mark.parametrize("order", [{"symbol": "KELP"}, {"symbol": "KELP", "note": "by hand"}])
def test_keys_that_an_annotation_does_not_name_stay(order: dict[str, str]) -> None:
    args, kwargs = fitted_arguments(desk, [order, None], {"most": {"1": "one"}})

    assert (order, None) == args
    assert {"most": {1: "one"}} == kwargs


def test_null_is_refused_where_nothing_says_that_it_fits() -> None:
    with pytest.raises(holdfast.UsageError, match="order"):
        fitted_arguments(desk, [None], {})
