"""The embedded store against plain dicts: several processes, restarts, kills, takeovers.

What was acknowledged is there, nothing fenced is there, every chain verifies, and the head note is
never ahead of the database.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.store.leases import BEAT_S
from tests.property.store_process import INTENTS, Killed, Local, Process, Remote

MEMORY = Path("/dev/shm")  # noqa: S108 -- a file system in memory, where there is one
DISK = Path("/var/tmp")  # noqa: S108 -- a disk, also where `TMPDIR` names memory
NAMES = ("one", "two", "three")
RUNS = ("a", "b", "c")

runs = st.sampled_from(RUNS)
picks = st.integers(0, 11)
"""Which of those that there are, counted round and round."""

steps: Counter[str] = Counter()
"""How many rules each machine has carried out."""


@dataclass(frozen=True)
class Row:
    """A row as the model knows it; a takeover's tag is minus its epoch."""

    tag: int
    intents: tuple[int, ...] = ()
    is_based: bool = False


@dataclass
class Branch:
    """The rows of a branch's whole line, those of its parents included."""

    line: list[Row]


@dataclass
class Run:
    """A run as plain values."""

    no: int
    head: int
    epoch: int = 1
    error: str | None = None
    branches: dict[int, Branch] = field(default_factory=dict)

    @property
    def line(self) -> list[Row]:
        return self.branches[self.head].line

    def seen(self) -> list[Any]:
        """What `Desk.read` must say."""
        tags = [row.tag for row in self.line]
        base = max((n for n, row in enumerate(self.line) if row.is_based), default=0)
        branches = [[no, [row.tag for row in each.line]] for no, each in self.branches.items()]
        counts = [sum(n in row.intents for row in self.line) for n in range(len(INTENTS))]
        return [self.no, self.epoch, self.head, self.error, tags, tags[base:], branches, counts]


@dataclass
class Writer:
    """Who writes a run, as far as the writer itself knows."""

    key: int
    process: str
    run: str
    epoch: int
    branch: int
    is_told: bool = False
    """It was fenced and knows it: from then on it does not even try."""


@dataclass
class Queued:
    """A row that its process has not committed yet."""

    writer: Writer
    branch: int
    row: Row


