"""What `doctor` looks at: each check finds a fact and says whether it is well."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path

from holdfast import native
from holdfast.cli import apps
from holdfast.cli.config import Config
from holdfast.cli.stores import opened, sqlite_note
from holdfast.cli.text import duration, plural, size
from holdfast.clock import Clock
from holdfast.engine import agents, tools
from holdfast.errors import HoldfastError, StoreNotFound
from holdfast.model.run import Status
from holdfast.report.facts import facts_of
from holdfast.report.sla import keep
from holdfast.report.smells import smells
from holdfast.store.backends.locks import CommitLock
from holdfast.store.backends.place import NETWORK, file_system, holds_file
from holdfast.store.backends.schema import FORMAT
from holdfast.store.backends.sqlite import FILE
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.version import VERSION

OK, NOTE, BAD = "ok", "note", "bad"

FREE_BYTES_MIN = 64 * 1024 * 1024
FREE_BYTES_FEW = 1024 * 1024 * 1024
LOCK_WAIT_S_MAX = 2.0
AHEAD_S_MAX = 5.0
"""A record this far in the future says that the clock was set back."""
RUNS_LOOKED_AT = 1000
RUNS_JUDGED = 200

_UNCOMPILED = (
    "nothing is compiled, so a turn takes about half as long again: "
    "install a C compiler and Holdfast again, or unset HOLDFAST_NATIVE"
)
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A fact, and whether it is well; `found` says what to do where it is not."""

    name: str
    verdict: str
    found: str


def examine(config: Config, clock: Clock) -> list[Check]:
    """Look at everything."""
    found: list[Check] = []
    for look in (_machine, _libraries, _place, _lock, _store, _variables, _apps):
        try:
            found += look(config, clock)
        except (HoldfastError, OSError) as error:
            found.append(Check(name=look.__name__.strip("_"), verdict=BAD, found=str(error)))
    return found


def _machine(_config: Config, _clock: Clock) -> Iterator[Check]:
    is_known = sys.platform in {"linux", "darwin"}
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}"
    refused = "" if is_known else ": refused; use Linux or macOS"
    yield Check(name="platform", verdict=OK if is_known else BAD, found=machine + refused)
    yield Check(name="python", verdict=OK, found=f"{platform.python_version()}, {sys.executable}")
    yield Check(name="sqlite", verdict=OK, found=sqlite_note())


def _libraries(_config: Config, _clock: Clock) -> Iterator[Check]:
    yield Check(name="holdfast", verdict=OK, found=f"{VERSION}, {Path(__file__).parents[1]}")
    versions, missing = [], []
    for needed in metadata.requires("holdfast") or ():
        name = _NAME.match(needed)
        if name is None or ";" in needed:
            continue  # With a marker: for other versions of Python, or an extra.
        try:
            versions.append(f"{name[0]} {metadata.version(name[0])}")
        except metadata.PackageNotFoundError:
            missing.append(name[0])
    yield Check(name="libraries", verdict=OK, found=", ".join(versions))
    compiled = "a part is compiled" if native.is_compiled else _UNCOMPILED
    yield Check(name="speed", verdict=OK if native.is_compiled else NOTE, found=compiled)
    if missing:
        text = f"{', '.join(missing)} not installed: `pip install holdfast` again"
        yield Check(name="libraries", verdict=NOTE, found=text)


def _place(config: Config, _clock: Clock) -> Iterator[Check]:
    setting = config.settings["store"]
    yield Check(name="store", verdict=OK, found=f"{config.store.absolute()} ({setting.origin})")
    kind = file_system(config.store)
    if kind in NETWORK:
        text = f"{kind} is a network file system: refused; use a local disk"
        yield Check(name="file system", verdict=BAD, found=text)
    else:
        yield Check(name="file system", verdict=OK, found=kind or "not told by this system")
    there = _nearest(config.store.absolute())
    is_writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    yield Check(
        name="writable",
        verdict=OK if is_writable else BAD,
        found=f"{there}" if is_writable else f"{there} cannot be written by this user",
    )
    free = shutil.disk_usage(there).free
    verdict = BAD if free < FREE_BYTES_MIN else NOTE if free < FREE_BYTES_FEW else OK
    advice = "" if verdict == OK else ": free some before runs stop"
    yield Check(name="free space", verdict=verdict, found=f"{size(free)}{advice}")


def _nearest(path: Path) -> Path:
    return next((each for each in (path, *path.parents) if each.exists()), path)


def _lock(config: Config, clock: Clock) -> Iterator[Check]:
    if not holds_file(config.store, FILE):
        return
    lock = CommitLock(config.store / "lock", clock, LOCK_WAIT_S_MAX)
    try:
        began = clock.monotonic()
        with lock.held():
            took = duration(clock.monotonic() - began)
    finally:
        lock.close()
    yield Check(name="lock", verdict=OK, found=f"obtained in {took}")


