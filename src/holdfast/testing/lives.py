"""One life of an agent in a forked child of the test: to its end, or until it is killed.

A fork, so that agents, stand-ins and patches of the test itself are there as they are, closures
too, and a life costs milliseconds. What a life changes in memory is gone with it, as in a crash:
the next one begins with what the test had when it began.
"""

import asyncio  # noqa: F401 loaded here, or every child would load it anew
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

import holdfast.engine.checkpoint  # noqa: F401 see asyncio
from holdfast.engine.agents import Agent
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.errors import InDoubt, RunFailed, Waiting
from holdfast.store.codec import values
from holdfast.testing.witness import Reached, seen

LIFE_S_MAX = 60
RUN = "under-test"
STORE, REACHED, OUTPUT, ENDED = "store", "reached", "output", "ended"
KILLED, HUNG = -signal.SIGKILL, -signal.SIGALRM
FINISHED, BROKEN, STOPPED = 0, 1, 3

Person = Callable[[Waiting], object]
"""What a person says to a question of the run; to a request for approval, True or False."""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What is run and where; `watch` has it die.

    `doubt` is the key that the life before left in doubt, `doubtful` the run it belongs to.
    """

    agent: Agent[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    place: Path
    watch: Callable[[], None]
    person: Person | None = None
    doubt: str = ""
    doubtful: str = RUN


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a life ended: with a result and a state, by an error, or waiting for a word."""

    value: bytes = b""
    error: str = ""
    kind: str = ""
    doubt: str = ""
    doubtful: str = RUN
    effect: str = ""


def live(life: Life) -> tuple[int, End]:
    """Live one life in a child; its exit status, negative for a signal, and what it left."""
    (life.place / ENDED).unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The child goes on with this thread alone; it waits for none of the others.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _child(life)
    try:
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    told = life.place / ENDED
    end = msgspec.json.decode(told.read_bytes(), type=End) if told.exists() else End()
    return os.waitstatus_to_exitcode(status), end


def why(status: int, end: End) -> str:
    """Why a life did not come to the end of the run; empty if it did."""
    if status in (FINISHED, KILLED):
        return ""
    if status == HUNG:
        return f"it was still running after {LIFE_S_MAX} s"
    return end.error or f"its process ended with status {status}"


def _child(life: Life) -> NoReturn:
    status = BROKEN
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIFE_S_MAX)
        _redirect(life.place / OUTPUT)
        _draw_anew()
        life.watch()
        status, end = _lived(life)
        (life.place / ENDED).write_bytes(msgspec.json.encode(end))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)  # What the test has to tidy up is the parent's.


def _lived(life: Life) -> tuple[int, End]:
    try:
        with open_store(life.place / STORE, check=True) as store:
            if life.doubt:
                _settle(store, life, seen(life.place / REACHED))
            result = _carried_out(store, life)
            _, state = store.restore(RUN)
        return FINISHED, End(value=values.encode({"result": result, "state": state}))
    except InDoubt as error:
        traceback.print_exc()
        return STOPPED, End(
            error=str(error), doubt=error.key, doubtful=error.run, effect=error.effect
        )
    except BaseException as error:  # noqa: BLE001 told to the test, whatever it is
        traceback.print_exc()
        cause = error.__cause__ if isinstance(error, RunFailed) and error.__cause__ else error
        kind = type(cause).__name__
        where = traceback.extract_tb(cause.__traceback__)[-1:]
        at = f" ({Path(where[0].filename).name}, line {where[0].lineno})" if where else ""
        return BROKEN, End(error=f"{kind}: {cause}{at}", kind=kind)


def _carried_out(store: Store, life: Life) -> object:
    while True:
        try:
            return store.run(life.agent, *life.args, id=RUN, **life.kwargs)
        except Waiting as waiting:
            if life.person is None:
                raise
            said = life.person(waiting)
            if waiting.kind != "approval":
                store.answer(waiting.question, said)
            elif said:
                store.approve(waiting.question)
            else:
                store.reject(waiting.question)


def _settle(store: Store, life: Life, reached: list[Reached]) -> None:
    """The life before ended in doubt: look what was done, and say so, as a person would."""
    done = [each for each in reached if each.key == life.doubt]
    outcome = done[-1].value() if done else None
    store.resolve(
        life.doubtful, life.doubt, happened=bool(done), outcome=outcome, by="the crash kit"
    )


def _redirect(file: Path) -> None:
    """What the agent prints goes to a file of its own."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115 a descriptor, for the life of the child
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115 see above


def _draw_anew() -> None:
    """Chance does not repeat itself after a crash; Python sees to its own `random`."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
