"""What an effect means to do, apart from where it stands: intent, scope, idempotency key."""

import hashlib

import msgspec

from holdfast.capture.digest import digest
from holdfast.engine.question import DIGEST_BYTES, Question
from holdfast.engine.session import Session
from holdfast.model.journal import Call, Intended


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What makes an effect the one it is.

    `about` is its scope: tool and the arguments named in `key=`; `nth` counts equal intents on
    the branch, so that two equal reminders sent on purpose are two effects.
    """

    intent: bytes
    about: bytes
    nth: int
    key: str


def aim(session: Session, key: tuple[str, ...], question: Question) -> Aim:
    """The aim of a new effect: the next one with this intent on the run's branch."""
    intent = intent_of(question)
    about = hashlib.sha256(question.name.encode())
    for name in key:
        about.update(name.encode() + b"=" + digest(question.bound[name], path=name))
    nth = session.next_nth(intent, lambda: _known(session, intent))
    lineage = session.reader.store_id + session.id.encode("utf-8", "surrogatepass")
    whole = hashlib.sha256(b"effect" + lineage + intent + nth.to_bytes(8, "big"))
    return Aim(
        intent=intent,
        about=about.digest()[:DIGEST_BYTES],
        nth=nth,
        key=whole.hexdigest()[: 2 * DIGEST_BYTES],
    )


def _known(session: Session, intent: bytes) -> int:
    """How often the run's line of history means this already: one more than its newest says."""
    row = session.writer.run.row
    rows = session.reader.intended_rows(row.no, intent, row.head)
    if not rows:
        return 0
    # A turn that is run anew has its effects in one row, equal ones too.
    entries = session.reader.row(rows[-1]).row.entries
    same = [e.nth for e in entries if isinstance(e, Intended) and intent_of(e.call) == intent]
    return 1 + max(same)


def intent_of(question: Question | Call) -> bytes:
    """Tool and canonical arguments, without those named in `ignore=`."""
    return hashlib.sha256(question.name.encode() + b"\0" + question.digest).digest()[:DIGEST_BYTES]
