"""A question to a person: journaled, then the run ends; a later life finds the answer.

The question stands in the run's journal, what people say of it in the ledger, which no rollback
reaches. A question is known by where it is asked on which branch: after a rollback or in a fork it
is another one, so no approval comes back to life.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.capture.digest import digest
from holdfast.engine.brief import brief
from holdfast.engine.faults import to_exception
from holdfast.engine.here import own
from holdfast.engine.item import QUESTION
from holdfast.engine.question import DIGEST_BYTES, Question
from holdfast.engine.reading import Record, key_of
from holdfast.engine.session import Frame, Session
from holdfast.errors import Expired, UsageError, Waiting
from holdfast.model.ids import branch_of
from holdfast.model.journal import Answered, Asked, Call, Failed, Questioned
from holdfast.model.ledger import Said
from holdfast.model.limits import seconds
from holdfast.model.run import Status
from holdfast.policy.standing import Standing
from holdfast.store.codec import values
from holdfast.store.codec.veil import redact
from holdfast.store.ledger import Ledger
from holdfast.store.open import Opened
from holdfast.store.reader import History
from holdfast.store.reader import Run as StoredRun

TEXT_CHARS_MAX = 10_000
OPTIONS_MAX = 100
ID_CHARS = 16
NOTHING: Final = object()
"""No default was given; None is one."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a person; `question` is how the journal knows it."""

    kind: str
    text: str
    question: Question
    options: list[str] = msgspec.field(default_factory=list)
    within_s: float | None = None
    default: bytes | None = None
    args: bytes | None = None


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a question; `is_new` says that the journal does not hold it yet."""

    answered: Answered
    is_new: bool


def ask_person(session: Session, frame: Frame | None, wanted: Wanted) -> object:
    """The answer to a question; `Waiting` until there is one, `Expired` when its time ran out."""
    heard = ask(own(session, frame, "run.ask"), wanted)
    answered = heard.answered
    if heard.is_new:
        session.pend(answered)
    if answered.value is None:
        raise Expired(session.id, answered.id, wanted.text)
    return session.reader.value(answered.value)


def question(
    text: str, options: Sequence[str] | None, expires: float | str | None, default: object
) -> Wanted:
    """What `run.ask` was given, checked."""
    if type(text) is not str or not text.strip() or len(text) > TEXT_CHARS_MAX:
        msg = f"run.ask takes a question, a text of at most {TEXT_CHARS_MAX:,} characters"
        raise UsageError(msg)
    chosen = [] if options is None else list(options)
    is_sound = not isinstance(options, str) and all(type(each) is str and each for each in chosen)
    if not is_sound or len(set(chosen)) != len(chosen) or len(chosen) > OPTIONS_MAX:
        msg = f"options= of run.ask takes up to {OPTIONS_MAX} different texts, not {options!r}"
        raise UsageError(msg)
    if any(redact(each) != each for each in chosen):
        msg = "an option of run.ask holds a secret, and people would read it"
        raise UsageError(msg)
    if default is not NOTHING and expires is None:
        msg = "default= of run.ask is the answer when the time runs out; say when with expires="
        raise UsageError(msg)
    try:
        within_s = None if expires is None else seconds(expires)
    except ValueError as error:
        raise UsageError(f"expires= of run.ask: {error}") from None
    given = {"question": text, "options": chosen}
    marks = {name: digest(value) for name, value in given.items()}
    asked = [Asked(name, redact(brief(value)), marks[name][:4]) for name, value in given.items()]
    whole = hashlib.sha256(b"".join(marks.values())).digest()[:DIGEST_BYTES]
    return Wanted(
        kind=QUESTION,
        text=redact(text),
        question=Question("run.ask", whole, asked, given),
        options=chosen,
        within_s=within_s,
        default=None if default is NOTHING else values.encode(default, path="default of run.ask"),
    )


def ask(here: Frame, wanted: Wanted) -> Heard:
    """What came of a question, recorded or new; `Waiting` ends the run until a person has spoken.

    An approval counts on the branch it was given for; an answer is part of the history.
    """
    session = here.session
    call, record = session.ask(wanted.question, here)
    if record is not None and isinstance(record.entry, Answered):
        if wanted.kind == QUESTION or _is_here(session, record):
            session.book.received(call.scope)
            return Heard(answered=record.entry, is_new=False)
    elif record is not None and isinstance(record.entry, Questioned) and _is_here(session, record):
        return _hear(session, record.entry)
    asked = _question(session, call, wanted)
    session.pend(asked)
    return _hear(session, asked)


def _is_here(session: Session, record: Record) -> bool:
    return branch_of(record.row) == session.writer.run.row.head


def _question(session: Session, call: Call, wanted: Wanted) -> Questioned:
    now = session.clock.now()
    keep = session.reader.chunks.keep
    where = repr((session.writer.run.row.head, key_of(call))).encode()
    lineage = session.reader.store_id + session.id.encode("utf-8", "surrogatepass")
    return Questioned(
        call=call,
        id=hashlib.sha256(b"ask" + lineage + where).hexdigest()[:ID_CHARS],
        kind=wanted.kind,
        text=wanted.text,
        options=wanted.options,
        at=now,
        expires=None if wanted.within_s is None else now + wanted.within_s,
        default=None if wanted.default is None else keep(wanted.default),
        args=None if wanted.args is None else keep(wanted.args),
    )


def _hear(session: Session, asked: Questioned) -> Heard:
    """What the ledger holds of a question; past its time, that nobody answered."""
    now, ledger = session.clock.now(), ledger_of(session)
    key = question_key(session.reader.store_id, session.id, asked.id)
    said = ledger.read().words.get(key)
    if said is None:
        if not is_expired(asked, now):
            raise session.stop(Waiting(session.id, asked.id, asked.kind, asked.text))
        said = _run_out(ledger, session.id, asked, key, now)
    session.book.received(asked.call.scope)
    return Heard(answered=_answered(asked, said, now), is_new=True)


def _run_out(ledger: Ledger, run: str, asked: Questioned, key: bytes, now: float) -> Said:
    """Record that the time ran out, unless somebody has spoken: from then on nobody can."""
    about = About(run=run, id=asked.id, kind=asked.kind, text=asked.text, asked=asked.at)

    def make(standing: Standing) -> Said | None:
        return None if key in standing.words else word(about, key, "expired", at=now)

    return ledger.add(now, make).words[key]


def _answered(asked: Questioned, said: Said, now: float) -> Answered:
    how, value = said.word, said.value
    if how == "approved" and is_expired(asked, now):
        how = "expired"  # Given in time, and not used in time.
    if how == "expired" and asked.default is not None:
        how, value = "default", asked.default
    return Answered(asked.call, asked.id, how, value, said.by, said.note, said.at)


def ledger_of(session: Session) -> Ledger:
    """The ledger of the session's lineage, read once in its life."""
    if session.ledger is None:
        session.ledger = Ledger(session.writer.committer, session.reader, session.writer.run)
    return session.ledger