class Model(RuleBasedStateMachine):
    """Processes one, two and three on one store; the model beside them."""

    kind: ClassVar[str] = "handles"
    in_memory: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        wanted = MEMORY if self.in_memory else DISK
        place = wanted if os.access(wanted, os.W_OK) else None
        self.directory = Path(tempfile.mkdtemp(prefix="holdfast-model-", dir=place))
        self.wall, self.now = 1_750_000_000.0, 1_000.0
        self.processes: dict[str, Process] = {}
        self.buried: list[Local] = []
        self.left: list[Path] = []
        self.runs: dict[str, Run] = {}
        self.writers: list[Writer] = []
        self.queues: dict[str, list[Queued]] = {}
        self.held: dict[str, set[str]] = {}
        self.locks: dict[str, str] = {}
        self.heirs: dict[str, str] = {}
        self.beaten: dict[str, float] = {}
        self.ended = self.numbers = self.tags = 0

    def ask(self, process: str, verb: str, *args: Any) -> Any:  # noqa: ANN401
        result, self.now = self.processes[process].ask((self.wall, self.now), verb, *args)
        return result

    # Processes begin and end.

    @initialize()
    def begin(self) -> None:
        self.open(0)

    @precondition(lambda self: len(self.processes) < len(NAMES))
    @rule(pick=picks)
    def open(self, pick: int) -> None:
        self.count()
        closed = [name for name in NAMES if name not in self.processes]
        name = closed[pick % len(closed)]
        self.processes[name] = self.start(name)
        self.queues[name], self.held[name] = [], set()

    def start(self, name: str) -> Process:  # noqa: ARG002 -- another machine looks at it
        return Local(self.directory)

    @precondition(lambda self: self.processes and self.ended < 8)
    @rule(pick=picks)
    def close(self, pick: int) -> None:
        self.count()
        name = self.pick(pick)
        self.processes[name].close()
        self.commit(name)
        self.forget(name)

    @precondition(lambda self: self.processes and self.ended < 8)
    @rule(pick=picks)
    def kill(self, pick: int) -> None:
        self.count()
        self.drop(self.pick(pick))

    def drop(self, name: str) -> None:
        process = self.processes[name]
        process.drop()
        if isinstance(process, Local):
            self.buried.append(process)
        self.forget(name)

    @precondition(lambda self: self.processes and self.ended < 8)
    @rule()
    def kill_all(self) -> None:
        """Nothing is left but the files, as they are in this moment."""
        self.count()
        for name in list(self.processes):
            self.drop(name)
        self.left.append(self.directory)
        self.directory = self.directory.with_name(self.directory.name + "x")
        shutil.copytree(
            self.left[-1], self.directory, ignore=shutil.ignore_patterns("*-shm", "beats")
        )
        self.beaten.clear()
        self.open(0)

    def forget(self, name: str) -> None:
        self.ended += 1
        del self.processes[name], self.queues[name], self.held[name]
        self.writers = [writer for writer in self.writers if writer.process != name]
        self.locks, self.heirs = (
            {run: holder for run, holder in each.items() if holder != name}
            for each in (self.locks, self.heirs)
        )

    # Runs are made, taken over, written, branched off.

    @precondition(lambda self: self.processes)
    @rule(pick=picks, run=runs)
    def create(self, pick: int, run: str) -> None:
        self.count()
        name, key = self.pick(pick), self.number()

        is_made = self.ask(name, "create", key, run)

        self.commit(name)
        assert is_made is (run not in self.runs)
        if is_made:
            branch = self.new_branch()
            self.runs[run] = Run(no=len(self.runs) + 1, head=branch)
            self.runs[run].branches[branch] = Branch([Row(-1)])
            self.writers.append(Writer(key, name, run, 1, branch))

    @precondition(lambda self: self.processes and self.runs)
    @rule(pick=picks, which=picks)
    def seize(self, pick: int, which: int) -> None:
        """A takeover by the epoch alone, whatever the leases say."""
        self.count()
        self.take_up(self.pick(pick), self.pick_run(which))

    @precondition(lambda self: self.processes and self.runs)
    @rule(pick=picks, which=picks)
    def go_on(self, pick: int, which: int) -> None:
        """As a restart does it: the lease first, then the epoch."""
        self.count()
        name, run = self.pick(pick), self.pick_run(which)
        if self.hold(name, run):
            self.take_up(name, run)

    def take_up(self, name: str, run: str) -> None:
        key, before = self.number(), len(self.runs[run].line)

        is_taken = self.ask(name, "take_up", key, run)

        # Rows of this run that the process itself had queued go first: then it read too early.
        self.commit(name)
        known = self.runs[run]
        assert is_taken is (before == len(known.line))
        if is_taken:
            known.epoch += 1
            known.line.append(Row(-known.epoch))
            self.writers.append(Writer(key, name, run, known.epoch, known.head))

    def hold(self, name: str, run: str) -> bool:
        is_free = all(each.get(run, name) == name for each in (self.locks, self.heirs))
        is_beating = not is_free and 0 <= self.now - self.beaten.get(run, -1e9) < 2 * BEAT_S

        is_held: bool = self.ask(name, "hold", run)

        assert is_held is (run not in self.held[name] and not is_beating)
        if is_held:
            self.held[name].add(run)
            self.note_beat(name, run)
        return is_held

    def note_beat(self, name: str, run: str) -> None:
        """Who beats has the run's lock, or is the heir of a stalled process that has it."""
        self.beaten[run] = self.now
        if self.locks.setdefault(run, name) != name:
            self.heirs.setdefault(run, name)
        elif self.heirs.get(run) == name:
            del self.heirs[run]

    @precondition(lambda self: self.writers)
    @rule(
        pick=picks,
        count=st.integers(1, 3),
        size=st.sampled_from([0, 10, 10, 3_000, 20_000]),
        intents=st.lists(st.sampled_from(range(len(INTENTS))), max_size=2),
        is_based=st.sampled_from([False, False, True]),
        is_told=st.booleans(),
    )
    def append(  # noqa: PLR0917 -- a column for each
        self, pick: int, count: int, size: int, intents: list[int], is_based: bool, is_told: bool
    ) -> None:
        self.count()
        writer = self.writers[pick % len(self.writers)]
        rows = [Row(self.new_tag(), tuple(intents), is_based) for _ in range(count)]
        error = f"error {rows[-1].tag}" if is_told else None

        how = [size, intents, is_based, error]
        is_written = self.ask(writer.process, "append", writer.key, [r.tag for r in rows], how)

        self.acknowledge(writer, rows, error, is_written=is_written)

    def acknowledge(
        self, writer: Writer, rows: list[Row], error: str | None, *, is_written: bool
    ) -> None:
        run = self.runs[writer.run]
        if self.was_tried(writer, is_done=is_written):
            run.branches[writer.branch].line.extend(rows)
            run.error = error or run.error

    def was_tried(self, writer: Writer, *, is_done: bool) -> bool:
        """Whether a write went through, which only the newest epoch's may."""
        if not writer.is_told:
            self.commit(writer.process)
        assert is_done is (writer.epoch == self.runs[writer.run].epoch)
        writer.is_told = not is_done
        return is_done

    @precondition(lambda self: self.writers)
    @rule(pick=picks)
    def queue(self, pick: int) -> None:
        """A row that is not waited for: committed with the next one, lost with its process."""
        self.count()
        writer = self.writers[pick % len(self.writers)]
        row = Row(self.new_tag())
        is_queued = self.ask(writer.process, "queue", writer.key, row.tag)
        assert is_queued is not writer.is_told
        if is_queued:
            self.queues[writer.process].append(Queued(writer, writer.branch, row))

    def commit(self, name: str) -> None:
        """What a process had queued has gone into its commit, each row by itself fenced or not."""
        queued, self.queues[name] = self.queues[name], []
        for each in queued:
            run = self.runs[each.writer.run]
            if each.writer.epoch == run.epoch:
                run.branches[each.branch].line.append(each.row)

    @precondition(lambda self: self.writers)
    @rule(pick=picks, back=picks)
    def grow(self, pick: int, back: int) -> None:
        self.count()
        writer = self.writers[pick % len(self.writers)]
        line = self.runs[writer.run].branches[writer.branch].line
        back, row = back % len(line), Row(self.new_tag())
        stem = line[: len(line) - back]

        is_grown = self.ask(writer.process, "grow", writer.key, back, row.tag)

        run = self.runs[writer.run]
        if self.was_tried(writer, is_done=is_grown):
            run.head = writer.branch = self.new_branch()
            run.branches[run.head] = Branch([*stem, row])

    # Leases, time, and looking.

    @precondition(lambda self: any(self.held.values()))
    @rule(pick=picks)
    def give(self, pick: int) -> None:
        self.count()
        held = sorted((name, run) for name in self.held for run in self.held[name])
        name, run = held[pick % len(held)]
        self.ask(name, "give", run)
        self.held[name].discard(run)
        if (
            self.locks.get(run, name) != name
        ):  # The stalled process that it was taken from is not asked.
            self.beaten.pop(run, None)
        for each in (self.locks, self.heirs):
            if each.get(run) == name:
                del each[run]

    @precondition(lambda self: self.processes)
    @rule(pick=picks)
    def beat(self, pick: int) -> None:
        self.count()
        name = self.pick(pick)
        self.ask(name, "beat")
        for run in self.held[name]:
            self.note_beat(name, run)

    @rule(seconds=st.sampled_from([0.5, 1.5, 5.0]), back=st.sampled_from([0, 0, 3600]))
    def let_time_pass(self, seconds: float, back: int) -> None:
        """And set the wall clock back now and then."""
        self.count()
        self.now += seconds
        self.wall += seconds - back

    @precondition(lambda self: self.processes)
    @rule(pick=picks, run=runs)
    def read(self, pick: int, run: str) -> None:
        self.count()
        self.compare(self.pick(pick), run)

    def compare(self, name: str, run: str) -> None:
        expected = self.runs[run].seen() if run in self.runs else None
        assert expected == self.ask(name, "read", run)

    @invariant()
    def the_note_is_never_ahead(self) -> None:
        if self.processes:
            assert [] == self.ask(self.pick(0), "missing")

    def teardown(self) -> None:
        try:
            for name in list(self.processes):
                self.processes[name].close()
                self.commit(name)
            self.processes = {"last": Local(self.directory)}
            by_number = sorted(self.runs, key=lambda run: -self.runs[run].no)
            assert by_number == self.ask("last", "runs")
            for run in RUNS:
                self.compare("last", run)
            self.processes["last"].close()
        finally:
            for process in self.buried:
                process.bury()
            for directory in (*self.left, self.directory):
                shutil.rmtree(directory)

    # Small change.

    def count(self) -> None:
        steps[self.kind] += 1

    def pick(self, pick: int) -> str:
        return sorted(self.processes)[pick % len(self.processes)]

    def pick_run(self, pick: int) -> str:
        return sorted(self.runs)[pick % len(self.runs)]

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def new_tag(self) -> int:
        self.tags += 1
        return self.tags

    def new_branch(self) -> int:
        return 1 + sum(len(run.branches) for run in self.runs.values())


