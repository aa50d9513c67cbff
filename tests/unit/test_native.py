"""What is done in C gives what its twin in Python gives."""

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import native, plain
from holdfast.capture import digest as digests
from holdfast.capture import hashes
from holdfast.capture.check import first_difference
from holdfast.capture.digest import digest
from holdfast.capture.node import LOOSE
from holdfast.capture.state import State
from holdfast.capture.tracked import TrackedDict, TrackedList, track
from holdfast.engine.brief import brief
from holdfast.engine.question import Shape
from holdfast.model.journal import Answer, Call, Happened, LoopLeft, Row, TurnEnded, Usage
from holdfast.store.chain import Hashed
from holdfast.store.codec import values
from holdfast.store.codec.frame import seal
from holdfast.store.codec.texts import whole
from holdfast.store.codec.vault import Vault, vault
from holdfast.store.codec.veil import redact
from holdfast.store.cuttable import cuttable
from tests.property.test_state import World
from tests.unit.store.codec.keys import SAMPLES

R = TypeVar("R")
Value: TypeAlias = Any

compiled = pytest.mark.skipif(not native.is_compiled, reason="there was no C compiler")

FUNCTIONS = (
    "suspect", "hash_flat", "hash_items", "hash_list", "brief", "encode", "seal_row", "add_row",
    "track", "append", "set_items", "delta", "messages", "cuts", "is_same",
)  # fmt: skip


@contextmanager
def twins() -> Iterator[None]:
    """Everything is done in Python."""
    with pytest.MonkeyPatch.context() as patch:
        for name in FUNCTIONS:
            patch.setattr(native, name, None)
        yield


def in_python(function: Callable[..., R], *args: object) -> R:
    with twins():
        return function(*args)


texts = (
    st.text(max_size=80)
    | st.sampled_from([key for _, key in SAMPLES])
    | st.text("ab-_ ", max_size=70)
)
numbers = (
    st.integers()
    | st.sampled_from([0, 31, 32, -32, -33, 127, 128, 255, 256, 65535, 65536, 2**32, 2**63, 2**64])
    | st.integers(-(2**65), 2**65)
)
leaves = texts | numbers | st.floats() | st.booleans() | st.none() | st.binary(max_size=300)
odd = st.sampled_from([(1, "t"), {1, 2}, 1 + 2j, "\ud800", "half \udc80", range(3)])
flat = st.dictionaries(texts, leaves, max_size=40) | st.lists(leaves, max_size=40)
plain_values = st.recursive(
    leaves | odd,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=5),
)


def test_it_is_compiled_where_there_is_a_compiler() -> None:
    assert native.is_compiled or shutil.which("cc") is None


@given(st.lists(st.binary(max_size=200)), st.integers(0, 5000))
def test_the_hash_is_the_standard_one(parts: list[bytes], more: int) -> None:
    ours, theirs = native.sha256(), hashlib.sha256()
    for part in [*parts, bytes(more)]:
        ours.update(part)
        theirs.update(part)
        assert theirs.digest() == ours.copy().digest() == ours.digest()

    assert hashlib.sha256(memoryview(b"ab")).digest() == native.sha256(bytearray(b"ab")).digest()


@pytest.mark.parametrize("length", [*range(130), 4095, 4096, 4097])
def test_the_hash_of_every_length_near_a_block_is_the_standard_one(length: int) -> None:
    data = random.Random(length).randbytes(length)  # noqa: S311 a seed

    assert hashlib.sha256(data).digest() == native.sha256(data).digest()


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    """Bytes with words, long runs, beginnings of keys and keys among them."""
    parts = st.sampled_from(
        [b" ", b"-", b"word", b"a" * 19, b"b" * 20, b"c" * 90, b"sk-", b"eyJ", b"ya29.", b"AKIA",
         b"-----BEGIN ", b"hooks.slack.com/services/T", b"\x00\xff", b"12345678:AA", b"tiny"]
    )  # fmt: skip
    keys = st.sampled_from([key.encode() for _, key in SAMPLES])
    return b"".join(draw(st.lists(parts | keys | st.binary(max_size=30), max_size=30)))


@settings(max_examples=500)
@given(packed(), st.booleans())
def test_a_look_for_secrets_is_the_same(data: bytes, knows: bool) -> None:
    known = Vault(environment={})
    if knows:
        known.declare("env:ONE", None, "tiny word")
        known.declare("env:TWO", None, "b" * 20 + "word")

    assert in_python(known.may_hold, data) == known.may_hold(data)