def _store(config: Config, clock: Clock) -> Iterator[Check]:
    try:
        with opened(config.store, must_be_whole=False) as found:
            runs = list(islice(found.reader.runs(), RUNS_LOOKED_AT))
            lost = found.records.missing()
            yield Check(name="opens", verdict=OK, found=f"format {FORMAT}")
            if lost:
                text = f"{plural(len(lost), 'acknowledged row')} missing: `holdfast verify`"
                yield Check(name="whole", verdict=BAD, found=text)
            yield from _runs(found, runs)
            yield from _smells(found, clock)
    except StoreNotFound:
        text = "there is none yet; `holdfast run` and `holdfast.open()` make one"
        yield Check(name="opens", verdict=NOTE, found=text)
        return
    yield _time(runs, clock)


def _runs(found: Opened, runs: list[Run]) -> Iterator[Check]:
    doubtful = sum(run.body.status is Status.IN_DOUBT for run in runs)
    over = {run.body.id for run in runs if run.body.status is Status.FINISHED}
    left = sum(
        run.body.status is Status.RUNNING
        and not found.leases.is_held(run.row.no)
        and not (run.body.origin and run.body.origin.is_child and run.body.origin.run in over)
        for run in runs
    )
    more = f"the newest {RUNS_LOOKED_AT} looked at" if len(runs) == RUNS_LOOKED_AT else "all"
    yield Check(name="runs", verdict=OK, found=f"{plural(len(runs), 'run')} ({more})")
    if left:
        text = f"{plural(left, 'run')}: `holdfast restart --all` goes on with them"
        yield Check(name="interrupted", verdict=NOTE, found=text)
    if doubtful:
        text = f"{plural(doubtful, 'run')}: `holdfast runs --status in-doubt`, then `show`"
        yield Check(name="in doubt", verdict=NOTE, found=text)


def _time(runs: list[Run], clock: Clock) -> Check:
    """Whether records lie in the future: then the clock was set back since."""
    times = [
        at
        for run in runs
        for at in (run.body.created, run.body.ended, run.body.holder.since)
        if at is not None
    ]
    ahead = max(times, default=0.0) - clock.now()
    if ahead <= AHEAD_S_MAX:
        return Check(name="clock", verdict=OK, found="no record lies in the future")
    text = (
        f"the newest record lies {duration(ahead)} in the future: the clock was set back; shown "
        "times and durations are off until it catches up, and nothing else depends on it"
    )
    return Check(name="clock", verdict=NOTE, found=text)


def _variables(config: Config, _clock: Clock) -> Iterator[Check]:
    for each in config.unknown:
        text = f"{each.key} is no setting of this Holdfast and has no effect"
        yield Check(name="environment", verdict=NOTE, found=text)


def _apps(config: Config, _clock: Clock) -> Iterator[Check]:
    origin = config.settings["app"].origin
    if not config.app:
        text = "no module is named (--app, $HOLDFAST_APP, holdfast.toml): `restart` needs one"
        yield Check(name="app", verdict=NOTE, found=text)
    for name in config.app:
        try:
            apps.load([name])
        except HoldfastError as error:
            yield Check(name="app", verdict=BAD, found=str(error))
            continue
        declared = ", ".join(sorted(each.name for each in agents.declared(frozenset({name}))))
        verdict = OK if declared else NOTE
        yield Check(
            name="app", verdict=verdict, found=f"{name} ({origin}): {declared or 'no agents'}"
        )
        yield from _effects(name)
        yield from _unchecked(name)


def _unchecked(module: str) -> Iterator[Check]:
    """Agents whose state nothing checks: a restore of a wrong one would go unnoticed."""
    bare = sorted(a.name for a in agents.declared(frozenset({module})) if not a.validate)
    if bare:
        text = (
            f"{module}: no validate= on {', '.join(bare)}; a wrong state would be restored without "
            "a word (@holdfast.validate)"
        )
        yield Check(name="validators", verdict=NOTE, found=text)


def _smells(found: Opened, clock: Clock) -> Iterator[Check]:
    """Well-known mistakes that show in what the store has seen."""
    facts = list(islice(facts_of(found), RUNS_JUDGED))
    for smell in smells(facts, keep(facts, clock.now())):
        yield Check(name=smell.name, verdict=NOTE, found=f"{smell.found}; {smell.instead}")


def _effects(module: str) -> Iterator[Check]:
    """Effects that say too little of themselves to be recovered well."""
    found = sorted(tools.declared(frozenset({module})), key=lambda spec: spec.shape.name)
    for spec in found:
        missing = []
        if not spec.key:
            missing.append("no key=: after a rollback or fork any other call of it is blocked")
        if spec.probe is None and not spec.is_idempotent:
            missing.append("no probe=: cut off by a crash, it waits for a person")
        if spec.undo is None and spec.offset is None:
            missing.append("no undo=: a rollback cannot take it back")
        if missing:
            text = f"{module}:{spec.shape.name} has {'; '.join(missing)}"
            yield Check(name="effect", verdict=NOTE, found=text)
