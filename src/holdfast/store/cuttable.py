"""Which values can be cut out of a journal row: the dicts that a state names instead of repeating.

Only what msgpack holds as it is: then its bytes alone say what it is, and no codec is asked.
"""

from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast import native
from holdfast.errors import Damaged
from holdfast.model.journal import Answer, Happened, Kept, LoopLeft, Row, Saved, TurnEnded
from holdfast.store.backends.cuts import Cut
from holdfast.store.codec import wire
from holdfast.store.codec.frame import open_frame
from holdfast.store.codec.saved import BASIC, inside, parts
from holdfast.store.reference import is_reference

CUT_BYTES_MIN = 32
"""What is smaller is repeated by a state that holds it, not named."""

ANSWER = -1
"""The ordinal of an answer as a whole; containers of a save are counted from 0."""

_MAPS = frozenset(bytes([wire.FORM_PLAIN, head]) for head in (*range(0x80, 0x90), 0xDE, 0xDF))
"""How an answer begins that is a dict."""
_NOT_CUT = (Damaged, ValueError, TypeError, LookupError, AttributeError, RecursionError)

_FIELDS: Final = tuple(
    (kind.__struct_config__.tag, 1 + kind.__struct_fields__.index(name), name == "delta")
    for kinds, name in (
        ((Answer, Happened), "value"),
        ((TurnEnded, LoopLeft, Kept, Saved), "delta"),
    )
    for kind in kinds
)
"""Of each kind of entry: its tag, where in it the value or save stands, whether it is a save."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_decode_row = msgspec.msgpack.Decoder(Row).decode


def cuttable(body: bytes) -> list[Cut]:
    """What can be cut out of the frame of a row, in order.

    Nothing of what cannot be read: it is kept as it is, and whoever reads it says what is wrong.
    """
    found: list[Cut] = []
    try:
        row = open_frame(body, "")
        if native.cuts is not None and (cuts := native.cuts(row, _FIELDS)) is not None:
            return [(n, at, ordinal, row[a:b]) for n, at, ordinal, a, b in cuts]
        for index, entry in enumerate(_decode_row(row).entries):
            kind = type(entry)  # Asked for by the thousand: a `match` takes three times as long.
            if kind is TurnEnded or kind is LoopLeft or kind is Kept or kind is Saved:
                _take_saved(found, index, entry.delta)  # type: ignore[union-attr]  # `is` narrows no union
            elif kind is Answer or kind is Happened:
                _take_answer(found, index, entry.value)  # type: ignore[union-attr,arg-type]  # `is` narrows no union
    except _NOT_CUT:
        return []
    return found


def _take_answer(found: list[Cut], index: int, data: bytes) -> None:
    if data[:2] in _MAPS and len(data) > CUT_BYTES_MIN:
        raw = data[1:]
        count = _count(_decode(raw))
        if count:
            found.append((count, index, ANSWER, raw))


def _take_saved(found: list[Cut], index: int, save: bytes | None) -> None:
    """The dicts that a save wrote; of lists the items, since lists grow and items stay."""
    if save is None or len(save) < CUT_BYTES_MIN or is_reference(save):
        return
    skip = 0
    for ordinal, value in enumerate(parts(save)):
        if skip:
            skip -= 1
        elif type(value) is dict and (count := _count(value)):
            skip = count - 1
            raw = _encode(value)
            if len(raw) >= CUT_BYTES_MIN:
                found.append((count, index, ordinal, raw))


def _count(value: dict[str, Any]) -> int:
    """How many containers a dict has, with itself; 0: it holds what msgpack has no word for."""
    if BASIC.issuperset(map(type, value.values())):
        return 1
    count = 0
    stack: list[Any] = [value]
    while stack:
        held = inside(stack.pop())
        count += 1
        for each in held:
            if type(each) is Ext:
                return 0
            if type(each) not in BASIC:
                stack.append(each)
    return count
