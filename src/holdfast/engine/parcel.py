"""A run as one file: a header, its rows in order, the large values they name, and a hash.

| bytes | part |
|---|---|
| 8 | `HOLDFAST` |
| 2 | version, big-endian: 1; 3 where a large value is a patch; one more where it is sealed |
| 4, then as many | sealed only: the key of the file as a provider wrapped it |
| 4, then as many | length and frame of the header: catalog entry, epoch, head, branches, counts |
| 4, then as many | for each row of each branch: its id and the row |
| 4, then as many | for each large value: its bytes; in versions 3 and 4 what is stored of it |
| 32 | SHA-256 of all that comes before |

What is stored of a large value is the length of its reference (2 bytes), that, and its frame.
In a sealed file each part is sealed, in its place, by `envelope`.
"""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import msgspec

from holdfast.engine.reading import Key, key_of
from holdfast.errors import Damaged, ExportDamaged, KeyUnusable, UsageError
from holdfast.model.journal import Answer, Row, Spawned
from holdfast.model.run import RunBody, Status
from holdfast.ondemand import OnDemand
from holdfast.store.codec.frame import open_frame, seal
from holdfast.store.large import read
from holdfast.store.reference import is_patch, is_reference, object_id, whole

if TYPE_CHECKING:
    from holdfast.engine import envelope
    from holdfast.store.seal.provider import KeyProvider
else:
    envelope = OnDemand("holdfast.engine.envelope")  # It loads cryptography.

MAGIC = b"HOLDFAST"
VERSION, PATCHED = 1, 3
"""The next number of each is the same, sealed."""
_NEWEST = PATCHED + 1

_START = len(MAGIC) + 2
_HASH_BYTES = 32
_LENGTH_BYTES = 4

T = TypeVar("T")

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A number that the database can hold, whoever wrote the file."""


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A branch as the file names it; it keeps the first `kept` entries of row `at`, or all."""

    no: Count
    parent: Count
    at: Count
    kept: Count | None = None


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What the file holds."""

    body: RunBody
    epoch: Count
    head: Count
    branches: list[Line]
    rows: Count
    chunks: Count


class Item(msgspec.Struct, frozen=True, array_like=True):
    """A journal row under its id."""

    id: int
    row: Row


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A run outside a store."""

    header: Header
    rows: list[Item]
    large: dict[bytes, bytes]
    """What is stored of each large value under its reference: a frame of it, or of a patch."""

    def fetch(self, data: bytes) -> bytes:
        """The bytes that `data` stands for, checked."""
        return read(data, self._frame, _where) if is_reference(data) else data

    def children(self) -> list[str]:
        """The children that the run goes on with: runs of their own, which do not come along."""
        begun: dict[Key, str] = {}
        if self.header.body.status is not Status.FINISHED:
            for item in self.rows:
                for entry in item.row.entries:
                    if isinstance(entry, Spawned):
                        begun[key_of(entry.call)] = entry.id
                    elif isinstance(entry, Answer):  # After an error it may go on.
                        begun.pop(key_of(entry.call), None)
        return sorted(set(begun.values()))

    def _frame(self, reference: bytes) -> bytes:
        found = self.large.get(reference)
        if found is None:
            raise Damaged(_where(reference), "it is named but not there")
        return found


def _where(reference: bytes) -> str:
    return f"chunk {object_id(reference).hex()}"


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header)
_decode_item = msgspec.msgpack.Decoder(Item)


def to_bytes(parcel: Parcel, key: "KeyProvider | None" = None) -> bytes:
    """The file, sealed where a key is given."""
    is_patched = any(map(is_patch, parcel.large))
    large = map(_labelled, parcel.large.items()) if is_patched else map(parcel.fetch, parcel.large)
    parts = [_encode(parcel.header), *map(_encode, parcel.rows), *large]
    cover = None if key is None else envelope.make(key)
    version = (PATCHED if is_patched else VERSION) + (cover is not None)
    data = bytearray(MAGIC + version.to_bytes(2, "big"))
    if cover is not None:
        data += len(cover.wrapped).to_bytes(_LENGTH_BYTES, "big") + cover.wrapped
    for number, part in enumerate(parts):
        frame = seal(part) if cover is None else cover.seal(number, seal(part))
        data += len(frame).to_bytes(_LENGTH_BYTES, "big") + frame
    return bytes(data) + hashlib.sha256(data).digest()


def from_bytes(data: bytes, where: str, key: "KeyProvider | None" = None) -> Parcel:
    """What the file holds; `Damaged` names it if a single bit is not as it was written."""
    if data[: len(MAGIC)] != MAGIC:
        msg = f"{where} is no exported run; `holdfast export` makes one"
        raise UsageError(msg)
    version = int.from_bytes(data[len(MAGIC) : _START], "big")
    if version > _NEWEST:
        msg = f"{where} is of version {version}, this Holdfast knows {_NEWEST}; upgrade holdfast"
        raise UsageError(msg)
    if hashlib.sha256(data[:-_HASH_BYTES]).digest() != data[-_HASH_BYTES:]:
        raise ExportDamaged(where, "its hash does not match its bytes")
    is_sealed = version in (VERSION + 1, PATCHED + 1)
    if is_sealed and key is None:
        raise KeyUnusable("", f"{where} is sealed; give the key it was exported with")
    try:
        is_patched = version >= PATCHED
        return _unpacked(data, where, key if is_sealed else None, is_patched=is_patched)
    except Damaged as damage:
        raise ExportDamaged(damage.where, damage.why) from damage


def _unpacked(data: bytes, where: str, key: "KeyProvider | None", *, is_patched: bool) -> Parcel:
    frames = _frames(data, where, key)
    header = _decoded(_decode_header, next(frames, b""), where)
    rows = [_decoded(_decode_item, next(frames, b""), where) for _ in range(header.rows)]
    chunks = list(frames)
    if len(chunks) != header.chunks:
        raise Damaged(where, f"it holds {len(chunks)} large values, not {header.chunks}")
    large = dict(map(_unlabelled if is_patched else _named, chunks))
    if not all(map(is_reference, large)):
        raise Damaged(where, "a large value in it has no name")
    return Parcel(header=header, rows=rows, large=large)


def _labelled(stored: tuple[bytes, bytes]) -> bytes:
    reference, frame = stored
    return len(reference).to_bytes(2, "big") + reference + frame


def _unlabelled(part: bytes) -> tuple[bytes, bytes]:
    end = 2 + int.from_bytes(part[:2], "big")
    return part[2:end], part[end:]


def _named(value: bytes) -> tuple[bytes, bytes]:
    return whole(hashlib.sha256(value).digest(), len(value)), seal(value)


def _frames(data: bytes, where: str, key: "KeyProvider | None") -> Iterator[bytes]:
    parts = _parts(data, where)
    cover = None if key is None else envelope.take(next(parts, b""), key, where)
    for number, part in enumerate(parts):
        yield open_frame(part if cover is None else cover.open(number, part, where), where)


def _parts(data: bytes, where: str) -> Iterator[bytes]:
    at, end = _START, len(data) - _HASH_BYTES
    while at < end:
        length = int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
        at += _LENGTH_BYTES
        if at + length > end:
            raise Damaged(where, "a part of it reaches beyond its end")
        yield data[at : at + length]
        at += length


def _decoded(decoder: "msgspec.msgpack.Decoder[T]", part: bytes, where: str) -> T:
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error
