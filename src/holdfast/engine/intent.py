"""What an effect means to do, apart from where it stands: intent, scope, idempotency key."""

import hashlib

import msgspec

from holdfast.capture.digest import digest
from holdfast.engine.question import DIGEST_BYTES, Question
from holdfast.model.journal import Call
from holdfast.store.marks import intent_mark


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """What an effect means to do.

    `intent` is the tool with its arguments, `about` its scope: the tool and those arguments that
    are named in `key=`; `old` is the intent as it was once recorded, without the tool's module.
    """

    module: str
    intent: bytes
    about: bytes
    old: bytes


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What makes an effect the one it is.

    `nth` counts equal intents, so that two equal reminders sent on purpose are two effects.
    """

    meaning: Meaning
    nth: int
    key: str


def meaning(module: str, key: tuple[str, ...], question: Question) -> Meaning:
    """What a call of a tool means, whatever its place in the run."""
    tool = f"{module}:{question.name}"
    about = hashlib.sha256(tool.encode())
    for name in key:
        about.update(name.encode() + b"=" + digest(question.bound[name], path=name))
    call = Call(0, question.name, question.digest, 0, 0, False, [])  # noqa: FBT003 as it is stored
    return Meaning(
        module=module,
        intent=intent_mark(call, module),
        about=about.digest()[:DIGEST_BYTES],
        old=intent_mark(call, ""),
    )


def idempotency_key(lineage: bytes, intent: bytes, nth: int) -> str:
    """The key of the n-th effect with an intent; `lineage` is store and root run."""
    whole = hashlib.sha256(b"effect" + lineage + intent + nth.to_bytes(8, "big"))
    return whole.hexdigest()[: 2 * DIGEST_BYTES]
