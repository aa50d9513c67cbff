"""Quick tests for planted faults that no other quick test would notice."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import failpoint
from holdfast.errors import Damaged
from holdfast.store.chain import Hashed
from holdfast.store.codec import values
from holdfast.store.codec.frame import HEADER_BYTES, seal
from holdfast.store.gc import objects
from holdfast.store.seal.aead import NONCE_BYTES, Cipher
from holdfast.testing.kit import CrashAt
from holdfast.testing.world import World

DOCUMENT = "text" * 30_000
MESSAGE = b"the same beginning of a message"


@holdfast.step
def think(about: object) -> object:
    return about


def test_a_value_that_a_row_names_since_the_first_mark_is_not_removed(tmp_path: Path) -> None:
    @holdfast.agent
    def reader(_: holdfast.Run) -> object:
        return think(DOCUMENT)

    with holdfast.open(tmp_path) as store:
        opened = store._opened  # noqa: SLF001 the moment between the marks is not public
        opened.chunks.keep(values.encode(DOCUMENT))
        named = objects.Named(opened)
        garbage = objects.unnamed(opened, named)
        store.run(reader, id="run")

        assert 1 == len(garbage)
        assert [] == objects.remove(opened, named, garbage)
        assert DOCUMENT == store.run(reader, id="run")


def test_what_stands_in_place_of_a_pruned_row_is_checked() -> None:
    hashed = Hashed(b"a store's own id")
    pruned = hashed.prune(hashed.row(5, b"before", b"what it held"), b"nothing")
    forged = hashed.prune(hashed.row(6, b"before", b"what it held"), b"anything else")

    assert b"nothing" == hashed.open_row(pruned, b"before")
    with pytest.raises(Damaged):
        hashed.open_row(replace(pruned, body=forged.body), b"before")


def test_a_journal_that_ends_too_early_is_never_read_as_whole(tmp_path: Path) -> None:
    @holdfast.agent
    def thinker(_: holdfast.Run) -> list[object]:
        return [think(n) for n in range(5)]

    with holdfast.open(tmp_path) as store:
        store.run(thinker, id="run")
        reader = store._opened.reader  # noqa: SLF001 rows are not public
        run = reader.find("run")
        assert run is not None
        first, last = reader.first(run.row.head), reader.end(run.row.head)

        assert last == [*reader.rows(run.row.head, first, last)][-1].id
        with pytest.raises(Damaged, match="it is missing"):
            list(reader.rows(run.row.head, first, last + 1))


@pytest.mark.parametrize(
    ("place", "payload"),
    [(b"a place", b"the same beginning, another end"), (b"another place", MESSAGE)],
    ids=["another end", "another place"],
)
def test_two_messages_are_never_sealed_under_one_nonce(place: bytes, payload: bytes) -> None:
    # Under one nonce the difference of two messages stands in clear, and tags can be forged.
    cipher = Cipher(bytes(32), 1)
    one, first = cipher.seal(b"a place", seal(MESSAGE))
    two, second = cipher.seal(place, seal(payload))

    assert one[:NONCE_BYTES] != two[:NONCE_BYTES]
    assert _difference(MESSAGE, payload) != _difference(first[HEADER_BYTES:], second[HEADER_BYTES:])


def _difference(one: bytes, two: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, two, strict=False))


def test_an_effect_killed_right_after_it_was_done_is_not_done_again(
    crash_at: CrashAt, crash_world: World
) -> None:
    @holdfast.effect
    def pay(order: str) -> str:
        crash_world.do("pay", order)
        return f"receipt of {order}"

    @holdfast.agent
    def buyer(_: holdfast.Run) -> str:
        return pay("order-1")

    survived = crash_at("effect.called")(buyer)

    assert "receipt of order-1" == survived.result
    assert ("pay",) == survived.doubts


def test_an_effect_killed_right_before_it_is_done_is_done_after_all(
    crash_at: CrashAt, crash_world: World
) -> None:
    def find(order: str) -> str | None:
        return f"receipt of {order}" if crash_world.has("pay", order) else None

    @holdfast.effect(probe=find)
    def pay(order: str) -> str:
        crash_world.do("pay", order)
        return f"receipt of {order}"

    @holdfast.agent
    def buyer(_: holdfast.Run) -> str:
        return pay("order-1")

    assert "receipt of order-1" == crash_at("effect.intended")(buyer).result


def test_an_answer_that_was_handed_out_is_never_asked_for_again(
    crash_at: CrashAt, crash_world: World
) -> None:
    @holdfast.step
    def draw() -> int:
        crash_world.do("draw")
        return len(crash_world.deeds("draw"))

    @holdfast.agent
    def gambler(_: holdfast.Run) -> int:
        return draw()

    assert 1 == crash_at("step.recorded")(gambler).result


def test_a_result_that_was_handed_out_is_the_result_for_ever(tmp_path: Path) -> None:
    @holdfast.agent
    def counter(_: holdfast.Run) -> int:
        calls.append("called")
        return len(calls)

    def photograph() -> None:
        shutil.copytree(tmp_path / "store", copy)

    calls: list[str] = []
    copy = tmp_path / "copy"
    with holdfast.open(tmp_path / "store") as store:
        failpoint.arm("run.ended", photograph)
        assert 1 == store.run(counter, id="run")
    failpoint.disarm()

    with holdfast.open(copy) as store:
        assert 1 == store.run(counter, id="run")
