"""How recoveries went in this store: what estimates are made from."""

from collections.abc import Iterable
from itertools import islice

from holdfast.model.decision import Action
from holdfast.model.journal import (
    Answer,
    Entry,
    Failed,
    Finished,
    Happened,
    Interrupted,
    Raised,
    Resumed,
    Retried,
    Streamed,
    TurnEnded,
)
from holdfast.policy.estimate import Seen
from holdfast.store.reader import Placed, Reader
from holdfast.store.reader import Run as StoredRun
from holdfast.store.steady import of_each

RUNS_READ = 200
"""How many of the newest runs are looked at for ones that were restarted."""
RUNS_COUNTED = 20


def seen_in(reader: Reader, run: StoredRun, *, is_wide: bool) -> dict[Action, Seen]:
    """Restarts and retries of this run and, `is_wide`, of others that were restarted lately.

    Of each run the rows since its newest base are read, so a long history costs no more.
    """
    tally = _Tally()
    tally.read(reader.history(run).rows)
    if is_wide:
        others = (r for r in islice(reader.runs(), RUNS_READ) if r.row.no != run.row.no)
        restarted = islice((r for r in others if r.row.epoch > 1), RUNS_COUNTED)
        for rows in of_each(reader, restarted, lambda other: reader.history(other).rows):
            tally.read(rows)
    return tally.seen()


class _Tally:
    """Counts what helped; a restart helped if the run made progress before the next one."""

    def __init__(self) -> None:
        self._restarts: list[float] = []
        self._retries: list[float] = []
        self._in_vain = self._retried_in_vain = 0

    def read(self, rows: Iterable[Placed]) -> None:
        """Take in the journal of one run."""
        self._resumed: float | None = None
        self._waiting = 0
        for placed in rows:
            for entry in placed.row.entries:
                self._take(entry)

    def _take(self, entry: Entry) -> None:
        match entry:
            case Resumed():
                self._in_vain += self._resumed is not None
                self._resumed = entry.at
            case Answer() | Happened() | Streamed() | TurnEnded() | Finished():
                if self._resumed is not None:
                    self._restarts.append(max(0.0, entry.at - self._resumed))
                    self._resumed = None
                if self._waiting and isinstance(entry, Answer | Happened):
                    self._retries.append(entry.took_s)
                    self._waiting = 0
            case Failed():
                self._in_vain += self._resumed is not None
                self._resumed = None
            case Interrupted():
                self._resumed = None
            case Retried():
                self._retried_in_vain += self._waiting > 0
                self._waiting = 1
            case Raised():
                self._retried_in_vain += self._waiting
                self._waiting = 0
            case _:
                pass

    def seen(self) -> dict[Action, Seen]:
        """What was counted."""
        return {
            Action.RESTART: Seen(
                helped=len(self._restarts), failed=self._in_vain, times_s=self._restarts
            ),
            Action.RETRY: Seen(
                helped=len(self._retries), failed=self._retried_in_vain, times_s=self._retries
            ),
        }
