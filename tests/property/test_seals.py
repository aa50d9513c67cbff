"""Whatever stands where a seal, a key or an anchor belongs: an error of ours, never a value."""

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.parcel import MAGIC, from_bytes
from holdfast.errors import Damaged, HoldfastError, UsageError
from holdfast.store import anchor
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.keys.local import RootKey, parse
from holdfast.store.keys.passphrase import Passphrase
from holdfast.store.seal import keys
from holdfast.store.seal.sealed import Sealed

STORE = b"sixteen bytes id"
KEY = RootKey(b"k" * 32, "file")
MADE, SECRET = keys.make(STORE)
ROOT = MADE.root(SECRET, KEY)
SEALS = Sealed(MemoryRecords(), MADE)
RUN = SEALS.new(1)
ROW = RUN.row(5, b"before", b"some payload")

bits = st.binary(max_size=200)


@st.composite
def changed(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with a piece of it replaced, left out or doubled."""
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, len(data)))
    piece = draw(st.one_of(bits, st.just(data[start:end] * 2), st.just(b"")))
    return data[:start] + piece + data[end:]


@given(body=st.one_of(bits, changed(ROW.body)), mac=st.one_of(bits, changed(ROW.mac)))
def test_a_row_opens_only_as_it_was_sealed(body: bytes, mac: bytes) -> None:
    if (mac, body) == (ROW.mac, ROW.body):
        assert b"some payload" == RUN.open_row(ROW, b"before")
    else:
        with pytest.raises(Damaged):
            RUN.open_row(JournalRow(id=5, mac=mac, body=body), b"before")


@given(row=st.one_of(bits, changed(ROOT)))
def test_a_store_key_opens_only_as_it_was_wrapped(row: bytes) -> None:
    if row == ROOT:
        return
    with pytest.raises(HoldfastError):
        keys.unlock(row, STORE, KEY, "the store")


@given(digest=st.binary(min_size=32, max_size=32), body=bits)
def test_a_large_value_opens_only_as_it_was_sealed(digest: bytes, body: bytes) -> None:
    with pytest.raises(Damaged):
        SEALS.open_chunk(digest, body, "chunk")


@given(wrapped=bits)
def test_a_wrapped_key_of_any_bytes_is_refused(wrapped: bytes) -> None:
    cheap = bytes([4, 8, 1]) + wrapped[3:]
    for provider in (KEY, Passphrase("long enough")):
        with pytest.raises(HoldfastError):
            provider.unwrap(cheap, b"context", "it")
    with pytest.raises(Damaged):
        MADE.unwrap(1, wrapped)


@given(text=st.one_of(bits, st.text(max_size=80).map(str.encode)))
def test_a_key_of_any_bytes_has_32_or_is_refused(text: bytes) -> None:
    with contextlib.suppress(UsageError):
        assert 32 == len(parse(text, "variable K"))


@given(text=st.one_of(st.text(), st.text().map(anchor.PREFIX.__add__)))
def test_an_anchor_of_any_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        anchor.parse(text)


@given(parts=st.lists(bits, max_size=4), version=st.sampled_from([1, 2]))
def test_a_sealed_export_of_any_bytes_is_refused(parts: list[bytes], version: int) -> None:
    data = MAGIC + version.to_bytes(2, "big")
    data += b"".join(len(part).to_bytes(4, "big") + part for part in parts)

    with pytest.raises(HoldfastError):
        from_bytes(data + hashlib.sha256(data).digest(), "file", KEY)
