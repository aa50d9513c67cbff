"""Probes, undos and offsets get the arguments of their effect, however it was called."""
# ruff: noqa: ARG001 handlers take what they are given

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Crash, Stage

heard: list[Any] = []
paid: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _nothing_heard() -> Iterator[None]:
    yield
    heard.clear()
    paid.clear()


def other_names(outcome: str, what: str, count: int = 0, where: str = "") -> None:
    heard.append((what, count, where))


@holdfast.effect(undo=other_names)
def take(item: str, pieces: int = 1, shelf: str = "top") -> str:
    return "taken"


def all_of_them(outcome: str, *to: str) -> None:
    heard.append(to)


@holdfast.effect(undo=all_of_them)
def send(*to: str) -> str:
    return "sent"


@holdfast.effect(undo=all_of_them)
def post(to: str, subject: str) -> str:
    return "posted"


def with_more(outcome: str, order: str, **more: int) -> None:
    heard.append((order, more))


@holdfast.effect(undo=with_more)
def order(order: str, **more: int) -> str:
    return "ordered"


def by_place(outcome: str, book: str, /, *, page: int) -> None:
    heard.append((book, page))


@holdfast.effect(undo=by_place)
def mark(book: str, /, page: int) -> str:
    return "marked"


@pytest.mark.parametrize(
    ("call", "gets"),
    [
        (lambda: take(pieces=4, item="kelp"), ("kelp", 4, "top")),
        (lambda: take("kelp", shelf="low"), ("kelp", 1, "low")),
        (lambda: send("ann", "bob"), ("ann", "bob")),
        (lambda: post(subject="hello", to="ann"), ("ann", "hello")),
        (lambda: order("A-17", pieces=3), ("A-17", {"pieces": 3})),
        (lambda: mark("log", 7), ("log", 7)),
    ],
    ids=["other names", "a default between", "a star", "into a star", "two stars", "by place"],
)
def test_an_undo_gets_the_arguments_as_its_effect_takes_them(
    stage: Stage, call: Callable[[], str], gets: object
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for turn in run.turns():
            if turn == 1:
                return call()
        raise AssertionError

    stage.live(agent)
    with stage.open() as store:
        [effect] = store.plan_rollback(RUN, to=0).apply().effects

    assert ("undone", gets) == (effect.how, *heard)


def turned_round(cents: int, order: str) -> str | None:
    return "found" if (order, cents) in paid else None


@holdfast.effect(probe=turned_round)
def pay(order: str, cents: int = 500) -> str:
    paid.append((order, cents))
    raise TimeoutError("no answer")


def of_the_order(order: str) -> str | None:
    return "found" if order in dict(paid) else None


@holdfast.effect(probe=of_the_order)
def bill(order: str, cents: int) -> str:
    paid.append((order, cents))
    raise TimeoutError("no answer")


@pytest.mark.parametrize(
    "call",
    [lambda: pay("A", 7), lambda: pay("A"), lambda: bill(cents=7, order="A")],
    ids=["in another order", "a default", "fewer"],
)
def test_a_probe_gets_the_arguments_by_their_names(stage: Stage, call: Callable[[], str]) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return call()

    assert "found" == stage.live(agent)


def one_of_another(cents: int, number: str) -> str | None:
    raise AssertionError


def without_outcome() -> None:
    raise AssertionError


def with_the_client(outcome: str, account: str, cents: int, client: object) -> None:
    raise AssertionError


def debit(account: str, cents: int, client: object) -> str:
    raise AssertionError


WANTED = "one_of_another does not take the recorded arguments .* 'number'.*; it is given account, "


@pytest.mark.parametrize(
    ("handlers", "why"),
    [
        ({"probe": one_of_another}, f"probe= of debit: {WANTED}cents, client, and idempotency_key"),
        ({"undo": without_outcome}, "without_outcome does not take the outcome and .*the outcome,"),
        ({"offset": with_the_client}, "offset= of debit: with_the_client .* 'client'"),
    ],
    ids=["one for another", "without the outcome", "what is ignored"],
)
def test_a_handler_that_cannot_take_what_it_is_given_is_refused_where_it_is_declared(
    handlers: dict[str, Any], why: str
) -> None:
    declare: Any = holdfast.effect

    with pytest.raises(holdfast.UsageError, match=why):
        declare(**handlers, ignore="client")(debit)


def any_of_them(*args: object, **kwargs: object) -> str:
    raise AssertionError


@pytest.mark.parametrize("option", ["probe", "undo"])
def test_whether_arguments_without_names_can_be_taken_is_seen_when_they_are_there(
    option: str,
) -> None:
    declare: Any = holdfast.effect

    assert "any_of_them" == declare(**{option: one_of_another})(any_of_them).__name__


def is_sent(to: str) -> bool | None:
    return True


def unsend(outcome: None, to: str) -> None:
    heard.append(outcome)


@holdfast.effect(probe=is_sent, undo=unsend)
def mail(to: str) -> None:
    raise Crash


def test_an_undo_of_what_was_in_doubt_gets_nothing_where_the_effect_gives_nothing_back(
    stage: Stage,
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 1:
                mail("ann")

    stage.die(agent)
    with stage.open() as store:
        [effect] = store.plan_rollback(RUN, to=0).apply().effects

    assert ("undone", None) == (effect.how, *heard)
