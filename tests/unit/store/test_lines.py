"""Large values of a run that resemble each other: stored as patches, read as what they were."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import Damaged
from holdfast.store.backends.memory import MemoryObjects
from holdfast.store.chain import Hashed
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from holdfast.store.lines import LINES_MAX, PATCHED_BYTES_MAX, Kept, Line
from holdfast.store.reference import PARTS_MAX, WHOLE, is_patch, is_reference, parts, whole

SEALS = Hashed(b"sixteen bytes id")
LARGE = random.Random(1).randbytes(CHUNK_BYTES_MIN)  # noqa: S311 a seed
GROWTH = 1_000


def grown(number: int, begin: bytes = LARGE) -> bytes:
    """A value to which something was added `number` times, and a count in front."""
    added = random.Random(number // 1000).randbytes(GROWTH * 100)  # noqa: S311 a seed
    return number.to_bytes(4, "big") + begin + added[: GROWTH * number]


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def chunks(objects: MemoryObjects) -> Chunks:
    return Chunks(objects, SEALS, with_patches=True)


def size(objects: MemoryObjects) -> int:
    return sum(len(objects.get(id_) or b"") for id_ in objects.ids())


def test_values_that_grow_take_what_was_added_and_come_back(
    chunks: Chunks, objects: MemoryObjects
) -> None:
    run = chunks.of_run()
    given = [grown(number) for number in range(64)]

    kept = [run.keep(data) for data in given]

    assert given == [chunks.fetch(reference) for reference in kept]
    assert [False, *[True] * 63] == [is_patch(reference) for reference in kept]
    assert size(objects) < len(given[-1]) * 3.5
    assert sum(map(len, given)) > len(given[-1]) * 40


def test_a_value_is_read_through_few_others(chunks: Chunks) -> None:
    run = chunks.of_run()

    deep = [len(parts(run.keep(grown(number)))) - 1 for number in range(64)]

    assert [number.bit_count() for number in range(64)] == deep


def test_a_line_begins_anew_before_references_grow_too_long() -> None:
    line, deepest = Line(), 0
    for number in range(5_000):
        base = line.base
        depth = 0 if base is None else int(base.reference[1:33].rstrip(b"\0") or b"0") + 1
        kept = Kept(whole(str(depth).encode().ljust(32, b"\0"), 1), {})
        line.begin(kept, LARGE) if base is None else line.go_on(kept, LARGE)
        deepest = max(deepest, depth)
        assert (base is None) == (number in (0, 4096))
    assert 12 == deepest < PARTS_MAX


def test_lines_are_kept_apart(chunks: Chunks) -> None:
    run = chunks.of_run()
    begins = [random.Random(n).randbytes(CHUNK_BYTES_MIN) for n in range(LINES_MAX)]  # noqa: S311

    for number in range(4):
        for begin in begins:
            data = grown(number, begin)
            reference = run.keep(data)
            assert data == chunks.fetch(reference)
            assert number.bit_count() == len(parts(reference)) - 1


def test_runs_patch_nothing_on_each_other_and_share_what_is_equal(
    chunks: Chunks, objects: MemoryObjects
) -> None:
    first = chunks.of_run().keep(grown(1))
    second = chunks.of_run().keep(grown(1))
    other = chunks.of_run().keep(grown(2))

    assert first == second
    assert not is_patch(other)
    assert 2 == len(list(objects.ids()))


def test_an_equal_value_is_the_same_reference(chunks: Chunks, objects: MemoryObjects) -> None:
    run = chunks.of_run()
    kept = [run.keep(grown(number)) for number in range(3)]
    before = list(objects.ids())

    assert kept[2] == run.keep(grown(2))
    assert kept[0] == run.keep(grown(0))
    assert before == list(objects.ids())


def test_what_is_like_nothing_or_too_large_is_stored_whole(chunks: Chunks) -> None:
    run = chunks.of_run()
    run.keep(grown(1))

    assert not is_patch(run.keep(random.Random(9).randbytes(CHUNK_BYTES_MIN)))  # noqa: S311
    assert not is_patch(run.keep(grown(1) + bytes(PATCHED_BYTES_MAX)))


def test_a_store_that_may_hold_no_patches_gets_none(objects: MemoryObjects) -> None:
    run = Chunks(objects, SEALS).of_run()

    assert [False] * 3 == [is_patch(run.keep(grown(number))) for number in range(3)]


def test_a_value_whose_predecessor_was_taken_away_is_stored_whole(
    chunks: Chunks, objects: MemoryObjects
) -> None:
    run = chunks.of_run()
    objects.remove(chunks.name(run.keep(grown(0))))

    kept = run.keep(grown(1))

    assert not is_patch(kept)
    assert grown(1) == chunks.fetch(kept)


def test_a_commit_brings_back_all_that_a_patch_is_made_on(
    chunks: Chunks, objects: MemoryObjects
) -> None:
    run = chunks.of_run()
    kept = [run.keep(grown(number)) for number in range(4)]
    for reference in kept[:3]:
        chunks.claim([reference])
    for id_ in list(objects.ids()):
        objects.remove(id_)

    for id_, body in chunks.claim(kept[3:]).items():
        objects.uphold(id_, body)

    assert grown(3) == chunks.fetch(kept[3])
    assert set(objects.ids()) == set(chunks.names(kept[3]))


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("fault", ["flipped", "other", "gone", "cut"])
def test_damage_is_named_where_it_is(
    chunks: Chunks, objects: MemoryObjects, part: int, fault: str
) -> None:
    run = chunks.of_run()
    kept = [run.keep(grown(number)) for number in range(4)]
    name = chunks.names(kept[3])[part]
    body = objects.get(name) or b""
    objects.remove(name)
    flipped = body[:-5] + bytes([body[-5] ^ 1]) + body[-4:]
    other = objects.get(chunks.name(kept[1])) or b""
    made = {"flipped": flipped, "other": other, "cut": body[:-3]}
    if fault != "gone":
        objects.put(name, made[fault])

    with pytest.raises(Damaged) as raised:
        chunks.fetch(kept[3])

    assert f"chunk {name.hex()}" == raised.value.where


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_changes_in_them_values_come_back(data: st.DataObject) -> None:
    chunks = Chunks(MemoryObjects(), SEALS, with_patches=True)
    run = chunks.of_run()
    values = [bytearray(LARGE), bytearray(bytes(CHUNK_BYTES_MIN))]
    for _ in range(data.draw(st.integers(1, 12))):
        value = data.draw(st.sampled_from(values))
        at = data.draw(st.integers(0, len(value)))
        cut = data.draw(st.sampled_from([0, 1, 500, 30_000]))
        value[at : at + cut] = data.draw(st.binary(max_size=50)) * data.draw(st.integers(0, 2_000))
        reference = run.keep(bytes(value))
        assert bytes(value) == chunks.fetch(reference)
        assert is_reference(reference) == (len(value) >= CHUNK_BYTES_MIN)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\xfe" + bytes(40),
        b"\xff" + bytes(40) + b"\xff" + bytes(40),
        (b"\xfe" + bytes(40)) * 2,
        (b"\xfe" + bytes(40)) * PARTS_MAX + b"\xff" + bytes(40),
        b"\xfe" + bytes(40) + b"\xff" + bytes(41),
        b"\x00" + bytes(40),
    ],
)
def test_what_is_no_reference(data: bytes) -> None:
    assert not is_reference(data)


def test_what_is_a_reference() -> None:
    longest = (b"\xfe" + bytes(40)) * (PARTS_MAX - 1) + bytes([WHOLE]) + bytes(40)

    assert is_reference(longest)
    assert PARTS_MAX == len(parts(longest))
