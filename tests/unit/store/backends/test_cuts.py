"""Values beside rows: what was cut makes the row again byte by byte, and is known by its name."""

import msgspec
import pytest

from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.cuts import cut, joined, named
from holdfast.store.codec.frame import seal

pack = msgspec.msgpack.encode

VALUES = [{"author": "kelp", "text": "x" * n} for n in (20, 40, 60)]
RAWS = [pack(value) for value in VALUES]
PLAIN = seal(b"before " + RAWS[0] + b" between " + RAWS[1])
REPEATED = seal(RAWS[2] + RAWS[2])
LONG = seal(b"a base " * 900 + RAWS[0])
FULL = seal(b"".join(RAWS) * 60)
CUTS = {
    PLAIN: [(1, 0, -1, RAWS[0]), (1, 1, 4, RAWS[1])],
    REPEATED: [(1, 3, 0, RAWS[2]), (1, 3, 1, RAWS[2]), (1, 3, 2, RAWS[2])],
    LONG: [(1, 2, -1, RAWS[0])],
    FULL: [(1, 2, n, RAWS[2]) for n in range(100)],
}


def rows(*bodies: bytes) -> list[JournalRow]:
    return [JournalRow(id=7 + n, mac=bytes([n]) * 32, body=body) for n, body in enumerate(bodies)]


def test_rows_come_back_as_they_were_and_values_by_their_names() -> None:
    given = rows(PLAIN, seal(b"nothing to cut"), b"", REPEATED)

    values, pieces = cut(given, lambda body: CUTS.get(body, []))

    assert given == joined(7, values, pieces)
    names, found = named(7, values)
    assert [(1, 7, 0, -1), (1, 7, 1, 4), (1, 10, 3, 0), (1, 10, 3, 1)] == names
    assert [VALUES[0], VALUES[1], VALUES[2], VALUES[2]] == found
    assert 1 == (values + pieces).count(RAWS[0])


def test_little_of_a_compressed_row_is_copied_and_much_is_left_in_it() -> None:
    given = rows(LONG, FULL)

    values, pieces = cut(given, lambda body: CUTS[body])

    assert given == joined(7, values, pieces)
    assert ([(1, 7, 2, -1)], [VALUES[0]]) == named(7, values)


@pytest.mark.parametrize(
    ("values", "pieces", "why"),
    [
        ([[[1], [0], [0], [0]], [{}, {}]], [[b"mac", b"a", b"b"]], "argument 2 is longer"),
        ([[[1], [0], [0], [0]], [{}]], [[b"mac", b"a", b"b", b"c"]], "3 pieces around 1 values"),
        ([[[1], [0], [0], [0]], [{}]], [[b"mac"]], "0 pieces around 1 values"),
        ([[[1], [3], [0], [0]], [{}]], [[b"mac", b"a"]], "values of row 3"),
        ([[[], [], [], []], []], [[]], "not enough values"),
        ([[[], [], [], []], []], [["text"]], "Expected `bytes`"),
        ([[[], []], []], [], "at least length 4"),
    ],
)
def test_what_does_not_fit_together_is_refused(values: object, pieces: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        joined(7, pack(values), pack(pieces))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([[[1], [0], [0], [0]], []], "names 1 values and holds 0"),
        ([[[1], [0, 1], [0], [0]], [{}]], "longer"),
        ([[[1], [0], [0], [0]], [msgspec.msgpack.Ext(3, b"x")]], "holds an item 3"),
    ],
)
def test_values_that_are_not_as_many_as_their_names_are_refused(values: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        named(7, pack(values))
