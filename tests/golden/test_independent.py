"""A reader that knows only `docs/format.md` finds in every golden store what must be there."""

import datetime as dt
import json
import shutil
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path, PurePosixPath
from struct import unpack
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from msgspec.msgpack import decode

from tests.golden import agents
from tests.golden.independent import SLOT, Store, Wrong, record
from tests.golden.independent_state import Leaf, States, content_hash
from tests.golden.tell import KEY_TEXT, tell
from tests.golden.test_golden import golden

TAIL = Path(__file__).parent / "v1-tail"


def opened(place: Path) -> Store:
    return Store(place, bytes.fromhex(KEY_TEXT) if place.name == "sealed" else None)


@golden
def test_a_reader_by_the_document_restores_every_point(place: Path, tmp_path: Path) -> None:
    expected = json.loads((place / "expected.json").read_text(encoding="utf-8"))

    # A copy: SQLite lays a log beside what it reads.
    store = opened(Path(shutil.copytree(place, tmp_path / place.name)))

    assert expected.keys() == store.runs.keys()
    for id_, run in expected.items():
        found = store.runs[id_]
        assert run["run"][:2] == [found["agent"], found["status"]]
        assert run["run"][2:5] == [found["created"], found["epoch"], found["head"]]
        head = States(store, found["head"])
        for point, (_, _, _, root, _) in run["points"].items():
            branch, sequence, index = map(int, point.rpartition("@")[2].split("."))
            row = branch << 32 | sequence
            is_ahead = (row, index) in head.places
            state = (head if is_ahead else States(store, branch)).restore(row, index)
            assert root in {None, content_hash(state).hex()}
            if "states" in run:
                assert run["states"][point] == json.loads(json.dumps(tell(python(state))))


@pytest.mark.parametrize("kind", ["open", "sealed"])
@pytest.mark.parametrize("table", ["run", "branch", "j", "pack"])
def test_one_flipped_bit_of_a_row_is_noticed(tmp_path: Path, kind: str, table: str) -> None:
    place = Path(shutil.copytree(TAIL / kind, tmp_path / kind))
    with closing(sqlite3.connect(place / "store.db")) as db:
        key, body = db.execute(f"SELECT rowid, body FROM {table}").fetchone()
        flipped = body[:-1] + bytes([body[-1] ^ 1])
        db.execute(f"UPDATE {table} SET body = ? WHERE rowid = ?", (flipped, key))
        db.commit()

    with pytest.raises((Wrong, InvalidTag)):
        opened(place)


@pytest.mark.parametrize("kind", ["open", "sealed"])
def test_one_flipped_bit_of_a_large_value_is_noticed(tmp_path: Path, kind: str) -> None:
    place = Path(shutil.copytree(TAIL / kind, tmp_path / kind))
    for file in place.glob("objects/*/*"):
        data = file.read_bytes()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))

    store = opened(place)
    states = States(store, store.runs["tale"]["head"])

    with pytest.raises((Wrong, InvalidTag)):
        states.restore(*states.entries[-1][:2])


@pytest.mark.parametrize("kind", ["open", "sealed"])
def test_one_flipped_bit_of_a_record_of_the_tail_is_noticed(tmp_path: Path, kind: str) -> None:
    place = Path(shutil.copytree(TAIL / kind, tmp_path / kind))
    data = (place / "tail").read_bytes()
    counts, found = standing(place)

    for slot in [slot for slot, (generation, _) in enumerate(found) if generation == counts]:
        at = slot * SLOT + 40
        (place / "tail").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(Wrong, match=r"a record of the tail is missing|the head note"):
            opened(place)


@pytest.mark.parametrize("kind", ["open", "sealed"])
def test_a_tail_whose_generation_is_not_known_is_noticed(tmp_path: Path, kind: str) -> None:
    place = Path(shutil.copytree(TAIL / kind, tmp_path / kind))
    with closing(sqlite3.connect(place / "store.db")) as db:
        db.execute("DELETE FROM meta WHERE key = 'tail'")
        db.commit()

    with pytest.raises(Wrong, match="a later generation"):
        opened(place)


