"""A base or change of the state whose sources have moved to rows of other numbers."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from msgspec.msgpack import Ext

from holdfast.capture import wire

Moved = Callable[[int], int]
"""The new id of a row."""


def renumber(data: bytes, moved: Moved) -> bytes:
    """The same save with every row it names renamed; nothing else is changed."""
    return wire.pack(_renumbered(wire.unpack(data), moved))


def _renumbered(value: Any, moved: Moved) -> Any:  # noqa: ANN401 whatever msgpack gives
    kind = type(value)
    if kind is list:
        return [_renumbered(item, moved) for item in value]
    if kind is dict:
        return {key: _renumbered(item, moved) for key, item in value.items()}
    return _item(value, moved) if kind is Ext else value


def _item(item: Ext, moved: Moved) -> Ext:
    match item.code:
        case wire.PAIRS:
            inner = _renumbered(wire.unpack(item.data), moved)
        case wire.ANSWER:
            inner = wire.unpack(item.data)
            inner[1][0] = _row(inner[1][0], moved)
        case wire.LEAF_AT | wire.FIXED_AT:
            row, *rest = wire.unpack(item.data)
            inner = [_row(row, moved), *rest]
        case wire.STORED:
            inner = wire.unpack(item.data)
            rows = [_row(row, moved) for row in accumulate(inner[1])]
            inner[1] = [row - before for row, before in zip(rows, [0, *rows], strict=False)]
        case _:
            return item
    return Ext(item.code, wire.pack(inner))


def _row(row: int, moved: Moved) -> int:
    return row if row == wire.BESIDE[0] else moved(row)
