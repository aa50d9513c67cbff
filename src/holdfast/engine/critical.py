"""A critical section: saved before, and what it did taken back if it is left by an error.

The effects of the section are undone or offset, newest first, by the machinery of rollbacks; what
cannot be is listed. The state is put back to what it was before. That the section was aborted is
recorded first, so a process that dies in the middle goes on taking back, and nothing twice.
A cancellation that leaves it is an abort where the code goes on (`halves`). The next life is led
through what is recorded of the block then, until the cancellation comes again.
"""

from collections.abc import Iterable
from contextvars import Token
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.capture.digest import digest
from holdfast.capture.refill import refill
from holdfast.engine import context
from holdfast.engine.call import not_cut
from holdfast.engine.depend import Lost, arranged
from holdfast.engine.faults import is_cut, to_error, to_exception
from holdfast.engine.line import present
from holdfast.engine.losses import held_elsewhere, way
from holdfast.engine.outcomes import Entered, Fates
from holdfast.engine.owed import is_uncancelled
from holdfast.engine.question import DIGEST_BYTES, Question
from holdfast.engine.reading import Record
from holdfast.engine.restore import held_at, rows_at
from holdfast.engine.save import asked, keep
from holdfast.engine.session import Session
from holdfast.engine.takeback import TakeBack
from holdfast.errors import Damaged, RunStopped, StoreError, UsageError
from holdfast.model.branches import Undoing
from holdfast.model.ids import point_id
from holdfast.model.journal import (
    Aborted,
    Asked,
    Call,
    Declined,
    Entry,
    Happened,
    Intended,
    Resumed,
    Saved,
    Undone,
)
from holdfast.model.rollback import Taken
from holdfast.store.codec.veil import redact

NAME_CHARS_MAX = 100


