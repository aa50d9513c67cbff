"""AES-256-GCM over a frame and its place, under a nonce that cannot repeat over other data.

A nonce is 96 bits of a keyed hash of the place and of the exact bytes that are encrypted. So the
same nonce means the same message: also in a forked process, and in a machine that was set back to
an earlier moment and repeats its randomness. The place is authenticated and not stored: what is
sealed opens only where it stood.
"""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast.errors import Damaged
from holdfast.store.codec.frame import HEADER_BYTES, mark_sealed, unmark_sealed

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
MAC_BYTES = NONCE_BYTES + TAG_BYTES
"""A nonce and the tag: what stands where an open store has a hash."""
COMMITMENT_BYTES = 32
"""GCM alone lets a message be made that opens under two keys; this says which key is meant."""


def derive(secret: bytes, info: bytes, length: int = KEY_BYTES, salt: bytes | None = None) -> bytes:
    """`length` bytes made of a secret for one use, by HKDF-SHA256."""
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


class Cipher:
    """One key under its number; everything it seals is bound to a place."""

    __slots__ = ("_aead", "_nonces", "commitment", "id")

    def __init__(self, key: bytes, id_: int) -> None:
        parts = derive(key, b"holdfast 1 cipher", 2 * KEY_BYTES + COMMITMENT_BYTES)
        self._aead = AESGCM(parts[:KEY_BYTES])
        self._nonces = parts[KEY_BYTES : 2 * KEY_BYTES]
        self.commitment = parts[2 * KEY_BYTES :]
        self.id = id_

    def seal(self, place: bytes, frame: bytes) -> tuple[bytes, bytes]:
        """Nonce with tag, and the sealed frame."""
        header = mark_sealed(frame, self.id)
        payload = frame[HEADER_BYTES:]
        bound = place + header
        nonce = self.nonce(bound, payload)
        sealed = self._aead.encrypt(nonce, payload, bound)
        return nonce + sealed[-TAG_BYTES:], header + sealed[:-TAG_BYTES]

    def nonce(self, bound: bytes, payload: bytes) -> bytes:
        """What a message is sealed under; its length tells the two parts apart."""
        message = len(bound).to_bytes(4, "big") + bound + payload
        return hashlib.blake2b(message, key=self._nonces, digest_size=NONCE_BYTES).digest()

    def open(self, place: bytes, mac: bytes, body: bytes, where: str) -> bytes:
        """The frame that was sealed for this place; `Damaged` for anything else."""
        header = unmark_sealed(body, self.id, where)
        if len(mac) != MAC_BYTES:
            raise Damaged(where, "it has no seal")
        sealed = body[HEADER_BYTES:] + mac[NONCE_BYTES:]
        try:
            payload = self._aead.decrypt(mac[:NONCE_BYTES], sealed, place + body[:HEADER_BYTES])
        except InvalidTag:
            raise Damaged(
                where, "its seal does not match its bytes, its place or its key"
            ) from None
        return header + payload
