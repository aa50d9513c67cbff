"""One run, killed and continued until it is done; then judged by what the outside saw."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.model.journal import Answered, Intended, Noted
from holdfast.store.ledger import Ledger
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from holdfast.testing.kill import Failpoint, Syscall, attach
from tests.crash import verdict
from tests.crash.agents import AGENTS, RUN
from tests.crash.nursery import FINISHED, STOPPED, STORE, Order
from tests.crash.outside import Outside
from tests.crash.verdict import Reference

ROOT = Path(__file__).resolve().parents[2]
LIVES_MAX = 20
CALLS = (
    "write,pwrite64,?io_submit,fdatasync,fsync,ftruncate,"
    "?unlink,?unlinkat,?rename,?renameat,?renameat2,?mkdir,?mkdirat"
)
"""System calls that change what a disk holds; those with a mark only some machines have."""

Death = Failpoint | Syscall


@dataclass(kw_only=True)
class Tally:
    """What many trials found; each finding says where to look."""

    trials: int = 0
    killed_at: list[str] = field(default_factory=list)
    faults: int = 0
    doubts: int = 0
    asked_again: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    words: int = 0
    spendings: int = 0
    misheard: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[str]:
        """Everything that must not be."""
        found = [*self.asked_again, *self.doubled, *self.lost, *self.unlisted, *self.misheard]
        return [*self.broken, *found]

    def add(self, other: "Tally") -> None:
        """Take in what another trial found."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        return (
            f"{self.trials} runs, {len(self.killed_at)} kills, {self.faults} disk errors: "
            f"{len(self.asked_again)} recorded answers asked again, "
            f"{len(self.doubled)} effects doubled, {len(self.lost)} answers or effects lost, "
            f"{self.doubts} in doubt and {len(self.unlisted)} of them not listed, "
            f"{self.words} answers and approvals of people and {self.spendings} spendings, "
            f"{len(self.misheard)} of them lost or used twice, "
            f"{len(self.broken)} runs or stores broken"
        )


