"""What the journal knows of the calls that may be asked again: lookup and divergence.

A call is known by scope, function, arguments and ordinal among equals, so calls of one scope may
finish in any order. The order still tells whether the code is the same: a record that the agent's
own line of code should have asked for by now, and did not, means that it diverged.
"""

import threading
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.engine.bare import Read, is_migrated, olders
from holdfast.engine.question import Question, show
from holdfast.engine.reading import Key, Reading, Record, key_of, took_s
from holdfast.errors import Diverged
from holdfast.model.journal import Call, Intended, Scope
from holdfast.store.reader import Placed


class _Desk(msgspec.Struct):
    """The calls of one scope in this life of the run."""

    received: int = 0
    asked: dict[tuple[str, bytes], int] = msgspec.field(default_factory=dict)
    unused: dict[Key, Record] = msgspec.field(default_factory=dict)


class Book:
    """The recorded calls of the open turn and of the code outside turns.

    `until`: inside a critical section that was cut off, where that is recorded; nothing after it
    is due yet.
    """

    def __init__(self, run: str, read: Read) -> None:
        self._run, self._read = run, read
        self._lock = threading.Lock()
        self._desks: dict[Scope, _Desk] = {}
        self._standing: list[Record] = []
        self.attempts: dict[Key, int] = {}
        self.loops_left: dict[int, tuple[int, int]] = {}
        self.own = self.all = self.sides = 0
        self.spared_s = 0.0
        self.until: tuple[int, int] | None = None

    def load(self, outside: Iterable[Placed], rows: Iterable[Placed]) -> None:
        """Take in what the journal holds: of finished turns only what stands outside turns."""
        reading = Reading()
        reading.read(outside)
        reading.end_turn()
        reading.read(rows)
        reading.end_life()
        self.attempts, self.loops_left = reading.attempts, reading.loops_left
        for key, record in reading.kept.items():
            if record.is_standing:
                self._standing.append(record)
            else:
                self._desk(key[0]).unused[key] = record

    def _desk(self, scope: Scope) -> _Desk:
        desk = self._desks.get(scope)
        if desk is None:
            desk = self._desks[scope] = _Desk()
        return desk

    def ask(self, scope: Scope, question: Question, *, is_side: bool) -> tuple[Call, Record | None]:
        """The call this question is, and its record; `Diverged` if the code goes another way."""
        with self._lock:
            desk = self._desks.get(scope) or self._desk(scope)
            same = (question.name, question.digest)
            ordinal = desk.asked.get(same, 0)
            call = Call(
                scope,
                question.name,
                question.digest,
                ordinal,
                desk.received,
                is_side,
                question.asked,
            )
            record = None
            if desk.unused:
                record = self._recorded(desk, scope, question, ordinal)
                if record is not None:
                    del desk.unused[key_of(record.call)]
                elif not is_side and isinstance(scope, int):
                    self._check(desk, call)
            if record is None and self._standing:
                record = self._carried(question)
                if record is not None:
                    self._standing.remove(record)
            if record is not None:
                self.spared_s += took_s(record)
            desk.asked[same] = ordinal + 1
            self.all += 1
            self.sides += is_side
            self.own += not is_side and type(scope) is int
            return call, record

    def knows(self, scope: Scope, question: Question) -> bool:
        """Whether a record waits for this question to be asked next."""
        with self._lock:
            desk = self._desk(scope)
            ordinal = desk.asked.get((question.name, question.digest), 0)
            found = self._recorded(desk, scope, question, ordinal) or self._carried(question)
            return found is not None

    def _recorded(
        self, desk: _Desk, scope: Scope, question: Question, ordinal: int
    ) -> Record | None:
        """The record of a call that was not asked for yet, also of one under other words."""
        found = desk.unused.get((scope, question.name, question.digest, ordinal))
        if found is not None or not desk.unused:
            return found
        for older in olders(question):
            found = desk.unused.get((scope, question.name, older.question.digest, ordinal))
            if found is not None:
                return found
        return self._migrated(desk.unused.values(), question)

    def _carried(self, question: Question) -> Record | None:
        """The first effect with this intent that a turn run anew carries over."""
        if not self._standing:
            return None
        for digest in (question.digest, *(older.question.digest for older in olders(question))):
            for record in self._standing:
                if (record.call.name, record.call.digest) == (question.name, digest):
                    return record
        return self._migrated(self._standing, question)

    def _migrated(self, records: Iterable[Record], question: Question) -> Record | None:
        """The first effect that means the same once its classes are read as they are today."""
        same = (
            each
            for each in records
            if isinstance(each.entry, Intended) and is_migrated(self._read, each.entry, question)
        )
        return min(same, key=lambda each: each.call.ordinal, default=None)

    def _check(self, desk: _Desk, call: Call) -> None:
        """In the agent's own line of code, what was recorded comes before anything new."""
        due = [r for r in self._due(desk) if not r.call.is_side]
        if due:
            first = min(due, key=lambda r: r.call.after)
            raise self.diverged(first.call, call)

    def _due(self, desk: _Desk) -> Iterator[Record]:
        """Records that should have been asked by now."""
        for record in desk.unused.values():
            is_now = self.until is None or (record.row, record.index) < self.until
            if is_now and record.call.after <= desk.received and not record.is_optional:
                yield record

    def pass_over(self, scope: Scope, first: tuple[int, int], last: tuple[int, int]) -> None:
        """What was recorded between two points was asked for by code that is not run again."""
        with self._lock:
            desk = self._desk(scope)
            for key, record in list(desk.unused.items()):
                if not first < (record.row, record.index) < last:
                    continue
                if record.call.is_side:
                    record.is_optional = True  # Perhaps of a thread that still runs.
                    continue
                del desk.unused[key]
                desk.received += 1
                same = (record.call.name, record.call.digest)
                desk.asked[same] = max(desk.asked.get(same, 0), record.call.ordinal + 1)

    def is_waiting(self, scope: Scope) -> bool:
        """Whether recorded calls beside this one were not asked yet: an effect waits for them."""
        with self._lock:
            return any(True for _ in self._due(self._desk(scope)))

    def awaits_others(self, scope: Scope) -> bool:
        """Whether all that was not asked yet is for tasks or threads beside the agent's own."""
        desk = self._desks.get(scope)
        if desk is None or not desk.unused:
            return False
        with self._lock:
            left = [r.call.is_side for r in desk.unused.values() if not r.is_optional]
            return bool(left) and all(left)

    def late(self, call: Call) -> Diverged:
        """Recorded calls beside `call` were never asked for."""
        with self._lock:
            due = list(self._due(self._desk(call.scope)))
        return self.diverged(due[0].call if due else call, call)

    def received(self, scope: Scope) -> None:
        """The scope got an answer."""
        with self._lock:
            desk = self._desks.get(scope) or self._desk(scope)
            desk.received += 1

    def close(self, scope: int) -> None:
        """The scope is over: `Diverged` if the journal holds answers nobody asked for."""
        desk = self._desks.get(scope)
        if desk is None or not desk.unused:
            return  # What is unused only ever gets less.
        with self._lock:
            left = [r for r in desk.unused.values() if not r.is_optional]
            if left:
                first = min(left, key=lambda r: r.call.after)
                raise self.diverged(first.call, None)

    def undecided(self) -> Record | None:
        """An effect carried over from a turn run anew that is in doubt and was not asked for."""
        if not self._standing:
            return None  # Asked at the end of every turn, and mostly so.
        return next((each for each in self.unasked() if each.outcome is None), None)

    def unasked(self) -> list[Record]:
        """The effects carried over from a turn run anew that were not asked for yet."""
        with self._lock:
            return list(self._standing)

    def forget(self, turn: int) -> None:
        """A turn is over: nothing of it, nor inside its calls, will be asked again."""
        with self._lock:
            self._standing.clear()
            self._desks.pop(turn, None)
            for scope in list(self._desks):
                if type(scope) is bytes:
                    del self._desks[scope]

    def diverged(self, recorded: Call, asked: Call | None) -> Diverged:
        """The first difference between journal and code, in words."""
        where = f"{place(recorded.scope)}, call {recorded.after + 1}"
        was = show(recorded.name, recorded.asked)
        if asked is None:
            return Diverged(self._run, where, was, "nothing more")
        now = show(asked.name, asked.asked)
        if recorded.name == asked.name:
            then = {each.name: each.mark for each in recorded.asked}
            marks = {each.name: each.mark for each in asked.asked}
            other = [name for name in then | marks if then.get(name) != marks.get(name)]
            where += f", argument {other[0]}" if other else ", one more time"
            if was == now and other:
                where += " (its content differs where the short forms below do not show it)"
        return Diverged(self._run, where, was, now)


def place(scope: Scope) -> str:
    """A scope in words."""
    if isinstance(scope, bytes):
        return "inside a step"
    if scope >= 0:
        return f"turn {scope}"
    return "before the first turn" if scope == -1 else f"after loop {-1 - scope}"
