"""One run of a drill: supervised, struck, brought to its end, and looked at afterwards."""

import contextlib
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.drill.charge import Charge
from holdfast.drill.damage import Damage
from holdfast.drill.evidence import asked_twice, episodes_of, excess, family, shortfall
from holdfast.drill.faults import Fault
from holdfast.drill.forked import Forked, Nurse
from holdfast.drill.ledger import CALLED, Ledger, Line
from holdfast.drill.plan import Trial
from holdfast.drill.reference import Reference, done
from holdfast.drill.result import Result
from holdfast.drill.scenario import Scenario
from holdfast.drill.unfit import unfit
from holdfast.engine.agents import Agent
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.engine.repair import plan_repair
from holdfast.errors import Damaged, Escalated, HoldfastError, RunFailed, UsageError
from holdfast.report.sizes import added
from holdfast.store.open import Opened

REPAIRS_MAX = 2


class BrokenFault(UsageError):
    """A fault of the user's failed between two lives: that says nothing about the agent."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of a drill share; `work` is the drill's own directory."""

    agent: Agent[..., Any]
    scenario: Scenario
    faults: Mapping[str, type[Fault]]
    work: Path
    nurse: Nurse
    clock: Clock
    is_stopped: Callable[[], bool]

    @property
    def undone(self) -> Ledger:
        """Where what a rollback undid is told."""
        return Ledger(self.work / "undone")


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, and whether its store had to be repaired on the way."""

    value: Any = None
    error: Exception | None = None
    lives: int = 1
    has_repaired: bool = False


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Where one run of a drill plays."""

    trial: Trial
    folder: Path
    scale: float
    nth: float = 0

    @property
    def ledger(self) -> Ledger:
        """What the run really asked and did."""
        return Ledger(self.folder / "ledger")


