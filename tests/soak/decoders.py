"""Everything that reads bytes it cannot trust, with samples of what it was written for.

Where a hash or a header stands before the bytes, it is made to fit what was changed: whoever can
write the store can do that too, and only then are the bytes behind it reached.
"""

import datetime as dt
import decimal
import hashlib
import pathlib
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from holdfast.capture.state import State
from holdfast.clock import SystemClock
from holdfast.engine import parcel
from holdfast.engine.transfer import collect
from holdfast.model.ids import parse_point
from holdfast.model.journal import Answer, Call, Row
from holdfast.model.run import RunBody
from holdfast.store import anchor, reader
from holdfast.store.backends import slots
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.cuts import cut
from holdfast.store.backends.packs import beside, make, unpack
from holdfast.store.chain import Hashed, row_mac
from holdfast.store.codec import values
from holdfast.store.codec.frame import bundle, open_frame, seal
from holdfast.store.cuttable import cuttable
from holdfast.store.open import Opened, open_store
from holdfast.store.seal import keys
from holdfast.store.seal.sealed import Sealed
from tests.sealed import kit

HEAD_BYTES = 24
"""What comes before the rows of a record."""
STORE_ID = bytes(range(16))
SEED = slots.seed(STORE_ID)
_encode = msgspec.msgpack.Encoder().encode
_decode_row = msgspec.msgpack.Decoder(Row).decode
_decode_run = msgspec.msgpack.Decoder(RunBody).decode


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """A reader of bytes, what it is given as it should be, and how often it is asked."""

    name: str
    samples: list[bytes]
    read: Callable[[bytes], object]
    share: int = 1


def decoders(scene: Path) -> Iterator[Decoder]:
    """All of them, with samples out of the store at `scene`."""
    with closing(open_store(scene, SystemClock(), must_exist=True)) as opened:
        rows, bodies = _payloads(opened)
        sent = [parcel.to_bytes(_parcel(opened, id_)) for id_ in ("packed", "large")]
        line = str(anchor.take(opened, opened.reader.runs(), 1.0)).encode()
    yield Decoder(name="values", samples=_values(), read=values.decode, share=6)
    frames = [seal(b""), seal(b"kelp" * 9), seal(b"kelp" * 2000), seal(bytes(70_000))]
    yield Decoder(name="frames", samples=frames, read=lambda data: open_frame(data, "f"), share=6)
    yield Decoder(name="rows", samples=rows, read=_read_row, share=4)
    yield Decoder(name="runs", samples=bodies, read=_read_run, share=2)
    yield Decoder(name="pruned rows", samples=rows[:4], read=_read_pruned)
    yield Decoder(name="packs", samples=[_pack(rows)], read=_read_pack, share=2)
    yield Decoder(name="packs with values", samples=[_cut(rows)], read=_read_cut, share=2)
    yield Decoder(name="tails", samples=_tails(rows), read=_read_tail, share=2)
    yield Decoder(name="states", samples=_states(), read=_read_state, share=4)
    yield Decoder(name="sealed rows", samples=_sealed_rows(rows), read=_read_sealed, share=2)
    yield Decoder(name="wrapped keys", samples=[_root()], read=_read_root)
    yield Decoder(name="exports", samples=sent, read=_read_export)
    yield Decoder(name="anchors", samples=[line], read=_read_anchor)
    points = [b"run-42@0x100000003:2", b"run@5", b"a@0x1:0"]
    yield Decoder(name="points", samples=points, read=_read_point)


def _payloads(opened: Opened) -> tuple[list[bytes], list[bytes]]:
    read = opened.reader
    rows = [
        _encode(placed.row)
        for run in read.runs()
        for branch in read.branches(run, with_ledger=True)
        if not branch.parent
        for placed in read.rows(branch.no, branch.no << 32, read.end(branch.no))
    ]
    return sorted(rows, key=len)[:40], [_encode(run.body) for run in read.runs()]


def _parcel(opened: Opened, id_: str) -> parcel.Parcel:
    run = opened.reader.find(id_)
    assert run is not None
    return collect(opened, run)


def _values() -> list[bytes]:
    shared: list[object] = [1]
    zone = dt.timezone(dt.timedelta(hours=2), "two")
    made: list[object] = [
        *(None, True, 1, -5, 2**70, 1.5, "text", b"bytes", "\ud800"),
        [1, [2, {"three": [4.0, "five"]}]],
        {"a": shared, "b": shared, "c": {1: 2, (3, 4): {5}}},
        dt.datetime(2026, 11, 16, 1, 2, 3, 4, tzinfo=zone),
        [dt.date(2026, 1, 2), dt.time(3, 4), dt.timedelta(5, 6, 7)],
        [decimal.Decimal("1.50"), uuid.UUID(int=5), complex(1, -2), range(3, 9, 2)],
        [pathlib.PurePosixPath("a/b"), frozenset({1, "x"}), bytearray(b"raw")],
        np.arange(12, dtype=np.int16).reshape(3, 4),
        [np.float32(1.5), np.array(["ab", "c"]), np.zeros((2, 0))],
    ]
    return [values.encode(value) for value in made]