@pytest.mark.parametrize("kind", ["open", "sealed"])
def test_the_golden_tails_hold_all_that_a_kill_may_leave(kind: str) -> None:
    data = (TAIL / kind / "tail").read_bytes()
    counts, found = standing(TAIL / kind)
    records = [rows for generation, rows in found if generation == counts]
    marked = [data.startswith(b"HFt1", slot * SLOT) for slot in range(len(found))]

    assert len(records) > 2
    assert any(len(rows) > SLOT for rows in records), "one that is longer than a slot"
    assert any(len(rows) > 13 + size_of_first(rows) for rows in records), "one of several rows"
    assert counts - 1 in [generation for generation, _ in found], "one of an earlier generation"
    assert (True, (-1, b"")) in zip(marked, found, strict=True), "one that was cut off"


def standing(place: Path) -> tuple[int, list[tuple[int, bytes]]]:
    """The latest generation in a store's tail, and what stands in each slot."""
    with closing(sqlite3.connect(f"file:{place / 'store.db'}?immutable=1", uri=True)) as db:
        [[store]] = db.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchall()
    data = (place / "tail").read_bytes()
    found = [record(data, at, store) for at in range(0, len(data), SLOT)]
    return max(generation for generation, _ in found), found


def size_of_first(rows: bytes) -> int:
    """The bytes of `mac` and `body` of the first row in a record."""
    return sum(unpack(">BI", rows[8:13]))


def python(value: Any) -> Any:  # noqa: ANN401 whatever a state holds
    """The value as the program had it."""
    if isinstance(value, Leaf):
        made: Any = OF[value.code]
        return made(*map(python, value.items))
    if isinstance(value, dict):
        return {python(key): python(item) for key, item in value.items()}
    return type(value)(map(python, value)) if isinstance(value, list | tuple) else value


def _object(name: str, _: int, fields: dict[str, Any], *_rest: object) -> object:
    return CLASSES[name](**fields)


def _array(head: bytes, data: bytes) -> object:
    dtype, shape = decode(head)
    return np.frombuffer(data, np.dtype(dtype)).reshape(shape)


def _scalar(head: bytes) -> object:
    dtype, data = decode(head)
    return np.frombuffer(data, np.dtype(dtype))[0]


def _when(data: bytes) -> dt.datetime:
    year, month, day, *clock = decode(data)
    return dt.datetime.combine(dt.date(year, month, day), _clock(*clock))


def _clock(*parts: Any) -> dt.time:  # noqa: ANN401 numbers and a zone
    hour, minute, second, micro, fold, zone = parts
    return dt.time(hour, minute, second, micro, _zone(zone), fold=fold)


def _zone(zone: Any) -> dt.tzinfo | None:  # noqa: ANN401 nil, text or an array
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    return dt.timezone(dt.timedelta(*zone[:3]), *(name.decode() for name in zone[3:]))


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


OF = {
    1: _integer,
    2: lambda data: data.decode("utf-8", "surrogatepass"),
    3: _when,
    4: lambda data: dt.date(*decode(data)),
    5: lambda data: _clock(*decode(data)),
    6: lambda data: dt.timedelta(*decode(data)),
    7: lambda data: Decimal(data.decode("ascii")),
    8: lambda data: UUID(bytes=data),
    9: lambda data: complex(*unpack(">dd", data)),
    10: lambda data: range(*map(_integer, decode(data))),
    11: lambda data: PurePosixPath(decode(data)[1].decode()),
    12: lambda data: _zone(decode(data)),
    14: _scalar,
    34: lambda *items: set(items),
    35: lambda *items: frozenset(items),
    36: bytearray,
    37: _object,
    38: _array,
}
"""What makes a value of each item and node (§8)."""
CLASSES: dict[str, Any] = {
    "golden.mood": lambda name: agents.Mood[name],
    "golden.rights": agents.Rights,
    "golden.tool": agents.Tool,
    "golden.profile": agents.Profile,
}