def question_key(store_id: bytes, run: str, id_: str) -> bytes:
    """What binds a word to one question of one run of one store."""
    name = run.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"question" + store_id + name + b"\0" + id_.encode()).digest()[:16]


def is_expired(asked: Questioned, now: float) -> bool:
    """Whether the time of a question has run out."""
    return asked.expires is not None and now >= asked.expires


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a word is about, as the ledger tells it to people."""

    run: str
    id: str
    kind: str
    text: str
    asked: float


def word(
    about: About,
    key: bytes,
    what: str,
    *,
    at: float,
    value: bytes | None = None,
    by: str | None = None,
    note: str | None = None,
) -> Said:
    """The ledger's entry on something that waits."""
    return Said(
        key=key,
        id=about.id,
        run=about.run,
        kind=about.kind,
        text=about.text,
        asked=about.asked,
        word=what,
        value=value,
        by=by,
        note=note,
        at=at,
        nonce=secrets.token_bytes(8),  # Two people who say the same at once are still two.
    )


def open_questions(history: History) -> list[Questioned]:
    """The questions of a run whose answer has not reached it."""
    found: dict[str, Questioned] = {}
    for placed in [*history.outside, *history.rows]:
        if branch_of(placed.id) == history.run.row.head:
            for entry in placed.row.entries:
                if isinstance(entry, Questioned):
                    found[entry.id] = entry
                elif isinstance(entry, Answered):
                    found.pop(entry.id, None)
    return list(found.values())


def still_waiting(opened: Opened, run: StoredRun, now: float) -> Waiting | None:
    """What a waiting run waits for; None once it can go on."""
    words = Ledger(opened.committer, opened.reader, run).read().words
    id_ = run.body.id
    for asked in open_questions(opened.reader.history(run)):
        is_answered = question_key(opened.reader.store_id, id_, asked.id) in words
        if not is_answered and not is_expired(asked, now):
            return Waiting(id_, asked.id, asked.kind, asked.text)
    child = _waited_for(opened, run)
    return None if child is None else still_waiting(opened, child, now)


def _waited_for(opened: Opened, run: StoredRun) -> StoredRun | None:
    """The child whose question stopped the run too, as long as that child waits."""
    reader = opened.reader
    last = reader.row(reader.end(run.row.head)).row.entries[-1]
    error = to_exception(last.error) if isinstance(last, Failed) else None
    if not isinstance(error, Waiting) or error.run == run.body.id:
        return None
    child = reader.find(error.run)
    return child if child is not None and child.body.status is Status.WAITING else None
