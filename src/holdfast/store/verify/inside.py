"""The encoded values inside an entry, and whether they can be read."""

import contextlib
import re
from collections.abc import Iterator

import msgspec

from holdfast.errors import Damaged, NotStorable
from holdfast.model import journal, ledger
from holdfast.store.chunks import is_reference
from holdfast.store.codec import values

_decoded = msgspec.msgpack.Decoder().decode

# Items of a saved state: leaves, and the one that holds other values (docs/format.md, section 9).
_LEAVES = (4, 5)
_PAIRS = 2
_REFERENCE = re.compile(rb"\xc7\x29[\x04\x05]\xff")


def decode_value(data: bytes, where: str, *, is_state: bool) -> None:
    """Raise `Damaged` unless a value can be read from `data`.

    A class that this process does not know is no damage: its bytes are a value all the same.
    """
    if is_state:
        try:
            _decoded(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Damaged(where, f"it cannot be decoded ({error})") from error
    else:
        with contextlib.suppress(NotStorable):
            values.decode(data, where=where)


def references_in(data: bytes) -> Iterator[bytes]:
    """The references to large values that stand inside a base or a change of the state."""
    if _REFERENCE.search(data) is None:
        return
    stack = [_decoded(data)]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, msgspec.msgpack.Ext):
            inner = bytes(value.data)
            if value.code in _LEAVES and is_reference(inner):
                yield inner
            elif value.code == _PAIRS:
                stack.append(_decoded(inner))


def values_of(entry: journal.Entry) -> Iterator[tuple[str, bytes]]:
    """Encoded values of an entry, each with its name."""
    match entry:
        case journal.Answer() | journal.Happened() | journal.Noted():
            yield f"what {entry.call.name} gave", entry.value
        case journal.Intended():
            yield f"arguments of {entry.call.name}", entry.args
        case journal.Started():
            yield "arguments of the run", entry.args
        case journal.Finished():
            yield "result of the run", entry.value
        case journal.Saved():
            yield "state at a checkpoint", entry.state
        case journal.Questioned() | journal.Answered() | ledger.Said():
            yield from _of_question(entry)
        case journal.Raised() | journal.Declined() | journal.Failed() if (
            entry.error and entry.error.args is not None
        ):
            yield "arguments of an error", entry.error.args
        case _:
            pass


def _of_question(
    entry: journal.Questioned | journal.Answered | ledger.Said,
) -> Iterator[tuple[str, bytes]]:
    match entry:
        case journal.Questioned():
            found = {"default": entry.default, "arguments": entry.args}
        case journal.Answered() | ledger.Said():
            found = {"answer": entry.value}
    for name, data in found.items():
        if data is not None:
            yield f"{name} of question {entry.id}", data


def states_of(entry: journal.Entry) -> Iterator[tuple[str, bytes]]:
    """Bases and changes of the state that an entry holds, each with its name."""
    match entry:
        case journal.Based():
            yield "base of the state", entry.state
        case journal.TurnEnded() | journal.LoopLeft() | journal.Finished() if (
            entry.delta is not None
        ):
            yield "change of the state", entry.delta
        case _:
            pass
