"""What the tests of the engine share: a store that lives many lives, a world that counts."""

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import holdfast
from holdfast import failpoint
from holdfast.clock import Clock, SystemClock
from holdfast.engine.given import given_key
from holdfast.model.journal import Answer, Entry, Happened
from holdfast.store.open import open_store

T = TypeVar("T")

RUN = "run-1"

FENCE = "fence"
fence = {"restores": 0, "doubled": 0, "swallowed": 0}
"""What the tests of the fence counted; printed at the end."""


class Crash(BaseException):
    """The process dies here, as far as the run can tell."""


class World:
    """What was really asked of the outside, in order; `dies_at` names the call that kills."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.dies_at: str | None = None

    def ask(self, what: str) -> str:
        """Answer with the question and how often it was asked, so that a repeat shows."""
        self.asked.append(what)
        if what == self.dies_at:
            raise Crash(what)
        return f"{what}#{self.asked.count(what)}"

    @property
    def repeated(self) -> list[str]:
        """What was asked more than once."""
        return sorted({what for what in self.asked if self.asked.count(what) > 1})


class Stage:
    """One store, opened anew for each life of a run, as by a new process."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path, self.clock = path, clock

    def open(self) -> holdfast.Store:
        return holdfast.open(self.path, clock=self.clock)

    def live(self, agent: holdfast.Agent[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 the agent's own
        """Run the agent in a life of its own, to the end or to whatever ends it."""
        kwargs.setdefault("id", RUN)
        with self.open() as store:
            return store.run(agent, *args, **kwargs)

    def die(self, agent: holdfast.Agent[..., Any], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 the agent's own
        """Live until the crash."""
        try:
            self.live(agent, *args, **kwargs)
        except Crash:
            return
        msg = "it was to crash"
        raise AssertionError(msg)

    def restart(self, agent: holdfast.Agent[..., Any], *, redo_turn: bool = False) -> Any:  # noqa: ANN401 the agent's own
        with self.open() as store:
            return store.restart(RUN, agent=agent, redo_turn=redo_turn)

    def fault(self, agent: holdfast.Agent[..., Any], *args: Any, **kwargs: Any) -> Exception:  # noqa: ANN401 the agent's own
        """Live until an error, and give it."""
        try:
            self.live(agent, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 the test says which it must be
            return error
        msg = "it was to fail"
        raise AssertionError(msg)

    def info(self, id_: str = RUN) -> holdfast.RunInfo:
        with self.open() as store:
            return store.get(id_)

    def journal(self, id_: str = RUN) -> list[Entry]:
        """Every entry on the run's line of history, oldest first."""
        opened = open_store(self.path, SystemClock(), key=given_key())
        try:
            run = opened.reader.find(id_)
            assert run is not None
            head = run.row.head
            rows = opened.reader.rows(head, opened.reader.first(head), opened.reader.end(head))
            return [entry for placed in rows for entry in placed.row.entries]
        finally:
            opened.close()

    def value(self, entry: Answer | Happened) -> object:
        """What a step or effect gave, as recorded."""
        opened = open_store(self.path, SystemClock(), key=given_key())
        try:
            return opened.reader.value(entry.value)
        finally:
            opened.close()

    def kinds(self, id_: str = RUN) -> list[str]:
        return [type(entry).__name__ for entry in self.journal(id_)]


def text(of: object, size: int) -> str:
    """Text that is the same each time and does not compress away."""
    return random.Random(repr(of)).randbytes(size // 2).hex()  # noqa: S311 it is to repeat


def moments(
    stage: Stage,
    agent: holdfast.Agent[..., Any],
    *args: object,
    outside: Callable[[], T],
) -> Iterator[tuple[str, Stage, T]]:
    """Every crash point that a run reaches, with the store as a kill there would leave it.

    The third item is what `outside` said at that moment.
    """
    taken: list[tuple[str, Stage, T]] = []

    lock = threading.Lock()

    def photograph(name: str) -> None:
        with lock:
            take(name)

    def take(name: str) -> None:
        copy = stage.path.with_name(f"{len(taken):03d}-{name}")
        shutil.copytree(stage.path, copy)
        taken.append((name, Stage(copy, stage.clock), outside()))

    with reaching(photograph):
        stage.live(agent, *args)
    yield from taken


class reaching:  # noqa: N801 it reads as a verb in `with`
    """Have `act` done at every crash point."""

    def __init__(self, act: Callable[[str], None]) -> None:
        self._act, self._reach, self._is_idle = act, failpoint.reach, failpoint.is_idle

    def __enter__(self) -> None:
        failpoint.reach = lambda name, *_: self._act(name)  # Put back below.
        failpoint.is_idle = lambda: False  # Else C adds rows past the points, while one is at work.

    def __exit__(self, *_: object) -> None:
        failpoint.reach, failpoint.is_idle = self._reach, self._is_idle
