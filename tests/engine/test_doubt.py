"""In doubt: ask the probe, else repeat what is idempotent, else stop and list it."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import contextlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pydantic
import pytest

import holdfast
from holdfast.engine import tools
from tests.engine.kit import RUN, Crash, Stage, World, text


class Network(Exception):
    """The line went dead; nobody knows whether the order arrived."""


class Bank:
    """What really happened, by order; `fault` strikes before or after it does."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}
        self.keys: list[str] = []
        self.probed: list[tuple[Any, ...]] = []
        self.fault: BaseException | None = None
        self.fault_at = "o1"
        self.is_late = False
        self.probe_fault: Exception | None = None

    def pay(self, order: str, key: str = "") -> dict[str, str]:
        self.keys.append(key)
        fault = self.fault if order == self.fault_at else None
        if fault is not None and not self.is_late:
            raise fault
        self.paid[order] = self.paid.get(order, 0) + 1
        if fault is not None:
            raise fault
        return {"receipt": order}

    def find(self, order: str, key: str = "") -> dict[str, str] | None:
        self.probed.append((order, key))
        if self.probe_fault is not None:
            raise self.probe_fault
        return {"found": order} if order in self.paid else None


@pytest.fixture
def bank() -> Bank:
    return Bank()


def payer(bank: Bank, **options: Any) -> holdfast.Agent[[], Any]:  # noqa: ANN401 of the effect
    @holdfast.effect(key="order", **options)
    def pay(order: str, amount: int = 1, *, idempotency_key: str = "") -> dict[str, str]:
        return bank.pay(order, idempotency_key)

    @holdfast.step
    def chat() -> str:
        return "thanks"

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        return [pay("o1", amount=2), chat()]

    return agent


def probing(bank: Bank) -> Any:  # noqa: ANN401
    def find(order: str, amount: int, idempotency_key: str) -> dict[str, str] | None:
        assert 2 == amount
        return bank.find(order, idempotency_key)

    return find


@pytest.mark.parametrize("is_late", [True, False])
def test_after_a_crash_the_probe_decides(stage: Stage, bank: Bank, is_late: bool) -> None:
    agent = payer(bank, probe=probing(bank))
    bank.fault, bank.is_late = Crash(), is_late
    stage.die(agent)
    bank.fault = None

    outcome, _ = stage.live(agent)

    assert {"o1": 1} == bank.paid
    assert ({"found": "o1"} if is_late else {"receipt": "o1"}) == outcome
    assert [("o1", bank.keys[0])] == bank.probed
    assert 1 == len(set(bank.keys))


@pytest.mark.parametrize("is_late", [True, False])
def test_in_process_the_probe_decides_at_once(stage: Stage, bank: Bank, is_late: bool) -> None:
    agent = payer(bank, probe=probing(bank))
    bank.fault, bank.is_late = Network("dead"), is_late

    if is_late:
        assert {"found": "o1"} == stage.live(agent)[0]
    else:
        error = stage.fault(agent)
        assert isinstance(error, holdfast.RunFailed)
        assert bank.fault is error.__cause__
    assert 1 == len(bank.probed)
    assert ({"o1": 1} if is_late else {}) == bank.paid


def test_an_error_that_the_probe_proved_is_replayed_when_the_agent_went_past(
    stage: Stage, bank: Bank, world: World
) -> None:
    @holdfast.effect(probe=lambda: bank.find("o1"))
    def pay() -> dict[str, str]:
        world.ask("pay")
        raise ValueError("dead line")

    @holdfast.step
    def chat() -> str:
        return world.ask("chat")

    caught: list[str] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        try:
            pay()
        except ValueError as error:
            caught.append(str(error))
        said = chat()
        if len(caught) == 1:
            raise Crash
        return said

    stage.die(agent)

    assert "chat#1" == stage.live(agent)
    assert ["dead line"] * 2 == caught
    assert ["pay", "chat"] == world.asked
    assert 1 == len(bank.probed)


@pytest.mark.parametrize("fault", [Crash(), Network("dead")], ids=["crash", "error"])
def test_a_probe_that_cannot_tell_leaves_it_in_doubt(
    stage: Stage, bank: Bank, fault: BaseException
) -> None:
    agent = payer(bank, probe=probing(bank))
    bank.fault, bank.probe_fault = fault, TimeoutError("bank is down")
    with contextlib.suppress(Crash, holdfast.InDoubt):
        stage.live(agent)
    bank.fault = None

    error = stage.fault(agent)

    assert isinstance(error, holdfast.InDoubt)
    assert "its probe raised TimeoutError: bank is down" in str(error)
    assert holdfast.Status.IN_DOUBT is stage.info().status
    assert 1 == len(bank.keys)
    bank.probe_fault = None
    assert {"receipt": "o1"} == stage.live(agent)[0]
    assert {"o1": 1} == bank.paid


