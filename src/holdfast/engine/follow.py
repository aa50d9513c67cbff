"""A stream as others read it: what is recorded of it, and what is recorded while they read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.items import items_of
from holdfast.engine.reading import Key, key_of
from holdfast.errors import StreamReset, UnknownStream
from holdfast.model.journal import ENDED, LEFT, Raised, Streamed
from holdfast.model.run import Status
from holdfast.store.reader import Reader, Run

LOOK_S = 0.05
RAISED = "raised"


@dataclass(slots=True)
class Told:
    """What is recorded of a stream: of the `attempt`-th call of it, since that counts.

    `how` is how it is over, if it is; one that raised may go on in a later life.
    """

    name: str
    attempt: int
    items: list[Any] = field(default_factory=list)
    how: str = ""

    def goes_on_from(self, before: "Told", at: int) -> bool:
        """Whether the first `at` items are those that were told before."""
        is_same = self is before or self.items[:at] == before.items[:at]
        return is_same and self.attempt == before.attempt


class Follower:
    """Reads the newest stream of a name in a run; takes no lease and needs no agent.

    Several of one name may flow side by side: the one that began last is read, to its end.
    """

    def __init__(self, reader: Reader, run: Run, is_held: Callable[[int], bool]) -> None:
        self._reader, self._run, self._is_held = reader, run, is_held
        self._row = reader.first(run.row.head)
        self._head = run.row.head
        self._key: Key | None = None
        self._names: dict[str, None] = {}
        self._told: dict[Key, Told] = {}

    def read(self, name: str | None, offset: int) -> Iterator[Any]:
        """The items that are recorded now, from the `offset`-th on."""
        self._look(name)
        yield from self._told[self._newest(name)].items[offset:]

    def follow(self, name: str | None, offset: int, clock: Clock) -> Iterator[Any]:
        """The same, and those that come, until the stream is over or nobody works on the run."""
        before, at = None, offset
        is_last = False
        while True:
            self._look(name)
            if self._key is None and (is_last or self._told):
                self._key = self._newest(name)
            now = None if self._key is None else self._told.get(self._key)
            if before is not None and (now is None or not now.goes_on_from(before, at)):
                raise StreamReset(self._run.body.id, before.name, at)
            if now is not None:
                yield from now.items[at:]
                before, at = now, max(at, len(now.items))
            if is_last or (now is not None and now.how):
                return
            is_last = not self._is_alive()  # What it recorded last is looked for once more.
            if not is_last:
                clock.sleep(LOOK_S)

    def _is_alive(self) -> bool:
        again = self._reader.find(self._run.body.id)
        is_running = again is not None and again.body.status is Status.RUNNING
        return is_running and self._is_held(self._run.row.no)

    def _look(self, name: str | None) -> None:
        """Take in the rows that have come; after a rollback, those of the new line."""
        run = self._reader.find(self._run.body.id)
        if run is None:
            return
        if run.row.head != self._head:
            self._head, self._row = run.row.head, self._reader.first(run.row.head)
            self._told = {}
        end = self._reader.end(self._head)
        for placed in self._reader.rows(self._head, self._row, end):
            for entry in placed.row.entries:
                if isinstance(entry, Streamed | Raised):
                    self._take(entry, name)
        self._row = end + 1

    def _take(self, entry: Streamed | Raised, name: str | None) -> None:
        key = key_of(entry.call)
        told = self._told.get(key)
        if isinstance(entry, Raised):
            if told is not None:
                told.how = RAISED
            return
        self._names[entry.call.name] = None
        if name not in (None, entry.call.name):
            return
        if told is None or told.attempt != entry.attempt:
            self._forget(key)
            told = self._told[key] = Told(entry.call.name, entry.attempt)
        told.items += items_of(self._reader, entry)
        told.how = entry.how

    def _forget(self, new: Key) -> None:
        """Where one begins, those that are over are no longer wanted, nor what it was before."""
        for key, told in list(self._told.items()):
            if key == new or (told.how in (ENDED, LEFT) and key != self._key):
                del self._told[key]

    def _newest(self, name: str | None) -> Key:
        """The stream that began last."""
        if not self._told:
            known = ", ".join(self._names) or "none"
            raise UnknownStream(self._run.body.id, name or "at all", known)
        return next(reversed(self._told))
