"""A process that uses a store, driven by plain words, so that a pipe can carry them.

`Local` is a handle of its own in this process; `Remote` is a real process at the end of a pipe,
which can be killed at any crash point.
"""

import contextlib
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import msgspec

from holdfast import failpoint
from holdfast.errors import Fenced
from holdfast.model.journal import Based, Entry, LoopLeft, Redone, Resumed
from holdfast.model.run import Holder, RunBody
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Placed, Run
from holdfast.store.seal.base import Seals
from holdfast.store.writer import RunWriter, create, take_up
from holdfast.testing.fakes import ManualClock

INTENTS = (b"pay", b"mail")


class Process(Protocol):
    """Someone who has the store open."""

    def ask(self, at: tuple[float, float], verb: str, *args: Any) -> tuple[Any, float]:  # noqa: ANN401
        """Do `verb` at a time (wall, monotonic); its result, and when it was done."""

    def close(self) -> None:
        """End properly."""

    def drop(self) -> None:
        """End as a kill ends a process: locks are freed, nothing else is done."""


class Told(ManualClock):
    """Time as somebody else tells it."""

    def tell(self, now: float, monotonic: float) -> None:
        self._now, self._monotonic = now, monotonic


class Desk:
    """The verbs on one open store."""

    def __init__(self, opened: Opened, clock: Told) -> None:
        self._opened, self._clock = opened, clock
        self._writers: dict[int, RunWriter] = {}

    def do(self, verb: str, args: list[Any]) -> Any:  # noqa: ANN401
        return getattr(self, verb)(*args)

    def create(self, writer: int, run: str) -> bool:
        body = RunBody(
            id=run, agent="a", module="m", created=self._clock.now(), holder=self._holder()
        )
        made = create(self._opened.committer, self._seals, body, self._resumed(1))
        if made is not None:
            self._writers[writer] = made
        return made is not None

    def take_up(self, writer: int, run: str) -> bool:
        """Become the run's writer under the next epoch; False when another one was faster."""
        found, reader = self._find(run), self._opened.reader
        body = msgspec.structs.replace(found.body, holder=self._holder())
        try:
            self._writers[writer] = take_up(
                self._opened.committer,
                self._seals,
                reader.history(found),
                self._opened.records.tail(found.row.head),
                body=body,
                entry=self._resumed(found.row.epoch + 1),
            )
        except Fenced:
            return False
        return True

    def append(self, writer: int, tags: list[int], how: list[Any]) -> bool:
        """Queue a row for each tag, then wait for all; False when they were fenced."""
        try:
            tickets = [self._submit(writer, tag, how) for tag in tags]
            for ticket in reversed(tickets):
                self._writers[writer].finish(ticket)
        except Fenced:
            return False
        return True

    def queue(self, writer: int, tag: int) -> bool:
        """Queue a row and do not wait; False when the writer knows already that it is fenced."""
        try:
            self._submit(writer, tag, [0, [], False, None])
        except Fenced:
            return False
        return True

    def _submit(self, writer: int, tag: int, how: list[Any]) -> Any:  # noqa: ANN401
        size, intents, is_based, error = how
        noise = random.Random(tag).randbytes(size)  # noqa: S311 -- the same for the same tag
        entry: Entry = Based(tag, 0, noise, []) if is_based else LoopLeft(tag, 0, noise)
        who = self._writers[writer]
        body = None if error is None else msgspec.structs.replace(who.run.body, error=error)
        named = [INTENTS[n] for n in intents]
        return who.submit([entry], body=body, intents=named)[1]

    def grow(self, writer: int, back: int, tag: int) -> bool:
        """Branch off `back` rows before the newest; False when fenced."""
        who, reader = self._writers[writer], self._opened.reader
        head = who.run.row.head
        line = list(reader.rows(head, reader.first(head), reader.end(head)))
        try:
            who.grow(line[-1 - back], [Redone(0.0, tag, None)], [])
        except Fenced:
            return False
        return True

    def hold(self, run: str) -> bool:
        return self._opened.leases.take(self._find(run).row.no)

    def give(self, run: str) -> None:
        self._opened.leases.give(self._find(run).row.no)

    def beat(self) -> None:
        self._opened.leases.beat()

    def read(self, run: str) -> list[Any] | None:
        """All that can be read of a run, every row of it checked."""
        reader = self._opened.reader
        found = reader.find(run)
        if found is None:
            return None
        head = found.row.head
        return [
            found.row.no,
            found.row.epoch,
            head,
            found.body.error,
            [_tag(row) for row in reader.rows(head, reader.first(head), reader.end(head))],
            [_tag(row) for row in reader.history(found).rows],
            [
                [branch.no, [_tag(row) for row in self._all(branch.no)]]
                for branch in reader.branches(found)
            ],
            [
                len(reader.on_line(reader.intended(found.row.no, intent), head))
                for intent in INTENTS
            ],
        ]

    def _all(self, branch: int) -> list[Placed]:
        reader = self._opened.reader
        return list(reader.rows(branch, reader.first(branch), reader.end(branch)))

    def runs(self) -> list[str]:
        return [run.body.id for run in self._opened.reader.runs()]

    def missing(self) -> list[int]:
        return self._opened.records.missing()

    def die_at(self, point: str) -> None:
        failpoint.kill_at(point)

    def _find(self, run: str) -> Run:
        found = self._opened.reader.find(run)
        assert found is not None
        return found

    @property
    def _seals(self) -> Seals:
        return self._opened.reader.seals

    def _holder(self) -> Holder:
        return Holder(pid=1, host="reef", since=self._clock.now())

    def _resumed(self, epoch: int) -> Resumed:
        return Resumed(self._clock.now(), epoch, self._holder(), None)