class Critical:
    """`with run.critical("move"):`; after an abort `effects` says what became of each effect."""

    def __init__(
        self, session: Session, name: str | None, raises: Iterable[type[BaseException]] = ()
    ) -> None:
        if name is not None and (type(name) is not str or not 0 < len(name) <= NAME_CHARS_MAX):
            msg = f"a critical section's name is a text of at most {NAME_CHARS_MAX} characters"
            raise UsageError(msg)
        self._session, self.name = session, redact(name or "critical section")
        self._raises = tuple(raises)
        self.owner = present()
        self._taken: list[Taken] = []
        self._call: Call | None = None
        self._before: Record | None = None
        self._cut: Aborted | None = None
        self._left_by: BaseException | None = None
        self._keys: list[str] = []
        self._token: Token[context.Section | None] | None = None

    @property
    def effects(self) -> list[Taken]:
        """What became of each effect of the section that was aborted."""
        if self in self._session.halves and is_uncancelled():
            self._session.halves.remove(self)
            self.abort()
        return self._taken

    def __enter__(self) -> Self:
        if context.critical.get() is not None:
            msg = "a critical section does not stand inside another one"
            raise UsageError(msg)
        session = self._session
        mark = digest(self.name)[:DIGEST_BYTES]
        given = [Asked("name", repr(self.name), mark[:4])]
        self._call, record = asked(
            session, context.frame.get(), Question("run.critical", mark, given, {})
        )
        if record is None:
            record = self._save()
        elif isinstance(record.entry, Aborted) and not is_cut(record.entry.error):
            raise self._abort_again(record, record.entry)
        else:
            session.replay(record)
        self._before, self.owner = record, present()
        self._token = context.critical.set(self._section(record))
        return self

    def _section(self, record: Record) -> context.Section:
        """What the block's own calls know of it; of one that was cut off, for how long it ran."""
        if not isinstance(record.entry, Aborted):
            return context.Section(keys=self._keys)
        self._cut, self._keys[:] = record.entry, record.entry.keys
        if not self._session.is_side():
            self._session.book.until = record.row, record.index
        history, began = self._session.history, record.entry.at
        assert history is not None
        for placed in [*history.outside, *history.rows]:
            for index, entry in enumerate(placed.row.entries):
                at = placed.id, index
                if record.since <= at < (record.row, record.index):
                    began = entry.at if isinstance(entry, Resumed | Saved) else began
        return context.Section(keys=self._keys, cut_s=max(0.0, record.entry.at - began))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None
        context.critical.reset(self._token)
        if self._cut is not None and not self._session.is_side():
            self._session.book.until = None
        # What stops the run is no decision of the agent's: it goes on inside.
        session = self._session
        if isinstance(error, RunStopped | StoreError) or session.stopped is not None:
            return
        if error is not None and not isinstance(error, Exception):
            self._leave_half(error)
        elif self._cut is not None:
            assert self._call is not None
            raise session.stop(not_cut(session, self._call.scope, self.name))
        elif error is not None:
            self._abort(error)
            error.add_note(self._told())

    def _leave_half(self, error: BaseException) -> None:
        """The process ends, or the code goes on: which of both is not known yet."""
        if not self._session.is_over:
            self._put_back()
            self._left_by = error
            self._session.halves.append(self)

    def abort(self) -> None:
        """The code goes on after a cancellation: take back what was done, newest first."""
        assert self._before is not None
        assert self._left_by is not None
        if self._cut is None:
            self._decide(self._left_by)
        else:
            before = self._before
            self._session.book.pass_over(
                before.call.scope, before.since, (before.row, before.index)
            )
        self._take_back()

    def _save(self) -> Record:
        session = self._session
        assert self._call is not None
        row, index, ticket = keep(session, self._call, self.name)
        failpoint.reach("critical.saving")
        session.writer.finish(ticket)
        failpoint.reach("critical.saved")
        entry = session.reader.row(row).row.entries[index]
        assert isinstance(entry, Saved)
        return Record(self._call, entry, row, index)

    def _abort(self, error: Exception) -> None:
        """Decide it, durably; then put the state back and take the effects back."""
        self._decide(error)
        self._put_back()
        self._take_back()

    def _decide(self, error: BaseException) -> None:
        session = self._session
        assert self._call is not None
        now = session.clock.now()
        entry = Aborted(self._call, self.name, to_error(error, self._raises), list(self._keys), now)
        _, _, ticket = session.record(entry)
        failpoint.reach("critical.aborting")
        session.writer.finish(ticket)
        failpoint.reach("critical.aborted")

    def _put_back(self) -> None:
        """Put the state back to what it was when the section began."""
        session, reader = self._session, self._session.reader
        assert self._before is not None
        at = self._before.row, self._before.index
        if isinstance(self._before.entry, Aborted):
            at = self._before.since
        rows = rows_at(reader, at) if at[0] >= 0 else []
        if not rows or not isinstance(rows[-1].row.entries[at[1]], Saved):
            # Only a repair leaves something else there.
            place = point_id(session.id, (self._before.row, self._before.index))
            raise Damaged(f"checkpoint {place}", "what a critical section began with is lost")
        before = held_at(reader, rows, at)[0]
        with session.state.lock:
            refill(session.state.root, before)
        session.sections.restore({}, session.turn)

    def _abort_again(self, record: Record, entry: Aborted) -> Exception:
        """An earlier life aborted the section: finish that, and raise what it raised."""
        session = self._session
        session.book.pass_over(record.call.scope, record.since, (record.row, record.index))
        session.book.received(record.call.scope)
        self._keys[:] = entry.keys
        self._take_back()
        error = to_exception(entry.error, self._raises)
        error.add_note(self._told())
        return error

    def _take_back(self) -> None:
        """Take back what is left of the section, in the order of a rollback."""
        session = self._session
        meant, said = self._known()
        taker = TakeBack(session.reader, session.clock, session.writer)
        fates = Fates(session.reader, session.writer.run.ledger)
        found: list[Lost] = []
        for key in reversed(self._keys):
            place = meant.get(key)
            if place is None:
                continue  # It was stopped before it was meant.
            entry, row, index, outcome = place
            if not isinstance(outcome, Declined):
                fate = fates.of(Entered(meant=entry, at=(row, index)))
                kept = held_elsewhere(fate if isinstance(fate, Happened) else None)
                taken = way(entry, outcome, kept=kept)
                found.append(Lost(meant=entry, at=(row, index), taken=taken))
        ended = {key: entry for key, entry in said.items() if isinstance(entry, Undone)}
        for lost in arranged(session.reader, found):
            key, taken = lost.taken.key, lost.taken
            if taken.how == "kept":
                self._taken.append(taken)
                continue
            if key not in ended:
                ended[key] = taker.carry_out(lost.take, was_cut=key in said, over=ended)
            error = ended[key].error
            why = taken.why if error is None else error.message
            self._taken.append(replace(taken, how=ended[key].how, why=why))

    def _known(
        self,
    ) -> tuple[
        dict[str, tuple[Intended, int, int, Happened | Declined | None]],
        dict[str, Undoing | Undone],
    ]:
        """Where the journal holds the effects of the section, their outcomes, and their undoing."""
        session = self._session
        session.flush()
        meant: dict[str, tuple[Intended, int, int, Happened | Declined | None]] = {}
        said: dict[str, Undoing | Undone] = {}
        history = session.reader.history(session.writer.run)
        for placed in [*history.outside, *history.rows]:
            for index, entry in enumerate(placed.row.entries):
                _take_in(entry, placed.id, index, meant, said)
        return meant, said

    def _told(self) -> str:
        counted: dict[str, int] = {}
        for each in self._taken:
            counted[each.how] = counted.get(each.how, 0) + 1
        effects = ", ".join(f"{count} {how}" for how, count in counted.items()) or "none"
        return f"{self.name} was aborted; its effects: {effects}"


def _take_in(
    entry: Entry,
    row: int,
    index: int,
    meant: dict[str, tuple[Intended, int, int, Happened | Declined | None]],
    said: dict[str, Undoing | Undone],
) -> None:
    match entry:
        case Intended():
            meant[entry.key] = entry, row, index, None
        case Happened() | Declined() if entry.key in meant:
            meant[entry.key] = *meant[entry.key][:3], entry
        case Undoing() | Undone():
            said[entry.key] = entry
        case _:
            pass
