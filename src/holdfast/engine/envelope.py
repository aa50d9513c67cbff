"""An exported run sealed: each part under a key of the file's own, which a provider wraps."""

import secrets

from holdfast.errors import Damaged, WrongKey
from holdfast.store.seal.aead import KEY_BYTES, MAC_BYTES, Cipher
from holdfast.store.seal.provider import KeyProvider

_CONTEXT = b"holdfast export"
_PLACE = b"holdfast 1 part\0"


class Envelope:
    """Seals and opens the parts of one file, each in its place."""

    def __init__(self, key: bytes, wrapped: bytes) -> None:
        self._cipher, self.wrapped = Cipher(key, 0), wrapped

    def seal(self, number: int, frame: bytes) -> bytes:
        """The part of that number as it stands in the file."""
        mac, body = self._cipher.seal(_place(number), frame)
        return mac + body

    def open(self, number: int, part: bytes, where: str) -> bytes:
        """The frame of a part; `Damaged` for another part's, and for one that was changed."""
        return self._cipher.open(_place(number), part[:MAC_BYTES], part[MAC_BYTES:], where)


def make(provider: KeyProvider) -> Envelope:
    """The envelope of a new file."""
    key = secrets.token_bytes(KEY_BYTES)
    return Envelope(key, provider.wrap(key, _CONTEXT))


def take(wrapped: bytes, provider: KeyProvider, where: str) -> Envelope:
    """The envelope of a file that is there; `WrongKey` if another key wrapped it."""
    try:
        key = provider.unwrap(wrapped, _CONTEXT, where)
    except Damaged as error:  # The file is whole: another kind of provider wrapped it.
        raise WrongKey(where, provider.kind) from error
    return Envelope(key, wrapped)


def _place(number: int) -> bytes:
    return _PLACE + number.to_bytes(8, "big")
