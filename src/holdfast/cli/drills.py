"""A drill as the command line asks for it: flags and scenario made one, played, shown."""

import contextlib
import os
import platform
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from holdfast.cli import apps
from holdfast.cli.bars import progress_bar
from holdfast.cli.output import Grid, emit, tell
from holdfast.cli.text import short
from holdfast.clock import SystemClock
from holdfast.drill import result as results
from holdfast.drill import words
from holdfast.drill.effects import refuse_misspelt, refuse_real
from holdfast.drill.faults import USUAL
from holdfast.drill.plan import Plan
from holdfast.drill.result import Head, Log, Result
from holdfast.drill.scenario import Scenario, digest, read
from holdfast.drill.scorecard import Scorecard, scorecard
from holdfast.drill.stage import Stage, cast_of
from holdfast.engine.agents import Agent
from holdfast.errors import UsageError
from holdfast.version import VERSION

LONG_S = 10.0
"""A person wonders what is going on."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags say; `only` is the one run that is to be repeated."""

    agent: str
    runs: int
    seed: int
    faults: str | None
    own_faults: tuple[str, ...]
    scenario: Path | None
    scale: float | None
    share: float | None
    stubs: tuple[str, ...]
    is_allowed: bool
    store: Path | None
    only: int | None

    @property
    def command(self) -> str:
        """The command line that does the same drill again."""
        parts = ["holdfast", "drill", "run", self.agent]
        named = {
            "--runs": self.runs,
            "--seed": self.seed,
            "--scenario": self.scenario,
            "--faults": self.faults,
            "--scale": self.scale,
            "--share": self.share,
        }
        for name, value in named.items():
            parts += [] if value is None else [name, str(value)]
        for name, values in (("--fault", self.own_faults), ("--stub", self.stubs)):
            for value in values:
                parts += [name, value]
        return shlex.join([*parts, *(["--allow-effects"] if self.is_allowed else [])])


def carry_out(asked: Asked, *, workers: int, file: Path | None) -> Scorecard:
    """Play the drill, going on where the file of results ends; what it came to."""
    module, name = apps.named(asked.agent)
    apps.load([module])
    agent = apps.find(name, module, frozenset({module}))
    script = _scenario(asked)
    _check(agent, script)
    refuse_misspelt(agent, script.stubs)
    if not asked.is_allowed:
        refuse_real(agent, script.stubs)
    if asked.only is not None and asked.only >= asked.runs:
        msg = f"--only {asked.only}: there is no such run among {asked.runs}; they count from 0"
        raise UsageError(msg)
    head = _head(asked, script)
    with _quiet(), _results(file if asked.only is None else None, head) as (path, done):
        if asked.only is not None:
            wanted = [asked.only]
            script = msgspec.structs.replace(script, unscaled=0)
        else:
            wanted = [no for no in range(asked.runs) if no not in done]
        cast = cast_of(agent, script, script.faults, list(sys.path))
        with _folder(asked.store) as folder:
            is_kept = asked.store is not None
            stage = Stage(cast, script, folder, SystemClock(), is_kept=is_kept)
            with _told(asked, stage, file):
                _play(stage, head, wanted, workers, path)
        return scorecard(results.read(path))


@contextlib.contextmanager
def _told(asked: Asked, stage: Stage, file: Path | None) -> Iterator[None]:
    """Says what a drill waits for, and what to do about one that did not come to its end."""
    undisturbed = f"{asked.agent} has not come to its end yet with no fault injected"

    def remind() -> None:
        if not stage.has_learnt:
            tell(f"{undisturbed}; runs that are struck are compared with that one")

    reminder = threading.Timer(LONG_S, remind)
    reminder.daemon = True
    reminder.start()
    try:
        yield
    except KeyboardInterrupt:
        if not stage.has_learnt:
            tell(f"interrupted; {undisturbed}, and one that never ends cannot be drilled")
        elif file is not None and asked.only is None:
            tell(f"interrupted; {file} has the runs that ended, and the same command goes on there")
        raise
    finally:
        reminder.cancel()


def _play(stage: Stage, head: Head, wanted: list[int], workers: int, path: Path) -> None:
    plan = Plan(seed=head.seed, cases=head.cases, faults=head.faults, share=head.share)
    total, count = len(wanted), 0
    with progress_bar("drill") as bar, _terminable():

        def heard(result: Result) -> None:
            nonlocal count
            count += 1
            if bar is not None:
                bar(count, total)
            if not result.is_sound and not result.is_unscaled:
                tell(f"run {result.no} ({result.fault or words.CALM}): {_why(result)}")
                tell(f"  {head.command} --only {result.no}")

        stage.play(plan, wanted, workers=workers, log=Log(path), heard=heard)


