"""The forms in which a secret may stand in text or bytes: as it is, base64, hex, URL, JSON."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Final
from urllib.parse import quote, quote_plus

NEEDLE_BYTES_MIN: Final = 8
"""What is shorter stands in ordinary text by chance, and is not looked for."""

SHIFTS: Final = 3
"""In base64, bytes begin at one of three places in a group of four characters."""


class Form(IntEnum):
    """How a secret is written; the numbers are stored."""

    RAW = 0
    BASE64 = 1
    BASE64_URL = 2
    HEX = 3
    HEX_UPPER = 4
    URL = 5
    URL_LOWER = 6
    URL_PLUS = 7
    JSON = 8
    JSON_ASCII = 9
    REPR = 10
    URL_PATH = 11
    URL_SCRIPT = 12


def render(form: Form, shift: int, value: bytes) -> bytes:
    """The bytes of `value` in a form; in base64, those characters that depend on nothing else."""
    write = _BASE64.get(form)
    if write is None:
        return _WRITERS[form](value)
    encoded = write(bytes(shift) + value)
    first = -(-shift * 8 // 6)
    return encoded[first : (shift + len(value)) * 8 // 6]


def needles(value: bytes) -> Iterator[tuple[bytes, Form, int]]:
    """Every way of writing `value` that is long enough to be looked for, the plainest first."""
    for form in Form:
        for shift in range(SHIFTS if form in _BASE64 else 1):
            needle = render(form, shift, value)
            if len(needle) >= NEEDLE_BYTES_MIN:
                yield needle, form, shift


def _lower_escapes(text: str) -> str:
    """Percent escapes with small letters, as some clients write them."""
    head, *escapes = text.split("%")
    return head + "".join("%" + escape[:2].lower() + escape[2:] for escape in escapes)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _json(value: bytes, *, is_ascii: bool) -> bytes:
    text = json.dumps(_text(value), ensure_ascii=is_ascii)[1:-1]
    return text.encode("utf-8", "surrogateescape")


_BASE64: Final[Mapping[Form, Callable[[bytes], bytes]]] = {
    Form.BASE64: base64.b64encode,
    Form.BASE64_URL: base64.urlsafe_b64encode,
}
_WRITERS: Final[Mapping[Form, Callable[[bytes], bytes]]] = {
    Form.RAW: lambda value: value,
    Form.HEX: lambda value: value.hex().encode(),
    Form.HEX_UPPER: lambda value: value.hex().upper().encode(),
    Form.URL: lambda value: quote(value, safe="").encode(),
    Form.URL_LOWER: lambda value: _lower_escapes(quote(value, safe="")).encode(),
    Form.URL_PLUS: lambda value: quote_plus(value).encode(),
    Form.JSON: lambda value: _json(value, is_ascii=False),
    Form.JSON_ASCII: lambda value: _json(value, is_ascii=True),
    Form.URL_PATH: lambda value: quote(value, safe="/").encode(),
    Form.URL_SCRIPT: lambda value: quote(value, safe="!'()*").encode(),
    Form.REPR: lambda value: repr(_text(value))[1:-1].encode("utf-8", "surrogateescape"),
}
