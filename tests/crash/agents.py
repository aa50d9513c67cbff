"""Small agents that are killed. Each answer carries a token, so the result tells which were used.

A step or effect says `asked` to the outside when it is really called; the agent says `got` as
soon as an answer was handed to it, which proves that it was recorded.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import holdfast
from tests.crash.outside import Outside

RUN = "run"
TURNS = 3
LARGE_BYTES = 80_000
FIXED = "fixed"
"""While this file is missing, some agents fail, are cancelled, or run their old code."""

Answer = dict[str, str]

outside = Outside(Path())
"""The world of this process; `live` says where it is."""


class Refused(Exception):
    """The world said no, and nothing happened."""


def _answer(what: str) -> Answer:
    return {"what": what, "token": outside.asked(what)}


def _do(what: str, key: str) -> Answer:
    answer = _answer(what)
    outside.done(key, what, answer["token"])
    return answer


def _found(what: str, key: str) -> Answer | None:
    token = outside.find(key)
    return None if token is None else {"what": what, "token": token}


@holdfast.step
def think(turn: int, part: str = "") -> Answer:
    return _answer(f"think {turn} {part}")


@holdfast.step
async def athink(turn: int, part: str = "") -> Answer:
    return _answer(f"think {turn} {part}")


@holdfast.step
def read(turn: int) -> Answer:
    return {**_answer(f"read {turn}"), "text": secrets.token_hex(LARGE_BYTES)}


@holdfast.step
def wait(gate: str) -> Answer:
    answer = _answer(f"wait {gate}")
    while not (outside.place / gate).exists():
        time.sleep(0.01)
    return answer


@holdfast.step
async def acancel() -> Answer:
    answer = _answer("cancel")
    if not (outside.place / FIXED).exists():
        (outside.place / FIXED).touch()
        task = asyncio.current_task()
        assert task is not None
        task.cancel()  # It takes effect where the task waits next: for the commit.
    return answer


def find_paid(order: str, idempotency_key: str) -> Answer | None:
    return _found(f"pay {order}", idempotency_key)


@holdfast.effect(probe=find_paid, key="order")
def pay(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"pay {order}", idempotency_key)


@holdfast.effect(probe=find_paid, key="order")
async def apay(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"pay {order}", idempotency_key)


@holdfast.effect(idempotent=True, key="order")
def book(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"book {order}", idempotency_key)


@holdfast.effect(idempotent=True, key="order")
async def abook(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"book {order}", idempotency_key)


def unhold(_outcome: Answer, order: str, idempotency_key: str) -> None:
    _do(f"book undo {order}", idempotency_key)


@holdfast.effect(idempotent=True, key="order", undo=unhold)
def hold(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"book hold {order}", idempotency_key)


@holdfast.effect(key="order")
def mail(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"mail {order}", idempotency_key)


@holdfast.effect(probe=find_paid, key="order", approve=True)
def allowed(order: str, idempotency_key: str = "") -> Answer:
    return _do(f"pay {order}", idempotency_key)


@holdfast.effect(probe=find_paid, key="order", not_done=Refused)
def charge(order: str, idempotency_key: str = "") -> Answer:  # noqa: ARG001 the card is declined before the key counts
    outside.asked(f"charge {order}")
    raise Refused(order)


def got(answer: Answer) -> Answer:
    """The answer is in the agent's hands."""
    outside.note("got", answer["what"], answer["token"])
    return answer


def _answers(run: holdfast.Run) -> list[Answer]:
    answers: list[Answer] = holdfast.plain(run.state["answers"])
    return answers


def _loop(
    run: holdfast.Run, ask: Callable[[int], list[Answer]], turns: int = TURNS
) -> list[Answer]:
    run.state.setdefault("answers", [])
    for turn in run.turns():
        run.state["answers"].extend(ask(turn))
        if turn == turns - 1:
            break
    return _answers(run)


@holdfast.agent
def one_step(run: holdfast.Run) -> list[Answer]:
    return _loop(run, lambda turn: [got(think(turn))])


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def probed(run: holdfast.Run) -> list[Answer]:
    return _loop(run, lambda turn: [got(think(turn)), got(pay(f"order-{turn}"))])


@holdfast.agent(checkpoint=holdfast.every(steps=1) | holdfast.before_irreversible())
def idempotent(run: holdfast.Run) -> list[Answer]:
    return _loop(run, lambda turn: [got(book(f"order-{turn}")), got(think(turn))])


@holdfast.agent
def neither(run: holdfast.Run) -> list[Answer]:
    return _loop(run, lambda turn: [got(think(turn)), got(mail(f"order-{turn}"))])


