"""The key hierarchy: only the provider's key opens a store, and everything in clear is bound."""

import hashlib

import msgspec
import pytest

from holdfast.errors import Damaged, WrongKey
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.keys.local import RootKey
from holdfast.store.keys.passphrase import Passphrase
from holdfast.store.seal import keys, sealed
from holdfast.store.seal.aead import Cipher, derive
from holdfast.store.seal.keys import Root, StoreKeys
from holdfast.store.seal.provider import unwrap, wrap

STORE = b"sixteen bytes id"
MINE, OTHER = RootKey(b"m" * 32, "file"), RootKey(b"o" * 32, "file")
CHEAP = (4, 8, 1)


def a_store() -> tuple[StoreKeys, bytes]:
    made, key = keys.make(STORE)
    return made, made.root(key, MINE)


def test_the_providers_key_opens_the_store_and_gives_the_same_names() -> None:
    made, row = a_store()

    again = keys.unlock(row, STORE, MINE, "the store")

    assert made.name(b"run", b"a") == again.name(b"run", b"a")
    assert made.chunks == again.chunks


def test_a_place_is_written_as_the_format_says() -> None:
    made, _ = a_store()

    assert b"holdfast 1 row\0" + STORE + bytes(7) + b"\5" == made.place(b"row", 5)
    assert b"holdfast 1 chunk\0" + STORE == made.place(b"chunk")


def test_the_keys_of_many_runs_are_unwrapped_once_and_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealed, "RUNS_KEPT", 2)
    made, _ = a_store()
    wrapped = {no: made.fresh(no, bytes([no]) * 32)[1] for no in range(1, 6)}
    asked: list[int] = []

    class Rows:
        """Wrapped keys, and who asked for them."""

        def key(self, no: int) -> bytes | None:
            asked.append(no)
            return wrapped.get(no)

    seals = sealed.Sealed(Rows(), made)
    for no in (1, 1, 2, 2, 3, 1, 3):
        seals.of(no)

    assert [1, 2, 3, 1] == asked
    with pytest.raises(Damaged, match="run number 9 is damaged: its key is missing"):
        seals.of(9)


def test_another_key_is_named_wrong_and_another_store_too() -> None:
    _, row = a_store()

    with pytest.raises(WrongKey, match=r"the key from file does not open the store"):
        keys.unlock(row, STORE, OTHER, "the store")
    with pytest.raises(WrongKey):
        keys.unlock(row, b"another store id", MINE, "the store")


def test_every_byte_of_the_row_that_holds_the_store_key_counts() -> None:
    _, row = a_store()

    for place in range(len(row)):
        changed = bytearray(row)
        changed[place] ^= 1
        with pytest.raises((Damaged, WrongKey)):
            keys.unlock(bytes(changed), STORE, MINE, "the store")
    with pytest.raises(Damaged):
        keys.read_root(None)


@pytest.mark.parametrize(
    "change", [{"kind": "vault"}, {"key": 2}, {"commitment": bytes(32)}, {"wrapped": b""}]
)
def test_what_stands_in_clear_beside_the_store_key_is_bound_to_it(
    change: dict[str, object],
) -> None:
    _, row = a_store()
    root = msgspec.structs.replace(msgspec.msgpack.decode(row, type=Root), **change)

    with pytest.raises((Damaged, WrongKey)):
        keys.unlock(msgspec.msgpack.encode(root), STORE, MINE, "the store")


def test_a_runs_key_opens_for_its_own_run_only() -> None:
    made, _ = a_store()
    cipher, wrapped = made.fresh(7, b"k" * 32)

    assert cipher.commitment == made.unwrap(7, wrapped).commitment
    with pytest.raises(Damaged, match="run number 8"):
        made.unwrap(8, wrapped)


def test_a_successor_rewraps_runs_and_leaves_names_and_run_keys_as_they_are() -> None:
    made, _ = a_store()
    cipher, wrapped = made.fresh(7, b"k" * 32)
    after, key = made.successor()
    opened = keys.unlock(after.root(key, OTHER), STORE, OTHER, "the store")

    rewrapped = made.rewrap(7, wrapped, after)

    assert (2, made.name(b"run", b"a")) == (opened.id, opened.name(b"run", b"a"))
    assert (cipher.id, cipher.commitment) == (
        opened.unwrap(7, rewrapped).id,
        opened.unwrap(7, rewrapped).commitment,
    )
    with pytest.raises(Damaged):
        opened.unwrap(7, wrapped)


