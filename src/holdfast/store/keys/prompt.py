"""A passphrase that a person types on the terminal: asked for once, confirmed where it is new."""

import functools
import getpass
import sys

from holdfast.errors import KeyUnusable
from holdfast.store.keys.passphrase import Passphrase


class Typed(Passphrase):
    """What a person typed. Before it first wraps a key it is typed again, unless it opened one."""

    def __init__(self, words: str, question: str) -> None:
        super().__init__(words)
        self._typed, self._question, self._is_sure = words, question, False

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """`key` as only this passphrase gives it back; `KeyUnusable` if it was mistyped."""
        if not self._is_sure and _read(f"{self._question}, again") != self._typed:
            why = "the two that were typed are not the same; nothing was changed"
            raise KeyUnusable("the passphrase", why)
        self._is_sure = True
        return super().wrap(key, context)

    def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
        """What `wrap` was given; `WrongKey` if another passphrase wrapped it."""
        key = super().unwrap(wrapped, context, what)
        self._is_sure = True
        return key


@functools.cache
def typed(question: str) -> Typed | None:
    """What a person types when asked, once in a process; None where nobody can be asked."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return None
    return Typed(_read(question), question)


def _read(question: str) -> str:
    try:
        return getpass.getpass(f"{question}: ")
    except EOFError:
        raise KeyUnusable("the passphrase", "nothing was typed") from None