@holdfast.agent
async def gathered(run: holdfast.Run) -> list[Answer]:
    run.state.setdefault("answers", [])
    async for turn in run.turns():
        equal = [_then(athink(turn)), _then(athink(turn)), _then(athink(turn))]
        effects = [_then(apay(f"order-{turn}")), _then(apay(f"order-{turn}"))]
        run.state["answers"].extend(await asyncio.gather(*equal, *effects))
        if turn == TURNS - 1:
            break
    return _answers(run)


async def _then(asking: Any) -> Answer:  # noqa: ANN401 any awaitable of an answer
    return got(await asking)


@holdfast.agent
def threads(run: holdfast.Run) -> list[Answer]:
    def ask(turn: int) -> list[Answer]:
        with ThreadPoolExecutor(4) as pool:
            asked = [
                pool.submit(run.wrap(lambda: got(think(turn, "one")))),
                pool.submit(run.wrap(lambda: got(think(turn, "two")))),
                pool.submit(run.wrap(lambda: got(think(turn, "two")))),
                pool.submit(run.wrap(lambda: got(pay(f"order-{turn}")))),
            ]
            return [each.result() for each in asked]

    return _loop(run, ask)


@holdfast.agent
def turnless(run: holdfast.Run) -> list[Answer]:
    answers = [got(think(0)), got(pay("order-0")), got(think(1))]
    drawn = f"{run.random.random()} {run.uuid()} {run.now()}"
    run.checkpoint("half")
    outside.note("got", "drawn", drawn)
    answers.append(got(book("order-1")))
    answers.append(got(run.call(_answer, "called")))
    return [*answers, {"what": "drawn", "token": drawn}]


@holdfast.agent
async def mixed(run: holdfast.Run) -> list[Answer]:
    run.state.setdefault("answers", [got(await athink(-1))])
    async for turn in run.turns():
        run.state["answers"].append(got(await athink(turn)))
        run.state["answers"].append(got(await apay(f"order-{turn}")))
        run.state["answers"].append(got(await abook(f"order-{turn}")))
        if turn == TURNS - 1:
            break
    run.state["answers"].append(got(await apay("last")))
    return _answers(run)


@holdfast.agent
def idle(run: holdfast.Run) -> list[Answer]:
    """Leaves what is pending alone until it is committed by itself."""

    def ask(turn: int) -> list[Answer]:
        while run._session.is_pending:  # noqa: SLF001 there is no other way to see it
            time.sleep(0.01)
        return [got(think(turn))]

    return _loop(run, ask)


@holdfast.agent
def large(run: holdfast.Run) -> list[Answer]:
    """Answers and a state that are kept as files of their own."""

    def ask(turn: int) -> list[Answer]:
        answer = got(read(turn))
        run.state["text"] = answer["text"]
        return [{"what": answer["what"], "token": answer["token"]}]

    return _loop(run, ask)


@holdfast.agent
async def cancelled(run: holdfast.Run) -> list[Answer]:
    """Is cancelled once, while an answer is on its way to the disk."""
    run.state.setdefault("answers", [got(await acancel())])
    async for turn in run.turns():
        run.state["answers"].append(got(await athink(turn)))
        if turn == TURNS - 1:
            break
    return _answers(run)


@holdfast.agent
def gated(run: holdfast.Run) -> list[Answer]:
    """Waits inside a step, twice, for a file that the test makes."""
    return _loop(run, lambda turn: [got(think(turn)), got(wait(f"gate-{min(turn, 1)}"))])


@holdfast.agent
def refused(run: holdfast.Run) -> list[Answer]:
    def ask(turn: int) -> list[Answer]:
        try:
            return [charge(f"order-{turn}")]
        except Refused as error:
            return [got({"what": f"charge {error}", "token": "refused"}), got(think(turn))]

    return _loop(run, ask)


@holdfast.agent
def failing(run: holdfast.Run) -> list[Answer]:
    def ask(turn: int) -> list[Answer]:
        answers = [got(think(turn)), got(pay(f"order-{turn}"))]
        if turn == 1 and not (outside.place / FIXED).exists():
            raise ZeroDivisionError
        return answers

    return _loop(run, ask)


@holdfast.agent
def redone(run: holdfast.Run) -> list[Answer]:
    def ask(turn: int) -> list[Answer]:
        if turn == 1 and not (outside.place / FIXED).exists():
            think(turn, "old")
            pay(f"order-{turn}")
            raise ZeroDivisionError
        return [got(pay(f"order-{turn}")), got(think(turn, "new"))]

    return _loop(run, ask)


