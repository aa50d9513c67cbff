"""Which values can be cut out of a journal row: the dicts that a state names instead of repeating.

Only what msgpack holds as it is: then its bytes alone say what it is, and no codec is asked.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from holdfast.errors import Damaged
from holdfast.model.journal import Answer, Entry, Happened, Kept, LoopLeft, Row, TurnEnded
from holdfast.store.backends.cuts import Cut
from holdfast.store.chunks import is_reference
from holdfast.store.codec import wire
from holdfast.store.codec.frame import open_frame
from holdfast.store.codec.saved import BASIC, inside, parts

CUT_BYTES_MIN = 32
"""What is smaller is repeated by a state that holds it, not named."""

ANSWER = -1
"""The ordinal of an answer as a whole; containers of a save are counted from 0."""

_MAPS = frozenset(bytes([wire.FORM_PLAIN, head]) for head in (*range(0x80, 0x90), 0xDE, 0xDF))
"""How an answer begins that is a dict."""
_NOT_CUT = (Damaged, ValueError, TypeError, LookupError, AttributeError, RecursionError)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_decode_row = msgspec.msgpack.Decoder(Row).decode


def cuttable(body: bytes) -> list[Cut]:
    """What can be cut out of the frame of a row, in order.

    Nothing of what cannot be read: it is kept as it is, and whoever reads it says what is wrong.
    """
    try:
        entries = enumerate(_decode_row(open_frame(body, "")).entries)
        return [cut for index, entry in entries for cut in _in_entry(index, entry)]
    except _NOT_CUT:
        return []


def _in_entry(index: int, entry: Entry) -> Iterator[Cut]:
    match entry:
        case Answer() | Happened() if entry.value[:2] in _MAPS:
            raw = entry.value[1:]
            count = _count(_decode(raw))
            if count and len(raw) >= CUT_BYTES_MIN:
                yield Cut(count, index, ANSWER, raw)
        case TurnEnded() | LoopLeft() | Kept() if entry.delta and not is_reference(entry.delta):
            yield from _in_save(index, entry.delta)


def _in_save(index: int, save: bytes) -> Iterator[Cut]:
    """The dicts that a save wrote; of lists the items, since lists grow and items stay."""
    skip = 0
    for ordinal, value in enumerate(parts(save)):
        if skip:
            skip -= 1
        elif type(value) is dict and (count := _count(value)):
            skip = count - 1
            raw = _encode(value)
            if len(raw) >= CUT_BYTES_MIN:
                yield Cut(count, index, ordinal, raw)


def _count(value: dict[str, Any]) -> int:
    """How many containers a dict has, with itself; 0: it holds what msgpack has no word for."""
    count = 0
    stack: list[Any] = [value]
    while stack:
        held = inside(stack.pop())
        count += 1
        if not BASIC.issuperset(map(type, held)):
            for each in held:
                if type(each) is Ext:
                    return 0
                if type(each) not in BASIC:
                    stack.append(each)
    return count
