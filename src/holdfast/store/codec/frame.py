"""The self-describing wrapper of every stored body: version, flags, key, length; zstd.

| bytes | field | meaning |
|---|---|---|
| 1 | version | 1 |
| 1 | flags | bit 0: the payload is one zstd frame; 1: it is sealed; 2: it is a patch |
| 2 | key id | the number of the key it is sealed with; 0: none, or the store's own secret |
| 4 | plain length | of the payload as it was given to `seal` |
| rest | payload | |

A patch can be read only beside the bytes that it was made on: they are the prefix of zstd's window.
A body of version 2 is not a payload but several frames, each after its length (4 bytes): packs are.

Numbers are big-endian. The frame says how to read a body, not that it is whole: the hash of the row
or chunk that holds it does. A sealed frame has the same header; `store/seal` opens it.
"""

import struct
import sys
from collections.abc import Sequence
from typing import Any, Final

from holdfast import errors

VERSION: Final = 1
BUNDLE: Final = 2
PLAIN_BYTES_MAX: Final = 512 * 1024 * 1024

_HEADER: Final = struct.Struct(">BBHI")
HEADER_BYTES: Final = _HEADER.size
_PLAIN: Final = _HEADER.pack(VERSION, 0, 0, 0)[:4]
_COMPRESSED: Final = 1
_SEALED: Final = 2
_PATCH: Final = 4
_COMPRESS_BYTES_MIN: Final = 4096
_LEVEL: Final = 1


def seal(payload: bytes, level: int = _LEVEL) -> bytes:
    """The stored body of `payload`, compressed at zstd's `level` where that saves a tenth."""
    plain = len(payload)
    if plain > PLAIN_BYTES_MAX:
        why = f"it has {plain:,} bytes, more than {PLAIN_BYTES_MAX:,}; keep it in a file"
        raise errors.NotStorable("body", "bytes", why)
    if plain >= _COMPRESS_BYTES_MIN:
        packed: bytes = _zstd().compress(payload, level)
        if len(packed) * 10 <= plain * 9:
            return _HEADER.pack(VERSION, _COMPRESSED, 0, plain) + packed
    return _HEADER.pack(VERSION, 0, 0, plain) + payload


def open_frame(body: bytes, where: str) -> bytes:
    """The payload of a stored body; `Damaged(where, ...)` if it is not one that `seal` gave."""
    if body[:4] == _PLAIN and len(body) - HEADER_BYTES == plain_length(body):
        return body[HEADER_BYTES:]  # as most rows are, and they are read by the thousand
    if len(body) < _HEADER.size:
        raise errors.Damaged(where, f"{len(body)} bytes are too short for a frame")
    version, flags, key, plain = _HEADER.unpack_from(body)
    if version != VERSION:
        raise errors.Damaged(where, _unknown_version(version))
    if flags & _SEALED:
        raise errors.Damaged(where, f"it is sealed (key id {key}), and nothing here is")
    if flags & ~_COMPRESSED or key:
        raise errors.Damaged(where, f"unknown flags {flags:#04x} or key id {key} in its frame")
    if plain > PLAIN_BYTES_MAX:
        raise errors.Damaged(where, f"its frame states {plain:,} bytes, more than any may have")
    if flags & _COMPRESSED:
        payload = _decompress(memoryview(body)[HEADER_BYTES:], plain, where)
    else:
        payload = body[HEADER_BYTES:]
    if len(payload) != plain:
        raise errors.Damaged(where, f"its frame states {plain} bytes, it holds {len(payload)}")
    return payload


def seal_patch(payload: bytes, base: bytes) -> bytes:
    """The stored body of `payload` as what it has that `base` has not."""
    zstd = _zstd()
    known = zstd.CompressionParameter
    options = {
        known.compression_level: _LEVEL,
        known.window_log: (len(payload) + len(base)).bit_length(),
        known.enable_long_distance_matching: 1,
    }
    prefix = zstd.ZstdDict(base, is_raw=True).as_prefix
    packed: bytes = zstd.compress(payload, options=options, zstd_dict=prefix)
    return _HEADER.pack(VERSION, _COMPRESSED | _PATCH, 0, len(payload)) + packed


