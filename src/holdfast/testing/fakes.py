"""Stand-ins for the world: a clock that a test moves, a backend that fails when told to."""

import threading
from collections.abc import Callable, Sequence

from holdfast.store.backends.base import Beside, BranchRow, JournalRow, Records, RunRow, Write


class ManualClock:
    """Time that stands still until it is moved; a sleep moves it and returns at once.

    `during_sleep` is called inside each sleep, after the time has passed: what others do while
    somebody waits.
    """

    def __init__(self, now: float = 1_750_000_000.0, monotonic: float = 1_000.0) -> None:
        self._now, self._monotonic = now, monotonic
        self._lock = threading.Lock()
        self.slept: list[float] = []
        self.during_sleep: Callable[[], None] | None = None

    def now(self) -> float:
        """Seconds since the epoch, as set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that only `sleep` and `advance` move."""
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        self.advance(seconds)
        self.slept.append(seconds)
        if self.during_sleep is not None:
            self.during_sleep()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._now += seconds
            self._monotonic += seconds

    def set(self, now: float) -> None:
        """Set the wall clock, back too; monotonic time takes no notice."""
        self._now = now


class Faulty:
    """Records whose commits fail when told to: before they are done, or after (`is_done`)."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._faults: list[tuple[BaseException, bool]] = []
        self.commits: list[int] = []

    def fail(self, error: BaseException, *, is_done: bool = False) -> None:
        """Have one more commit raise `error`; with `is_done` what it writes is kept."""
        self._faults.append((error, is_done))

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """Do `writes`, or what `fail` asked for; `commits` counts the writes of each."""
        self.commits.append(len(writes))
        if not self._faults:
            return self._records.commit(writes)
        error, is_done = self._faults.pop(0)
        if is_done:
            self._records.commit(writes)
        raise error

    def run(self, kid: bytes) -> RunRow | None:
        """As the records below."""
        return self._records.run(kid)

    def runs(self, before: int | None, limit: int) -> list[RunRow]:
        """As the records below."""
        return self._records.runs(before, limit)

    def check_catalog(self, span: tuple[int, int] | None = None) -> None:
        """As the records below."""
        self._records.check_catalog(span)

    def branch(self, no: int) -> BranchRow | None:
        """As the records below."""
        return self._records.branch(no)

    def branches(self, run: int) -> list[BranchRow]:
        """As the records below."""
        return self._records.branches(run)

    def rows(self, first: int, last: int) -> list[JournalRow]:
        """As the records below."""
        return self._records.rows(first, last)

    def beside(self, first: int, last: int) -> list[Beside]:
        """As the records below."""
        return self._records.beside(first, last)

    def last(self, branch: int) -> JournalRow | None:
        """As the records below."""
        return self._records.last(branch)

    def end(self, branch: int) -> int:
        """As the records below."""
        return self._records.end(branch)

    def tail(self, branch: int) -> tuple[int, int]:
        """As the records below."""
        return self._records.tail(branch)

    def intended(self, ledger: int, intent: bytes) -> list[int]:
        """As the records below."""
        return self._records.intended(ledger, intent)

    def note(self, key: str) -> bytes | None:
        """As the records below."""
        return self._records.note(key)

    def key(self, no: int) -> bytes | None:
        """As the records below."""
        return self._records.key(no)

    def revive(self) -> None:
        """As the records below."""
        self._records.revive()

    def close(self) -> None:
        """As the records below."""
        self._records.close()
