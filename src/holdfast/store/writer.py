"""The commit order of a run: create, fork, take up, append, branch off. Every write is fenced."""

import threading
from collections.abc import Mapping, Sequence
from typing import NoReturn

import msgspec
from msgspec.structs import replace

from holdfast import failpoint
from holdfast.errors import Fenced
from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.model.journal import (
    Answer,
    Based,
    Entry,
    Happened,
    Intended,
    Kept,
    LoopLeft,
    Noted,
    Row,
    Streamed,
    TurnEnded,
)
from holdfast.model.run import RunBody
from holdfast.store.backends.base import Append, BranchRow, Create, Grow, JournalRow, RunRow
from holdfast.store.codec.texts import packed, whole
from holdfast.store.committer import Committer, Ticket
from holdfast.store.inside import references_of
from holdfast.store.marks import marks_of
from holdfast.store.reader import History, Placed, Run
from holdfast.store.seal.base import RunSeals, Seals

# Their texts are short forms of arguments, and the model's name: redacted when they were made.
_CLEAN = frozenset({Answer, Noted, Intended, Happened, TurnEnded, LoopLeft, Kept, Based, Streamed})

_encode = msgspec.msgpack.Encoder().encode

PACK_BYTES = 64 * 1024
"""A run's rows are packed when this much of them is loose."""
PACK_ROWS = 4
"""Fewer rows wait for more: what long rows have in common with few others is not worth a pack."""
PACK_BYTES_MAX = 4 * PACK_BYTES
"""Until this much of them is loose."""
PACK_BYTES_MIN = 2 * 1024
"""At a run's end they are packed from here on."""


