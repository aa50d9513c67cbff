"""Records in slots: what is read back of a file that is whole, old, cut or damaged."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.backends import slots
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.slots import SLOT

IDS = st.integers(0, 2**63 - 1)
ROWS = st.builds(JournalRow, id=IDS, mac=st.binary(max_size=40), body=st.binary(max_size=9000))
SEED = slots.seed(bytes(range(16)))
RECORDS = st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=5)


def file_of(records: list[list[JournalRow]], generation: int = 1) -> bytes:
    """A file that holds these records, and zeros behind them."""
    data = b""
    for rows in records:
        data += slots.record(rows, SEED, generation, len(data))
        data = data.ljust(slots.behind(len(data)), b"\0")
    return data + bytes(SLOT)


def row(number: int, size: int = 100) -> JournalRow:
    return JournalRow(id=number, mac=bytes([number]) * 32, body=bytes([number]) * size)


@given(RECORDS)
def test_what_was_written_is_read_from_any_record_on(records: list[list[JournalRow]]) -> None:
    data = file_of(records)
    starts = [slots.behind(len(slots.record(rows, SEED, 1, 0))) for rows in records]

    for n in range(len(records) + 1):
        at = sum(starts[:n])
        found = slots.read(data[at:], SEED, 1, at)

        assert [each for rows in records[n:] for each in rows] == found.rows
        assert sum(starts) == found.end
        assert not found.is_damaged


@pytest.mark.parametrize("bit", range(0, 8 * 180, 7))
def test_a_record_with_a_changed_bit_is_none_and_damage_if_more_follow(bit: int) -> None:
    last, before = bytearray(file_of([[row(1)]])), bytearray(file_of([[row(1)], [row(2)]]))
    for data in (last, before):
        data[bit >> 3] ^= 1 << (bit & 7)
    is_beyond = bit >> 3 >= len(slots.record([row(1)], SEED, 1, 0))

    assert slots.read(bytes(last), SEED, 1) == slots.Read(
        [row(1)] if is_beyond else [], SLOT if is_beyond else 0, is_damaged=False
    )
    found = slots.read(bytes(before), SEED, 1)
    assert [row(1), row(2)][not is_beyond :] == found.rows
    assert (not is_beyond) == found.is_damaged


def test_what_an_older_generation_left_is_none() -> None:
    old = file_of([[row(1)], [row(2, 9000)], [row(3)]], 4)
    new = slots.record([row(4)], SEED, 5, 0)

    found = slots.read(new.ljust(SLOT, b"\0") + old[SLOT:], SEED, 5)

    assert slots.Read([row(4)], SLOT, is_damaged=False) == found


def test_a_record_of_a_later_generation_is_damage() -> None:
    data = file_of([[row(1)]], 6)

    assert slots.Read([], 0, is_damaged=True) == slots.read(data, SEED, 5)
    assert 6 == slots.newest(data, SEED)
    assert -1 == slots.newest(bytes(3 * SLOT), SEED)


def test_a_record_that_stands_elsewhere_is_none() -> None:
    data = file_of([[row(1)], [row(2)]])

    assert [] == slots.read(data[SLOT:], SEED, 1).rows
    assert [row(1)] == slots.read(data[:SLOT] + data[:SLOT], SEED, 1).rows


@pytest.mark.parametrize("size", [0, 1, 23, 24, 100, SLOT - 1, SLOT, SLOT + 1, SLOT + 9000])
def test_a_file_that_was_cut_holds_what_is_whole(size: int) -> None:
    found = slots.read(file_of([[row(1)], [row(2, 9000)]])[:size], SEED, 1)

    assert ([row(1)] if size >= len(slots.record([row(1)], SEED, 1, 0)) else []) == found.rows
    assert not found.is_damaged


def test_a_record_of_another_store_is_none() -> None:
    data = slots.record([row(1)], slots.seed(bytes(16)), 7, 0)

    assert slots.Read([], 0, is_damaged=False) == slots.read(data, SEED, 1)
    assert -1 == slots.newest(data, SEED)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"short",
        struct.pack(">QBI", 1, 0, 5) + b"more than it says",
        struct.pack(">QBI", 1, 32, 500) + b"less than it says",
    ],
)
def test_a_record_that_its_rows_do_not_fill_is_none(payload: bytes) -> None:
    head = struct.pack(">4sQII", b"HFt1", 1, 0, len(payload))
    data = head + zlib.crc32(payload, zlib.crc32(head, SEED)).to_bytes(4, "big") + payload

    assert slots.Read([], 0, is_damaged=False) == slots.read(data, SEED, 1)


def test_what_a_row_holds_is_never_taken_for_a_record() -> None:
    forged = slots.record([row(9)], SEED, 1, SLOT)
    body = b"x" * (SLOT - len(slots.record([row(1, 0)], SEED, 1, 0))) + forged

    holder = JournalRow(id=1, mac=row(1).mac, body=body)

    assert [holder] == slots.read(file_of([[holder]]), SEED, 1).rows
