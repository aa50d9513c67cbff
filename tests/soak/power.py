"""P2: every state in which a power cut may leave a traced run: `python -m tests.soak.power`.

Agents run under strace; behind every call, the files are put together as a power cut may leave
them, strictly by POSIX or as ext4 does it, and opened with the library: it opens, verifies, holds
every answer that was handed out by then, and the intent of every effect that was done by then.
Of a run that does not wait for the disk it may lack the newest steps, without a gap before them.
"""

import contextlib
import hashlib
import operator
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError
from holdfast.model.cadence import ASYNC, BOUNDED, DURABLE
from holdfast.store.backends import sweep
from holdfast.store.backends.heads import HeadNote
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.inside import values_of
from holdfast.store.open import Opened, open_store
from holdfast.store.verify import verify
from holdfast.testing.kill import can_trace
from tests.corruption.believed import records
from tests.crash.agents import AGENTS
from tests.crash.verdict import WITHOUT_TOKEN
from tests.soak.disk import Disk, State
from tests.soak.part import FOLDER, Outcome, Part, Trial, main, memory
from tests.soak.trace import Act, record

NAMES = tuple(name for name in AGENTS if name not in ("threads", "idle", "cancelled", "gated"))
IN_ORDER = tuple(name for name in NAMES if name != "gathered")
"""Agents that are handed their answers in the order of the records."""
WORKLOADS = (
    *((name, DURABLE) for name in NAMES),
    *((name, durability) for durability in (BOUNDED, ASYNC) for name in IN_ORDER),
)
SLICES = 8
"""A trial looks at one call in so many."""
STORE = "store/"
LOCK = "store/lock"
IGNORED = ("store/store.db-shm", "store/beats", "store/leases", LOCK)
"""Made anew by whoever opens the store, or never read after a restart of the machine."""
GARBAGE = random.Random(LOCK).randbytes(64)  # noqa: S311 a seed, not a secret
"""What a power cut left of shared memory."""

OUTCOMES = ("pay", "book", "mail", "ask")
"""What is handed out only when it is on the disk, however hasty the run: effects, and words."""


@dataclass(frozen=True)
class Handed:
    """An answer that the agent has; `is_outcome` where it was waited for."""

    token: str
    is_outcome: bool


@dataclass(frozen=True)
class Held:
    """What the library found in a state; `fault` says what it must not have found."""

    fault: str = ""
    tokens: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    rows: frozenset[tuple[int, bytes]] = frozenset()


