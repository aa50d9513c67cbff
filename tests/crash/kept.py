"""Agents for a supervisor's child, which dies once at the failpoint that the environment names."""

import os
import signal
import sys
from pathlib import Path

import holdfast
from holdfast import failpoint
from tests.crash import agents
from tests.crash.agents import Answer, book, got, pay, think

PLACE, DEATH = "HOLDFAST_TEST_PLACE", "HOLDFAST_TEST_DEATH"
DIED = "died"
"""The file that says that the death has been died."""
TURNS = 3

agents.outside.place = Path(os.environ.get(PLACE, "."))


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def kept(run: holdfast.Run) -> list[Answer]:
    agents.outside.note("life")
    run.state.setdefault("answers", [])
    for turn in run.turns():
        asked = [got(think(turn)), got(pay(f"order-{turn}")), got(book(f"order-{turn}"))]
        run.state["answers"].extend(asked)
        if turn == TURNS - 1:
            break
    answers: list[Answer] = holdfast.plain(run.state["answers"])
    return answers


@holdfast.agent
def doomed(run: holdfast.Run) -> None:
    for turn in run.turns():
        got(pay(f"order-{turn}"))
        agents.outside.note("life")
        os.kill(os.getpid(), signal.SIGKILL)


def die_once(setting: str) -> None:
    """Have this process killed at a failpoint, if no process before it was."""
    name, _, nth = setting.partition(":")
    left = int(nth)

    def act() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            try:
                os.close(os.open(agents.outside.place / DIED, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    failpoint.arm(name, act)


if os.environ.get(DEATH) and "holdfast.engine.child" in sys.orig_argv:
    die_once(os.environ[DEATH])
