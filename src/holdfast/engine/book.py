"""What the journal knows of the calls that may be asked again: lookup and divergence.

A call is known by scope, function, arguments and ordinal among equals, so calls of one scope may
finish in any order. The order still tells whether the code is the same: a record that the agent's
own line of code should have asked for by now, and did not, means that it diverged.
"""

import threading
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.engine.bare import olders
from holdfast.engine.question import Question, show
from holdfast.engine.reading import Key, Reading, Record, took_s
from holdfast.errors import Diverged
from holdfast.model.journal import Call, Scope
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

    def __init__(self, run: str) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._desks: dict[Scope, _Desk] = {}
        self._standing: dict[tuple[str, bytes], list[Record]] = {}
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
                self._standing.setdefault((record.call.name, record.call.digest), []).append(record)
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
                record = desk.unused.pop((scope, *same, ordinal), None)
                if record is None:
                    record = _older_record(desk, scope, question, ordinal)
                if record is None and not is_side and isinstance(scope, int):
                    self._check(desk, call)
            if record is None and self._standing and self._standing.get(same):
                record = self._standing[same].pop(0)
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
            same = (question.name, question.digest)
            key = (scope, *same, desk.asked.get(same, 0))
            return key in desk.unused or bool(self._standing.get(same))

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

    def late(self, call: Call) -> Diverged:
        """Recorded calls beside `call` were never asked for."""
        with self._lock:
            due = list(self._due(self._desk(call.scope)))
        return self.diverged(due[0].call if due else call, call)

    def received(self, scope: Scope) -> None:
        """The scope got an answer."""
        with self._lock:
            self._desk(scope).received += 1

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
        return next((r for r in self.unasked() if r.outcome is None), None)

    def unasked(self) -> list[Record]:
        """The effects carried over from a turn run anew that were not asked for yet."""
        if not self._standing:
            return []
        with self._lock:
            return [r for records in self._standing.values() for r in records]

    def forget(self, turn: int) -> None:
        """A turn is over: nothing of it, nor inside its calls, will be asked again."""
        with self._lock:
            self._standing.clear()
            self._desks.pop(turn, None)
            for scope in [s for s in self._desks if type(s) is bytes]:
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


def _older_record(desk: _Desk, scope: Scope, question: Question, ordinal: int) -> Record | None:
    """The record of a call that was recorded under other words."""
    for older in olders(question):
        same = older.question
        record = desk.unused.pop((scope, same.name, same.digest, ordinal), None)
        if record is not None:
            return record
    return None


def place(scope: Scope) -> str:
    """A scope in words."""
    if isinstance(scope, bytes):
        return "inside a step"
    if scope >= 0:
        return f"turn {scope}"
    return "before the first turn" if scope == -1 else f"after loop {-1 - scope}"
