"""Open bytes with hashes and sealed bytes keep the same promises of `Seals`."""

import secrets

from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.chain import Hashed
from holdfast.store.seal import keys
from holdfast.store.seal.base import Seals
from holdfast.store.seal.sealed import Sealed
from holdfast.testing.seals import SealsContract


class TestHashed(SealsContract):
    def make(self) -> Seals:
        return Hashed(secrets.token_bytes(16))


class TestSealed(SealsContract):
    def make(self) -> Seals:
        return Sealed(MemoryRecords(), keys.make(secrets.token_bytes(16))[0])
