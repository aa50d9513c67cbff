"""Values cut out of journal rows and laid side by side, so that one decode reads them all.

A state names what it holds by where that stands: an entry of a row, and which container of it. What
is cut out of a row is known by just that, and the pieces between make the row again, byte by byte.
Out of a row that is compressed by itself nothing can be cut; what is little beside it is copied.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from holdfast.store.backends.base import JournalRow, Name
from holdfast.store.codec.frame import is_plain, plain_length
from holdfast.store.codec.vault import guard

COPIED_MAX = 2
"""What is copied has at most one part in so many of the bytes that its row holds."""


class Cut(NamedTuple):
    """A value of a row: how many containers it has, its entry, its ordinal there, its bytes."""

    containers: int
    entry: int
    ordinal: int
    raw: bytes


Cutter = Callable[[bytes], Sequence[Cut]]
"""Says which values can be cut out of the frame of a row, in order."""


class _Columns(msgspec.Struct, frozen=True, array_like=True):
    """For each value: the containers in it, its row counted from the first, entry, ordinal."""

    counts: list[int]
    rows: list[int]
    indexes: list[int]
    ordinals: list[int]


def _refuse(code: int, data: memoryview) -> object:  # noqa: ARG001 as msgspec calls it
    msg = f"it holds an item {code}"
    raise ValueError(msg)


_encode = msgspec.msgpack.Encoder().encode
_decode_values = msgspec.msgpack.Decoder(tuple[_Columns, list[Any]], ext_hook=_refuse).decode
_decode_raw = msgspec.msgpack.Decoder(tuple[_Columns, list[msgspec.Raw]]).decode
_decode_pieces = msgspec.msgpack.Decoder(list[list[bytes]]).decode


def cut(rows: Sequence[JournalRow], cutter: Cutter) -> tuple[bytes, bytes]:
    """The values of rows with their names, and each row's hash with the pieces between them."""
    columns, values = _Columns([], [], [], []), list[msgspec.Raw]()
    pieces: list[list[bytes]] = []
    for number, row in enumerate(rows):
        found, between = _divided(row.body, cutter(row.body))
        pieces.append([row.mac, *between])
        for count, index, ordinal, raw in found:
            values.append(msgspec.Raw(raw))
            columns.counts.append(count)
            columns.rows.append(number)
            columns.indexes.append(index)
            columns.ordinals.append(ordinal)
    return _encode([columns, values]), _encode(pieces)


def _divided(body: bytes, due: Sequence[Cut]) -> tuple[Sequence[Cut], list[bytes]]:
    """Those of the values that stand beside the row, and the pieces of it between them."""
    if not due or not is_plain(body):
        is_little = COPIED_MAX * sum(len(each.raw) for each in due) <= plain_length(body)
        return due if is_little else (), [body]
    found: list[Cut] = []
    between: list[bytes] = []
    at = 0
    for each in due:
        start = body.find(each.raw, at)
        if start >= 0:
            found.append(each)
            between.append(body[at:start])
            at = start + len(each.raw)
    return found, [*between, body[at:]]


def joined(first: int, values: bytes, pieces: bytes) -> list[JournalRow]:
    """The rows that were cut, the first one with that id; `ValueError` if it is not all there."""
    columns, raws = _decode_raw(values)
    held: dict[int, list[bytes]] = {}
    for number, raw in zip(columns.rows, raws, strict=True):
        held.setdefault(number, []).append(bytes(raw))
    rows: list[JournalRow] = []
    for number, (mac, *between) in enumerate(_decode_pieces(pieces)):
        mine = held.pop(number, [])
        if len(between) not in (1, len(mine) + 1):
            msg = f"row {number} has {len(between)} pieces around {len(mine)} values"
            raise ValueError(msg)
        body = between[0] if len(between) == 1 else _together(between, mine)
        rows.append(JournalRow(id=first + number, mac=mac, body=body))
    if held:
        msg = f"it holds values of row {min(held)}, which it does not hold"
        raise ValueError(msg)
    return rows


def _together(between: list[bytes], values: Iterable[bytes]) -> bytes:
    return b"".join([*chain.from_iterable(zip(between, values, strict=False)), between[-1]])


def named(first: int, values: bytes) -> tuple[list[Name], list[Any]]:
    """The values that were cut out of rows, of which the first has that id, and their names."""
    guard.get().look(values)
    columns, found = _decode_values(values)
    rows = map(first.__add__, columns.rows)
    names = list(zip(columns.counts, rows, columns.indexes, columns.ordinals, strict=True))
    if len(names) != len(found):
        msg = f"it names {len(names)} values and holds {len(found)}"
        raise ValueError(msg)
    return names, found
