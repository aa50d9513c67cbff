"""What a user writes, with types: the example of the design, and the rest of the public names."""
# ruff: noqa: ARG001, ARG002 what is written here is never run

import asyncio
import datetime as dt
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, assert_type

import holdfast

Message = dict[str, Any]


def cancel(outcome: Message, order_id: str, qty: int) -> None: ...


def find(order_id: str, qty: int) -> Message | None: ...


@holdfast.step
def chat(messages: list[Message]) -> Message:
    return {"done": True, "content": "bye"}


@holdfast.effect(undo=cancel, probe=find, key="order_id")
def place(order_id: str, qty: int) -> Message:
    return {"id": order_id}


@holdfast.agent(checkpoint=holdfast.every(turns=1), sla=holdfast.SLA(max_recovery="30s"))
def trader(run: holdfast.Run, symbol: str) -> str:
    run.state.setdefault("messages", [])
    for turn in run.turns():
        assert_type(turn, int)
        reply = chat(run.state["messages"])
        run.state["messages"].append(reply)
        if reply["done"]:
            return str(reply["content"])
        place(reply["order_id"], reply["qty"])
    raise AssertionError


@holdfast.step(raises=[TimeoutError], ignore="client")
async def achat(client: object, messages: list[Message]) -> Message:
    return {"done": True}


@holdfast.effect(idempotent=True, not_done=ConnectionRefusedError)
async def aplace(order_id: str, *, idempotency_key: str = "") -> int:
    return 1


@holdfast.agent
async def atrader(run: holdfast.Run, symbol: str, *, limit: int = 3) -> int:
    async for turn in run.turns():
        assert_type(turn, int)
        assert_type(await achat(None, run.state["messages"]), Message)
        placed = await asyncio.gather(aplace("a"), aplace("b"))
        assert_type(placed, tuple[int, int])
        return limit
    return 0


@holdfast.register
@dataclass
class Order:
    symbol: str
    qty: int


def tokens(answer: Order) -> Mapping[str, Any]:
    return {"input_tokens": answer.qty}


@holdfast.step(usage=tokens)
def buy(symbol: str, qty: int = 1) -> Order:
    return Order(symbol, qty)


class Client:
    """Steps and effects may be methods."""

    @holdfast.step(ignore="self")
    def ask(self, text: str) -> str:
        return text

    @holdfast.effect(ignore="self")
    async def pay(self, amount: int) -> bool:
        return True


def search(text: str, limit: int) -> list[str]:
    return [text] * limit


async def asearch(text: str) -> list[str]:
    return [text]


@holdfast.agent(version="3")
async def everything(run: holdfast.Run) -> Order:
    assert_type(run.id, str)
    assert_type(run.now(), dt.datetime)
    assert_type(run.uuid(), uuid.UUID)
    assert_type(run.random.random(), float)
    assert_type(run.random(), float)
    assert_type(run.call(search, "kelp", limit=3), list[str])
    assert_type(await run.call(asearch, "kelp"), list[str])
    assert_type(run.usage().tokens_in, int | None)
    assert_type(run.checkpoint(label="here"), str)
    assert_type(buy("KELP"), Order)
    assert_type(buy.bare("KELP", qty=2), Order)
    client = Client()
    assert_type(client.ask("hi"), str)
    assert_type(await client.pay(3), bool)
    assert_type(holdfast.current().idempotency_key, str | None)
    with ThreadPoolExecutor() as pool:
        assert_type(pool.submit(run.wrap(buy), "KELP").result(), Order)
    threading.Thread(target=run.wrap(buy), args=("KELP",)).start()
    return buy("KELP", qty=2)


def use(store: holdfast.Store) -> None:
    assert_type(store.run(trader, "KELP", id="run-42"), str)
    assert_type(store.run(atrader, "KELP", limit=2), int)
    assert_type(store.run(everything), Order)
    assert_type(store.runs(limit=3, status=holdfast.Status.FAILED), list[holdfast.RunInfo])
    assert_type(store.get("run-42").status, holdfast.Status)
    store.resolve("run-42", "key", happened=True, outcome={"id": 1})
    try:
        store.restart("run-42", agent=trader, redo_turn=True)
    except holdfast.InDoubt as doubt:
        assert_type(doubt.key, str)
    except holdfast.RunFailed as failed:
        assert_type(failed.kind, str)


async def ause() -> None:
    with holdfast.open("somewhere") as store:
        assert_type(await store.arun(trader, "KELP"), str)
        assert_type(await store.arun(atrader, "KELP"), int)
        await store.arestart("run-42")