def _tag(placed: Placed) -> int:
    """What tells a row from others: its tag, or minus the epoch that it began."""
    match placed.row.entries[0]:
        case LoopLeft(turn=tag) | Based(turn=tag) | Redone(of=tag):
            return tag
        case Resumed(epoch=epoch):
            return -epoch
        case other:
            raise AssertionError(other)


class Local:
    """A process that is only another handle: what it holds, the kernel sees as another's."""

    def __init__(self, directory: Path) -> None:
        self._clock = Told()
        self._opened = open_store(directory, self._clock)
        self._desk = Desk(self._opened, self._clock)

    def ask(self, at: tuple[float, float], verb: str, *args: Any) -> tuple[Any, float]:  # noqa: ANN401
        self._clock.tell(*at)
        return self._desk.do(verb, list(args)), self._clock.monotonic()

    def close(self) -> None:
        self._opened.close()

    def drop(self) -> None:
        self._opened.abandon()

    def bury(self) -> None:
        """Free the memory of a dropped process, once nobody looks at the files any more."""
        for link in (self._opened.records._reader, self._opened.records._writer):  # noqa: SLF001
            link.close()


class Remote:
    """A real process. It opens one store after the other; killed, it is started anew."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def open(self, directory: Path) -> "Remote":
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        self._say(["open", str(directory)])
        return self

    def ask(self, at: tuple[float, float], verb: str, *args: Any) -> tuple[Any, float]:  # noqa: ANN401
        result, monotonic = self._say(["ask", at, verb, list(args)])
        return result, monotonic

    def close(self) -> None:
        self._say(["close"])

    def drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.send_signal(signal.SIGKILL)
            with contextlib.suppress(BrokenPipeError):
                child.communicate()

    def _say(self, words: list[Any]) -> Any:  # noqa: ANN401
        """Send words, get the answer; `Killed` when the process died over it."""
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(msgspec.json.encode(words) + b"\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            self.drop()
            raise Killed
        return msgspec.json.decode(line)


class Killed(Exception):
    """The process died before it answered."""


def serve() -> None:
    """What the real process does: answer each line of words by a line."""
    process: Local | None = None
    for line in sys.stdin.buffer:
        answer: Any = None
        match msgspec.json.decode(line):
            case ["open", directory]:
                process = Local(Path(directory))
            case ["ask", at, verb, args] if process is not None:
                answer = process.ask(tuple(at), verb, *args)
            case ["close"] if process is not None:
                process.close()
                process = None
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