class RunWriter:
    """The one writer of a run under one epoch: numbers rows, chains them, hands them on.

    Rows are numbered and queued under a lock and waited for outside it, so threads of one run
    share commits too. Once a write was fenced or failed, every later one is refused.
    """

    def __init__(
        self, committer: Committer, seals: RunSeals, run: Run, ledger: RunSeals | None = None
    ) -> None:
        self.committer, self._seals = committer, seals
        self._marks = ledger or seals  # Of the run in whose ledger this one's effects are.
        self.run, self._ledger = run, run.ledger
        self.base = -1
        self.bytes_aside = 0  # of large values that the rows since the newest base name
        self.life = -1
        self._id = -1
        self._mac = b""
        self._loose_from, self._loose_bytes = -1, 0
        self._lock = threading.Lock()
        self._fault: Exception | None = None

    def stand_at(self, base: int, id_: int, mac: bytes, tail: tuple[int, int] = (-1, 0)) -> None:
        """Say which row is the newest, which holds the newest base, what is not packed yet."""
        self.base, self._id, self._mac = base, id_, mac
        self._loose_from, self._loose_bytes = tail

    def raise_epoch(self, raised: RunRow, body: RunBody, entries: list[Entry]) -> None:
        """Take the run over: its new epoch and the entries that say so, in one commit."""
        row = make_row(self._seals, self._id + 1, self._mac, Row(self.base, -1, entries))
        epoch = self.run.row.epoch
        self.finish(self.committer.submit(Append(no=raised.no, epoch=epoch, row=row, run=raised)))
        self.run = Run(row=raised, body=body)
        self.life = row.id
        self._id, self._mac = row.id, row.mac
        self._loose_from = self._loose_from if self._loose_from >= 0 else row.id

    def submit(
        self,
        entries: list[Entry],
        *,
        turn: int = -1,
        body: RunBody | None = None,
        intents: Sequence[bytes] = (),
    ) -> tuple[JournalRow, Ticket]:
        """Queue a row of `entries`; returns it and the ticket to wait for.

        `body` replaces what the catalog says of the run in the same commit.
        """
        with self._lock:
            if self._fault is not None:
                raise self._fault
            id_, base = self._id + 1, self.base
            for entry in entries:
                if type(entry) is Based:
                    base = id_
            row = make_row(self._seals, id_, self._mac, Row(base, turn, entries))
            self.base = base
            objects = claims(self.committer, entries)
            if base == id_:  # It names them too: they are what is left if all before goes.
                self.bytes_aside = 0
            elif objects:
                self.bytes_aside += sum(map(len, objects.values()))
            write = Append(
                no=self.run.row.no,
                epoch=self.run.row.epoch,
                row=row,
                run=None if body is None else self._changed(body),
                intents=[self._marks.mark(intent) for intent in intents] if intents else (),
                ledger=self._ledger,
                pack_from=self._pack_from(row, is_end=body is not None),
                objects=objects,
                is_sole=True,
            )
            self._id, self._mac = id_, row.mac
            return row, self.committer.submit(write)

    def _pack_from(self, row: JournalRow, *, is_end: bool) -> int:
        """Where a pack that ends with `row` begins; -1 as long as none is due."""
        if self._loose_from < 0:
            self._loose_from = row.id
        self._loose_bytes += len(row.body)
        if self._loose_bytes < (PACK_BYTES_MIN if is_end else PACK_BYTES):
            return -1
        is_short = row.id - self._loose_from + 1 < PACK_ROWS
        if is_short and not is_end and self._loose_bytes < PACK_BYTES_MAX:
            return -1
        first, self._loose_from, self._loose_bytes = self._loose_from, -1, 0
        return first

    def _changed(self, body: RunBody) -> RunRow:
        row = make_run(self._seals, self.run.row, body)
        self.run = Run(row=row, body=body)
        return row

    def finish(self, ticket: Ticket) -> None:
        """Wait until a queued row is durable."""
        try:
            done = self.committer.finish(ticket)
        except Exception as error:
            self._fault = error
            raise
        if done < 0:
            self._refuse()

    async def afinish(self, ticket: Ticket) -> None:
        """Wait until a queued row is durable while the event loop goes on."""
        try:
            done = await self.committer.afinish(ticket)
        except Exception as error:
            self._fault = error
            raise
        if done < 0:
            self._refuse()

    def _refuse(self) -> NoReturn:
        # A row behind one that failed is refused too; what failed first says why.
        self._fault = self._fault or Fenced(self.run.body.id, self.run.row.epoch)
        raise self._fault

    def grow(
        self,
        at: Placed,
        entries: list[Entry],
        intents: Sequence[bytes],
        *,
        taken: RunBody | None = None,
    ) -> None:
        """Branch off after row `at`, or in it where it was cut, and make that the run's head.

        With `taken` the run is taken over in the same commit, and the catalog says that of it.
        """
        if self._fault is not None:
            raise self._fault
        run, seals = self.run, self._seals
        has_base = any(type(entry) is Based for entry in entries)
        made: list[tuple[RunRow, JournalRow]] = []

        def build(no: int) -> tuple[BranchRow, RunRow, JournalRow]:
            branch = make_branch(seals, no, run.row.no, at)
            id_ = row_id(no, seq_of(at.id) + 1)
            base = id_ if has_base else at.row.base
            row = make_row(seals, id_, branch.mac, Row(base, -1, entries))
            raised = replace(run.row, head=no, epoch=run.row.epoch + (taken is not None))
            changed = make_run(seals, raised, taken or run.body)
            made.append((changed, row))
            return branch, changed, row

        failpoint.reach("run.branching")
        marks = [self._marks.mark(intent) for intent in intents]
        self.finish(
            self.committer.submit(
                Grow(
                    no=run.row.no,
                    epoch=run.row.epoch,
                    build=build,
                    intents=marks,
                    objects=claims(self.committer, entries),
                    ledger=run.ledger,
                )
            )
        )
        failpoint.reach("run.branched")
        changed, row = made[-1]  # A commit that was interrupted is built and done again.
        self.run = Run(row=changed, body=taken or run.body)
        self.life = row.id if taken is not None else self.life
        base = row.id if has_base else at.row.base
        self.stand_at(base, row.id, row.mac, (row.id, len(row.body)))


def claims(committer: Committer, entries: Sequence[Entry]) -> dict[bytes, bytes]:
    """The large values that these entries name and that were kept just now."""
    chunks = committer.chunks
    if chunks is None or not chunks.unclaimed:
        return {}
    named = [each for entry in entries for each in references_of(entry, chunks.recall)]
    return chunks.claim(named)


