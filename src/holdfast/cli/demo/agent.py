"""The demo's agent: it answers support tickets, pays money back and writes mails."""

from pathlib import Path
from typing import Any

import holdfast
from holdfast.cli.demo.world import World


@holdfast.step(ignore="world")
def chat(world: World, ticket: str, stage: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask the model; it is given the whole conversation, as models are."""
    return world.think(ticket, stage, len(messages))


def find_refund(world: World, ticket: str, cents: int) -> dict[str, Any] | None:
    """Ask the bank whether a refund happened."""
    payment = world.find_payment(ticket)
    return payment if payment is not None and payment["cents"] == cents else None


@holdfast.effect(probe=find_refund, key="ticket", ignore="world")
def refund(world: World, ticket: str, cents: int) -> dict[str, Any]:
    """Pay money back. The bank would pay twice if it were asked twice."""
    return world.pay(ticket, cents)


@holdfast.effect(idempotent=True, key="ticket", ignore="world")
def mail(world: World, ticket: str, text: str, *, idempotency_key: str = "") -> str:
    """Send a mail. The server delivers each key once, so this may be repeated."""
    return world.send(ticket, text, idempotency_key)


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def support(run: holdfast.Run, folder: str, tickets: int, pace: float = 1.0) -> dict[str, Any]:
    """Answer one ticket a turn."""
    world = World(Path(folder), pace)
    state = run.state
    state.update(messages=[], refunded=0)
    for turn in run.turns():
        world.turn(turn)
        if turn == tickets:
            break
        ticket = f"T-{turn:03}"
        decision = chat(world, ticket, "decide", state["messages"])
        state["messages"].append(decision)
        if decision["cents"]:
            state["refunded"] += refund(world, ticket, decision["cents"])["cents"]
        reply = chat(world, ticket, "reply", state["messages"])
        state["messages"].append(reply)
        mail(world, ticket, reply["text"])
    return {"messages": len(state["messages"]), "refunded": state["refunded"]}
