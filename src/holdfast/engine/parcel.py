"""A run as one file: a header, its rows in order, the large values they name, and a hash.

| bytes | part |
|---|---|
| 8 | `HOLDFAST` |
| 2 | version, big-endian: 1 |
| 4, then as many | length and frame of the header: catalog entry, epoch, head, branches, counts |
| 4, then as many | for each row of each branch: its id and the row |
| 4, then as many | for each large value: its bytes |
| 32 | SHA-256 of all that comes before |
"""

import hashlib
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from holdfast.errors import Damaged, UsageError
from holdfast.model.journal import Row
from holdfast.model.run import RunBody
from holdfast.store.codec.frame import open_frame, seal

MAGIC = b"HOLDFAST"
VERSION = 1

_START = len(MAGIC) + 2
_HASH_BYTES = 32
_LENGTH_BYTES = 4

T = TypeVar("T")


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A branch as the file names it; it keeps the first `kept` entries of row `at`, or all."""

    no: int
    parent: int
    at: int
    kept: int | None = None


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What the file holds."""

    body: RunBody
    epoch: int
    head: int
    branches: list[Line]
    rows: int
    chunks: int


class Item(msgspec.Struct, frozen=True, array_like=True):
    """A journal row under its id."""

    id: int
    row: Row


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A run outside a store."""

    header: Header
    rows: list[Item]
    chunks: dict[bytes, bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header)
_decode_item = msgspec.msgpack.Decoder(Item)


def to_bytes(parcel: Parcel) -> bytes:
    """The file."""
    parts = [_encode(parcel.header), *map(_encode, parcel.rows), *parcel.chunks.values()]
    data = bytearray(MAGIC + VERSION.to_bytes(2, "big"))
    for part in parts:
        frame = seal(part)
        data += len(frame).to_bytes(_LENGTH_BYTES, "big") + frame
    return bytes(data) + hashlib.sha256(data).digest()


def from_bytes(data: bytes, where: str) -> Parcel:
    """What the file holds; `Damaged` names it if a single bit is not as it was written."""
    if data[: len(MAGIC)] != MAGIC:
        msg = f"{where} is no exported run; `holdfast export` makes one"
        raise UsageError(msg)
    version = int.from_bytes(data[len(MAGIC) : _START], "big")
    if version > VERSION:
        msg = f"{where} is of version {version}, this Holdfast knows {VERSION}; upgrade holdfast"
        raise UsageError(msg)
    if hashlib.sha256(data[:-_HASH_BYTES]).digest() != data[-_HASH_BYTES:]:
        raise Damaged(where, "its hash does not match its bytes")
    frames = _frames(data, where)
    header = _decoded(_decode_header, next(frames, b""), where)
    rows = [_decoded(_decode_item, next(frames, b""), where) for _ in range(header.rows)]
    chunks = list(frames)
    if len(chunks) != header.chunks:
        raise Damaged(where, f"it holds {len(chunks)} large values, not {header.chunks}")
    named = {hashlib.sha256(chunk).digest(): chunk for chunk in chunks}
    return Parcel(header=header, rows=rows, chunks=named)


def _frames(data: bytes, where: str) -> Iterator[bytes]:
    at, end = _START, len(data) - _HASH_BYTES
    while at < end:
        length = int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
        at += _LENGTH_BYTES
        if at + length > end:
            raise Damaged(where, "a part of it reaches beyond its end")
        yield open_frame(data[at : at + length], where)
        at += length


def _decoded(decoder: "msgspec.msgpack.Decoder[T]", part: bytes, where: str) -> T:
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error
