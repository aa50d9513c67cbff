"""From a provider's key to the seals of a store: a new one is made with it, an old one opened."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.errors import KeyNeeded, StoreNotFound
from holdfast.store.backends.connection import check, connect, is_new, is_sealed, named
from holdfast.store.backends.cuts import Cutter
from holdfast.store.backends.place import holds_file
from holdfast.store.backends.sqlite import FILE, SqliteRecords
from holdfast.store.seal import keys
from holdfast.store.seal.packer import SealedPacker
from holdfast.store.seal.provider import KeyProvider
from holdfast.store.seal.sealed import Sealed


def maker(provider: KeyProvider) -> Callable[[bytes], bytes]:
    """What makes the first key of a new store out of the store's id."""

    def root(store_id: bytes) -> bytes:
        made, key = keys.make(store_id)
        return made.root(key, provider)

    return root


def unlocked(
    records: SqliteRecords, provider: KeyProvider | None, path: str, cutter: Cutter | None = None
) -> Sealed:
    """The seals of an encrypted store; `KeyNeeded`, `WrongKey` where its key is not at hand.

    With a `cutter`, its packs get values beside their rows.
    """
    row = records.key(keys.ROOT)
    if provider is None:
        raise KeyNeeded(path, keys.read_root(row).kind)
    seals = Sealed(records, keys.unlock(row or b"", records.store_id, provider, path))
    records.pack_with(SealedPacker(seals, cutter))
    return seals


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What can be told of a store's keys without any: `key` is the number of the store key."""

    is_encrypted: bool
    key: int = 0
    kind: str = ""
    runs: int = 0


def facts(path: Path) -> Facts:
    """Which keys the store at `path` has."""
    file = path / FILE
    if not holds_file(path, FILE):
        raise StoreNotFound(str(path))
    with named(file), contextlib.closing(connect(file, for_reading=True)) as link:
        if is_new(link):
            raise StoreNotFound(str(path))
        check(link, file)
        if not is_sealed(link):
            return Facts(is_encrypted=False)
        row = link.execute("SELECT body FROM key WHERE no=0").fetchone()
        runs = link.execute("SELECT count(*) FROM key WHERE no>0").fetchone()[0]
    root = keys.read_root(row[0] if row else None)
    return Facts(is_encrypted=True, key=root.key, kind=root.kind, runs=runs)