class Trials:
    """Carries out the runs of a drill on one store, or on one each."""

    def __init__(self, setting: Setting, store: Store) -> None:
        self._set, self._store = setting, store
        self._references: dict[int, Reference] = {}

    @property
    def called(self) -> frozenset[str]:
        """The functions that the undisturbed runs called."""
        return frozenset().union(*(each.called for each in self._references.values()))

    def learn(self, case: int) -> None:
        """Run a case undisturbed: what its other runs are compared with."""
        trial = Trial(no=-1 - case, case=case, seed=f"reference/{case}")
        with self._scene(trial, self._set.scenario.scale) as scene:
            ended = self._live(scene, self._store)
            if ended.error is not None:
                agent = self._set.agent
                raise unfit(f"{agent.module}:{agent.name}", ended.error) from ended.error
            lines = scene.ledger.read()
            self._references[case] = Reference(
                result=ended.value,
                state=self._store.restore(trial.run)[1],
                did=done(lines),
                counts=_lived(lines),
                called=frozenset(line.name for line in lines if line.what in CALLED),
            )

    def carry_out(self, trial: Trial, *, is_unscaled: bool = False) -> Result:
        """One run from its start to the look at what it left."""
        began = self._set.clock.monotonic()
        scale = 1.0 if is_unscaled else self._set.scenario.scale
        fault = None if trial.fault is None else self._set.faults[trial.fault]()
        counts = self._references[trial.case].counts
        nth = 0 if fault is None else trial.nth(fault, counts)
        with self._scene(trial, scale, nth) as scene:
            if fault is None or not fault.traits.is_alone:
                result = self._look(scene, self._live(scene, self._store), self._store)
            else:
                result = self._alone(scene)
        return msgspec.structs.replace(
            result, is_unscaled=is_unscaled, took_s=self._set.clock.monotonic() - began
        )

    def _alone(self, scene: Scene) -> Result:
        """On a store of its own, which may be repaired as an operator's script would do it."""
        path, lives = scene.folder / "store", 0
        for repairs in range(REPAIRS_MAX + 1):
            with open_store(path) as store:
                ended = self._live(scene, store, lives)
                is_hurt = isinstance(ended.error, Damaged | Escalated)
                if not is_hurt or repairs == REPAIRS_MAX or not self._is_damaged(path):
                    ended = msgspec.structs.replace(ended, has_repaired=repairs > 0)
                    return self._look(scene, ended, store)
                lives = ended.lives
            plan_repair(path).apply()
        raise AssertionError("the last repair is looked at")

    def _is_damaged(self, path: Path) -> bool:
        return plan_repair(path).is_needed

    def _live(self, scene: Scene, store: Store, lives: int = 0) -> Ended:
        """Every life of the run, until it ended or only a person can help."""
        chance = random.Random(f"{scene.trial.seed}/between")  # noqa: S311 it is to repeat
        started = lives
        is_due = lives == 0  # Once, before the second life of all.

        def start(speaking: int) -> Forked:
            nonlocal started, is_due
            if started > 0 and is_due and scene.trial.fault is not None:
                is_due = False
                self._between(scene, store, chance)
            charge = self._charge(scene, started)
            started += 1
            return self._set.nurse.fork(charge, speaking)

        terms = store.terms(
            stall=self._set.scenario.stall, start=start, is_stopped=self._set.is_stopped
        )
        arguments = self._set.scenario.arguments(scene.trial.case)
        try:
            value = store.keep_alive(self._set.agent, terms, scene.trial.run, (), arguments)
        except BrokenFault:
            raise
        except HoldfastError as error:
            return Ended(error=error, lives=started)
        return Ended(value=value, lives=started)

    def _between(self, scene: Scene, store: Store, chance: random.Random) -> None:
        """The fault may do something while no process has the run."""
        if any(line.what == "struck" for line in scene.ledger.read()):
            reader = store.opened.reader
            store.opened.records.settle()  # The database is damaged, and holds all rows then.
            damage = Damage(
                store=store.path, run=scene.trial.run, reader=reader, ledger=scene.ledger
            )
            name = str(scene.trial.fault)
            try:
                self._set.faults[name]().between(damage, chance)
            except HoldfastError:
                raise
            except Exception as error:
                msg = f"fault {name} failed in `between`: {type(error).__name__}: {error}"
                raise BrokenFault(msg) from error

    def _charge(self, scene: Scene, life: int) -> Charge:
        trial = scene.trial
        return Charge(
            life=life,
            ledger=str(scene.folder / "ledger"),
            folder=str(scene.folder / "home"),
            case=trial.case,
            seed=trial.seed,
            scale=scene.scale,
            fault=trial.fault if life == 0 else None,
            nth=scene.nth,
        )

    @contextlib.contextmanager
    def _scene(self, trial: Trial, scale: float, nth: float = 0) -> Iterator[Scene]:
        """A directory of the run's own, gone afterwards."""
        folder = self._set.work / trial.run
        (folder / "home").mkdir(parents=True)
        try:
            yield Scene(trial=trial, folder=folder, scale=scale, nth=nth)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _look(self, scene: Scene, ended: Ended, store: Store) -> Result:
        """What the run left: in its journal, in its state, in the world."""
        trial, lines = scene.trial, scene.ledger.read()
        reference = self._references[trial.case]
        struck = self._struck_at(trial, lines)
        undone = [line.key for line in self._set.undone.read()]
        did = done(lines, undone)
        lived = _lived(lines)
        found = Result(
            no=trial.no,
            case=trial.case,
            fault=trial.fault,
            has_struck=struck is not None,
            struck_at=struck,
            lives=ended.lives,
            has_repaired=ended.has_repaired,
            doubled=excess(did, reference.did),
            outcome="finished" if ended.error is None else type(_cause(ended.error)).__name__,
            error="" if ended.error is None else str(ended.error),
        )
        with contextlib.suppress(HoldfastError):  # What cannot be read is told by the outcome.
            found = self._read(found, store.opened, lines)
        if ended.error is not None:
            return found
        state = store.restore(trial.run)[1]
        is_whole = ended.lives == 1 and "run_s" in lived
        return msgspec.structs.replace(
            found,
            missing=shortfall(did, reference.did),
            wrong=reference.wrong(ended.value, state, self._set.scenario.ignore),
            held_s=lived["run_s"] - lived["calls_s"] if is_whole else None,
            calls_s=lived["calls_s"] if is_whole else None,
        )

    def _struck_at(self, trial: Trial, lines: list[Line]) -> float | None:
        """When the fault came; damage that found nothing to damage did not."""
        fault = None if trial.fault is None else self._set.faults[trial.fault]()
        is_damage = fault is not None and fault.traits.is_damage
        if is_damage and not any(line.what == "damaged" for line in lines):
            return None
        return next((line.at for line in lines if line.what == "struck"), None)

    def _read(self, found: Result, opened: Opened, lines: list[Line]) -> Result:
        run = opened.reader.find(f"drill-{found.no}")
        if run is None:
            return found
        kin = family(opened.reader, run)
        return msgspec.structs.replace(
            found,
            episodes=episodes_of(opened.reader, kin, found.struck_at, lines),
            asked_twice=asked_twice(opened.reader, kin, lines),
            bytes=added(opened, kin),
        )


def _lived(lines: list[Line]) -> dict[str, float]:
    """What the life that ended the run counted."""
    return next((line.counts for line in reversed(lines) if line.what == "lived"), {})


def _cause(error: Exception) -> BaseException:
    return error.__cause__ or error if isinstance(error, RunFailed) else error
