"""A stream as others read it: what is recorded of it, and what is recorded while they read."""

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.reading import Key, key_of
from holdfast.engine.stream import items_of
from holdfast.errors import StreamReset, UnknownStream
from holdfast.model.journal import Streamed
from holdfast.model.run import Status
from holdfast.store.reader import Reader, Run

LOOK_S = 0.05


class Follower:
    """Reads the newest stream of a name in a run; takes no lease and needs no agent."""

    def __init__(self, reader: Reader, run: Run, is_held: Callable[[int], bool]) -> None:
        self._reader, self._run, self._is_held = reader, run, is_held
        self._row = reader.first(run.row.head)
        self._head = run.row.head
        self._key: Key | None = None
        self._attempt = 0
        self._seen: dict[str, None] = {}
        self._found: list[Any] = []
        self._is_over = False

    def read(self, name: str | None, offset: int) -> Iterator[Any]:
        """The items that are recorded now, from the `offset`-th on."""
        self._look(name)
        self._refuse_unknown(name)
        yield from self._found[offset:]

    def follow(self, name: str | None, offset: int, clock: Clock) -> Iterator[Any]:
        """The same, and those that come, until the stream is over or nobody works on the run."""
        at = offset
        is_last = False
        while True:
            before = self._key, self._attempt
            self._look(name)
            if before[0] is not None and before != (self._key, self._attempt):
                raise StreamReset(self._run.body.id, before[0][1], at)
            yield from self._found[at:]
            at = max(at, len(self._found))
            if self._is_over or is_last:
                break
            is_last = not self._is_alive()  # What it recorded last is looked for once more.
            if not is_last:
                clock.sleep(LOOK_S)
        self._refuse_unknown(name)

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
            self._found, self._is_over = [], False
        end = self._reader.end(self._head)
        for placed in self._reader.rows(self._head, self._row, end):
            for entry in placed.row.entries:
                if isinstance(entry, Streamed):
                    self._take(entry, name)
        self._row = end + 1

    def _take(self, entry: Streamed, name: str | None) -> None:
        self._seen[entry.call.name] = None
        if name is not None and entry.call.name != name:
            return
        key = key_of(entry.call)
        if self._key != key or self._attempt != entry.attempt or entry.part == 0:
            self._key, self._attempt, self._found = key, entry.attempt, []
        self._found += items_of(self._reader, entry)
        self._is_over = entry.how != ""

    def _refuse_unknown(self, name: str | None) -> None:
        if self._key is None:
            known = ", ".join(self._seen) or "none"
            raise UnknownStream(self._run.body.id, name or "at all", known)