@pytest.mark.parametrize("is_late", [True, False])
def test_an_idempotent_effect_is_repeated_under_the_same_key(
    stage: Stage, bank: Bank, is_late: bool
) -> None:
    agent = payer(bank, idempotent=True)
    bank.fault, bank.is_late = Crash(), is_late
    for _ in range(3):
        stage.die(agent)
    bank.fault = None

    assert {"receipt": "o1"} == stage.live(agent)[0]
    assert 4 == len(bank.keys)
    assert 1 == len(set(bank.keys))


def test_an_idempotent_effect_that_raises_is_repeated_once_and_then_in_doubt(
    stage: Stage, bank: Bank
) -> None:
    agent = payer(bank, idempotent=True)
    bank.fault = Network("dead")
    error = stage.fault(agent)

    assert isinstance(error, holdfast.InDoubt)
    assert "Network: dead" in str(error)
    assert bank.fault is error.__cause__
    assert 2 == len(bank.keys)
    bank.fault = None
    assert {"receipt": "o1"} == stage.live(agent)[0]
    assert 1 == len(set(bank.keys))


@pytest.mark.parametrize("fault", [Crash(), Network("dead")], ids=["crash", "error"])
def test_an_effect_with_neither_stops_the_run_and_is_listed(
    stage: Stage, bank: Bank, fault: BaseException
) -> None:
    agent = payer(bank)
    bank.fault = fault
    with contextlib.suppress(Crash, holdfast.InDoubt):
        stage.live(agent)
    bank.fault = None

    again: list[Callable[[holdfast.Agent[[], Any]], Any]] = [stage.live, stage.restart]
    for live in again:
        with pytest.raises(holdfast.InDoubt) as caught:
            live(agent)
        assert RUN == caught.value.run
        assert caught.value.effect.endswith("pay")
        assert bank.keys[0] == caught.value.key
        assert "it is not done again" in str(caught.value)
        assert "--happened" in str(caught.value)
        assert "--not-done" in str(caught.value)
        assert "crash" not in caught.value.why  # An error left it so, or a crash: who knows.
    assert 1 == len(bank.keys)
    assert holdfast.Status.IN_DOUBT is stage.info().status
    assert "InDoubt" in (stage.info().error or "")
    with stage.open() as store:
        assert [RUN] == [info.id for info in store.runs(status="in doubt")]


def test_a_doubt_that_the_agent_swallows_still_stops_the_run(
    stage: Stage, bank: Bank, world: World
) -> None:
    @holdfast.effect
    def pay() -> None:
        world.ask("pay")
        raise Network

    @holdfast.step
    def chat() -> str:
        return world.ask("chat")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            with contextlib.suppress(Exception):
                pay()
            with contextlib.suppress(Exception):
                chat()
            break
        with contextlib.suppress(Exception):
            for _ in run.turns():
                break
        return "as if nothing were"

    assert isinstance(stage.fault(agent), holdfast.InDoubt)
    assert ["pay"] == world.asked
    assert holdfast.Status.IN_DOUBT is stage.info().status


@pytest.mark.parametrize("happened", [True, False])
def test_a_person_decides_and_the_run_goes_on(stage: Stage, bank: Bank, happened: bool) -> None:
    agent = payer(bank)
    bank.fault = Crash()
    stage.die(agent)
    bank.fault = None
    error = stage.fault(agent)
    assert isinstance(error, holdfast.InDoubt)

    with stage.open() as store:
        store.resolve(RUN, error.key, happened=happened, outcome={"told": "by ann"})
        outcome, _ = store.restart(RUN, agent=agent)

    assert ({"told": "by ann"} if happened else {"receipt": "o1"}) == outcome
    assert ({} if happened else {"o1": 1}) == bank.paid
    assert 1 == len(set(bank.keys))


class Receipt(pydantic.BaseModel):
    order: str
    cents: int


def buyer() -> holdfast.Agent[[], str]:
    @holdfast.effect
    def buy(order: str) -> Receipt:
        raise Network

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        bought = buy("o1")
        return f"{bought.order} for {bought.cents}"

    return agent


@pytest.mark.parametrize("outcome", [None, "paid", {"order": "o1"}])
def test_what_an_effect_cannot_have_given_back_is_refused(stage: Stage, outcome: object) -> None:
    agent = buyer()
    doubt = stage.fault(agent)
    assert isinstance(doubt, holdfast.InDoubt)

    with stage.open() as store, pytest.raises(holdfast.UsageError, match="buy gives back Receipt"):
        store.resolve(RUN, doubt.key, happened=True, outcome=outcome)

    assert holdfast.Status.IN_DOUBT is stage.info().status


