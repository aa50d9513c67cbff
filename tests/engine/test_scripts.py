"""Classes of a script: hashed as if it were imported, and found as older versions hashed them."""

import dataclasses

import pytest

import holdfast
from holdfast.store.codec import registry
from tests.engine.kit import RUN, Crash, Stage, World


def program(world: World) -> tuple[holdfast.Agent[..., list[str]], object]:
    """The program of a script, declared anew as in another process: its agent, and an argument."""

    @dataclasses.dataclass
    class Order:
        item: str

    Order.__module__, Order.__qualname__ = "__main__", "Order"
    holdfast.register(Order)

    @holdfast.step
    def ask(order: Order) -> str:
        return world.ask(f"ask {order.item}")

    @holdfast.effect(key="order", idempotent=True)
    def pay(order: Order) -> str:
        return world.ask(f"pay {order.item}")

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run, first: Order) -> list[str]:
        run.state["orders"], said = [first], []
        for turn in run.turns():
            order = Order(f"kelp {turn}")
            run.state["orders"].append(order)
            said = [ask(order), pay(order)]
            world.ask(f"turn {turn}")
            if turn == 1:
                return said
        return said

    return agent, Order("none")


def test_what_an_older_version_recorded_is_found_again(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "imported", lambda _cls: "__main__")  # As they had it.
    older, first = program(world)
    world.dies_at = "turn 1"
    with pytest.raises(Crash), stage.open() as store:
        store.run(older, first, id=RUN)
    world.dies_at = None
    monkeypatch.setattr(registry, "imported", lambda _cls: "shop")
    agent, first = program(world)

    with stage.open() as store:
        point, state = store.restore(f"{RUN}@0")
        said = store.run(agent, first, id=RUN)
        store.plan_rollback(RUN, to="start").apply()
        store.run(agent, first, id=RUN)

    assert {} == point.degraded
    assert ["none", "kelp 0"] == [each.item for each in state["orders"]]
    assert ["ask kelp 1#1", "pay kelp 1#1"] == said
    assert [] == [each for each in world.repeated if each.startswith("pay")]