class WithRealProcess(Model):
    """Process two is a real one, killed with SIGKILL at any time and at crash points."""

    kind = "real process"
    remote: ClassVar[Remote] = Remote()

    def start(self, name: str) -> Process:
        return self.remote.open(self.directory) if name == "two" else super().start(name)

    @precondition(lambda self: self.of_the_real_one() and self.ended < 8)
    @rule(pick=picks, is_kept=st.booleans(), count=st.integers(1, 3))
    def write_and_die(self, pick: int, is_kept: bool, count: int) -> None:
        """Killed in front of its commit, or behind it: then the rows are there, unacknowledged."""
        self.count()
        writers = self.of_the_real_one()
        writer = writers[pick % len(writers)]
        rows = [Row(self.new_tag()) for _ in range(count)]

        self.ask("two", "die_at", "store.committed" if is_kept else "store.committing")
        with pytest.raises(Killed):
            self.ask("two", "append", writer.key, [row.tag for row in rows], [0, [], False, None])

        if is_kept:
            is_newest = writer.epoch == self.runs[writer.run].epoch
            self.acknowledge(writer, rows, None, is_written=is_newest)
        self.forget("two")

    @precondition(lambda self: "two" in self.processes and self.runs and self.ended < 8)
    @rule(which=picks, is_taken=st.booleans())
    def take_up_and_die(self, which: int, is_taken: bool) -> None:
        self.count()
        run = self.pick_run(which)
        known = self.runs[run]
        before = len(known.line)

        self.ask("two", "die_at", "store.committed" if is_taken else "store.committing")
        with pytest.raises(Killed):
            self.ask("two", "take_up", self.number(), run)

        if is_taken:
            self.commit("two")
            if before == len(known.line):
                known.epoch += 1
                known.line.append(Row(-known.epoch))
        self.forget("two")

    def of_the_real_one(self) -> list[Writer]:
        return [each for each in self.writers if each.process == "two" and not each.is_told]


@pytest.fixture
def counted() -> Iterator[Counter[str]]:
    steps.clear()
    yield steps
    WithRealProcess.remote.drop()


# Together at least 20,000 steps. A disk that flushes is slow, and a kill loses no page of either.
@pytest.mark.parametrize(
    ("place", "examples", "steps_min"),
    [
        ("on disk", 36, 2_000),
        ("in memory, one", 100, 6_000),
        ("in memory, two", 100, 6_000),
        ("in memory, three", 100, 6_000),
    ],
)
def test_the_store_is_what_plain_dicts_say_it_is(
    place: str, examples: int, steps_min: int, counted: Counter[str]
) -> None:
    class Placed(Model):
        in_memory = place != "on disk"

    run(Placed, examples, steps_each=100)

    assert counted["handles"] >= steps_min


def test_the_store_is_what_plain_dicts_say_with_a_real_process_that_is_killed(
    counted: Counter[str],
) -> None:
    run(WithRealProcess, examples=24, steps_each=60)

    assert counted["real process"] >= 1_000


def run(machine: type[Model], examples: int, steps_each: int) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=steps_each)
    )
