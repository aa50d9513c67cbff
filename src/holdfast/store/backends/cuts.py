"""Values cut out of journal rows and laid side by side, so that one decode reads them all.

A state names what it holds by where that stands: an entry of a row, and which container of it. What
is cut out of a row is known by just that, and the pieces between make the row again, byte by byte.
Out of a row that is compressed by itself nothing can be cut; what is little beside it is copied.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

from holdfast.store.backends.base import JournalRow, Name
from holdfast.store.codec.frame import is_plain, plain_length
from holdfast.store.codec.vault import guard

COPIED_MAX = 2
"""What is copied has at most one part in so many of the bytes that its row holds."""


Cut = tuple[int, int, int, bytes]
"""A value of a row: how many containers it has, its entry, its ordinal there, its bytes."""

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


_BEGIN = 24

_encode = msgspec.msgpack.Encoder().encode
_decode_values = msgspec.msgpack.Decoder(tuple[_Columns, list[Any]], ext_hook=_refuse).decode
_decode_raw = msgspec.msgpack.Decoder(tuple[_Columns, list[msgspec.Raw]]).decode
_decode_pieces = msgspec.msgpack.Decoder(list[list[bytes]]).decode


def cut(rows: Sequence[JournalRow], cutter: Cutter) -> tuple[bytes, bytes]:
    """The values of rows with their names, and each row's hash with the pieces between them."""
    names: list[Name] = []
    values: list[msgspec.Raw] = []
    pieces: list[list[bytes]] = []
    for number, row in enumerate(rows):
        body, at = row.body, 0
        mine = [row.mac]
        is_cut = is_plain(body)
        for count, index, ordinal, raw in _due(body, cutter):
            if is_cut:
                start = _find(body, raw, at)
                if start < 0:
                    continue
                mine.append(body[at:start])
                at = start + len(raw)
            names.append((count, number, index, ordinal))
            values.append(msgspec.Raw(raw))
        mine.append(body[at:] if at else body)
        pieces.append(mine)
    columns = [*zip(*names, strict=True)] or [(), (), (), ()]
    return _encode((columns, values)), _encode(pieces)


def _find(body: bytes, raw: bytes, at: int) -> int:
    """Where `raw` begins in `body`, from `at` on; by its first bytes, which is far quicker."""
    begin = raw[:_BEGIN]
    start = body.find(begin, at)
    while start >= 0 and not body.startswith(raw, start):
        start = body.find(begin, start + 1)
    return start


def _due(body: bytes, cutter: Cutter) -> Sequence[Cut]:
    """What is to stand beside a row: of one that is compressed by itself, only what is little."""
    due = cutter(body)
    if due and not is_plain(body):
        copied = sum(len(raw) for _, _, _, raw in due)
        return due if COPIED_MAX * copied <= plain_length(body) else ()
    return due


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
