"""Effects: intent, call, outcome; done once, under a key of their own."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import contextlib
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Crash, Stage, World, moments


class Declined(Exception):
    """The bank says no."""


def test_an_effect_is_done_once_and_its_outcome_is_replayed(stage: Stage, world: World) -> None:
    @holdfast.effect
    def pay(order: str) -> dict[str, Any]:
        return {"receipt": world.ask(f"pay {order}")}

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        found = [pay("o1"), pay("o2")]
        if world.dies_at:
            raise Crash
        return found

    world.dies_at = "later"
    stage.die(agent)
    world.dies_at = None

    assert [{"receipt": "pay o1#1"}, {"receipt": "pay o2#1"}] == stage.live(agent)
    assert ["pay o1", "pay o2"] == world.asked
    kinds = [kind for kind in stage.kinds() if kind in ("Intended", "Happened")]
    assert ["Intended", "Happened"] * 2 == kinds


def test_an_intent_is_durable_before_the_call_and_the_outcome_before_it_returns(
    stage: Stage, world: World
) -> None:
    @holdfast.effect
    def pay() -> str:
        return world.ask("pay")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return pay()

    kinds = {}
    for name, at, asked in moments(stage, agent, outside=lambda: list(world.asked)):
        if name.startswith("effect."):
            kinds[name] = at.kinds()[1:], asked

    assert (["Intended"], []) == kinds["effect.intended"]
    assert (["Intended"], ["pay"]) == kinds["effect.called"]
    assert (["Intended", "Happened"], ["pay"]) == kinds["effect.recorded"]


def test_the_key_reaches_the_function_by_keyword_and_by_current(stage: Stage, world: World) -> None:
    keys: dict[str, list[str | None]] = {"word": [], "current": []}

    @holdfast.effect(idempotent=True)
    def by_keyword(order: str, *, idempotency_key: str) -> str:
        keys["word"].append(idempotency_key)
        return world.ask(f"word {order}")

    @holdfast.effect(idempotent=True)
    def by_current(order: str) -> str:
        keys["current"].append(holdfast.current().idempotency_key)
        return world.ask(f"current {order}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [by_keyword("o1"), by_current("o1")]  # type: ignore[call-arg]  # handed in

    for what in ("word o1", "current o1"):
        world.dies_at = what
        stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    for found in keys.values():
        assert 2 == len(found)
        assert 1 == len(set(found))
        assert found[0]
    assert keys["word"][0] != keys["current"][0]


def test_two_equal_effects_on_purpose_are_two_with_two_keys(stage: Stage, world: World) -> None:
    keys: list[str] = []

    @holdfast.effect
    def remind(who: str, idempotency_key: str = "") -> str:
        keys.append(idempotency_key)
        return world.ask("remind")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found = [remind("ann"), remind("ann")]
        for turn in run.turns():
            found.append(remind("ann"))
            if world.dies_at == f"turn {turn}":
                raise Crash
            if turn == 2:
                return found
        raise AssertionError

    for turn in range(3):
        world.dies_at = f"turn {turn}"
        stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    assert 5 == len(keys) == len(set(keys))
    with stage.open() as store:
        store.run(agent, id="another run")
    assert 10 == len(set(keys))


def test_ignored_arguments_belong_neither_to_the_key_nor_to_the_question(
    stage: Stage, world: World
) -> None:
    keys: list[str] = []
    nonce = 0

    @holdfast.effect(ignore=("nonce", "client"), idempotent=True)
    def pay(order: str, nonce: int, client: object, idempotency_key: str = "") -> str:
        keys.append(idempotency_key)
        return world.ask(f"pay {order}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        nonlocal nonce
        nonce += 1
        return pay("o1", nonce, object())

    world.dies_at = "pay o1"
    stage.die(agent)
    world.dies_at = None

    assert "pay o1#2" == stage.live(agent)
    assert 1 == len(set(keys))


@pytest.mark.parametrize("how", ["NotDone", "not_done", "subclass"])
def test_what_was_surely_not_done_is_an_answer(stage: Stage, world: World, how: str) -> None:
    class Insufficient(Declined):
        """A kind of no."""

    caught: list[Exception] = []

    @holdfast.effect(not_done=(Declined, Insufficient))
    def pay(order: str) -> str:
        world.ask(f"pay {order}")
        if order == "good":
            return order
        raise {
            "NotDone": holdfast.NotDone("no card", 1),
            "not_done": Declined("no card", 1),
            "subclass": Insufficient("no card", 1),
        }[how]

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        try:
            pay("bad")
        except (holdfast.NotDone, Declined) as no:
            caught.append(no)
        found = pay("good")
        if len(caught) == 1:
            raise Crash
        return found

    stage.die(agent)

    assert "good" == stage.live(agent)
    assert ["pay bad", "pay good"] == world.asked
    assert type(caught[0]) is type(caught[1])
    assert ("no card", 1) == caught[1].args
    assert holdfast.Status.FINISHED is stage.info().status


def test_an_answer_of_not_done_that_ends_the_run_stays_when_it_is_restarted(
    stage: Stage, world: World
) -> None:
    @holdfast.effect(not_done=Declined)
    def pay() -> str:
        world.ask("pay")
        raise Declined

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return pay()

    assert isinstance(stage.fault(agent), holdfast.RunFailed)
    with pytest.raises(holdfast.RunFailed) as caught:
        stage.restart(agent)

    assert isinstance(caught.value.__cause__, Declined)
    assert ["pay"] == world.asked


async def test_effects_in_gather_are_each_done_once(stage: Stage, world: World) -> None:
    keys: list[str] = []

    @holdfast.effect
    async def pay(order: str, idempotency_key: str = "") -> str:
        keys.append(idempotency_key)
        await asyncio.sleep(0)
        return world.ask(f"pay {order}")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        found = await asyncio.gather(*(pay(order) for order in "aabbc"))
        if world.dies_at:
            raise Crash
        return sorted(found)

    world.dies_at = "later"
    with stage.open() as store, pytest.raises(Crash):
        await store.arun(agent, id=RUN)
    world.dies_at = None
    with stage.open() as store:
        result = await store.arun(agent, id=RUN)

    assert ["pay a#1", "pay a#2", "pay b#1", "pay b#2", "pay c#1"] == result
    assert 5 == len(set(keys)) == len(keys)


@pytest.mark.parametrize("where", ["result", "turn"])
def test_an_effect_still_going_on_when_its_turn_or_run_ends_is_in_doubt(
    stage: Stage, where: str
) -> None:
    began = asyncio.Event()

    @holdfast.effect
    async def pay() -> str:
        began.set()
        await asyncio.sleep(30)
        return "paid"

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        if where == "result":
            task = asyncio.create_task(pay())
            await began.wait()
            return f"{task.done()}"
        async for turn in run.turns():
            if turn == 0:
                task = asyncio.create_task(pay())
                await began.wait()
        raise AssertionError

    error = stage.fault(agent)

    assert isinstance(error, holdfast.InDoubt)
    assert "wait for it" in str(error)
    assert holdfast.Status.IN_DOUBT is stage.info().status


@pytest.mark.parametrize("cut", ["timeout", "interrupt"])
def test_an_effect_that_was_cut_off_is_in_doubt_even_if_the_agent_goes_on(
    stage: Stage, world: World, cut: str
) -> None:
    limits: list[asyncio.Timeout] = []

    @holdfast.effect
    async def slow() -> str:
        world.ask("pay")
        limits[-1].reschedule(asyncio.get_running_loop().time())
        await asyncio.sleep(30)
        return "paid"

    @holdfast.effect
    def interrupted() -> str:
        world.ask("pay")
        raise KeyboardInterrupt

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        try:
            if cut == "timeout":
                async with asyncio.timeout(None) as limit:
                    limits.append(limit)
                    await slow()
            else:
                interrupted()
        except (TimeoutError, KeyboardInterrupt):
            pass
        return "as if nothing were"

    error = stage.fault(agent)

    assert isinstance(error, holdfast.InDoubt)
    assert "cut it off" in str(error)
    assert holdfast.Status.IN_DOUBT is stage.info().status
    assert isinstance(stage.fault(agent), holdfast.InDoubt)
    assert ["pay"] == world.asked


@pytest.mark.parametrize("is_annotated", [True, False])
def test_a_probe_says_true_for_an_effect_that_returns_nothing(
    stage: Stage, world: World, is_annotated: bool
) -> None:
    def send(to: str) -> None:
        world.ask(f"send {to}")

    def find(to: str) -> bool | None:
        return True if f"send {to}" in world.asked else None

    if not is_annotated:
        send.__annotations__.clear()
    mail = holdfast.effect(probe=find)(send)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        return [mail("ann")]

    world.dies_at = "send ann"
    stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    assert ([None] if is_annotated else [True]) == result
    assert ["send ann"] == world.asked


async def test_probes_of_async_effects_may_be_async(stage: Stage, world: World) -> None:
    async def find(order: str, idempotency_key: str) -> str | None:
        await asyncio.sleep(0)
        keys.append(idempotency_key)
        return f"found {order}"

    keys: list[str] = []

    @holdfast.effect(probe=find)
    async def pay(order: str) -> str:
        keys.append(holdfast.current().idempotency_key or "")
        return world.ask(f"pay {order}")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        return await pay("o1")

    world.dies_at = "pay o1"
    with stage.open() as store:
        with pytest.raises(Crash):
            await store.arun(agent, id=RUN)
        assert "found o1" == await store.arun(agent, id=RUN)

    assert 2 == len(keys)
    assert 1 == len(set(keys))


def test_an_outcome_that_cannot_be_stored_leaves_the_effect_in_doubt(
    stage: Stage, world: World
) -> None:
    @holdfast.effect
    def pay() -> object:
        world.ask("pay")
        return object()

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with contextlib.suppress(Exception):
            pay()
        return "as if nothing were"

    error = stage.fault(agent)

    assert isinstance(error, holdfast.InDoubt)
    assert "cannot be stored" in str(error)
    assert isinstance(stage.fault(agent), holdfast.InDoubt)
    assert ["pay"] == world.asked
