"""What keeps the root key of stores: the interface, and the wrapping that local keys share."""

import hashlib
import hmac
import secrets
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from holdfast.errors import Damaged, WrongKey
from holdfast.store.seal.aead import COMMITMENT_BYTES, KEY_BYTES, NONCE_BYTES, TAG_BYTES, derive

_SALT_BYTES = 16
_NONCE = bytes(NONCE_BYTES)
_WRAPPED_BYTES = _SALT_BYTES + COMMITMENT_BYTES + KEY_BYTES + TAG_BYTES


class KeyProvider(Protocol):
    """Keeps a root key that wraps the keys of stores; a key service joins by these two calls."""

    @property
    def kind(self) -> str:
        """What people are told when the key is missing, such as `file` or `passphrase`."""

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """`key` as only this provider can give it back, bound to `context`."""

    def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
        """What `wrap` was given with the same context; `WrongKey(what, kind)` for any other."""


def wrap(root: bytes, key: bytes, context: bytes) -> bytes:
    """A key wrapped by a root key of 32 bytes: salt, commitment, sealed key."""
    # Covers what is wrapped too: should randomness repeat, it repeats over the same message only.
    mixed = secrets.token_bytes(_SALT_BYTES) + key + context
    salt = hashlib.blake2b(mixed, key=root, digest_size=_SALT_BYTES).digest()
    wrapping, commitment = _keys(root, salt, context)
    return salt + commitment + AESGCM(wrapping).encrypt(_NONCE, key, context)


def unwrap(root: bytes, wrapped: bytes, context: bytes, *, what: str, kind: str) -> bytes:
    """The key that `wrap` was given."""
    if len(wrapped) != _WRAPPED_BYTES:
        raise Damaged(f"the key of {what}", f"it has {len(wrapped)} bytes, not {_WRAPPED_BYTES}")
    salt, rest = wrapped[:_SALT_BYTES], wrapped[_SALT_BYTES:]
    wrapping, commitment = _keys(root, salt, context)
    if not hmac.compare_digest(commitment, rest[:COMMITMENT_BYTES]):
        raise WrongKey(what, kind)
    try:
        return AESGCM(wrapping).decrypt(_NONCE, rest[COMMITMENT_BYTES:], context)
    except InvalidTag:
        raise Damaged(f"the key of {what}", "its seal does not match its bytes") from None


def _keys(root: bytes, salt: bytes, context: bytes) -> tuple[bytes, bytes]:
    info = b"holdfast 1 wrap\0" + context
    made = derive(root, info, KEY_BYTES + COMMITMENT_BYTES, salt=salt)
    return made[:KEY_BYTES], made[KEY_BYTES:]
