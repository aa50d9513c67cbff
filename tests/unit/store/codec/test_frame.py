"""The wrapper of stored bodies: compression, limits, and what it refuses."""

import random
import struct
import sys
import tracemalloc
from typing import Any

import pytest

from holdfast import errors
from holdfast.store.codec import frame

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"the same words again and again " * 400
NOISE = random.Random(7).randbytes(10_000)  # noqa: S311 -- a fixed noise


def body(*, version: int = 1, flags: int = 0, key: int = 0, plain: int, payload: bytes) -> bytes:
    return struct.pack(">BBHI", version, flags, key, plain) + payload


@pytest.mark.parametrize("payload", [b"", b"x", TEXT[:4095], TEXT[:4096], TEXT, NOISE])
def test_a_body_opens_to_what_was_sealed(payload: bytes) -> None:
    assert payload == frame.open_frame(frame.seal(payload), "row 1")


def test_only_what_shrinks_by_a_tenth_is_compressed() -> None:
    assert len(frame.seal(TEXT)) < len(TEXT) // 10
    assert body(plain=len(NOISE), payload=NOISE) == frame.seal(NOISE)
    assert body(plain=4095, payload=TEXT[:4095]) == frame.seal(TEXT[:4095])

    hardly = NOISE[:9500] + bytes(500)
    assert body(plain=10_000, payload=hardly) == frame.seal(hardly)


@pytest.mark.parametrize("payload", [b"small", TEXT], ids=["raw", "zstd"])
def test_every_flipped_bit_of_a_header_is_damage(payload: bytes) -> None:
    sealed = frame.seal(payload)

    for bit in range(64):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(errors.Damaged) as caught:
            frame.open_frame(bytes(flipped), "row 9")
        assert "row 9" == caught.value.where


def test_every_cut_body_is_damage() -> None:
    for sealed in (frame.seal(b"small"), frame.seal(TEXT)):
        for length in range(len(sealed)):
            with pytest.raises(errors.Damaged):
                frame.open_frame(sealed[:length], "row 9")
        with pytest.raises(errors.Damaged):
            frame.open_frame(sealed + b"x", "row 9")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"version": 2, "plain": 1, "payload": b"x"}, "several frames, as only a pack is"),
        ({"version": 3, "plain": 1, "payload": b"x"}, "a newer Holdfast wrote it"),
        ({"version": 0, "plain": 1, "payload": b"x"}, "never written"),
        ({"flags": 2, "key": 5, "plain": 1, "payload": b"x"}, r"it is sealed \(key id 5\)"),
        ({"flags": 4, "plain": 1, "payload": b"x"}, "unknown flags"),
        ({"key": 1, "plain": 1, "payload": b"x"}, "key id 1"),
        ({"plain": 2, "payload": b"x"}, "states 2 bytes, it holds 1"),
        ({"plain": 2**32 - 1, "payload": b"x"}, "more than any may have"),
        ({"flags": 1, "plain": 1, "payload": b"x"}, "no zstd frame"),
    ],
)
def test_a_frame_that_cannot_be_read_says_why(given: dict[str, Any], why: str) -> None:
    with pytest.raises(errors.Damaged, match=why):
        frame.open_frame(body(**given), "row 3")


def test_a_bomb_is_not_unpacked_beyond_its_stated_length() -> None:
    bomb = body(flags=1, plain=1000, payload=zstd.compress(bytes(256 * 1024 * 1024), 1))

    tracemalloc.start()
    with pytest.raises(errors.Damaged) as refused:
        frame.open_frame(bomb, "row 3")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1024 * 1024
    assert "exactly one zstd frame of its length" in str(refused.value)


def test_two_packed_frames_are_not_one_body() -> None:
    two = zstd.compress(TEXT, 1) * 2

    with pytest.raises(errors.Damaged):
        frame.open_frame(body(flags=1, plain=len(TEXT), payload=two), "row 3")


def test_too_large_a_payload_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "PLAIN_BYTES_MAX", 10)

    with pytest.raises(errors.NotStorable, match="11 bytes, more than 10"):
        frame.seal(b"x" * 11)
