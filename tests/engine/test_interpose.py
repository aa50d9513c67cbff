"""What stands between a run and the user's functions sees every call, and may answer instead."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import holdfast
from holdfast.engine import interpose
from holdfast.engine.session import Frame
from tests.engine.kit import Stage


@holdfast.step
def think(n: int) -> int:
    return n


@holdfast.step
async def dream(n: int) -> int:
    return n


@holdfast.effect(key="order")
def pay(order: str) -> str:
    return f"paid for {order}"


@pytest.fixture
def seen() -> Iterator[list[tuple[str, bool]]]:
    calls: list[tuple[str, bool]] = []

    def between(
        frame: Frame, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        calls.append((frame.function, frame.is_effect))
        return "made up" if frame.is_effect else fn(*args, **kwargs)

    interpose.put(between)
    yield calls
    interpose.take_away()


def test_every_call_goes_through_and_may_be_answered_there(
    stage: Stage, seen: list[tuple[str, bool]]
) -> None:
    @holdfast.agent
    def buyer(_run: holdfast.Run) -> list[object]:
        return [think(1), pay("o-1")]

    assert [1, "made up"] == stage.live(buyer)
    assert [("think", False), ("pay", True)] == seen
    assert [1, "made up"] == stage.live(buyer)  # As recorded; nobody is asked again.
    assert 2 == len(seen)


def test_an_asynchronous_call_is_awaited_all_the_same(
    stage: Stage, seen: list[tuple[str, bool]]
) -> None:
    @holdfast.agent
    async def dreamer(_run: holdfast.Run) -> int:
        return await dream(3)

    assert 3 == stage.live(dreamer)
    assert [("dream", False)] == seen


def test_calls_go_straight_once_it_is_taken_away(
    stage: Stage, seen: list[tuple[str, bool]]
) -> None:
    interpose.take_away()

    @holdfast.agent
    def payer(_run: holdfast.Run) -> str:
        return pay("o-1")

    assert "paid for o-1" == stage.live(payer)
    assert [] == seen
