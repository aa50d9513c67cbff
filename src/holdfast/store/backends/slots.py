"""Rows as the tail holds them: records in slots of a file, each with its place and a checksum.

A record begins with a slot and takes as many as it needs. It says which slot that is and of which
generation of the tail it is: what an older generation left behind it is none.
"""

import struct
import zlib
from collections.abc import Sequence

import msgspec

from holdfast.store.backends.base import JournalRow

SLOT = 4096
_MAGIC = b"HFt1"
_HEAD = struct.Struct(">4sQII")  # magic, generation, slot, bytes of the rows
_CHECK_BYTES = 4
_BEGIN = _HEAD.size + _CHECK_BYTES
_ROW = struct.Struct(">QBI")  # id, bytes of the hash, bytes of the body

_pack_head, _pack_row, _crc = _HEAD.pack, _ROW.pack, zlib.crc32


class Read(msgspec.Struct, frozen=True, gc=False):
    """What stands in slots: rows, where the last sound record ends, whether one before is bad."""

    rows: list[JournalRow]
    end: int
    is_damaged: bool


class _Record(msgspec.Struct, frozen=True, gc=False):
    """A sound record: its generation, its rows, where the next one may begin."""

    generation: int
    rows: list[JournalRow]
    end: int


def seed(store: bytes) -> int:
    """What the checksums of a store's records begin with: those of another store are none here."""
    return _crc(store)


def record(rows: Sequence[JournalRow], seed: int, generation: int, at: int) -> bytes:
    """The record that holds these rows at that place of the file."""
    parts: list[bytes] = []
    for row in rows:
        parts += (_pack_row(row.id, len(row.mac), len(row.body)), row.mac, row.body)
    payload = b"".join(parts)
    head = _pack_head(_MAGIC, generation, at // SLOT, len(payload))
    return head + _crc(payload, _crc(head, seed)).to_bytes(_CHECK_BYTES, "big") + payload


def behind(size: int) -> int:
    """Where the next record begins behind so many bytes: at a slot of its own."""
    return (size + SLOT - 1) & -SLOT


def read(data: bytes, seed: int, generation: int, at: int = 0) -> Read:
    """The records of a generation in bytes that begin at that place of the file.

    Behind a bad one it is looked for more, slot by slot. One of a later generation is damage too:
    the database says which is the latest.
    """
    rows: list[JournalRow] = []
    place = end = 0
    is_damaged = False
    while place < len(data):
        found = _sound(data, place, at, seed)
        if found is not None and found.generation == generation:
            is_damaged |= place > end
            rows += found.rows
            place = end = found.end
        else:
            is_damaged |= found is not None and found.generation > generation
            place += SLOT
    return Read(rows, at + end, is_damaged)


def newest(data: bytes, seed: int) -> int:
    """The latest generation that any sound record is of; -1 where there is none."""
    places = range(0, len(data), SLOT)
    return max((r.generation for at in places if (r := _sound(data, at, 0, seed))), default=-1)


def _sound(data: bytes, place: int, at: int, seed: int) -> _Record | None:
    """The sound record that stands here, if one does."""
    if len(data) < place + _BEGIN:
        return None
    magic, generation, slot, length = _HEAD.unpack_from(data, place)
    if magic != _MAGIC or slot != (at + place) // SLOT or length > len(data) - place - _BEGIN:
        return None
    begin = place + _BEGIN
    head, check = data[place : place + _HEAD.size], data[place + _HEAD.size : begin]
    payload = memoryview(data)[begin : begin + length]
    if check != _crc(payload, _crc(head, seed)).to_bytes(_CHECK_BYTES, "big"):
        return None
    rows = _rows(data, begin, begin + length)
    return _Record(generation, rows, place + behind(_BEGIN + length)) if rows else None


def _rows(data: bytes, place: int, end: int) -> list[JournalRow] | None:
    """The rows that fill a record; None if they do not."""
    found: list[JournalRow] = []
    while place + _ROW.size <= end:
        id_, of_mac, of_body = _ROW.unpack_from(data, place)
        mac_at = place + _ROW.size
        body_at = mac_at + of_mac
        place = body_at + of_body
        found.append(JournalRow(id=id_, mac=data[mac_at:body_at], body=data[body_at:place]))
    return found if place == end else None
