"""An agent to be killed: its imports take 0.2 s, and each turn says when it runs, and where."""

import os
import time
from pathlib import Path
from time import perf_counter_ns

import holdfast

IMPORT_S = 0.2
TURN_S = 0.02
TURNS = 1_000_000

time.sleep(IMPORT_S)


@holdfast.step
def think(log: str, turn: int) -> int:
    """Say that the turn runs; then think a little."""
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {perf_counter_ns()}\n")
    time.sleep(TURN_S)
    return turn


@holdfast.agent
def mortal(run: holdfast.Run, log: str, *, hangs_s: float) -> None:
    """Think, turn after turn, until killed; or hang after a second, once in each process."""
    began = perf_counter_ns()
    for turn in run.turns():
        think(log, turn)
        if hangs_s and perf_counter_ns() - began > 1e9:
            time.sleep(hangs_s)
        if turn == TURNS:
            break
