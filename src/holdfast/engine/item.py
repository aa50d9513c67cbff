"""One thing that waits for a person, what may be said of it, and by whom."""

import datetime as dt
import os
import pwd

import msgspec

from holdfast.errors import UsageError
from holdfast.store.codec.veil import redact

QUESTION = "question"
APPROVAL = "approval"
DOUBT = "doubt"
BLOCK = "block"
ESCALATION = "escalation"
UNDO = "undo"

HAPPENED = "happened"
NOT_DONE = "not done"
ALLOW = "allow"
DISMISS = "dismiss"
RETRY, BY_HAND, STANDS = "retry", "undone", "stands"
NAME_CHARS_MAX = 200


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that waits for a person, or waited.

    `kind` is question, approval, doubt (an effect that may have happened), block (one that the
    fence stopped), undo (one that a rollback could not take back) or escalation (a run that
    nothing may recover by itself); `state` is open, answered, approved, rejected or expired;
    `arguments` are those of the effect that is to be approved or is in doubt. Times are seconds
    since 1970.
    """

    id: str
    kind: str
    run: str
    text: str
    state: str = "open"
    options: list[str] = msgspec.field(default_factory=list)
    arguments: dict[str, object] | None = None
    default: object = None
    since: float
    expires: float | None = None
    answer: object = None
    by: str | None = None
    note: str | None = None
    at: float | None = None


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of an item: answered (with a value), approved or rejected."""

    what: str
    value: object = None
    by: str | None = None
    note: str | None = None


def check(item: Item, said: Word, outcome: object = None) -> None:
    """`UsageError` where a word does not fit what it is said of."""
    if (item.kind == APPROVAL) != (said.what != "answered"):
        how = "approve or reject it" if item.kind == APPROVAL else f"answer {_known(item)}"
        raise UsageError(f"{item.id} is {_a(item.kind)}: {how}")
    if item.options and said.value not in item.options:
        value = redact(repr(said.value))
        raise UsageError(f"{value} is not an answer to {item.id}; it takes {_known(item)}")
    if outcome is not None and (item.kind != DOUBT or said.value != HAPPENED):
        raise UsageError(f"only an effect that {HAPPENED} has an outcome")


def _known(item: Item) -> str:
    return " or ".join(map(repr, item.options)) or "it"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ae" else f"a {kind}"


def name_of(by: str | None) -> str:
    """Who says it: as given, else the user of the operating system."""
    if by is None:
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return f"uid {os.getuid()}"
    if not by.strip() or len(by) > NAME_CHARS_MAX or not by.isprintable():
        msg = f"a name is printable text of at most {NAME_CHARS_MAX} characters, not {by!r}"
        raise UsageError(msg)
    return by


def moment(at: float) -> str:
    """A time as people read it."""
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