def test_wrapping_twice_gives_other_bytes_and_is_bound_to_its_context() -> None:
    first, second = (wrap(b"r" * 32, b"k" * 32, b"here") for _ in range(2))

    assert first != second
    assert b"k" * 32 == unwrap(b"r" * 32, first, b"here", what="it", kind="file")
    with pytest.raises(WrongKey):
        unwrap(b"r" * 32, first, b"there", what="it", kind="file")
    with pytest.raises(Damaged):
        unwrap(b"r" * 32, first[:-1] + bytes([first[-1] ^ 1]), b"here", what="it", kind="file")
    with pytest.raises(Damaged):
        unwrap(b"r" * 32, first[:-1], b"here", what="it", kind="file")


def test_a_passphrase_brings_its_own_salt_and_cost() -> None:
    words = Passphrase("correct horse", CHEAP)
    wrapped = words.wrap(b"k" * 32, b"here")

    assert bytes(CHEAP) == wrapped[:3]
    assert b"k" * 32 == Passphrase("correct horse").unwrap(wrapped, b"here", "it")
    with pytest.raises(WrongKey, match="passphrase"):
        Passphrase("correct house").unwrap(wrapped, b"here", "it")


@pytest.mark.parametrize("cost", [(0, 8, 1), (30, 8, 1), (4, 0, 1), (16, 255, 255), (4, 8, 0)])
def test_a_store_may_not_say_what_a_passphrase_costs_us(cost: tuple[int, int, int]) -> None:
    wrapped = Passphrase("correct horse", CHEAP).wrap(b"k" * 32, b"here")

    with pytest.raises(Damaged, match="cost"):
        Passphrase("correct horse").unwrap(bytes(cost) + wrapped[3:], b"here", "it")


def test_a_key_service_that_gives_another_key_is_found_out_before_anything_is_opened() -> None:
    class Mistaken(RootKey):
        """Gives a key back, but not the one it was given."""

        def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
            super().unwrap(wrapped, context, what)
            return b"x" * 32

    _, row = a_store()

    with pytest.raises(WrongKey, match="does not open the store"):
        keys.unlock(row, STORE, Mistaken(b"m" * 32, "file"), "the store")


def test_every_run_has_a_key_that_no_other_run_ever_had() -> None:
    made, _ = a_store()
    seals = sealed.Sealed(MemoryRecords(), made)

    rows = {seals.new(1).row(5, b"before", b"payload").mac for _ in range(20)}

    assert 20 == len(rows)


def test_another_wrapping_of_the_same_key_does_not_stand_in_for_the_first() -> None:
    made, key = keys.make(STORE)
    root = keys.read_root(made.root(key, MINE))
    again = MINE.wrap(key, b"holdfast store " + STORE.hex().encode() + b" key 1")

    assert key == MINE.unwrap(again, b"holdfast store " + STORE.hex().encode() + b" key 1", "it")
    with pytest.raises(Damaged, match="the key of the store"):
        keys.unlock(
            msgspec.msgpack.encode(msgspec.structs.replace(root, wrapped=again)),
            STORE,
            MINE,
            "the store",
        )


def test_names_and_large_values_have_keys_of_their_own() -> None:
    made = StoreKeys(STORE, Cipher(b"k" * 32, 1), b"x" * 32)
    names = derive(b"x" * 32, b"holdfast 1 names")

    assert derive(b"x" * 32, b"holdfast 1 chunks") == made.chunks
    assert hashlib.blake2b(b"run\0a", key=names, digest_size=32).digest() == made.name(b"run", b"a")


def test_a_wrapped_store_key_is_bound_to_its_store_and_number() -> None:
    contexts: list[bytes] = []

    class Service:
        """A key service that remembers what it was asked to bind keys to."""

        kind = "service"

        def wrap(self, key: bytes, context: bytes) -> bytes:
            contexts.append(context)
            return key

        def unwrap(self, wrapped: bytes, _context: bytes, _what: str) -> bytes:
            return wrapped

    made, key = keys.make(STORE)
    made.root(key, Service())
    after, other = made.successor()
    after.root(other, Service())

    store = STORE.hex().encode()
    assert [b"holdfast store %b key %d" % (store, number) for number in (1, 2)] == contexts


def test_chance_that_repeats_wraps_no_two_keys_under_one_salt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.store.seal.provider.secrets.token_bytes", bytes)

    salts = {
        wrap(b"r" * 32, key, context)[:16]
        for key in (b"a" * 32, b"b" * 32)
        for context in (b"one", b"two")
    }

    assert 4 == len(salts)


def test_the_commitment_of_a_wrapping_is_not_the_key_that_wraps() -> None:
    wrapped = wrap(b"r" * 32, b"k" * 32, b"here")

    made = derive(b"r" * 32, b"holdfast 1 wrap\0here", 64, salt=wrapped[:16])

    assert made[32:] == wrapped[16:48]
    assert made[:32] not in wrapped