def _why(result: Result) -> str:
    if result.outcome != "finished":
        return short(f"{result.outcome}: {result.error}")
    counts = {
        "effects doubled": result.doubled,
        "effects missing": result.missing,
        "answers asked twice": result.asked_twice,
    }
    told = [f"{count} {what}" for what, count in counts.items() if count]
    return ", ".join([*told, *(f"{place} is wrong" for place in result.wrong)])


def _scenario(asked: Asked) -> Scenario:
    """The scenario of the file, with what the flags say instead."""
    made = Scenario() if asked.scenario is None else read(asked.scenario)
    if made.agent not in (None, asked.agent):
        msg = f"scenario {asked.scenario} is for {made.agent}, not for {asked.agent}"
        raise UsageError(f"{msg}; drill that one, or take `agent` out of the file")
    stubs = dict(made.stubs)
    for each in asked.stubs:
        tool, equals, place = each.partition("=")
        if not (tool and equals and ":" in place):
            raise UsageError(f"--stub {each!r}: write TOOL=MODULE:FAKE, such as pay=shop:fake_pay")
        stubs[tool] = place
    faults = asked.faults.split(",") if asked.faults is not None else ()
    named = [*(name.strip() for name in faults), *asked.own_faults]
    made = msgspec.structs.replace(
        made,
        stubs=stubs,
        faults=named or made.faults or list(USUAL),
        scale=made.scale if asked.scale is None else asked.scale,
        share=made.share if asked.share is None else asked.share,
    )
    made.check()
    return made


def _check(agent: Agent[..., Any], scenario: Scenario) -> None:
    """Refuse arguments that the agent does not take, before anything is started."""
    try:
        agent.shape.bind((), scenario.arguments(0))
    except TypeError as error:
        msg = (
            f"agent {agent.module}:{agent.name} cannot take this input: {error}; give it in a "
            'scenario: input = { name = "value" }'
        )
        raise UsageError(msg) from error


def _head(asked: Asked, script: Scenario) -> Head:
    return Head(
        agent=asked.agent,
        seed=asked.seed,
        runs=asked.runs,
        faults=tuple(script.faults),
        share=script.share,
        scale=script.scale,
        unscaled=script.unscaled,
        cases=script.cases,
        stubs=tuple(sorted(script.stubs)),
        promises=script.promises,
        digest=digest(script),
        version=VERSION,
        machine=f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        command=asked.command,
    )


@contextlib.contextmanager
def _results(file: Path | None, head: Head) -> Iterator[tuple[Path, frozenset[int]]]:
    """The file of results, and the runs that it has already."""
    if file is None:
        with tempfile.TemporaryDirectory(prefix="holdfast-drill-") as folder:
            path = Path(folder) / "results"
            Log(path).add(head)
            yield path, frozenset()
    elif not file.exists() or (file.is_file() and not file.stat().st_size):
        try:
            Log(file).add(head)
        except OSError as error:
            msg = f"--results {file} cannot be written ({error.strerror}); name another place"
            raise UsageError(msg) from error
        yield file, frozenset()
    else:
        known = results.read(file)
        if not known.head.is_same(head):
            msg = f"{file} holds another drill: {known.head.command}; give another --results"
            raise UsageError(msg)
        results.mend(file)
        yield file, frozenset(known.runs)


@contextlib.contextmanager
def _folder(store: Path | None) -> Iterator[Path]:
    """A directory that nothing was in before; the drill's own."""
    if store is None:
        with tempfile.TemporaryDirectory(prefix="holdfast-drill-") as folder:
            yield Path(folder) / "work"
    elif store.exists():
        msg = f"--store {store}: it exists; a drill takes a new directory, and no store of yours"
        raise UsageError(msg)
    else:
        yield store.absolute()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nobody is notified of what a drill breaks, and no setting of a real store counts."""
    names = ("HOLDFAST_NOTIFY_", "HOLDFAST_STORE", "HOLDFAST_KEY")
    taken = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(names)}
    try:
        yield
    finally:
        os.environ.update(taken)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM cleans up as Ctrl-C does."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show(card: Scorecard, how: str, file: Path | None) -> None:
    """The scorecard as a table or as JSON."""
    said = words.closing(card)
    grids: list[Grid | str] = [
        Grid(columns=("", " "), rows=words.opening(card), has_header=False),
        "",
        Grid(columns=words.PROMISES, rows=words.promises(card)),
        "",
        Grid(columns=words.NEVERS, rows=words.nevers(card), right=frozenset({"seen", "runs"})),
        "",
        Grid(columns=words.KINDS, rows=words.kinds(card), right=frozenset(words.KINDS[1:])),
        "",
        *(
            f"run {each.no} ({each.fault or words.CALM}): {each.why}\n  {each.repeat}"
            for each in card.broken
        ),
        said,
        *([f"`holdfast drill report {file} --as html` makes a page of it"] if file else []),
    ]
    document = {**msgspec.to_builtins(card), "is_missed": card.is_missed, "verdict": said}
    emit(how, document=document, lines=[document], grids=grids)
