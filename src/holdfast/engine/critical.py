"""A critical section: saved before, and what it did taken back if it is left by an error.

The effects of the section are undone or offset, newest first, by the machinery of rollbacks; what
cannot be is listed. The state is put back to what it was before. That the section was aborted is
recorded first, so a process that dies in the middle goes on taking back, and nothing twice.
"""

from collections.abc import Iterable
from contextvars import Token
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.capture.digest import digest
from holdfast.capture.refill import refill
from holdfast.engine import context
from holdfast.engine.depend import Lost, arranged
from holdfast.engine.faults import to_error, to_exception
from holdfast.engine.losses import held_elsewhere, way
from holdfast.engine.outcomes import Entered, Fates
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
        self.effects: list[Taken] = []
        self._call: Call | None = None
        self._before: Record | None = None
        self._keys: list[str] = []
        self._token: Token[list[str] | None] | None = None

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
        elif isinstance(record.entry, Aborted):
            raise self._abort_again(record, record.entry)
        else:
            session.replay(record)
        self._before = record
        self._token = context.critical.set(self._keys)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None
        context.critical.reset(self._token)
        # What stops the run, or the process, is no decision of the agent's: it goes on inside.
        is_stop = isinstance(error, RunStopped | StoreError) or self._session.stopped is not None
        if isinstance(error, Exception) and not is_stop:
            self._abort(error)
            error.add_note(self._told())

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
        session = self._session
        assert self._call is not None
        now = session.clock.now()
        entry = Aborted(self._call, self.name, to_error(error, self._raises), list(self._keys), now)
        _, _, ticket = session.record(entry)
        failpoint.reach("critical.aborting")
        session.writer.finish(ticket)
        failpoint.reach("critical.aborted")
        before = self._state_before()
        with session.state.lock:
            refill(session.state.root, before)
        session.sections.restore({}, session.turn)
        self._take_back()

    def _state_before(self) -> dict[Any, Any]:
        """The state as it was when the section began."""
        assert self._before is not None
        at = self._before.row, self._before.index
        if not isinstance(self._before.entry, Saved):  # Only a repair leaves something else there.
            place = point_id(self._session.id, at)
            raise Damaged(f"checkpoint {place}", "what a critical section began with is lost")
        reader = self._session.reader
        return held_at(reader, rows_at(reader, at), at)[0]

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
                self.effects.append(taken)
                continue
            if key not in ended:
                ended[key] = taker.carry_out(lost.take, was_cut=key in said, over=ended)
            error = ended[key].error
            why = taken.why if error is None else error.message
            self.effects.append(replace(taken, how=ended[key].how, why=why))

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
        for each in self.effects:
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
