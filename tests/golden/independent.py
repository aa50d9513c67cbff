"""A second reader of the stored format, written from `docs/format.md` alone: files to entries."""

import hashlib
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # before Python 3.14
    from backports import zstd

Value: TypeAlias = Any
"""Whatever msgpack holds."""

COMPRESSED, SEALED, PATCH = 1, 2, 4
HEADER = 8
REFERENCE = 41
SLOT = 4096
KNOWN = {"sealed", "values", "leaves", "patches", "tail"}

unpack = msgspec.msgpack.decode
pack = msgspec.msgpack.Encoder().encode


class Wrong(Exception):
    """Something in the store is not as the document says."""


def need(truth: object, what: str) -> None:
    if not truth:
        raise Wrong(what)


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def keyed(key: bytes, size: int, *parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), key=key, digest_size=size).digest()


def hkdf(key: bytes, info: bytes, size: int = 32, salt: bytes | None = None) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(key)


def eights(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def unframe(data: bytes, *, version: int = 1, prefix: bytes | None = None) -> bytes:
    """The payload of an unsealed frame (§4); of a patch, with the value it is a patch on."""
    found, flags, _, length = struct.unpack(">BBHI", data[:HEADER])
    payload = data[HEADER:]
    need(found == version and flags in {0, COMPRESSED, COMPRESSED | PATCH}, "a frame")
    need((prefix is not None) == bool(flags & PATCH), "a patch where none is named, or none")
    try:
        if prefix is not None:
            options = {zstd.DecompressionParameter.window_log_max: 27}
            other = zstd.ZstdDict(prefix, is_raw=True).as_prefix
            payload = zstd.decompress(payload, other, options=options)
        elif flags:
            payload = zstd.decompress(payload)
    except zstd.ZstdError as error:
        raise Wrong(str(error)) from error
    need(len(payload) == length, "the length of a frame")
    return payload


class Cipher:
    """What a key opens (§17)."""

    def __init__(self, key: bytes, number: int) -> None:
        made = hkdf(key, b"holdfast 1 cipher", 96)
        self._aes, self._nonce, self.commitment = AESGCM(made[:32]), made[32:64], made[64:]
        self._number = number

    def open(self, place: bytes, mac: bytes, body: bytes) -> bytes:
        """The frame that was sealed for `place`."""
        need(body[1] & SEALED and int.from_bytes(body[2:4], "big") == self._number, "a seal")
        known = place + body[:HEADER]
        plain = self._aes.decrypt(mac[:12], body[HEADER:] + mac[12:], known)
        nonce = keyed(self._nonce, 12, struct.pack(">I", len(known)), known, plain)
        need(mac[:12] == nonce, "the nonce of a seal")
        return unsealed(body[:HEADER]) + plain


def unsealed(header: bytes) -> bytes:
    return header[:1] + bytes([header[1] & ~SEALED]) + header[2:]


@dataclass
class Branch:
    """A line of history: what it grew from, and its rows: mac and entries by id."""

    run: int
    parent: int
    at: int
    mac: bytes
    kept: int | None = None
    rows: dict[int, tuple[bytes, list[Value]]] = field(default_factory=dict)


class Store:
    """Everything in a store, checked by every hash on the way; a sealed one needs its root key."""

    def __init__(self, path: Path, root_key: bytes | None = None) -> None:
        self._path = path
        self.runs: dict[str, dict[str, Value]] = {}
        self.branches: dict[int, Branch] = {}
        self._large: dict[bytes, bytes] = {}
        self._ciphers: dict[int, Cipher] = {}
        with closing(sqlite3.connect(f"file:{path / 'store.db'}?mode=ro", uri=True)) as db:
            need(db.execute("PRAGMA application_id").fetchone() == (0x484F4C44,), "the mark")
            need(db.execute("PRAGMA user_version").fetchone() == (1,), "the version")
            meta = dict(db.execute("SELECT key, value FROM meta"))
            self.id: bytes = meta["store_id"]
            features = set(bytes(meta.get("incompat", b"")).decode().split())
            need(features <= KNOWN, "features")
            self.is_sealed = "sealed" in features
            if self.is_sealed:
                need(root_key, "a key")
                self._unlock(root_key or b"", dict(db.execute("SELECT no, body FROM key")))
            for run in db.execute("SELECT no, epoch, head, kid, mac, body FROM run"):
                self._read_run(run)
            stored = db.execute(
                "SELECT id, id, mac, body FROM j UNION ALL SELECT first, id, NULL, body FROM pack"
                " ORDER BY 1"
            ).fetchall()
            stored += self._tail(meta.get("tail")) if "tail" in features else []
            rows: dict[int, list[tuple[int, int, bytes | None, bytes]]] = {}
            for first, last, mac, body in stored:
                rows.setdefault(last >> 32, []).append((first, last, mac, body))
            for no, *branch in db.execute(
                "SELECT no, run, parent, at, mac, body FROM branch ORDER BY no"
            ):
                self._read_branch(no, branch)
                self._read_rows(no, rows.pop(no, []))
            need(not rows, "rows of no branch")
        self._check_heads()

    def line(self, no: int) -> list[tuple[int, int, Value]]:
        """Every entry that led to the end of a branch: row, index, entry (§2)."""
        branch = self.branches[no]
        before = self.line(branch.parent) if branch.parent else []
        kept = [
            (row, index, entry)
            for row, index, entry in before
            if row >> 32 != branch.parent  # of a branch before it, cut there already
            or row < branch.at
            or (row == branch.at and (branch.kept is None or index < branch.kept))
        ]
        own = [(row, i, e) for row, (_, es) in branch.rows.items() for i, e in enumerate(es)]
        return kept + own

    def whole(self, stored: bytes) -> bytes:
        """Bytes that stand in a row, or those that a reference in their place names (§11)."""
        if stored[:1] not in {b"\xff", b"\xfe"}:
            return stored
        if stored not in self._large:
            digest, length = stored[1:33], int.from_bytes(stored[33:REFERENCE], "big")
            rest = stored[REFERENCE:]
            need(bool(rest) == (stored[0] == 0xFE) and len(stored) <= 16 * REFERENCE, "a reference")
            data = self._file(sha(stored) if rest else digest, self.whole(rest) if rest else None)
            need((sha(data), len(data)) == (digest, length), "a large value")
            self._large[stored] = data
        return self._large[stored]

    def _file(self, name: bytes, prefix: bytes | None) -> bytes:
        shown = keyed(self._names, 32, b"chunk\0", name) if self.is_sealed else name
        data = (self._path / "objects" / shown.hex()[:2] / shown.hex()).read_bytes()
        if self.is_sealed:
            header, salt, sealed = data[:HEADER], data[HEADER:40], data[40:]
            secret = self._chunks + name
            aes = AESGCM(hkdf(secret, b"holdfast 1 chunk", salt=salt))
            plain = aes.decrypt(bytes(12), sealed, self._place("chunk", then=shown) + header)
            need(salt == keyed(secret, 32, header, plain), "the salt of a file")
            data = unsealed(header) + plain
        return unframe(data, prefix=prefix)

    def _place(self, kind: str, *numbers: int, then: bytes = b"") -> bytes:
        return f"holdfast 1 {kind}\0".encode() + self.id + eights(*numbers) + then

    def _unlock(self, root_key: bytes, keys: dict[int, bytes]) -> None:
        kind, number, wrapped, commitment, mac, body = unpack(keys.pop(0))
        context = f"holdfast store {self.id.hex()} key {number}".encode()
        made = hkdf(root_key, b"holdfast 1 wrap\0" + context, 64, wrapped[:16])
        need(made[32:] == wrapped[16:48], "the key of the store")
        key = AESGCM(made[:32]).decrypt(bytes(12), wrapped[48:], context)
        cipher = Cipher(key, number)
        need(commitment == cipher.commitment, "the commitment")
        place = self._place("store", then=pack([kind, number, wrapped, commitment]))
        secret = unframe(cipher.open(place, mac, body))
        self._names, self._chunks = (
            hkdf(secret, f"holdfast 1 {each}".encode()) for each in ("names", "chunks")
        )
        for run, sealed in keys.items():
            plain = unframe(cipher.open(self._place("key", run), sealed[:28], sealed[28:]))
            self._ciphers[run] = Cipher(plain[2:], int.from_bytes(plain[:2], "big"))

    def _read_run(self, columns: tuple[Value, ...]) -> None:
        no, epoch, head, kid, mac, body = columns
        if self.is_sealed:
            body = self._ciphers[no].open(self._place("run", no, epoch, head, then=kid), mac, body)
        else:
            need(mac == sha(b"run", self.id, eights(no, epoch, head), kid, body), f"run {no}")
        entry = unpack(unframe(body))
        name = entry["id"].encode()
        made = (
            keyed(self._names, 32, b"run\0", name) if self.is_sealed else sha(b"kid", self.id, name)
        )
        need(kid == made[:16], f"the name of run {no}")
        self.runs[entry["id"]] = {"status": "running", **entry, "epoch": epoch, "head": head}

    def _read_branch(self, no: int, columns: list[Value]) -> None:
        run, parent, at, mac, body = columns
        grown = self.branches[parent].rows[at][0] if parent else b""
        if self.is_sealed:
            place = self._place("branch", no, run, parent, at, then=grown)
            body = self._ciphers[run].open(place, mac, body)
        else:
            made = sha(b"branch", self.id, eights(no, run, parent, at), grown, body)
            need(mac == made, f"branch {no}")
        kept = unframe(body)
        self.branches[no] = Branch(run, parent, at, mac, unpack(kept) if kept else None)

    def _read_rows(self, no: int, stored: list[tuple[int, int, bytes | None, bytes]]) -> None:
        branch = self.branches[no]
        before = branch.mac
        due = no << 32 | ((branch.at & 0xFFFFFFFF) + 1 if branch.parent else 0)
        for first, last, mac, body in stored:
            rows = [(mac, body)] if mac else list(self._packed(branch, first, last, before, body))
            need(first == due and len(rows) == last - first + 1, f"rows missing before {first}")
            for row, (own, data) in enumerate(rows, first):
                frame = self._row(branch, row, before, own, data, is_packed=not mac)
                branch.rows[row] = own, unpack(unframe(frame))[2]
                before = own
            due = last + 1

    def _row(
        self, branch: Branch, row: int, before: bytes, mac: bytes, body: bytes, *, is_packed: bool
    ) -> bytes:
        """The frame of a row, after its hash was checked (§3) or that of a pruned one (§7)."""
        if is_packed and not body[0]:
            frame = body[1 if self.is_sealed else 33 :]
            made = sha(b"pruned", self.id, eights(row), mac, frame)
            need(self.is_sealed or made == body[1:33], f"pruned row {row}")
            return frame
        if self.is_sealed:
            place = self._place("row", branch.run, row, then=before)
            return body if is_packed else self._ciphers[branch.run].open(place, mac, body)
        need(mac == sha(b"j", self.id, eights(row), before, body), f"row {row}")
        return body

    def _packed(
        self, branch: Branch, first: int, last: int, before: bytes, body: bytes
    ) -> Iterator[tuple[bytes, bytes]]:
        """The macs and bodies of the rows in a pack (§7)."""
        header, version = body[:HEADER], body[0]
        size = 28 if self.is_sealed else 32
        macs, own = body[HEADER : HEADER + 2 * size], body[HEADER + 2 * size : HEADER + 3 * size]
        rest = body[HEADER + 3 * size :]
        if self.is_sealed:
            place = self._place("pack", branch.run, first, last, then=macs)
            body = self._ciphers[branch.run].open(place, own, header + rest)
        elif version > 1:
            need(own == sha(b"pack", self.id, eights(first, last), header, macs, rest), "a pack")
            body = header + rest
        payload = unframe(body, version=version)
        rows = unpack(payload) if version == 1 else _joined(payload)
        need(version == 1 or macs == before + rows[-1][0], "the place of a pack")
        yield from rows

    def _tail(self, noted: bytes | None) -> list[tuple[int, int, bytes, bytes]]:
        """The rows that stand beside the database, of the generation that counts (§18)."""
        counts = 0
        if noted is not None:
            counts, check = struct.unpack(">QI", noted)
            need(check == zlib.crc32(noted[:8]), "the generation of the tail")
        file = self._path / "tail"
        data = file.read_bytes() if file.exists() else b""
        rows: list[tuple[int, int, bytes, bytes]] = []
        at = end = 0
        while at < len(data):
            generation, stored = record(data, at, self.id)
            need(generation <= counts, "a record of a later generation")
            if generation < counts:
                at += SLOT
                continue
            need(at == end, "a record of the tail is missing")
            end = at = at + -(-(24 + len(stored)) // SLOT) * SLOT
            while stored:
                row, of_mac, of_body = struct.unpack(">QBI", stored[:13])
                mac, body = stored[13 : 13 + of_mac], stored[13 + of_mac : 13 + of_mac + of_body]
                rows.append((row, row, mac, body))
                stored = stored[13 + of_mac + of_body :]
        return rows

    def _check_heads(self) -> None:
        """The rows that were acknowledged last are there (§12)."""
        note = (self._path / "heads").read_bytes()
        for start in range(0, len(note), 64):
            row, mac, check = struct.unpack(">q32sI", note[start : start + 44])
            if row and check == zlib.crc32(note[start : start + 40]):
                found = self.branches[row >> 32].rows.get(row)
                is_there = found is not None and mac == found[0].ljust(32, b"\0")
                need(is_there, f"the head note of row {row}")


def record(data: bytes, at: int, store: bytes) -> tuple[int, bytes]:
    """The generation and the rows of the record in a slot of the tail; -1 where none is sound."""
    head = data[at : at + 20]
    if len(data) < at + 24 or head[:4] != b"HFt1":
        return -1, b""
    generation, slot, length = struct.unpack(">QII", head[4:])
    rows = data[at + 24 : at + 24 + length]
    check = int.from_bytes(data[at + 20 : at + 24], "big")
    is_whole = slot * SLOT == at and length == len(rows) and _are_rows(rows)
    is_sound = is_whole and check == zlib.crc32(store + head + rows)
    return (generation, rows) if is_sound else (-1, b"")


def _are_rows(data: bytes) -> bool:
    """Whether at least one row, and nothing else, stands here."""
    at = 0
    while 0 <= at <= len(data) - 13:
        of_mac, of_body = struct.unpack(">BI", data[at + 8 : at + 13])
        at += 13 + of_mac + of_body
    return at == len(data) > 0


def _joined(payload: bytes) -> list[tuple[bytes, bytes]]:
    """Rows of a pack of version 2, their values put between their pieces (§7)."""
    size = int.from_bytes(payload[:4], "big")
    beside, pieces = unframe(payload[4 : 4 + size]), unframe(payload[8 + size :])
    columns, values = msgspec.msgpack.decode(beside, type=tuple[list[list[int]], list[msgspec.Raw]])
    of_row: dict[int, list[bytes]] = {}
    for row, value in zip(columns[1], values, strict=True):
        of_row.setdefault(row, []).append(bytes(value))
    joined = []
    for row, (mac, *parts) in enumerate(unpack(pieces)):
        between = of_row.get(row, []) if len(parts) > 1 else []
        pairs = zip(parts, [*between, b""], strict=True)
        joined.append((mac, b"".join(part + value for part, value in pairs)))
    return joined
