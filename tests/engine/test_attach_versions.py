"""An attached object whose class has changed since: migrations, gone fields, another form."""
# ruff: noqa: ANN401 agents return what the test looks at

import dataclasses
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

import holdfast
from holdfast.capture.objects import VERSION
from tests.engine.kit import RUN, Crash, Stage


@dataclasses.dataclass
class Early:
    price: float = 1.5
    notes: list[Any] = dataclasses.field(default_factory=list)


@holdfast.register(name="attached purse", version=2)
@dataclasses.dataclass(slots=True)
class Purse:
    cents: int = 0
    notes: list[Any] = dataclasses.field(default_factory=list)


@holdfast.register(name="attached account", version=3)
class Account(pydantic.BaseModel):
    cents: int = 0
    notes: list[Any] = []
    _opened: bool = pydantic.PrivateAttr(default=True)


@holdfast.migrate("attached purse", from_=1, to=2)
@holdfast.migrate("attached account", from_=1, to=3)
def in_cents(fields: dict[str, Any]) -> dict[str, Any]:
    return {"cents": round(fields["price"] * 100), "notes": fields["notes"]}


@dataclasses.dataclass(slots=True)
class Narrow:
    notes: list[Any] = dataclasses.field(default_factory=list)


class Wide(pydantic.BaseModel):
    price: float = 0.0
    notes: list[Any] = []


class Loose:
    def __init__(self) -> None:
        self.notes: list[Any] = []


def lives(*makers: Callable[[], Any]) -> holdfast.Agent[..., Any]:
    """An agent whose object is made by the next of `makers` in each life; all but the last die."""
    left = list(makers)

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        purse = left.pop(0)()
        run.attach("purse", purse, only=["notes"] if isinstance(purse, Loose) else None)
        first = None
        for turn in run.turns():
            first = turn if first is None else first
            purse.notes.append(turn)
            if turn > first and left:
                raise Crash
            if turn > first:
                return {name: getattr(purse, name, None) for name in ("price", "cents", "notes")}
        raise AssertionError

    return agent


@pytest.mark.parametrize(("late", "version"), [(Purse, 2), (Account, 3)])
def test_what_an_older_version_captured_passes_its_migration_once(
    stage: Stage, late: Callable[[], Any], version: int
) -> None:
    agent = lives(Early, late, late)

    stage.die(agent)
    stage.die(agent)
    expected = {"price": None, "cents": 150, "notes": [0, 1, 2, 3]}
    assert expected == stage.live(agent)
    with stage.open() as store:
        kept = [store.restore(f"{RUN}@{turn}")[1]["purse"].get(VERSION) for turn in range(3)]
    assert [None, version, version] == kept


@pytest.mark.parametrize(
    ("late", "why"),
    [
        (Early, "stored in version 2, newer than version 1"),
        (Loose, "Loose was captured in version 2; register it with that version="),
    ],
)
def test_a_program_that_knows_no_such_version_refuses_what_a_newer_one_captured(
    stage: Stage, late: Callable[[], Any], why: str
) -> None:
    agent = lives(Purse, late)

    stage.die(agent)
    fault = stage.fault(agent)

    assert isinstance(fault, holdfast.RestoreFailed)
    assert why in str(fault)


@dataclasses.dataclass
class Unpriced:
    notes: list[Any] = dataclasses.field(default_factory=list)


@pytest.mark.parametrize(
    ("early", "late", "why"),
    [
        (Early, Narrow, "Narrow has no field 'price' any more; register the class with a higher"),
        (Unpriced, Purse, "its migration from version 1 to 2 raised KeyError: 'price'"),
    ],
)
def test_what_does_not_fit_the_class_any_more_is_named(
    stage: Stage, early: Callable[[], Any], late: Callable[[], Any], why: str
) -> None:
    agent = lives(early, late)

    stage.die(agent)
    fault = stage.fault(agent)

    assert isinstance(fault, holdfast.RestoreFailed)
    assert why in str(fault)


@pytest.mark.parametrize("order", [(Early, Wide), (Wide, Early)])
def test_a_dataclass_may_become_a_model_and_a_model_a_dataclass(
    stage: Stage, order: tuple[Callable[[], Any], ...]
) -> None:
    agent = lives(*order)

    stage.die(agent)

    assert {"price": order[0]().price, "cents": None, "notes": [0, 1, 2]} == stage.live(agent)
    with stage.open() as store:
        kept = store.restore(RUN)[1]["purse"]
    assert {"price", "notes"} == kept.keys() - {"__pydantic_fields_set__"}
    assert (order[1] is Wide) == ("__pydantic_fields_set__" in kept)


def declared(version: int) -> Any:
    """The class of an argument as it was in that version."""
    fields = [("cents", int)] if version > 1 else [("price", float)]
    cls = dataclasses.make_dataclass("Order", fields, namespace={"__module__": __name__})
    return holdfast.register(cls, name="order of a run", version=version)


@holdfast.migrate("order of a run", from_=1, to=2)
def order_in_cents(fields: dict[str, Any]) -> dict[str, Any]:
    return {"cents": round(fields["price"] * 100)}


def test_a_run_whose_argument_was_migrated_since_goes_on_when_it_is_asked_with_the_same(
    stage: Stage,
) -> None:
    left = [True]

    @holdfast.agent
    def buyer(run: holdfast.Run, order: Any, times: int = 1) -> Any:
        for turn in run.turns():
            if turn == 2 and left.pop():
                raise Crash
            if turn == 3:
                return order.cents * times
        raise AssertionError

    stage.die(buyer, declared(1)(1.5))
    left[:] = [False]
    order = declared(2)

    assert isinstance(stage.fault(buyer, order(151)), holdfast.AgentMismatch)
    assert isinstance(stage.fault(buyer, order(150), 2), holdfast.AgentMismatch)
    assert 150 == stage.live(buyer, order(150))
    assert 150 == stage.live(buyer, order(150))
