"""Sealed large values: one file for equal values, opened only by whoever knows what they are."""

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast.errors import Damaged
from holdfast.store.backends.memory import MemoryObjects, MemoryRecords
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from holdfast.store.codec.frame import seal
from holdfast.store.seal import keys
from holdfast.store.seal.sealed import Sealed

LARGE = b"large " * CHUNK_BYTES_MIN
OTHER = b"other " * CHUNK_BYTES_MIN


def sealed(store_id: bytes = bytes(16)) -> Sealed:
    return Sealed(MemoryRecords(), keys.make(store_id)[0])


def test_equal_values_are_one_object_under_a_name_that_says_nothing() -> None:
    objects, seals = MemoryObjects(), sealed()
    chunks = Chunks(objects, seals)

    assert chunks.keep(LARGE) == chunks.keep(LARGE)
    [name] = objects.ids()
    body = objects.get(name)
    assert name != hashlib.sha256(LARGE).digest()
    assert body is not None
    assert b"large" not in body
    assert chunks.fetch(chunks.keep(LARGE)) == LARGE


def test_equal_values_of_two_stores_have_other_names_and_other_bytes() -> None:
    first, second = MemoryObjects(), MemoryObjects()
    Chunks(first, sealed()).keep(LARGE)
    Chunks(second, sealed()).keep(LARGE)

    assert {*first.ids()}.isdisjoint({*second.ids()})
    assert first.get(next(first.ids())) != second.get(next(second.ids()))


def test_a_swapped_an_open_and_a_changed_object_are_refused() -> None:
    objects, seals = MemoryObjects(), sealed()
    chunks = Chunks(objects, seals)
    references = [chunks.keep(LARGE), chunks.keep(OTHER)]
    names = [chunks.name(each) for each in references]
    bodies = [objects.get(name) or b"" for name in names]

    flipped = bytes([*bodies[0][:-1], bodies[0][-1] ^ 1])
    for given in (bodies[1], seal(LARGE), LARGE, b"", flipped, bodies[0][:40]):
        spoilt = MemoryObjects()
        spoilt.put(names[0], given)
        with pytest.raises(Damaged, match=names[0].hex()):
            Chunks(spoilt, seals).fetch(references[0])


def test_the_key_covers_the_bytes_as_compressed() -> None:
    seals, digest = sealed(), hashlib.sha256(LARGE).digest()
    salts = {
        seals.seal_chunk(digest, frame)[8:40]
        for frame in (seal(LARGE), seal(LARGE)[:-1] + b"\x00", seal(OTHER))
    }

    assert len(salts) == 3


def test_an_object_of_another_place_does_not_open_under_this_stores_id(tmp_path: Path) -> None:
    made, _ = keys.make(bytes(16))
    moved = keys.StoreKeys(b"another store id", made._cipher, made._secret)  # noqa: SLF001 a thief's
    digest = hashlib.sha256(LARGE).digest()
    body = Sealed(MemoryRecords(), made).seal_chunk(digest, seal(LARGE))

    with pytest.raises(Damaged):
        Sealed(MemoryRecords(), moved).open_chunk(digest, body, str(tmp_path))


def test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself() -> None:
    made, _ = keys.make(bytes(16))
    digest, frame = hashlib.sha256(b"value").digest(), seal(b"value")
    header, payload = bytes([1, 2, 0, 0]) + frame[4:8], frame[8:]

    secret = made.chunks + digest
    salt = hashlib.blake2b(header + payload, key=secret, digest_size=32).digest()
    key = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"holdfast 1 chunk").derive(secret)
    bound = b"holdfast 1 chunk\0" + bytes(16) + made.name(b"chunk", digest) + header
    expected = header + salt + AESGCM(key).encrypt(bytes(12), payload, bound)

    assert expected == Sealed(MemoryRecords(), made).seal_chunk(digest, frame)
