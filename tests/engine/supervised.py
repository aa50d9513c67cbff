"""Agents that a child imports; what they ask of the world goes to a file in `place`."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import holdfast


def say(place: str, what: str) -> None:
    with Path(place, "asked").open("a") as file:
        file.write(f"{what}\n")


def is_first(place: str, what: str) -> bool:
    """Whether this never happened before, in any process."""
    mark = Path(place, what)
    if mark.exists():
        return False
    mark.touch()
    return True


@holdfast.step
def think(place: str, turn: int) -> int:
    say(place, f"think {turn}")
    return turn


@holdfast.step(timeout="30s")
def slow(place: str, seconds: float) -> float:
    say(place, "slow")
    time.sleep(seconds)
    return seconds


@holdfast.step(timeout=1)
def stopped(place: str) -> str:
    say(place, "stopped")
    if is_first(place, "was-stopped"):
        os.kill(os.getpid(), signal.SIGSTOP)
    return "woke up"


@holdfast.effect
def pay(place: str) -> str:
    say(place, "pay")
    raise ConnectionResetError("cut")


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def mortal(run: holdfast.Run, place: str, dies_at: list[int]) -> list[int]:
    run.state["seen"] = []
    for turn in run.turns():
        run.state["seen"].append(think(place, turn))
        if turn in dies_at and is_first(place, f"died-{turn}"):
            os.kill(os.getpid(), signal.SIGKILL)
        if turn == 4:
            break
    return [*run.state["seen"]]


@holdfast.agent(
    checkpoint=holdfast.every(turns=1), sla=holdfast.SLA(turn_usd=0.2, recovery_budget=0.5)
)
def thrifty(run: holdfast.Run, place: str) -> int:
    for turn in run.turns():
        think(place, turn)
        if is_first(place, f"died-{turn}"):
            os.kill(os.getpid(), signal.SIGKILL)
        if turn == 4:
            break
    return turn


@holdfast.agent
def flaky(run: holdfast.Run, place: str, times: int) -> str:
    for turn in run.turns():
        think(place, turn)
        for nth in range(times):
            if is_first(place, f"failed-{nth}"):
                raise ConnectionResetError("the line is down")
        break
    return "well"


@holdfast.agent
def forker(_run: holdfast.Run) -> int:
    """How a worker ends that is told to, and ignores Ctrl-C as workers of pools do."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@holdfast.agent
def buggy(run: holdfast.Run, place: str) -> str:
    for turn in run.turns():
        think(place, turn)
        raise TypeError("wrong")
    return ""


@holdfast.agent
def poisoned(run: holdfast.Run, place: str) -> str:
    for turn in run.turns():
        think(place, turn)
        say(place, "dies")
        os.kill(os.getpid(), signal.SIGKILL)
    return ""


@holdfast.agent
def hanging(run: holdfast.Run, place: str) -> str:
    for turn in run.turns():
        think(place, turn)
        if is_first(place, "hung"):
            time.sleep(600)
        break
    return "woke up"


def words(place: str, prefix: Sequence[str] = ()) -> Iterator[str]:
    for n in range(len(prefix), 6):
        if n == 4 and is_first(place, "stalled"):
            time.sleep(600)
        say(place, f"word {n}")
        yield f"w{n}"


@holdfast.agent(checkpoint=holdfast.every(seconds=0.2))
def listener(run: holdfast.Run, place: str) -> str:
    return " ".join(run.stream(words, place, every=2))


@holdfast.agent
def steady(_run: holdfast.Run, place: str) -> int:
    for turn in range(16):
        time.sleep(0.25)
        think(place, turn)
    return 16


@holdfast.agent
def manager(run: holdfast.Run, place: str) -> int:
    return run.child(steady, place)


@holdfast.agent
def patient(run: holdfast.Run, place: str, seconds: float) -> float:
    for _ in run.turns():
        return slow(place, seconds)
    return 0


@holdfast.agent
def stuck(run: holdfast.Run, place: str) -> str:
    for _ in run.turns():
        return stopped(place)
    return ""