@settings(max_examples=300)
@given(flat | plain_values)
@example([{"a": 1}, {"a": 1}])
def test_a_digest_is_the_same(value: Value) -> None:
    state, other = State({"v": value}), in_python(State, {"v": value})

    for each in (value, track(value), state.root, state.root["v"]):
        assert in_python(digest, value if each is not state.root else other.root) == digest(each)


@settings(max_examples=300)
@given(plain_values)
def test_encoded_bytes_are_the_same(value: Value) -> None:
    shared = [value, value]

    for each in (value, track(value), shared, {"k": shared}):
        assert in_python(values.encode, each) == values.encode(each)


@settings(max_examples=300)
@given(plain_values)
@example("\u2026" * 70)
@example({"a": [1, 2, 3, {"b": 1}], "c": {}, "d": []})
def test_a_short_form_is_the_same(value: Value) -> None:
    def chat(value: object) -> None: ...

    asked = Shape("chat", chat).question((value,), {}).asked

    assert [redact(brief(value))] == [each.brief for each in asked]
    assert [redact(brief(track(value)))] == [each.brief for each in asked]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64), st.integers(10, 60))
def test_a_history_of_a_state_is_written_the_same(seed: int, acts: int) -> None:
    def history() -> list[bytes]:
        chance = random.Random(seed)  # noqa: S311 a seed
        world = World(check=False)
        for _ in range(acts):
            world.act(*(chance.randrange(10_000) for _ in range(4)))
        world.end_turn()
        return world.log

    assert in_python(history) == history()


def message(chance: random.Random) -> Value:
    made: dict[Any, Any] = {"role": chance.choice("au"), "content": "w" * chance.randrange(200)}
    if chance.random() < 0.3:
        made["calls"] = [{"name": "f", "arguments": {"n": chance.random()}} for _ in range(2)]
    if chance.random() < 0.1:
        made[chance.choice(["k", 1])] = chance.choice([2**70, "\ud800", (1,), None])
    return made


def say(state: State, turn: int, chance: random.Random) -> None:
    messages, variables = state.root["messages"], state.root["vars"]
    for _ in range(chance.randrange(4)):
        said = message(chance)
        if chance.random() < 0.5:
            said = track(said, source=(turn, chance.randrange(3)))
        messages.append(said)
    match chance.randrange(8):
        case 0:
            state.root["messages"] = messages[-chance.randrange(1, 5) :]
        case 1:
            variables.pop(f"v{chance.randrange(4)}", None)
        case 2:
            state.root["last"] = {"m": messages[-1] if messages else None, "n": turn}
        case 3 if messages:
            messages[-1]["content"] = "changed"
        case 4:
            messages.extend(message(chance) for _ in range(40))
        case 5:
            variables[chance.choice(["v1", "new", 7])] = chance.choice([1, "x", [1]])
        case _:
            variables.update({f"v{turn}": turn, "v1": turn})


def converse(seed: int) -> list[bytes | None]:
    """What usual agents do: messages, answers, variables; trimmed, replaced, deleted."""
    chance = random.Random(seed)  # noqa: S311 a seed
    state = State({"messages": [], "vars": {f"v{n}": n for n in range(chance.choice([3, 60]))}})
    saves: list[bytes | None] = [state.base()]
    state.locate((1, 0))
    for turn in range(2, 30):
        say(state, turn, chance)
        saves += [digest(state.root["messages"]), digest(state.root["vars"])]
        if chance.random() < 0.15:
            saves.append(state.base())
            state.locate((turn, 7))
        saves.append(state.delta())
        if saves[-1] is not None:
            state.locate((turn, 8) if chance.random() < 0.9 else None)
    return saves


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**64))
def test_a_conversation_is_written_the_same(seed: int) -> None:
    assert in_python(converse, seed) == converse(seed)


