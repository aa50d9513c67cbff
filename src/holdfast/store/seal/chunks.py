"""Sealed large values: shared by the runs of a store, and lost to a run whose key is destroyed.

The key of a large value is made of a secret of the store and of the value's own SHA-256, which
stands only inside the sealed rows of runs that hold it. So equal values are one file, and a run
that is erased takes its way to them with it, while other runs keep theirs.
"""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from holdfast.errors import Damaged
from holdfast.store.codec.frame import HEADER_BYTES, mark_sealed, unmark_sealed
from holdfast.store.seal.aead import NONCE_BYTES, derive
from holdfast.store.seal.keys import StoreKeys

SALT_BYTES = 32
_NONCE = bytes(NONCE_BYTES)
"""Fixed: each key seals one message, because the salt is a hash of that message."""


class ChunkSeals:
    """Names, seals and opens large values."""

    def __init__(self, keys: StoreKeys) -> None:
        self.store_id = keys.store_id
        self._chunk_keys = keys

    def name_chunk(self, digest: bytes) -> bytes:
        """The name of a large value: it says nothing to whoever has no key."""
        return self._chunk_keys.name(b"chunk", digest)

    def seal_chunk(self, digest: bytes, frame: bytes) -> bytes:
        """A large value's frame as it is stored: header, salt, sealed bytes."""
        header, payload = mark_sealed(frame, 0), frame[HEADER_BYTES:]
        # Over the bytes as compressed: another zstd may make other ones of the same value.
        secret = self._chunk_keys.chunks + digest
        salt = hashlib.blake2b(header + payload, key=secret, digest_size=SALT_BYTES).digest()
        sealed = self._aead(secret, salt).encrypt(_NONCE, payload, self._bound(digest, header))
        return header + salt + sealed

    def open_chunk(self, digest: bytes, body: bytes, where: str) -> bytes:
        """The frame of a large value as it was given to `seal_chunk`."""
        header = unmark_sealed(body, 0, where)
        salt = body[HEADER_BYTES : HEADER_BYTES + SALT_BYTES]
        sealed = body[HEADER_BYTES + SALT_BYTES :]
        bound = self._bound(digest, body[:HEADER_BYTES])
        try:
            aead = self._aead(self._chunk_keys.chunks + digest, salt)
            return header + aead.decrypt(_NONCE, sealed, bound)
        except InvalidTag:
            raise Damaged(where, "its seal does not match its bytes or its name") from None

    def _aead(self, secret: bytes, salt: bytes) -> AESGCM:
        return AESGCM(derive(secret, b"holdfast 1 chunk", salt=salt))

    def _bound(self, digest: bytes, header: bytes) -> bytes:
        return self._chunk_keys.place(b"chunk") + self.name_chunk(digest) + header