@holdfast.agent
def asking(run: holdfast.Run) -> list[Answer]:
    """Spends, and waits for a person, who answers and approves; the last question expires."""

    def ask(turn: int) -> list[Answer]:
        if turn < TURNS - 1:
            left = {"what": f"left {run.budget('usd', TURNS).spend(1)}", "token": "left"}
            asked = got(run.ask(f"ask {turn}"))
            return [left, asked, got(allowed(f"order-{turn}")), got(think(turn))]
        late = {"what": "nobody", "token": "nobody"}
        return [got(think(turn)), got(run.ask(f"ask {turn}", expires=0, default=late))]

    return _loop(run, ask)


def words(turn: int, prefix: Sequence[Answer] = ()) -> Iterator[Answer]:
    for n in range(len(prefix), 2):
        yield _answer(f"word {turn} {n}")


@holdfast.agent(checkpoint=holdfast.every(tokens=1))
def streaming(run: holdfast.Run) -> list[Answer]:
    """Reads a stream in its only turn; each item is recorded before it is handed out."""
    run.state.setdefault("answers", [])
    for turn in run.turns():
        for word in run.stream(words, turn, every=1):
            run.state["answers"].append(got(word))
        break
    return _answers(run)


@holdfast.agent
def kid(run: holdfast.Run, n: int) -> list[Answer]:
    return _loop(run, lambda turn: [got(think(10 * n + turn)), got(pay(f"order-{n}-{turn}"))], 1)


@holdfast.agent
def family(run: holdfast.Run) -> list[Answer]:
    """Has a child, which pays."""
    return [got(think(0)), *run.child(kid, 1)]


class Keeper:
    """An object of the program that holds the answers, and something of its own."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.turns = 0


@holdfast.agent
def attached(run: holdfast.Run) -> list[Answer]:
    """The answers stand in an attached object; the state only mirrors it."""
    keeper = Keeper()
    run.attach("keeper", keeper, only=["answers", "turns"])
    for turn in run.turns():
        assert turn == keeper.turns
        keeper.answers.append(got(think(turn)))
        run.checkpoint()
        keeper.answers.append(got(pay(f"order-{turn}")))
        keeper.turns += 1
        if turn == TURNS - 1:
            break
    answers: list[Answer] = holdfast.plain(keeper.answers)
    return answers


def _refuse(turn: int) -> None:
    raise Refused(turn)


@holdfast.agent
def aborting(run: holdfast.Run) -> list[Answer]:
    """Leaves a critical section by an error, in every turn but the last."""

    def ask(turn: int) -> list[Answer]:
        section = run.critical(f"section {turn}", raises=[Refused])
        try:
            with section:
                answers = [think(turn, "inside"), hold(f"one-{turn}"), hold(f"two-{turn}")]
                if turn < TURNS - 1:
                    _refuse(turn)
        except Refused:
            left = ",".join(each.how for each in section.effects)
            return [{"what": f"left {left}", "token": "left"}, got(think(turn, "after"))]
        return [got(answer) for answer in answers]

    return _loop(run, ask)


AGENTS: dict[str, holdfast.Agent[..., Any]] = {
    agent.name: agent
    for agent in (
        one_step,
        probed,
        idempotent,
        neither,
        gathered,
        threads,
        turnless,
        mixed,
        large,
        idle,
        cancelled,
        refused,
        failing,
        redone,
        asking,
        aborting,
        attached,
        streaming,
        family,
        gated,
    )
}
WRITING = tuple(AGENTS)[:9]
"""Agents that write in different ways: killed at every call that changes the disk."""
KILLED = tuple(AGENTS)[:-1]
"""Agents that end by themselves: killed at every failpoint."""


def carry_out(store: holdfast.Store, name: str) -> list[Answer]:
    """Run the agent to its end; answer what it asks, and where it fails or diverges, mend it."""
    while True:
        try:
            return _carry_out(store, name)
        except holdfast.Waiting as waiting:
            if waiting.kind == "approval":
                store.approve(waiting.question)
                continue
            answer = _answer(waiting.text)
            store.answer(waiting.question, answer)
            got(answer)  # The person knows that it is recorded.


def _carry_out(store: holdfast.Store, name: str) -> list[Answer]:
    agent = AGENTS[name]
    try:
        answers: list[Answer] = store.run(agent, id=RUN)
    except holdfast.RunFailed:
        (outside.place / FIXED).touch()
        answers = store.restart(RUN, agent=agent, redo_turn=agent is redone)
    except asyncio.CancelledError:
        answers = store.run(agent, id=RUN)
    except holdfast.Diverged:
        answers = store.restart(RUN, agent=agent, redo_turn=True)
    return answers
