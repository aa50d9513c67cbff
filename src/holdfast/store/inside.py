"""The encoded values inside an entry, and the large ones that they name."""

import re
from collections.abc import Callable, Iterator

import msgspec

from holdfast.model import branches, journal, ledger
from holdfast.store.reference import is_reference

_decoded = msgspec.msgpack.Decoder().decode

# Items of a saved state: leaves, and the one that holds other values (docs/format.md, section 9).
_LEAVES = (4, 5)
_PAIRS = 2
_REFERENCE = re.compile(rb"(?:\xc7.|\xc8..)[\x04\x05][\xfe\xff]", re.DOTALL)


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
        case journal.Streamed():
            yield f"items of stream {entry.call.name}", entry.items
        case journal.Intended():
            yield f"arguments of {entry.call.name}", entry.args
        case journal.Started():
            yield "arguments of the run", entry.args
        case journal.Finished():
            yield "result of the run", entry.value
        case journal.Saved() | journal.Kept() if entry.state is not None:
            yield "state at a checkpoint", entry.state
        case branches.Settled():
            yield "note of a rollback", entry.note
        case journal.Questioned() | journal.Answered() | ledger.Said():
            yield from _of_question(entry)
        case journal.Raised() | journal.Declined() | journal.Failed() | journal.Aborted() if (
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
        case (
            journal.TurnEnded()
            | journal.LoopLeft()
            | journal.Kept()
            | journal.Saved()
            | journal.Finished()
        ) if entry.delta is not None:
            yield "change of the state", entry.delta
        case branches.Forked() | branches.Settled() if entry.delta is not None:
            yield "change of the state", entry.delta
        case _:
            pass


def references_of(entry: journal.Entry, fetch: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Every reference to a large value in an entry, also inside a save that lies aside itself.

    `fetch` gives the bytes that a reference stands for.
    """
    for _, data in values_of(entry):
        if is_reference(data):
            yield data
    for _, data in states_of(entry):
        if is_reference(data):
            yield data
        yield from references_in(fetch(data))
