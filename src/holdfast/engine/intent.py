"""What an effect means to do, apart from where it stands: intent, scope, idempotency key."""

import hashlib

import msgspec

from holdfast.capture.digest import digest
from holdfast.engine.question import DIGEST_BYTES, Question
from holdfast.engine.session import Session


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
    nth = session.next_nth(intent)
    lineage = session.reader.store_id + session.id.encode("utf-8", "surrogatepass")
    whole = hashlib.sha256(b"effect" + lineage + intent + nth.to_bytes(8, "big"))
    return Aim(
        intent=intent,
        about=about.digest()[:DIGEST_BYTES],
        nth=nth,
        key=whole.hexdigest()[: 2 * DIGEST_BYTES],
    )


def intent_of(question: Question) -> bytes:
    """Tool and canonical arguments, without those named in `ignore=`."""
    return hashlib.sha256(question.name.encode() + b"\0" + question.digest).digest()[:DIGEST_BYTES]
