"""The whole drill: runs carried out side by side, each result kept, all gone when it is over."""

import contextlib
import queue
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.drill.effects import refuse_idle, stand_in
from holdfast.drill.faults import FAULTS, Fault, Traits
from holdfast.drill.forked import Nurse
from holdfast.drill.nursery import Stock, named
from holdfast.drill.plan import Plan, Trial, is_task
from holdfast.drill.result import Log, Result, Shared
from holdfast.drill.scenario import Scenario
from holdfast.drill.trial import Setting, Trials
from holdfast.engine.agents import Agent
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.errors import StoreError, UsageError
from holdfast.report.sizes import sizes

Heard = Callable[[Result], None]
UNSCALED_AT_ONCE = 20
"""Runs at full length mostly wait, so many of them go side by side."""
ROOM_BYTES_MIN = 1_000_000
_LOOK_S = 0.2
PARTS = ("traits", "strike", "reached", "between")
"""What a class of faults has."""


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """What is drilled: the agent, where modules are looked for, and what stands in for tools."""

    agent: Agent[..., Any]
    path: list[str]
    stubs: dict[str, str]
    faults: dict[str, type[Fault]]


def cast_of(
    agent: Agent[..., Any], scenario: Scenario, faults: Iterable[str], path: list[str]
) -> Cast:
    """The same with every name looked up; `UsageError` says which is unknown."""
    found = {}
    for name in faults:
        if name in FAULTS:
            found[name] = FAULTS[name]
        elif ":" in name:
            found[name] = _own_fault(name)
        else:
            known = ", ".join(FAULTS)
            msg = f"there is no fault {name!r}; those are {known}, or module:Name of yours"
            raise UsageError(msg)
    for tool, place in scenario.stubs.items():
        if not callable(_named(place, f"stand-in for {tool}")):
            raise UsageError(f"the stand-in for {tool}, {place}, is not a function")
    return Cast(agent=agent, path=path, stubs=scenario.stubs, faults=found)


def _own_fault(name: str) -> type[Fault]:
    made = _named(name, "fault")
    if not (isinstance(made, type) and all(hasattr(made, part) for part in PARTS)):
        msg = (
            f"fault {name} is not a class of faults; derive one from holdfast.drill.faults.Trouble"
        )
        raise UsageError(msg)
    try:
        traits = made().traits
    except Exception as error:
        msg = f"fault {name} cannot be made without arguments: {type(error).__name__}: {error}"
        raise UsageError(msg) from error
    if not isinstance(traits, Traits):
        raise UsageError(f"fault {name}: traits is a holdfast.drill.faults.Traits, not {traits!r}")
    return made


def _named(place: str, what: str) -> Any:  # noqa: ANN401 whatever the operator named
    try:
        return named(place)
    except (Exception, SystemExit) as error:  # Whatever a module of the operator's does.
        msg = f"{what} {place} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(msg) from error