@holdfast.agent
def payer(run: holdfast.Run, place: str) -> str:
    for _ in run.turns():
        return pay(place)
    return ""


@holdfast.agent
async def dreamer(run: holdfast.Run, place: str) -> str:
    async for turn in run.turns():
        think(place, turn)
        if is_first(place, "died"):
            os.kill(os.getpid(), signal.SIGKILL)
        break
    return "awake"


@holdfast.step
def quote(place: str, turn: int) -> int:
    """Corrupted the first time it is asked in turn 2."""
    say(place, f"quote {turn}")
    is_bad = turn == 2 and (is_first(place, "corrupted") or Path(place, "hopeless").exists())
    return -1 if is_bad else 100 + turn


def cancel(outcome: str, place: str, turn: int) -> None:
    say(place, f"cancel {turn} {outcome}")


@holdfast.effect(undo=cancel, key="turn")
def place_order(place: str, turn: int) -> str:
    say(place, f"order {turn}")
    return f"ordered {turn}"


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def cursed(run: holdfast.Run, place: str) -> list[int]:
    """Dies of a corrupted quote, whenever it sees it."""
    run.state["quotes"] = []
    for turn in run.turns():
        run.state["quotes"].append(quote(place, turn))
        place_order(place, turn)
        if run.state["quotes"][-1] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if turn == 3:
            break
    return [*run.state["quotes"]]


@holdfast.step
def wait(place: str, nth: int) -> bool:
    Path(place, "waits").touch()
    time.sleep(0.05)
    return Path(place, "go").exists() or nth > 600


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def slowly(run: holdfast.Run, place: str) -> list[int]:
    """Waits in turn 2, a short step at a time, until it is told to go on."""
    run.state["turns"] = []
    for turn in run.turns():
        place_order(place, turn)
        nth = 0
        while turn == 2 and not wait(place, nth):
            nth += 1
        run.state["turns"].append(turn)
        if turn == 3:
            break
    return [*run.state["turns"]]


def positive(state: dict[str, list[int]]) -> bool:
    return all(price > 0 for price in state.get("quotes", []))


@holdfast.agent(checkpoint=holdfast.every(turns=1), validate=positive)
def careful(run: holdfast.Run, place: str) -> list[int]:
    """Has a validator that refuses a corrupted quote."""
    run.state["quotes"] = []
    for turn in run.turns():
        run.state["quotes"].append(quote(place, turn))
        place_order(place, turn)
        if turn == 3:
            break
    return [*run.state["quotes"]]


@holdfast.agent
def interrupted(run: holdfast.Run, place: str) -> None:
    for turn in run.turns():
        think(place, turn)
        raise KeyboardInterrupt


@holdfast.agent
def clerk(run: holdfast.Run, place: str) -> str:
    """Asks a person."""
    for turn in run.turns():
        think(place, turn)
        return f"told {run.ask('Well?')}"
    return ""


@holdfast.agent
def office(run: holdfast.Run, place: str) -> str:
    return run.child(clerk, place)


@holdfast.agent
def leader(run: holdfast.Run, place: str, dies_at: list[int]) -> list[int]:
    return run.child(office_of_mortals, place, dies_at)


@holdfast.agent
def office_of_mortals(run: holdfast.Run, place: str, dies_at: list[int]) -> list[int]:
    return run.child(mortal, place, dies_at)


@holdfast.agent
def ringleader(run: holdfast.Run, place: str) -> str:
    return run.child(poisoned, place)


@holdfast.agent(sla=holdfast.SLA(max_recovery="1m"))
def hurried(_run: holdfast.Run, place: str) -> None:
    think(place, 0)
    raise ConnectionResetError("the line is down")


@holdfast.agent
async def dozer(_run: holdfast.Run) -> None:
    await asyncio.sleep(30)


@holdfast.agent
async def impatient(run: holdfast.Run) -> str:
    try:
        async with asyncio.timeout(0.05):
            await run.child(dozer, id="given up")
    except TimeoutError:
        return "without it"
    return "with it"