def open_patch(body: bytes, base: bytes, where: str) -> bytes:
    """The payload of a body that `seal_patch` made on `base`; `Damaged` if it is no such."""
    if len(body) < _HEADER.size:
        raise errors.Damaged(where, f"{len(body)} bytes are too short for a frame")
    version, flags, key, plain = _HEADER.unpack_from(body)
    if (version, flags, key) != (VERSION, _COMPRESSED | _PATCH, 0) or plain > PLAIN_BYTES_MAX:
        raise errors.Damaged(where, "it is not the patch that it is named as")
    payload = _decompress(memoryview(body)[HEADER_BYTES:], plain, where, base)
    if len(payload) != plain:
        raise errors.Damaged(where, f"its frame states {plain} bytes, it holds {len(payload)}")
    return payload


def is_plain(body: bytes) -> bool:
    """Whether a stored body is a frame whose payload stands there as it is."""
    return body[:4] == _PLAIN and len(body) - HEADER_BYTES == plain_length(body)


def bundle(frames: Sequence[bytes]) -> bytes:
    """A body that holds several frames."""
    payload = b"".join(
        [part for frame in frames for part in (len(frame).to_bytes(4, "big"), frame)]
    )
    return _HEADER.pack(BUNDLE, 0, 0, len(payload)) + payload


def is_bundle(body: bytes) -> bool:
    """Whether a stored body says that it holds several frames."""
    return body[:1] == bytes([BUNDLE])


def unbundle(body: bytes, count: int, where: str, begin: int = HEADER_BYTES) -> list[bytes]:
    """The frames that `bundle` was given; `Damaged` unless they are `count`, and nothing else.

    They may begin later than right behind the header.
    """
    if body[:4] != _HEADER.pack(BUNDLE, 0, 0, 0)[:4]:
        raise errors.Damaged(where, "it does not begin as a body of frames does")
    frames: list[bytes] = []
    at = begin
    while at < len(body) and len(frames) < count:
        end = at + 4 + int.from_bytes(body[at : at + 4], "big")
        frames.append(body[at + 4 : end])
        at = end
    if at != len(body) or len(frames) != count or len(body) - begin != plain_length(body):
        raise errors.Damaged(where, f"it is not {count} frames of the length it states")
    return frames


def plain_length(body: bytes) -> int:
    """How many bytes a stored body states to hold."""
    return int.from_bytes(body[4:8], "big")


def mark_sealed(frame: bytes, key: int) -> bytes:
    """The header of `frame` once it is sealed with the key of that number."""
    version, flags, _, plain = _HEADER.unpack_from(frame)
    return _HEADER.pack(version, flags | _SEALED, key, plain)


def unmark_sealed(body: bytes, key: int, where: str) -> bytes:
    """The header of a sealed frame as it was before; `Damaged` unless that key sealed it."""
    if len(body) < HEADER_BYTES:
        raise errors.Damaged(where, f"{len(body)} bytes are too short for a frame")
    version, flags, found, plain = _HEADER.unpack_from(body)
    if version not in (VERSION, BUNDLE):
        raise errors.Damaged(where, _unknown_version(version))
    if not flags & _SEALED:
        raise errors.Damaged(where, "it is not sealed, in a store that is encrypted")
    if found != key:
        raise errors.Damaged(where, f"it is sealed with key {found}, not with its own, {key}")
    return _HEADER.pack(version, flags & ~_SEALED, 0, plain)


def is_sealed(body: bytes) -> bool:
    """Whether a stored body says that it is sealed."""
    return len(body) >= HEADER_BYTES and bool(body[1] & _SEALED)


def _unknown_version(version: int) -> str:
    if version == BUNDLE:
        return "it is a body of several frames, as only a pack is"
    if version > BUNDLE:
        return f"a newer Holdfast wrote it (frame version {version}, known here: {BUNDLE})"
    return f"its frame has version {version}, which was never written"


def _decompress(packed: memoryview, plain: int, where: str, base: bytes | None = None) -> bytes:
    """At most one byte more than `plain`, whatever the packed bytes would become."""
    zstd = _zstd()
    prefix = None if base is None else zstd.ZstdDict(base, is_raw=True).as_prefix
    opened = zstd.ZstdDecompressor(prefix)
    try:
        payload: bytes = opened.decompress(packed, max_length=plain + 1)
    except zstd.ZstdError as error:
        raise errors.Damaged(where, f"its payload is no zstd frame ({error})") from error
    if not opened.eof or opened.unused_data:
        raise errors.Damaged(where, "its payload is not exactly one zstd frame of its length")
    return payload


def ready() -> None:
    """Load what compresses, so that no answer waits for it: some milliseconds."""
    _zstd()


def _zstd() -> Any:  # noqa: ANN401 -- two modules with one face
    # A program that opens no store has no use for it.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd
