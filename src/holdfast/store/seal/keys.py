"""The keys of a store: what the provider wraps, what that opens, and one key for each run.

provider ──wraps── store key ──seals── secret of the store (names, large values)
                             └─seals── key of run 1, key of run 2, …

Row 0 of the table `key` is the first line; row n is the key of run n. Rotating the provider's key
or the store key rewrites these small rows and nothing else.
"""

import hashlib
import hmac
import secrets

import msgspec

from holdfast.errors import Damaged, WrongKey
from holdfast.store.codec.frame import open_frame, seal
from holdfast.store.seal.aead import KEY_BYTES, MAC_BYTES, Cipher, derive
from holdfast.store.seal.provider import KeyProvider

ROOT = 0
"""The row of the store's own key."""
KEY_IDS_MAX = 0xFFFF

_NAMES, _CHUNKS = b"holdfast 1 names", b"holdfast 1 chunks"


class Root(msgspec.Struct, frozen=True, array_like=True):
    """Row 0: the store key as the provider wrapped it, and the secret that it seals.

    `kind` is for people: which provider to ask. Nothing is ever run or read because of it.
    """

    kind: str
    key: int
    wrapped: bytes
    commitment: bytes
    mac: bytes
    secret: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Root).decode


class StoreKeys:
    """Every key of a store, for as long as it is open."""

    def __init__(self, store_id: bytes, cipher: Cipher, secret: bytes) -> None:
        self.store_id, self._cipher, self._secret = store_id, cipher, secret
        self._names = derive(secret, _NAMES)
        self.chunks = derive(secret, _CHUNKS)

    @property
    def id(self) -> int:
        """The number of the store key: one more with each rotation."""
        return self._cipher.id

    def place(self, kind: bytes, *numbers: int) -> bytes:
        """The beginning of a place: format, kind, store, numbers.

        Each kind has its own count of numbers, so no place reads as another.
        """
        spread = b"".join(number.to_bytes(8, "big") for number in numbers)
        return b"holdfast 1 " + kind + b"\0" + self.store_id + spread

    def name(self, kind: bytes, text: bytes) -> bytes:
        """A name that only whoever has the key can make: 32 bytes."""
        return hashlib.blake2b(kind + b"\0" + text, key=self._names, digest_size=32).digest()

    def fresh(self, run: int, key: bytes) -> tuple[Cipher, bytes]:
        """The cipher of a new run, and its key as it is to be stored."""
        return Cipher(key, self.id), self._wrap(run, self.id, key)

    def unwrap(self, run: int, wrapped: bytes) -> Cipher:
        """The cipher of a run from its stored key."""
        id_, key = self.reveal(run, wrapped)
        return Cipher(key, id_)

    def reveal(self, run: int, wrapped: bytes) -> tuple[int, bytes]:
        """Number and bytes of a run's key."""
        where = f"the key of run number {run}"
        if type(wrapped) is not bytes:
            raise Damaged(where, "it holds what Holdfast never writes")
        mac, body = wrapped[:MAC_BYTES], wrapped[MAC_BYTES:]
        found = open_frame(self._cipher.open(self.place(b"key", run), mac, body, where), where)
        if len(found) != KEY_BYTES + 2:
            raise Damaged(where, "it is no key")
        return int.from_bytes(found[:2], "big"), found[2:]

    def rewrap(self, run: int, wrapped: bytes, other: "StoreKeys") -> bytes:
        """The same key of a run, sealed by the store key of `other`."""
        return other._wrap(run, *self.reveal(run, wrapped))  # noqa: SLF001 another of our kind

    def _wrap(self, run: int, id_: int, key: bytes) -> bytes:
        payload = id_.to_bytes(2, "big") + key
        mac, body = self._cipher.seal(self.place(b"key", run), seal(payload))
        return mac + body

    def successor(self) -> "tuple[StoreKeys, bytes]":
        """The same store under a new store key, and that key, for a provider to wrap."""
        assert self.id < KEY_IDS_MAX, "a store key is changed less than 65,535 times"
        return _made(self.store_id, self.id + 1, self._secret)

    def root(self, key: bytes, provider: KeyProvider) -> bytes:
        """Row 0 for these keys, whose store key is `key`."""
        wrapped = provider.wrap(key, _context(self.store_id, self.id))
        commitment = self._cipher.commitment
        bare = Root(provider.kind, self.id, wrapped, commitment, b"", b"")
        mac, body = self._cipher.seal(self._root_place(bare), seal(self._secret))
        return _encode(msgspec.structs.replace(bare, mac=mac, secret=body))

    def _root_place(self, root: Root) -> bytes:
        return _root_place(self.place(b"store"), root)


def make(store_id: bytes) -> tuple[StoreKeys, bytes]:
    """Keys for a new store, and its store key, for a provider to wrap."""
    return _made(store_id, 1, secrets.token_bytes(KEY_BYTES))


def _made(store_id: bytes, id_: int, secret: bytes) -> tuple[StoreKeys, bytes]:
    key = secrets.token_bytes(KEY_BYTES)
    return StoreKeys(store_id, Cipher(key, id_), secret), key


def unlock(row: bytes, store_id: bytes, provider: KeyProvider, path: str) -> StoreKeys:
    """The keys of a store from its row 0; `WrongKey` if the provider's key is another."""
    root, where = read_root(row), "the key of the store"
    try:
        key = provider.unwrap(root.wrapped, _context(store_id, root.key), path)
    except (WrongKey, Damaged) as error:
        if root.kind == provider.kind:
            raise
        # What one kind of provider wrapped is not even well-formed to another.
        raise WrongKey(path, provider.kind, root.kind) from error
    cipher = Cipher(key, root.key)
    if not hmac.compare_digest(cipher.commitment, root.commitment):
        raise WrongKey(path, provider.kind)
    bare = StoreKeys(store_id, cipher, bytes(KEY_BYTES))
    place = _root_place(bare.place(b"store"), root)
    secret = open_frame(cipher.open(place, root.mac, root.secret, where), where)
    if len(secret) != KEY_BYTES:
        raise Damaged(where, "it is no key")
    return StoreKeys(store_id, cipher, secret)


def read_root(row: bytes | None) -> Root:
    """Row 0 as it stands, not opened: what can be told without a key."""
    if type(row) is not bytes:
        raise Damaged("the key of the store", "it is missing")
    try:
        root = _decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged("the key of the store", f"it cannot be decoded ({error})") from error
    if not 0 < root.key <= KEY_IDS_MAX:
        raise Damaged("the key of the store", f"its number is {root.key}")
    return root


def _context(store_id: bytes, key: int) -> bytes:
    """What a wrapped store key is bound to."""
    return b"holdfast store " + store_id.hex().encode() + b" key %d" % key


def _root_place(place: bytes, root: Root) -> bytes:
    """Everything of row 0 that stands in clear is authenticated with the secret."""
    return place + _encode([root.kind, root.key, root.wrapped, root.commitment])
