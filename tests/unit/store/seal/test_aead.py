"""AES-256-GCM bound to a place: vectors, wrong key by wrong place, nonces that never repeat."""

import random
from itertools import product

import pytest

from holdfast.errors import Damaged
from holdfast.store.codec.frame import HEADER_BYTES, open_frame, seal
from holdfast.store.seal.aead import MAC_BYTES, NONCE_BYTES, Cipher, derive

KEYS = [bytes([n]) * 32 for n in range(4)]
PLACES = [b"", b"a", b"ab", b"row 1", b"row 2"]
FRAMES = [seal(b""), seal(b"a"), seal(b"text"), seal(b"text" * 2000)]
SEALS_MANY = 20_000
# Made apart from the code, with hmac, hashlib and AES-GCM alone, from what docs/format.md says.
EXPECTED_MAC = "a003cde729bc10eae5ad05bc2f00deb9960c7366633e4ac2b783b7b5"
EXPECTED_BODY = "01020003000000094885cced3bff1f48ec"


def test_hkdf_gives_what_rfc_5869_says() -> None:
    secret, salt = b"\x0b" * 22, bytes(range(13))
    info = bytes(range(0xF0, 0xFA))
    expected = (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )

    assert expected == derive(secret, info, 42, salt=salt).hex()


def test_what_is_sealed_today_is_what_was_sealed_in_version_1() -> None:
    mac, body = Cipher(bytes(range(32)), 3).seal(b"place", seal(b"a payload"))

    assert (EXPECTED_MAC, EXPECTED_BODY) == (mac.hex(), body.hex())


def test_only_the_right_key_in_the_right_place_opens() -> None:
    opened = 0

    for key, place, frame in product(KEYS, PLACES, FRAMES):
        mac, body = Cipher(key, 1).seal(place, frame)
        for other, elsewhere in product(KEYS, PLACES):
            cipher = Cipher(other, 1)
            if (other, elsewhere) == (key, place):
                assert frame == cipher.open(elsewhere, mac, body, "it")
                opened += 1
            else:
                with pytest.raises(Damaged, match="seal does not match"):
                    cipher.open(elsewhere, mac, body, "it")

    assert len(KEYS) * len(PLACES) * len(FRAMES) == opened


def test_another_key_id_is_refused_and_named() -> None:
    mac, body = Cipher(KEYS[0], 1).seal(b"", FRAMES[1])

    with pytest.raises(Damaged, match="sealed with key 1, not with its own, 2"):
        Cipher(KEYS[0], 2).open(b"", mac, body, "row 7")


@pytest.mark.parametrize("frame", FRAMES)
def test_open_bytes_are_damage_and_never_data(frame: bytes) -> None:
    cipher = Cipher(KEYS[0], 1)
    mac, _ = cipher.seal(b"", frame)

    for given in (mac, b"", bytes(MAC_BYTES)):
        with pytest.raises(Damaged, match="not sealed"):
            cipher.open(b"", given, frame, "row 7")


def test_a_sealed_frame_is_refused_where_nothing_is_sealed() -> None:
    _, body = Cipher(KEYS[0], 1).seal(b"", FRAMES[1])

    with pytest.raises(Damaged, match="it is sealed"):
        open_frame(body, "row 7")


def test_every_bit_and_every_cut_of_seal_and_body_is_noticed() -> None:
    cipher = Cipher(KEYS[1], 1)
    mac, body = cipher.seal(b"place", seal(b"payload"))

    for bit in range(len(mac) * 8):
        with pytest.raises(Damaged):
            cipher.open(b"place", _flipped(mac, bit), body, "it")
    for bit in range(len(body) * 8):
        with pytest.raises(Damaged):
            cipher.open(b"place", mac, _flipped(body, bit), "it")
    for length in range(len(body)):
        with pytest.raises(Damaged):
            cipher.open(b"place", mac, body[:length], "it")
    for length in range(len(mac)):
        with pytest.raises(Damaged):
            cipher.open(b"place", mac[:length], body, "it")


def test_a_nonce_covers_place_header_and_every_byte_and_tells_them_apart() -> None:
    cipher = Cipher(KEYS[0], 1)
    messages = [(b"ab", b"c"), (b"a", b"bc"), (b"", b"abc"), (b"abc", b""), (b"ab", b"d")]

    assert len(messages) == len({cipher.nonce(place, text) for place, text in messages})


def test_no_key_and_nonce_come_twice_over_different_messages() -> None:
    chance = random.Random(5)  # noqa: S311 a fixed choice of messages
    ciphers = [Cipher(key, 1) for key in KEYS]
    seen: dict[tuple[int, bytes], tuple[bytes, bytes]] = {}

    for _ in range(SEALS_MANY):
        which = chance.randrange(len(ciphers))
        place = b"row" + chance.randrange(64).to_bytes(8, "big")
        frame = seal(chance.randbytes(chance.randrange(3)))
        mac, _ = ciphers[which].seal(place, frame)
        known = seen.setdefault((which, mac[:NONCE_BYTES]), (place, frame))
        assert known == (place, frame)

    assert len(seen) > SEALS_MANY // 4


def test_a_commitment_says_which_key_is_meant() -> None:
    commitments = {Cipher(key, 1).commitment for key in KEYS}

    assert len(KEYS) == len(commitments)
    assert Cipher(KEYS[0], 1).commitment == Cipher(KEYS[0], 9).commitment


def test_the_header_stays_readable_and_says_sealed() -> None:
    frame = seal(b"text" * 2000)
    _, body = Cipher(KEYS[0], 7).seal(b"", frame)

    assert (frame[0], frame[1] | 2, 7, frame[4:8]) == (
        body[0],
        body[1],
        int.from_bytes(body[2:4], "big"),
        body[4:HEADER_BYTES],
    )
    assert len(frame) == len(body)


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