class Lab:
    """Where states are put in place and looked at; what was seen before is known."""

    def __init__(self, place: Path) -> None:
        self._place, self._known = place, dict[bytes, Held]()
        self.opened = 0

    def look(self, state: State) -> Held:
        """What the library says to a state."""
        files = {path: data for path, data in state.items() if path.startswith(STORE)}
        heads = files.pop("store/heads", b"")
        key = self._key(files)
        held = self._known.get(key)
        if held is None:
            held = self._known[key] = self._open({**files, "store/heads": heads})
        elif not held.fault:
            ahead = {*self._noted(heads)} - held.rows
            if ahead:
                return Held(fault=f"the head note is ahead by {len(ahead)} rows")
        return held

    def _key(self, files: State) -> bytes:
        """The same pages, rows of the tail and large values are the same store.

        Its log may hold the pages in one way or another, and its tail the rows.
        """
        self._put({p: d for p, d in files.items() if p.startswith("store/store.db")})
        hashed = hashlib.sha256()
        try:
            file = self._place / "store" / "store.db"
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as link:
                hashed.update(link.serialize())
                told = sweep.noted(link, "store_id") or b"", sweep.generation(link)
                hashed.update(records(files.get(f"{STORE}{TAIL}", b""), *told))
        except (sqlite3.Error, OverflowError) as error:
            hashed.update(str(error).encode())
            for path, data in sorted(files.items()):
                if path.startswith(("store/store.db", f"{STORE}{TAIL}")):
                    hashed.update(path.encode() + hashlib.sha256(data).digest())
        for path, data in sorted(files.items()):
            if path.startswith("store/objects"):
                hashed.update(path.encode() + hashlib.sha256(data).digest())
        return hashed.digest()

    def _noted(self, heads: bytes) -> Iterator[tuple[int, bytes]]:
        file = self._place / "heads"
        file.write_bytes(heads)
        note = HeadNote(file)
        yield from note.read()
        note.abandon()

    def _put(self, files: State) -> None:
        store = self._place / "store"
        for left in store.rglob("*"):
            if left.is_file():
                left.unlink()
        for path, data in files.items():
            file = self._place / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def _open(self, files: State) -> Held:
        self._put({**{p: d for p, d in files.items() if p not in IGNORED}, LOCK: GARBAGE})
        self.opened += 1
        try:
            with closing(open_store(self._place / "store", SystemClock())) as opened:
                if found := verify(opened, deep=True).findings:
                    return Held(fault=f"{found[0].where}: {found[0].why}")
                return _read(opened)
        except HoldfastError as error:
            return Held(fault=f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 a foreign error is a finding
            return Held(fault=f"foreign {type(error).__name__}: {error}")


def _read(opened: Opened) -> Held:
    reader = opened.reader
    tokens, keys, rows = set[str](), set[str](), set[tuple[int, bytes]]()
    for run in reader.runs():
        for branch in reader.branches(run, with_ledger=True):
            first = branch.at % (1 << 32) + 1 if branch.parent else 0
            for placed in reader.rows(branch.no, (branch.no << 32) + first, reader.end(branch.no)):
                rows.add((placed.id, placed.mac))
                for entry in placed.row.entries:
                    keys.update(_texts(msgspec.to_builtins(entry, builtin_types=(bytes,))))
                    for _, data in values_of(entry):
                        tokens.update(_tokens(reader.value(data)))
    return Held(tokens=frozenset(tokens), keys=frozenset(keys), rows=frozenset(rows))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _tokens(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (str(value["token"]),) if "token" in value else ()
    elif isinstance(value, list):
        for each in value:
            yield from _tokens(each)


class Replay:
    """One recorded life and its crashes."""

    def __init__(self, acts: list[Act], lab: Lab, *, is_lazy: bool) -> None:
        self._acts, self._lab, self._is_lazy = acts, lab, is_lazy

    def look(
        self, chance: random.Random, *, is_strict: bool, slice_: int, is_drawn: bool
    ) -> Outcome:
        """The states behind one call in `SLICES`."""
        found, disk = Outcome(), Disk(is_strict=is_strict)
        handed: list[Handed] = []
        done: set[str] = set()
        before = self._lab.opened
        for number, act in enumerate(self._acts):
            if act.path in IGNORED:
                continue
            disk.do(act)
            if act.path in ("log", "world"):
                _hear(act, handed, done)
            if number % SLICES != slice_:
                continue
            for state in disk.states(chance, is_drawn=is_drawn):
                found.counts["states"] += 1
                held = self._lab.look(state)
                if fault := held.fault or self._lost(held, handed, done):
                    found.findings.append(f"after call {number} ({act.kind} {act.path}): {fault}")
        found.counts["read in full"] += self._lab.opened - before
        return found

    def _lost(self, held: Held, handed: list[Handed], done: set[str]) -> str:
        lost = [each.token not in held.tokens for each in handed]
        waited = [not self._is_lazy or each.is_outcome for each in handed]
        if any(map(operator.and_, lost, waited)):
            return f"{sum(lost)} answers were handed out and are lost"
        if lost != sorted(lost):
            return f"{sum(lost)} answers are lost, and not the newest ones"
        if done - held.keys:
            return f"{len(done - held.keys)} effects were done and nothing of them is recorded"
        return ""


def _hear(act: Act, handed: list[Handed], done: set[str]) -> None:
    """Take note of what the world saw up to here."""
    if act.kind != "write":
        return
    for line in act.data.decode().splitlines():
        kind, what, token = line.split("\t")
        if act.path == "world":
            # The key of an undoing is a hash of what is recorded; P3 looks at those.
            done.update({kind} if " undo " not in what else ())
        elif kind == "got" and not what.startswith(WITHOUT_TOKEN):
            handed.append(Handed(token, is_outcome=what.startswith(OUTCOMES)))


def recorded(name: str, durability: str, folder: Path) -> list[Act]:
    """The trace of an agent, made once: what it drew by chance stays the same."""
    file = folder / f"{name}-{durability}.trace"
    if file.exists():
        return msgspec.msgpack.decode(file.read_bytes(), type=list[Act])
    with tempfile.TemporaryDirectory(dir=memory()) as place:
        acts = record(["-m", "tests.soak.recorded", name, place, durability], Path(place), "traced")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.msgpack.encode(acts))
    return acts


@contextlib.contextmanager
def trials(seed: str, folder: Path = FOLDER / "traces") -> Iterator[Trial]:
    """Each workload, strictly and as on ext4, slice by slice; then drawn states without end."""
    with tempfile.TemporaryDirectory(dir=memory()) as name:
        lab = Lab(Path(name))
        replays: dict[tuple[str, str], Replay] = {}

        def trial(number: int) -> Outcome:
            round_, at = divmod(number, len(WORKLOADS))
            workload = agent, durability = WORKLOADS[at]
            if workload not in replays:
                acts = recorded(agent, durability, folder)
                replays[workload] = Replay(acts, lab, is_lazy=durability != DURABLE)
            pass_, rest = divmod(round_, 2 * SLICES)
            chance = random.Random(f"{seed} {number}")  # noqa: S311 a seed, not a secret
            return replays[workload].look(
                chance, is_strict=rest % 2 == 0, slice_=rest // 2, is_drawn=pass_ > 0
            )

        yield trial


PART = Part(
    id="P2",
    name="power",
    what="States in which a power cut may leave a traced run, opened with the library.",
    counted="states",
    goal=100_000,
    trials=trials,
    missing=lambda: "" if can_trace() else "strace is missing, or may not trace here",
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