def _read_row(data: bytes) -> object:
    """A row whose hash fits its bytes: what is inside is what is read."""
    body = seal(data)
    row = JournalRow(id=7, mac=row_mac(STORE_ID, 7, b"before", body), body=body)
    return _decoded(_decode_row, Hashed(STORE_ID).open_row(row, b"before"))


def _read_run(data: bytes) -> object:
    return _decoded(_decode_run, data)


def _read_pruned(data: bytes) -> object:
    hashed = Hashed(STORE_ID)
    row = hashed.prune(JournalRow(id=7, mac=b"m" * 32, body=b""), data)
    return _decoded(_decode_row, hashed.open_row(row, None))


def _decoded(decode: Callable[[bytes], object], payload: bytes) -> object:
    """As the reader decodes a payload."""
    return reader._decoded(decode, payload, "row")  # noqa: SLF001 it has no other way in


def _pack(rows: list[bytes]) -> bytes:
    return open_frame(make(_twelve(rows)), "pack")


def _twelve(rows: list[bytes]) -> list[JournalRow]:
    return [JournalRow(id=n, mac=bytes(32), body=seal(row)) for n, row in enumerate(rows[:12])]


def _cut(rows: list[bytes]) -> bytes:
    said = [values.encode({"text": "x" * 40 + str(n), "of": [n, {"n": n}]}) for n in range(6)]
    call = Call(0, "ask", b"digest", 0, 0, is_side=False, asked=[])
    made = [_encode(Row(-1, 0, [Answer(call, each, 1.0, 0.1, None)])) for each in said]
    values_, pieces = cut(_twelve([*made, *rows]), cuttable)
    return len(values_).to_bytes(2, "big") + values_ + pieces


def _read_cut(data: bytes) -> object:
    """The rows, and the values without them, of a pack whose hash fits its bytes."""
    end = 2 + int.from_bytes(data[:2], "big")
    body = bundle([seal(data[2:end]), seal(data[end:])])
    return beside((0, 11), (b"", b""), body), unpack(0, 11, body)


def _read_pack(data: bytes) -> object:
    return unpack(0, 11, seal(data))


def _tails(rows: list[bytes]) -> list[bytes]:
    """The rows of a record, and a tail of some records."""
    first, *others = (
        slots.record([row], SEED, 7, at * slots.SLOT) for at, row in enumerate(_twelve(rows))
    )
    return [
        first[HEAD_BYTES:],
        b"".join(each.ljust(slots.SLOT, b"\0") for each in (first, *others)),
    ]


def _read_tail(data: bytes) -> object:
    """As a tail, and as a record of one whose checksum fits its bytes."""
    head = struct.pack(">4sQII", b"HFt1", 7, 0, len(data))
    check = zlib.crc32(data, zlib.crc32(head, SEED)).to_bytes(4, "big")
    whole = head + check + data
    return slots.read(data, SEED, 7), slots.newest(data, SEED), slots.read(whole, SEED, 7)


def _states() -> list[bytes]:
    state = State({"a": [1, 2, {"b": "c"}], "d": {1: {2}, "e": bytearray(b"x")}, "f": "g" * 40})
    saves = [state.base()]
    state.locate((1, 0))
    state.root["a"].append({"new": [3]})
    state.root["d"]["e"] = state.root["a"]
    saves.append(state.delta() or b"")
    state.locate((2, 0))
    del state.root["a"][0]
    state.root["h"] = [state.root["a"][1], (1, 2)]
    saves.append(state.delta() or b"")
    return [*saves, b"".join(len(each).to_bytes(2, "big") + each for each in saves)]


def _read_state(data: bytes) -> object:
    """As a base, and as a base with changes behind it where the bytes say so."""
    saves, at = list[bytes](), 0
    while at + 2 < len(data) and len(saves) < 4:
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        saves.append(data[at + 2 : end])
        at = end
    whole = at == len(data) and len(saves) > 1
    base, changes = (saves[0], saves[1:]) if whole else (data, [])
    return State.restore(base, changes, {(1, 0): ["answer"], (2, 0): {"k": 1}}.__getitem__)


def _sealed_rows(rows: list[bytes]) -> list[bytes]:
    return [row.mac + row.body for row in (_SEALS.new(3).row(7, b"before", rows[0]),)]


class _NoKeys:
    """Wrapped keys of nobody."""

    def key(self, no: int) -> bytes | None:  # noqa: ARG002 it has none
        """None is kept."""
        return None


_KEYS, _ = keys.make(STORE_ID)
_SEALS = Sealed(_NoKeys(), _KEYS)
_RUN = _SEALS.new(3)


def _read_sealed(data: bytes) -> object:
    row = JournalRow(id=7, mac=data[:28], body=data[28:])
    return _RUN.open_row(row, b"before")


def _root() -> bytes:
    made, key = keys.make(STORE_ID)
    return made.root(key, kit.KEY)


def _read_root(data: bytes) -> object:
    return keys.unlock(data, STORE_ID, kit.KEY, "store")


def _read_export(data: bytes) -> object:
    """With its hash made to fit."""
    start = data[:-32]
    return parcel.from_bytes(start + hashlib.sha256(start).digest(), "file")


def _read_anchor(data: bytes) -> object:
    return anchor.parse(data.decode("latin-1"))


def _read_point(data: bytes) -> object:
    return parse_point(data.decode("utf-8", "surrogateescape"))