@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize(
    "outcome", [{"order": "o1", "cents": 5}, Receipt(order="o1", cents=5)], ids=["json", "model"]
)
def test_what_a_person_says_is_given_as_the_effect_would_have(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, outcome: object, is_declared: bool
) -> None:
    agent = buyer()
    doubt = stage.fault(agent)
    assert isinstance(doubt, holdfast.InDoubt)

    with stage.open() as store, monkeypatch.context() as patch:
        if not is_declared:  # As where a command answers that knows none of the program.
            patch.setattr(tools, "find", lambda _name, _module: None)
        store.resolve(RUN, doubt.key, happened=True, outcome=outcome)

    assert "o1 for 5" == stage.live(agent)


@pytest.mark.parametrize(
    ("said", "kinds"),
    [([1.5], [Decimal]), (["2"], [Decimal]), ([], [])],
    ids=["a number", "a text", "none"],
)
def test_what_equals_the_type_that_an_effect_returns_becomes_it(
    stage: Stage, said: list[object], kinds: list[type]
) -> None:
    @holdfast.effect
    def quote() -> list[Decimal]:
        raise Network

    @holdfast.agent
    def agent(run: holdfast.Run) -> bool:
        return kinds == [type(each) for each in quote()]

    doubt = stage.fault(agent)
    assert isinstance(doubt, holdfast.InDoubt)
    with stage.open() as store:
        store.resolve(RUN, doubt.key, happened=True, outcome=said)

    assert stage.live(agent) is True


def test_a_word_on_an_effect_that_is_not_in_doubt_is_refused(stage: Stage, bank: Bank) -> None:
    agent = payer(bank)
    bank.fault = Crash()
    stage.die(agent)
    bank.fault = None
    error = stage.fault(agent)
    assert isinstance(error, holdfast.InDoubt)
    before = stage.journal()

    with stage.open() as store:
        with pytest.raises(holdfast.UsageError, match="no effect in doubt"):
            store.resolve(RUN, "0" * 32, happened=True)
        with pytest.raises(holdfast.UnknownRun):
            store.resolve("nobody", error.key, happened=True)
        with pytest.raises(holdfast.UsageError, match="pay gives back dict"):
            store.resolve(RUN, error.key, happened=True, outcome=object())
    assert before == stage.journal()
    assert holdfast.Status.IN_DOUBT is stage.info().status

    with stage.open() as store:
        store.resolve(RUN, error.key, happened=True, outcome={})
        with pytest.raises(holdfast.UsageError, match="was settled as happened"):
            store.resolve(RUN, error.key, happened=False)
    assert [{}, "thanks"] == stage.live(agent)


def test_two_effects_in_doubt_are_decided_one_by_one(stage: Stage, world: World) -> None:
    @holdfast.effect
    async def pay(order: str) -> str:
        world.ask(f"pay {order}")
        while world.dies_at and len(world.asked) < 3:  # noqa: ASYNC110 all are under way, then it dies
            await asyncio.sleep(0.001)
        if world.dies_at:
            raise Crash
        return order

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        return await asyncio.gather(pay("a"), pay("b"), pay("b"))

    world.dies_at = "all"
    stage.die(agent)
    world.dies_at = None
    keys: list[str] = []
    for order in range(3):
        error = stage.fault(agent)
        assert isinstance(error, holdfast.InDoubt)
        keys.append(error.key)
        with stage.open() as store:
            store.resolve(RUN, error.key, happened=True, outcome=f"outcome {order}")

    assert ["outcome 0", "outcome 1", "outcome 2"] == sorted(stage.live(agent))
    assert 3 == len(set(keys))
    assert 3 == len(world.asked)


def test_all_doubts_of_one_list_are_answered_from_it(stage: Stage, world: World) -> None:
    @holdfast.effect
    async def pay(order: str) -> str:
        world.ask(f"pay {order}")
        raise ConnectionError

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        return await asyncio.gather(pay("a"), pay("b"), pay("c"))

    assert isinstance(stage.fault(agent), holdfast.InDoubt)

    with stage.open() as store:
        items = store.inbox()
        for item in items:
            assert item.arguments is not None
            store.answer(item.id, "happened", outcome=item.arguments["order"])

    assert 3 == len(items)
    assert ["a", "b", "c"] == stage.live(agent)
    assert 3 == len(world.asked)


def test_a_doubt_in_a_turn_long_past_a_base_is_found(stage: Stage, bank: Bank) -> None:
    @holdfast.effect(probe=bank.find)
    def pay(order: str) -> dict[str, str]:
        return bank.pay(order)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            run.state.setdefault("paid", []).append(pay(f"o{turn}"))
            run.state["big"] = text(turn, 5_000)
            if turn == 50:
                return len(run.state["paid"])
        raise AssertionError

    bank.is_late = True
    for order in ("o0", "o20", "o49"):
        bank.fault_at = order
        bank.fault = Crash()
        stage.die(agent)
    bank.fault = None

    assert 51 == stage.live(agent)
    assert [1] * 51 == list(bank.paid.values())
    assert "Based" in stage.kinds()