class Stage:
    """A drill under way."""

    def __init__(
        self, cast: Cast, scenario: Scenario, work: Path, clock: Clock, *, is_kept: bool = False
    ) -> None:
        self._cast, self._scenario, self._work, self._clock = cast, scenario, work, clock
        self._is_kept = is_kept
        self._stopped = threading.Event()
        self.has_learnt = False
        """Whether every undisturbed run came to its end."""

    def play(
        self, plan: Plan, wanted: Iterable[int], *, workers: int, log: Log, heard: Heard
    ) -> None:
        """Carry out the wanted runs and those at full length; results are logged, then told.

        Whatever ends this, no process and no file of the drill is left.
        """
        began = self._clock.monotonic()
        with self._set() as (trials, store):
            for case in range(self._scenario.cases):
                trials.learn(case)
            self.has_learnt = True
            refuse_idle(self._cast.agent, self._cast.stubs, trials.called)
            tell = _Teller(log, heard)
            self._side_by_side([(plan.trial(no), False) for no in wanted], trials, workers, tell)
            if self._scenario.scale != 1.0:
                self._side_by_side(self._full(), trials, UNSCALED_AT_ONCE, tell)
            took_s = self._clock.monotonic() - began
            log.add(msgspec.structs.replace(_shared(store), took_s=took_s, workers=workers))

    def _full(self) -> list[tuple[Trial, bool]]:
        """Runs without a fault and at full length, which show the overhead."""
        return [
            (Trial(no=-10_000 - n, case=n % self._scenario.cases, seed=f"full/{n}"), True)
            for n in range(self._scenario.unscaled)
        ]

    @contextlib.contextmanager
    def _set(self) -> Iterator[tuple[Trials, Store]]:
        agent = self._cast.agent
        stock = Stock(
            path=self._cast.path,
            modules=[agent.module],
            stubs=self._cast.stubs,
            faults=[name for name in self._cast.faults if ":" in name],
        )
        self._work.mkdir(parents=True, exist_ok=True)
        try:
            with (
                Nurse(stock, self._work / "said") as nurse,
                open_store(self._work / "store") as store,
            ):
                setting = Setting(
                    agent=agent,
                    scenario=self._scenario,
                    faults=self._cast.faults,
                    work=self._work,
                    nurse=nurse,
                    clock=self._clock,
                    is_stopped=self._stopped.is_set,
                )
                with stand_in(self._cast.stubs, setting.undone):
                    yield Trials(setting, store), store
        except (OSError, StoreError):
            self._refuse_full()
            raise
        finally:
            if not self._is_kept:
                shutil.rmtree(self._work, ignore_errors=True)

    def _side_by_side(
        self, trials: list[tuple[Trial, bool]], stage: Trials, workers: int, tell: "_Teller"
    ) -> None:
        left: queue.SimpleQueue[tuple[Trial, bool]] = queue.SimpleQueue()
        for each in trials:
            left.put(each)
        failed: list[BaseException] = []

        def work() -> None:
            try:
                self._work_off(left, stage, tell)
            except BaseException as error:  # noqa: BLE001 raised again where all are waited for
                failed.append(error)
                self._stopped.set()

        threads = [threading.Thread(target=work) for _ in range(min(workers, len(trials)))]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                self._clock.sleep(_LOOK_S)
        finally:  # Ctrl-C comes here; each run stops its process, then its thread ends.
            if any(thread.is_alive() for thread in threads):
                self._stopped.set()
            for thread in threads:
                thread.join()
        if failed:
            raise failed[0]

    def _work_off(
        self, left: "queue.SimpleQueue[tuple[Trial, bool]]", stage: Trials, tell: "_Teller"
    ) -> None:
        while not self._stopped.is_set():
            try:
                trial, is_unscaled = left.get_nowait()
            except queue.Empty:
                return
            result = stage.carry_out(trial, is_unscaled=is_unscaled)
            if not result.is_sound:
                self._refuse_full()
            tell(result)

    def _refuse_full(self) -> None:
        """A drill that has no room fails by itself, which says nothing about the agent."""
        if shutil.disk_usage(self._work).free < ROOM_BYTES_MIN:
            msg = f"the disk that the drill works on is full ({self._work})"
            raise UsageError(f"{msg}; free space there, or set TMPDIR to a place that has more")


class _Teller:
    """Logs a result before anybody hears of it, one at a time."""

    def __init__(self, log: Log, heard: Heard) -> None:
        self._log, self._heard = log, heard
        self._lock = threading.Lock()

    def __call__(self, result: Result) -> None:
        with self._lock:
            self._log.add(result)
            self._heard(result)


def _shared(store: Store) -> Shared:
    """What the common store takes beyond the rows of its runs, for each of the drill's."""
    found = sizes(store.opened)
    own = sum(run.bytes for run in found.runs)
    log = sum(part.bytes for part in found.parts if part.what == "write-ahead log")
    runs = sum(is_task(run.run) for run in found.runs)
    return Shared(runs=runs, bytes_per_run=max(0.0, found.bytes - own - log) / max(1, runs))