class Nursery:
    """A warm process that lets runs live; see `nursery`."""

    def __init__(self) -> None:
        self._pid = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def live(self, order: Order, at: Death | None = None) -> int:
        """One life; returns its exit status, negative if a signal ended it."""
        if isinstance(at, Failpoint):
            order = msgspec.structs.replace(order, failpoint=str(at))
        if not isinstance(at, Syscall):
            self.begin(order)
            return self.end()
        pid = self.begin(msgspec.structs.replace(order, is_traced=True))
        with attach(pid, at):
            return self.end()

    def count_calls(self, order: Order) -> dict[str, int]:
        """Live once; of each call in `CALLS`, how often the thread that makes most makes it."""
        pid = self.begin(msgspec.structs.replace(order, is_traced=True))
        with tempfile.NamedTemporaryFile("r") as log:
            trace = ["strace", "-f", "-qq", "-o", log.name, "-e", f"trace={CALLS}"]
            with subprocess.Popen([*trace, "-p", str(pid)]):
                assert FINISHED == self.end()
            counted = Counter(re.findall(r"^(\d+) +(\w+)\(", log.read(), re.MULTILINE))
        return {
            name: max(n for (_, call), n in counted.items() if call == name) for _, name in counted
        }

    def begin(self, order: Order) -> int:
        """Let a life begin; returns its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order).decode() + "\n")
        self._process.stdin.flush()
        self._pid = self._read()
        return self._pid

    def end(self) -> int:
        """Wait for the life that began to end; returns its exit status."""
        status, self._pid = self._read(), 0
        return status

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process, and first the life that a failed test left."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self.end()
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


def survive(
    nursery: Nursery,
    order: Order,
    deaths: Sequence[Death],
    expected: Reference,
) -> Tally:
    """Let a run die by each of `deaths` in turn, then live to its end; what the outside saw."""
    tally = Tally(trials=1)
    outside = Outside(Path(order.place))
    where = f"{order.agent} killed at {', '.join(map(str, deaths)) or 'no point'}: "
    try:
        _live_on(nursery, order, list(deaths), tally)
        tally.asked_again += verdict.asked_again(outside, expected)
        tally.doubled += verdict.doubled(outside, expected)
        tally.lost += verdict.lost(outside, expected)
        tally.faults = sum(line.kind == "StoreUnwritable" for line in outside.log())
        _check_store(order)
        _check_people(order, tally)
    except Exception as error:  # noqa: BLE001 whatever it is, it is a finding
        tally.broken.append(f"{type(error).__name__}: {error}")
    for name in ("asked_again", "doubled", "lost", "unlisted", "misheard", "broken"):
        setattr(tally, name, [where + each for each in getattr(tally, name)])
    return tally


def _live_on(nursery: Nursery, order: Order, deaths: list[Death], tally: Tally) -> None:
    for _ in range(LIVES_MAX):
        at = deaths.pop(0) if deaths else None
        status = nursery.live(order, at)
        if status == FINISHED:
            return
        if status == -signal.SIGKILL and at is not None:
            tally.killed_at.append(at.name)
        elif status == STOPPED[holdfast.InDoubt]:
            tally.doubts += 1
            tally.unlisted += _unlisted(order)
            deaths[:0] = [at] if at else []  # It waits in the next life.
        else:
            last = Outside(Path(order.place)).log()[-1]
            is_planned = isinstance(at, Syscall) and at.error is not None
            if not (is_planned and last.kind == "StoreUnwritable"):
                raise AssertionError(f"a life ended with status {status} after {last}")
    raise AssertionError(f"the run did not end in {LIVES_MAX} lives")


def _unlisted(order: Order) -> list[str]:
    """The run stopped as in doubt: the effect, if the store does not list it by its key."""
    key = re.findall(r"key (\w+)", Outside(Path(order.place)).log()[-1].what)[0]
    with holdfast.open(Path(order.place, STORE)) as store:
        listed = {run.id: run.error or "" for run in store.runs(status=holdfast.Status.IN_DOUBT)}
    return [] if key in listed.get(RUN, "") else [f"{key} is not in {listed}"]


def _check_store(order: Order) -> None:
    """The store is whole, and the finished run gives its result without asking anything."""
    outside = Outside(Path(order.place))
    log = outside.log()
    with holdfast.open(outside.place / STORE) as store:
        assert verdict.result(log) == store.run(AGENTS[order.agent], id=RUN)
    assert log == outside.log()
    check_whole(outside.place / STORE)


def _check_people(order: Order, tally: Tally) -> None:
    """Each word of a person reached the run once, each approval one effect, each spending once."""
    path = Path(order.place, STORE)
    found = open_store(path, SystemClock(), key=given_key(), must_exist=True)
    with contextlib.closing(found) as opened:
        run = opened.reader.find(RUN)
        assert run is not None
        standing = Ledger(opened.committer, opened.reader, run).read()
        rows = opened.reader.rows(
            run.row.head, opened.reader.first(run.row.head), opened.reader.end(run.row.head)
        )
        entries = [entry for placed in rows for entry in placed.row.entries]
    heard = Counter(entry.id for entry in entries if isinstance(entry, Answered))
    used = sum(isinstance(entry, Answered) and entry.how == "approved" for entry in entries)
    done = {e.key for e in entries if isinstance(e, Intended) and e.call.name == "allowed"}
    spent = sum(isinstance(e, Noted) and e.call.name == "budget usd" for e in entries)
    tally.words += len(standing.words)
    tally.spendings += len(standing.spendings)
    if heard != Counter(said.id for said in standing.words.values()):
        tally.misheard.append(f"heard {heard}, said {standing.words}")
    if used != len(done):
        tally.misheard.append(f"{used} approvals for {len(done)} effects")
    if not spent == len(standing.spendings) == standing.spent("usd"):
        tally.misheard.append(f"{spent} spendings, {standing.spent('usd')} spent")


def check_whole(path: Path) -> None:
    """Every byte of the store is what was written, and all that was acknowledged is there."""
    with contextlib.closing(
        open_store(path, SystemClock(), key=given_key(), must_exist=True)
    ) as opened:
        assert [] == verify(opened, deep=True).findings
