"""Large values lie aside under their hash; whoever reads them finds exactly those bytes."""

import pytest

from holdfast.errors import Damaged
from holdfast.store.backends.memory import MemoryObjects
from holdfast.store.chain import Hashed
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from holdfast.store.codec.frame import seal
from holdfast.store.reference import is_reference

LARGE = b"\x00" + bytes(CHUNK_BYTES_MIN)
SEALS = Hashed(b"sixteen bytes id")


def test_small_bytes_stay_what_they_are() -> None:
    objects = MemoryObjects()
    small = LARGE[: CHUNK_BYTES_MIN - 1]

    assert small is Chunks(objects, SEALS).keep(small)
    assert [] == list(objects.ids())


def test_large_bytes_are_kept_once_and_come_back() -> None:
    objects = MemoryObjects()
    chunks = Chunks(objects, SEALS)

    references = {chunks.keep(LARGE), chunks.keep(bytes(bytearray(LARGE)))}

    [reference] = references
    assert is_reference(reference)
    assert 41 == len(reference)
    assert LARGE == chunks.fetch(reference)
    assert 1 == len(list(objects.ids()))


def test_a_chunk_that_is_gone_is_named() -> None:
    reference = Chunks(MemoryObjects(), SEALS).keep(LARGE)

    with pytest.raises(Damaged, match="it is named but not there"):
        Chunks(MemoryObjects(), SEALS).fetch(reference)


@pytest.mark.parametrize("found", [LARGE + b"x", LARGE[:-1] + b"x"])
def test_a_chunk_with_other_bytes_is_refused(found: bytes) -> None:
    reference = Chunks(MemoryObjects(), SEALS).keep(LARGE)
    objects = MemoryObjects()
    objects.put(reference[1:33], seal(found))

    with pytest.raises(Damaged, match="its bytes do not match its name"):
        Chunks(objects, SEALS).fetch(reference)