def change_here_and_there(seed: int) -> list[Any]:
    """Changes of one long list far apart and side by side, many in one turn."""
    chance = random.Random(seed)  # noqa: S311 a seed
    state = State({"l": [{"n": n} if n % 3 else f"text {n}" for n in range(300)]})
    items, saves = state.root["l"], [state.base()]
    for turn in range(10):
        for _ in range(chance.randrange(1, 9)):
            at = chance.randrange(len(items))
            match chance.randrange(8):
                case 0:
                    items.insert(0, {"new": [turn]})
                    items.pop()
                case 1:
                    items.insert(at, turn)
                case 2:
                    items.pop(chance.choice([0, at]))
                case 3:
                    items[at : at + 3] = [turn, "two"]
                case 4:
                    items[at] = turn
                case _:
                    items.append(chance.choice([turn, {"n": turn}]))
        delta = state.delta()
        assert delta is not None
        saves.append(delta)
        found = State.restore(saves[0], saves[1:], lambda _: None)
        assert first_difference(state.root, found.root) is None
    return saves


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**64))
def test_changes_far_apart_are_written_the_same(seed: int) -> None:
    assert in_python(change_here_and_there, seed) == change_here_and_there(seed)


def lengthen(items: list[Any], chance: random.Random) -> None:
    """Change a long list in one of the ways that lists change."""
    match chance.randrange(8):
        case 0:
            del items[chance.randrange(len(items)) :]
        case 1:
            items[:] = items[chance.randrange(40) :]
        case 2 if items:
            items[chance.randrange(len(items))] = message(chance)
        case 3 if items:
            items[-1]["content"] = f"changed {chance.random()}"
        case 4:
            items.insert(chance.randrange(len(items) + 1), message(chance))
        case 5:
            items.extend(message(chance) for _ in range(chance.randrange(200)))
        case _:
            items.append(message(chance))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**64))
