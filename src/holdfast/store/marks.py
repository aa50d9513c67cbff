"""Under which marks the ledger's index finds an entry again."""

import hashlib
from collections.abc import Iterator

from holdfast.model.branches import Allowed, Forked, RolledBack
from holdfast.model.journal import (
    Call,
    Entry,
    Intended,
    Started,
    Undone,
)

MARK_BYTES = 16

SPLIT = bytes(MARK_BYTES)
"""The first row of a fork or rollback: the ledger then has more than one line of history."""


CHILD = b"\xff" * MARK_BYTES
"""The first row of a child: its effects stand in the ledger of its parent."""


def intent_mark(call: Call, module: str) -> bytes:
    """Tool and canonical arguments, without those named in `ignore=`."""
    tool = f"{module}:{call.name}" if module else call.name
    return hashlib.sha256(tool.encode() + b"\0" + call.digest).digest()[:MARK_BYTES]


def key_mark(key: str) -> bytes:
    """What was said later of the effect with this key."""
    return bytes.fromhex(key)


def marks_of(entry: Entry) -> Iterator[bytes]:
    """Every mark of an entry; most have none."""
    match entry:
        case Intended():
            yield intent_mark(entry.call, entry.module)
            if entry.module:  # Without one it is of a time when scopes were not indexed.
                yield entry.about
        case Undone() | Allowed():
            yield key_mark(entry.key)
        case Forked() | RolledBack():
            yield SPLIT
        case Started() if entry.parent is not None:
            yield CHILD
        case _:
            pass
