"""Searching a store for secrets: every file as it lies there, and every frame opened."""

import base64
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import msgspec

from holdfast.clock import SystemClock
from holdfast.store.codec.frame import open_frame
from holdfast.store.inside import references_of
from holdfast.store.open import open_store
from holdfast.store.reader import first_row

PATCH = 4
"""The flag of a frame that can only be opened beside another value."""


def spilled(place: Path, secrets: Iterable[str]) -> list[str]:
    """Which secrets are found below `place`, and in which file and form."""
    searched = list(_everything(place))
    return [
        f"{where}: {form} of {secret[:12]}…"
        for secret in secrets
        for form, needle in forms(secret)
        for where, data in searched
        if needle in data
    ]


def forms(secret: str) -> Iterator[tuple[str, bytes]]:
    """A secret as it is, in base64 wherever it begins, in hex and in URLs."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield "raw", raw
    yield "utf-32", secret.encode("utf-32-le", "surrogatepass")
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            inner = encode(bytes(shift) + raw + bytes(3)).rstrip(b"=")
            yield "base64", inner[4 if shift else 0 : (shift + len(raw)) * 8 // 6]
    yield "hex", raw.hex().encode()
    yield "HEX", raw.hex().upper().encode()
    yield "URL", quote(raw, safe="").encode()
    yield "URL", quote(raw).encode()
    yield "URL", quote_plus(raw).encode()


def _everything(place: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(place.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            yield file.name, data
            if file.parent.parent.name == "objects" and not data[1] & PATCH:
                yield file.name, bytes(open_frame(data, file.name))
            if file.name == "store.db":
                yield from _rows(file)
                yield from _large(file.parent)


def _large(place: Path) -> Iterator[tuple[str, bytes]]:
    """Large values as their readers find them, also those that are patches."""
    opened = open_store(place, SystemClock(), must_exist=True)
    try:
        reader, chunks = opened.reader, opened.chunks
        for run in reader.runs():
            for branch in reader.branches(run, with_ledger=True):
                for placed in reader.rows(branch.no, first_row(branch), reader.end(branch.no)):
                    for entry in placed.row.entries:
                        for reference in references_of(entry, chunks.fetch):
                            yield chunks.name(reference).hex(), chunks.fetch(reference)
    finally:
        opened.close()


def _rows(file: Path) -> Iterator[tuple[str, bytes]]:
    with sqlite3.connect(file) as database:
        for table in ("run", "branch", "j", "pack"):
            for (body,) in database.execute(f"SELECT body FROM {table}"):
                opened = bytes(open_frame(body, table))
                yield table, opened
                if table == "pack":
                    for _, inner in msgspec.msgpack.decode(opened):
                        yield "row of a pack", bytes(open_frame(inner, table))
