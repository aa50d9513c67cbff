"""From a provider's key to the seals of a store: a new one is made with it, an old one opened."""

from collections.abc import Callable

from holdfast.errors import KeyNeeded
from holdfast.store.backends.sqlite import SqliteRecords
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


def unlocked(records: SqliteRecords, provider: KeyProvider | None, path: str) -> Sealed:
    """The seals of an encrypted store; `KeyNeeded`, `WrongKey` where its key is not at hand."""
    row = records.key(keys.ROOT)
    if provider is None:
        raise KeyNeeded(path, keys.read_root(row).kind)
    seals = Sealed(records, keys.unlock(row or b"", records.store_id, provider, path))
    records.pack_with(SealedPacker(seals))
    return seals