def test_the_digest_of_a_long_list_is_the_same_whatever_was_known_before(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 a seed
    state = State({"messages": [message(chance) for _ in range(chance.randrange(30, 100))]})
    for _ in range(12):
        lengthen(state.root["messages"], chance)
        if not state.root["messages"]:
            return
        assert in_python(digest, plain(state.root["messages"])) == digest(state.root["messages"])


@settings(max_examples=100)
@given(st.binary(max_size=64), st.integers(0, 2**63 - 1), st.binary(max_size=40), st.binary())
def test_a_row_is_sealed_the_same(store: bytes, id_: int, before: bytes, payload: bytes) -> None:
    for each in (payload, payload * 50):
        row = Hashed(store).row(id_, before, each)
        assert in_python(Hashed(store).row, id_, before, each) == row


@compiled
@pytest.mark.parametrize("size", [0, 4095, 4096, 4097])
def test_a_row_up_to_where_it_is_compressed_is_sealed_in_c(size: int) -> None:
    assert native.seal_row is not None
    made = native.seal_row(b"store", 7, b"before", bytes(size))

    assert (None if size >= 4096 else in_python(row_of, size)) == made


def row_of(size: int) -> tuple[bytes, bytes]:
    row = Hashed(b"store").row(7, b"before", bytes(size))
    return row.mac, row.body


def rows_of(saves: list[bytes | None], chance: random.Random) -> list[bytes]:
    """Frames of journal rows that hold these saves, and answers like those in them."""
    call, frames = Call(0, "chat", b"d" * 16, 0, 0, False, []), []
    for turn, save in enumerate(saves):
        value = values.encode(message(chance))
        entries: list[Any] = [
            TurnEnded(turn, 1, 0.5, save, None, False, Usage(), 1),
            Answer(call, value, 1.0, 0.1, Usage(tokens_in=3, model="m")),
            Happened(call, "key", value, 1.0, 0.1, "call", None),
            LoopLeft(turn, 1, save),
        ]
        frames.append(seal(whole(Row(-1, turn, chance.sample(entries, 3)))))
    return frames


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64))
def test_the_same_values_are_cut_out_of_rows(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 a seed
    for frame in rows_of([*converse(seed), None], chance):
        assert in_python(cuttable, frame) == cuttable(frame)
        broken = bytearray(frame)
        for _ in range(3):
            broken[chance.randrange(8, len(broken))] = chance.randrange(256)
            cuttable(bytes(broken))  # Whatever it finds: nothing breaks.


@settings(max_examples=500)
@given(st.binary(max_size=200))
def test_rows_that_are_none_break_nothing(data: bytes) -> None:
    assert cuttable(seal(data)) == in_python(cuttable, seal(data))
    assert cuttable(seal(b"\x93\x00\x00\x91\x95\x08\x00\x01\xc0\xc4" + data)) is not None


@compiled
def test_a_usual_conversation_is_written_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare the twins with themselves."""
    state = State({"messages": [], "vars": {"a": 1}})
    state.base()
    state.locate((1, 0))
    for name in ("_lower", "_operation"):
        monkeypatch.delattr(State, name)
    monkeypatch.delattr(digests, "_places_of")
    monkeypatch.delattr(hashes.Cache, "complete")
    for name in ("_splice", "hf_note"):
        monkeypatch.delattr(TrackedList, name)
    monkeypatch.delattr(TrackedDict, "hf_note")

    for turn in range(40):
        state.root["messages"].append({"role": "user", "content": "hello", "calls": turn})
        state.root["messages"].append(track({"role": "model", "content": "hi"}, source=(turn, 1)))
        state.root["vars"].update({"a": turn, "b": 2})
        state.root["vars"]["c"] = turn
        assert len(digest(state.root["messages"])) == 32
        assert state.delta() is not None
        state.locate((turn, 2))

    assert native.append is not None
    assert native.brief is not None
    assert native.messages is not None
    assert len(native.messages(state.root["messages"], 10**6, 0, [])) == 0  # They are small.
    said = [track({"content": "long " * 20}, source=(n, 1)) for n in range(5)]
    assert native.messages(said, 0, 7, []) == [(1, (n, 1)) for n in range(5)]
    assert [each.hf_node for each in said] == [7, 8, 9, 10, 11]
    assert native.brief(state.root["messages"], vault.signs) is not None
    assert native.brief(["long " * 30], vault.signs) == brief(["long " * 30])
    assert not native.append(state.root["messages"], {"plain": "and held"}, -1)
    assert len(state.root["messages"]) == 80


def test_an_item_that_somebody_holds_is_watched_as_ever() -> None:
    state = State({"messages": []})
    held = {"role": "user"}
    state.root["messages"].append(held)
    held["role"] = "changed"

    with pytest.raises(Exception, match=r'state\["messages"\]\[0\]'):
        state.base()


@compiled
def test_arguments_of_other_types_are_refused() -> None:
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("bind", ()), ("bind", (int,) * 13), ("suspect", ("text", vault.signs)),
        ("suspect", (b"", None)), ("hash_flat", ([], vault.signs)), ("hash_flat", ({}, (1, 2))),
        ("hash_items", ()), ("brief", ()), ("encode", (1,)), ("track", ()), ("append", ([], 1, 2)),
        ("messages", ()), ("cuts", ()), ("cuts", (b"", [])), ("is_same", ({}, [])),
        ("set_items", ({}, {})), ("delta", ([], 0, 0, 0)),
        ("hash_items", ([], 0, 1, b"", LOOSE, 0)), ("hash_list", ([], 1, LOOSE, vault.signs)),
        ("seal_row", (b"", 1, b"")), ("seal_row", (b"", "1", b"", b"")), ("add_row", ()),
        ("add_row", ((1, 2), memoryview(bytes(64)), 0, 0, 0, 1, b"", b"")),
        ("add_row", ((1, 2, 3), memoryview(bytes(64)), 0, 0, 0, 1, "", b"")),
    ]  # fmt: skip

    for name, args in calls:
        with pytest.raises(TypeError):
            getattr(native, name)(*args)
    for args in (("text",), (1, 2)):
        with pytest.raises(TypeError):
            native.sha256(*args)


@compiled
@pytest.mark.parametrize("name", ["encode", "hash_flat", "brief", "track", "append", "delta"])
def test_without_memory_nothing_breaks(name: str) -> None:
    testing = pytest.importorskip("_testcapi", reason="this Python has no faulty allocator")
    wanted = {"a": "b" * 3000, "c": 1.5, "\u00e9": None}
    call = getattr(native, name)
    for first in range(30):
        state = State({"messages": [], "more": {"deep": {"er": []}}})
        state.root["messages"].append(wanted)
        args: dict[str, tuple[object, ...]] = {
            "track": (wanted, (1, 2)),
            "append": (state.root["messages"], track(wanted), -1),
            "delta": ([state.root], -1, 0, 10**6, vault.signs),
        }
        given_args = args.get(name, (wanted, vault.signs))
        testing.set_nomemory(first, first + 1)
        try:
            call(*given_args)
        except MemoryError:
            pass
        finally:
            testing.remove_mem_hooks()
        assert State.restore(state.base(), [], lambda _: None).root == state.root
