"""A root key made of a passphrase: scrypt, whose cost and salt stand beside what it wraps."""

import hashlib
import secrets
import struct

from holdfast.errors import Damaged, KeyUnusable
from holdfast.store.seal import provider
from holdfast.store.seal.aead import KEY_BYTES

LENGTH_MIN = 8
COST = (16, 8, 1)
"""log2(n), r, p: 64 MiB and about a fifth of a second."""
MEMORY_BYTES_MAX = 1024 * 1024 * 1024

_PARAMETERS = struct.Struct(">BBB16s")


class Passphrase:
    """Wraps with a key that a passphrase and a stored salt give."""

    kind = "passphrase"

    def __init__(self, words: str, cost: tuple[int, int, int] = COST) -> None:
        if len(words) < LENGTH_MIN:
            raise KeyUnusable("the passphrase", f"it has fewer than {LENGTH_MIN} characters")
        self._words, self._cost = words.encode("utf-8", "surrogatepass"), cost

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """`key` as only this passphrase gives it back, bound to `context`."""
        parameters = _PARAMETERS.pack(*self._cost, secrets.token_bytes(16))
        return parameters + provider.wrap(self._root(parameters), key, context)

    def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
        """What `wrap` was given; `WrongKey` if another passphrase wrapped it."""
        parameters, rest = wrapped[: _PARAMETERS.size], wrapped[_PARAMETERS.size :]
        if len(parameters) < _PARAMETERS.size or not _is_sane(parameters):
            raise Damaged(f"the key of {what}", "the cost of its passphrase was never written")
        root = self._root(parameters)
        return provider.unwrap(root, rest, context, what=what, kind=self.kind)

    def _root(self, parameters: bytes) -> bytes:
        log_n, r, p, salt = _PARAMETERS.unpack(parameters)
        memory = 2 * 128 * r * (p + (1 << log_n))
        return hashlib.scrypt(
            self._words, salt=salt, n=1 << log_n, r=r, p=p, maxmem=memory, dklen=KEY_BYTES
        )


def _is_sane(parameters: bytes) -> bool:
    """A hostile store may not make us spend what it likes."""
    log_n, r, p, _ = _PARAMETERS.unpack(parameters)
    memory: int = 128 * r << log_n
    return bool(log_n and r and p) and memory * p <= MEMORY_BYTES_MAX
