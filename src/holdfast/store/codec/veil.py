"""Text and bytes with their secrets cut out: pieces and references, and back.

Known values are cut out first, then what looks like a secret. What is read back is exact where the
secrets may be had; elsewhere it shows where they stood, and is stored again as it was.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from msgspec.msgpack import Ext

from holdfast.errors import SecretMissing
from holdfast.ondemand import OnDemand
from holdfast.store.codec import leaks, leaves, wire
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.vault import Part, guard, is_redacted, mark_of, vault

if TYPE_CHECKING:
    from holdfast.store.codec import forms
else:
    forms = OnDemand("holdfast.store.codec.forms")

# What a veiled item is.
TEXT: Final = 0
BYTES: Final = 1
PATH: Final = 2

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode

Pieces = tuple[bytes | Part, ...]


class Veiled(str):
    """Text that was read without a secret in it: shows where it stood, and is stored as before."""

    __slots__ = ("pieces",)

    pieces: Pieces

    def __new__(cls, pieces: Pieces) -> Self:
        """The text with the places of its secrets shown."""
        made = super().__new__(cls, text_from(_shown(pieces)))
        made.pieces = pieces
        return made


class VeiledBytes(bytes):
    """Bytes that were read without a secret in them, and are stored as before."""

    pieces: Pieces

    def __new__(cls, pieces: Pieces) -> Self:
        """The bytes with the places of their secrets shown."""
        made = super().__new__(cls, _shown(pieces))
        made.pieces = pieces
        return made


def cut(data: bytes, *, unknown: bool = True) -> Pieces | None:
    """Cut the secrets out of bytes: known ones first, then what looks like one; None: none.

    Without `unknown`, what nobody declared is left where it is.
    """
    for hit in leaks.find(data) if unknown else ():
        if not vault.holds_known(data[hit.start : hit.end]):
            vault.see(hit.kind, data[hit.start : hit.end])  # so that its other forms are known
    pieces: list[bytes | Part] = []
    at = 0
    for start, end, part in vault.known_in(data):
        if unknown or not is_redacted(part.reference):
            pieces += (*_cut_unknown(data[at:start], unknown=unknown), part)
            at = end
    pieces += _cut_unknown(data[at:], unknown=unknown)
    return tuple(pieces) if any(type(piece) is Part for piece in pieces) else None


def _cut_unknown(data: bytes, *, unknown: bool) -> Iterator[bytes | Part]:
    at = 0
    for hit in leaks.find(data) if unknown else ():
        if hit.start > at:
            yield data[at : hit.start]
        yield vault.see(hit.kind, data[hit.start : hit.end])
        at = hit.end
    if at < len(data):
        yield data[at:]


def leak_in(data: bytes) -> str | None:
    """The kind of the first thing in bytes that looks secret and that nobody declared."""
    at = 0
    for start, end, part in vault.known_in(data):
        if is_redacted(part.reference):
            return part.reference.split(":")[1]
        for hit in leaks.find(data[at:start]):
            return hit.kind
        at = end
    return next((hit.kind for hit in leaks.find(data[at:])), None)


def is_clean(data: bytes) -> bool:
    """Whether nothing would be cut out of bytes."""
    return not vault.may_hold(data) or (not vault.holds_known(data) and leak_in(data) is None)


def redact(text: str) -> str:
    """A text for people, with what must not be shown replaced."""
    data = text_bytes(text)
    shown = redact_bytes(data)
    return text if shown is data else text_from(shown)


def redact_bytes(data: bytes) -> bytes:
    """The same for bytes."""
    pieces = cut(data) if vault.may_hold(data) else None
    return data if pieces is None else _shown(pieces)


def item(what: int, pieces: Pieces, *more: object, canonical: bool = False) -> Ext:
    """The item of veiled text or bytes; for hashing, one that was renewed is the same."""
    parts = [
        each if isinstance(each, bytes) or not (canonical or each.expires is None) else each[:3]
        for each in pieces
    ]
    return Ext(wire.VEILED, _pack((what, parts, *more)))


def canonical_text(veiled: Veiled) -> Ext:
    """For hashing: text that was read without a secret in it."""
    return item(TEXT, veiled.pieces, canonical=True)


def canonical_bytes(veiled: VeiledBytes) -> Ext:
    """For hashing: bytes that were read without a secret in them."""
    return item(BYTES, veiled.pieces, canonical=True)


def write_secret(secret: Secret) -> Ext:
    """The item of a secret: where its value is, and until when it is good."""
    return Ext(wire.SECRET, _pack((secret.reference, secret.expires)))


def write_secret_canonical(secret: Secret) -> Ext:
    """For hashing: a secret that was renewed is the same one."""
    return Ext(wire.SECRET, _pack((secret.reference, None)))


def read_secret(data: bytes) -> Secret:
    """The secret of an item, with its value if it may be had, else one that shows its reference."""
    reference, expires = _unpack(data)
    now = guard.get()
    if now.resolves:
        try:
            return vault.resolve(reference, expires)
        except SecretMissing:
            if now.demands:
                raise
    now.gaps += 1
    return Secret(mark_of(reference), reference, expires)


def read_veiled(data: bytes) -> object:
    """The text or bytes of an item, with the secrets put back that may be had."""
    what, stored, *more = _unpack(data)
    pieces = tuple(Part(*each) if isinstance(each, list) else each for each in stored)
    found = [piece if isinstance(piece, bytes) else _value_of(piece) for piece in pieces]
    whole = b"".join(each for each in found if each is not None)
    if None in found:
        guard.get().gaps += 1
        whole = _shown(pieces)
    else:
        guard.get().filled += 1
    if what == TEXT:
        return Veiled(pieces) if None in found else text_from(whole)
    if what == BYTES:
        return VeiledBytes(pieces) if None in found else whole
    return leaves.READERS[wire.PATH](_pack((more[0], whole)))


def _value_of(part: Part) -> bytes | None:
    """What stood there, in its form; None if it may not be had."""
    now = guard.get()
    if not now.resolves:
        return None
    if is_redacted(part.reference):
        value = vault.seen(part.reference)
    else:
        try:
            value = text_bytes(vault.resolve(part.reference, part.expires).reveal())
        except SecretMissing:
            if now.demands:
                raise
            return None
    return None if value is None else forms.render(forms.Form(part.form), part.shift, value)


def _shown(pieces: Pieces) -> bytes:
    return b"".join(
        mark_of(piece.reference).encode() if isinstance(piece, Part) else piece for piece in pieces
    )


def text_bytes(text: str) -> bytes:
    """A text as the bytes in which secrets are looked for."""
    return text.encode("utf-8", "surrogatepass")


def text_from(data: bytes) -> str:
    """The text of such bytes."""
    return data.decode("utf-8", "surrogatepass")


WRITERS: Final[Mapping[type, Callable[[Any], Ext]]] = {
    Secret: write_secret,
    Veiled: lambda veiled: item(TEXT, veiled.pieces),
    VeiledBytes: lambda veiled: item(BYTES, veiled.pieces),
}
"""By exact type, as in `leaves`."""

READERS: Final[Mapping[int, Callable[[bytes], object]]] = {
    wire.SECRET: read_secret,
    wire.VEILED: read_veiled,
}