def create(committer: Committer, seals: Seals, body: RunBody, entry: Entry) -> RunWriter | None:
    """Make a run whose row 0 is `entry`; None when the id is taken already."""
    kid = seals.kid(body.id)
    ledger = body.origin.ledger if body.origin is not None else 0
    index = seals.of(ledger) if ledger else None
    marks = [] if index is None else [index.mark(mark) for mark in marks_of(entry)]
    made: list[tuple[RunSeals, RunRow, JournalRow]] = []

    def build(no: int, branch_no: int) -> tuple[RunRow, BranchRow, JournalRow]:
        mine = seals.new(no)
        bare = BranchRow(no=branch_no, run=no, parent=0, at=0, mac=b"", body=b"")
        branch = mine.branch(bare, b"")
        row = make_row(mine, row_id(branch_no, 0), branch.mac, Row(-1, -1, [entry]))
        fresh = RunRow(no=no, kid=kid, epoch=1, head=branch_no, mac=b"", body=b"")
        run = make_run(mine, fresh, body)
        made.append((mine, run, row))
        return run, branch, row

    failpoint.reach("run.creating")
    objects = claims(committer, [entry])
    write = Create(kid=kid, build=build, intents=marks, ledger=ledger, objects=objects)
    if committer.finish(committer.submit(write)) < 0:
        return None
    failpoint.reach("run.created")
    mine, run, row = made[-1]
    writer = RunWriter(committer, mine, Run(row=replace(run, key=b""), body=body), index)
    writer.stand_at(-1, row.id, row.mac, (row.id, len(row.body)))
    writer.life = row.id
    return writer


def fork(
    committer: Committer,
    seals: Seals,
    body: RunBody,
    at: Placed,
    entries: list[Entry],
    *,
    notes: Mapping[str, bytes | None],
) -> bool:
    """Make a run that grows from row `at` of another and begins with `entries`.

    They are indexed in the ledger that it shares. False when the id is taken already, what it
    grows from is gone, or a note of `notes` is another by now.
    """
    kid = seals.kid(body.id)
    ledger = body.origin.ledger if body.origin is not None else 0
    marks: list[bytes] = []

    def build(no: int, branch_no: int) -> tuple[RunRow, BranchRow, JournalRow]:
        mine = seals.new(no)
        branch = make_branch(mine, branch_no, no, at)
        id_ = row_id(branch_no, seq_of(at.id) + 1)
        row = make_row(mine, id_, branch.mac, Row(at.row.base, -1, entries))
        fresh = RunRow(no=no, kid=kid, epoch=1, head=branch_no, mac=b"", body=b"")
        index = seals.of(ledger) if ledger else mine
        marks[:] = [index.mark(mark) for entry in entries for mark in marks_of(entry)]
        return make_run(mine, fresh, body), branch, row

    failpoint.reach("run.forking")
    objects = claims(committer, entries)
    write = Create(kid=kid, build=build, intents=marks, ledger=ledger, objects=objects, notes=notes)
    done = committer.finish(committer.submit(write))
    failpoint.reach("run.forked")
    return done >= 0


def take_up(
    committer: Committer,
    seals: Seals,
    history: History,
    tail: tuple[int, int],
    *,
    body: RunBody,
    entry: Entry,
    more: Sequence[Entry] = (),
) -> RunWriter:
    """Go on with a run under the next epoch: whoever wrote it before is fenced from now on.

    `tail` is what `Records.tail` says of the run's head; `more` follows the entry that says so.
    """
    old = history.run
    mine = seals.of(old.row.no)
    writer = RunWriter(committer, mine, old, seals.of(old.ledger))
    last = history.last
    writer.stand_at(last.row.base, last.id, last.mac, tail)
    failpoint.reach("run.taking")
    raised = make_run(mine, replace(old.row, epoch=old.row.epoch + 1), body)
    writer.raise_epoch(raised, body, [entry, *more])
    failpoint.reach("run.taken")
    return writer


def make_run(seals: RunSeals, row: RunRow, body: RunBody) -> RunRow:
    """The catalog row that says `body`, bound to its place."""
    return seals.run(row, packed(body))


def make_branch(seals: RunSeals, no: int, run: int, at: Placed) -> BranchRow:
    """A branch of a run that grows from `at`, of which it may keep the first entries only."""
    bare = BranchRow(no=no, run=run, parent=branch_of(at.id), at=at.id, mac=b"", body=b"")
    kept = None if at.is_whole else len(at.row.entries)
    return seals.branch(bare, at.mac, branch_payload(kept))


def branch_payload(kept: int | None) -> bytes:
    """What a branch says of the row it grew from: how many entries it keeps of it, or all."""
    return b"" if kept is None else _encode(kept)


def make_row(seals: RunSeals, id_: int, before: bytes, row: Row) -> JournalRow:
    """The journal row that follows the row with hash `before`."""
    is_clean = _CLEAN.issuperset(map(type, row.entries))
    return seals.row(id_, before, whole(row) if is_clean else packed(row))
