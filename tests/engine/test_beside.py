"""A state is read from the values beside packed rows, and is what its rows say, in every store."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

import holdfast
from holdfast.engine import turns
from holdfast.engine.repair import plan_repair
from holdfast.engine.transfer import admit, collect
from holdfast.model.ids import row_id
from holdfast.store import writer
from holdfast.store.backends import connection, packs
from holdfast.store.backends.base import Name
from holdfast.store.chain import pack_mac
from holdfast.store.codec.frame import is_bundle
from holdfast.store.reader import Reader
from holdfast.store.verify import verify

KEY = "env:HOLDFAST_TEST_KEY"
TURNS = 40
SECTIONS = ["messages", "kept", "note"]


class Crash(BaseException):
    """The process dies here, as far as the run can tell."""


STOP = SimpleNamespace(at=-1)


@holdfast.step
def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"author": "model", "text": f"answer number {len(messages)}, which is rather long"}


@holdfast.agent
def talk(run: holdfast.Run, last: int, keep: int = 1000) -> int:
    messages, kept = run.state.setdefault("messages", []), run.state.setdefault("kept", {})
    for turn in run.turns():
        text = f"question number {turn}, which is rather long as well"
        messages.append({"author": "user", "text": text, "of": {"turn": turn, "tags": ["a"]}})
        messages.append(reply(messages))
        if turn % 7 == 3:
            messages[-3]["text"] += " and was changed"
            kept[str(turn)] = messages.pop(0)
        del messages[:-keep]
        if turn == STOP.at:
            raise Crash
        if turn == last:
            break
    run.state["note"] = {"text": "a dict that stands in a dict, and is of some length"}
    return len(messages)


@pytest.fixture(params=[None, KEY], ids=["open", "sealed"])
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    monkeypatch.setenv(KEY.partition(":")[2], "00" * 32)
    found: str | None = request.param
    return found


@pytest.fixture(autouse=True)
def _small_parts() -> Iterator[None]:
    with (
        patch.object(turns, "BASE_BYTES_MIN", 1500),
        patch.object(writer, "PACK_BYTES", 3000),
        patch.object(packs, "CUT_FROM", 0),
    ):
        yield


def made(path: Path, key: str | None, last: int = TURNS, keep: int = 1000) -> dict[str, Any]:
    """A conversation in a store that is closed again; its newest state."""
    with holdfast.open(path, key=key) as store:
        store.run(talk, last, keep, id="talk")
        return store.restore("talk")[1]


@contextlib.contextmanager
def counting() -> Iterator[list[int]]:
    """How many values each state was given that were read without their rows."""
    taken: list[int] = []
    beside = Reader.beside

    def counted(reader: Reader, ids: Iterable[int]) -> dict[Name, Any]:
        found = beside(reader, ids)
        taken.append(len(found))
        return found

    with patch.object(Reader, "beside", counted):
        yield taken


@contextlib.contextmanager
def by_rows() -> Iterator[None]:
    """Nothing stands beside rows."""
    with patch.object(Reader, "beside", lambda *_: {}):
        yield


def bodies(path: Path) -> list[bytes]:
    with contextlib.closing(sqlite3.connect(path / "store.db")) as link:
        return [body for (body,) in link.execute("SELECT body FROM pack ORDER BY id")]


def change(path: Path, sql: str, *given: object) -> None:
    with contextlib.closing(sqlite3.connect(path / "store.db")) as link, link:
        link.execute(sql, given)


def test_every_point_is_the_same_with_values_and_by_rows(tmp_path: Path, key: str | None) -> None:
    made(tmp_path, key)

    with holdfast.open(tmp_path, key=key) as store:
        points = [point.id for point in store.checkpoints("talk", every_turn=True)]
        with counting() as taken:
            states = [store.restore(point)[1] for point in points]
        with by_rows():
            expected = [store.restore(point)[1] for point in points]
        assert [] == verify(store.opened, deep=True).findings

    assert expected == states
    assert SECTIONS == list(states[-1])
    assert max(taken) > TURNS
    assert all(map(is_bundle, bodies(tmp_path)))


def test_states_share_nothing_with_each_other(tmp_path: Path) -> None:
    expected = made(tmp_path, None)

    with holdfast.open(tmp_path) as store:
        one = store.restore("talk")[1]
        for message in one["messages"]:
            message.clear()
        assert expected == store.restore("talk")[1]


def test_a_run_goes_on_with_values_that_were_read_without_rows(
    tmp_path: Path, key: str | None
) -> None:
    expected = made(tmp_path / "whole", key)
    with patch.object(STOP, "at", 31), pytest.raises(Crash):
        made(tmp_path / "cut", key)

    with holdfast.open(tmp_path / "cut", key=key) as store:
        with counting() as taken:
            store.run(talk, id="talk")
        assert expected == store.restore("talk")[1]
        store.fork("talk", at="talk@20", new_id="forked")
        assert store.restore("talk@20")[1] == store.restore("forked")[1]
        assert [] == verify(store.opened, deep=True).findings
    assert max(taken) > 0


def test_what_is_left_of_a_pruned_run_is_the_same_with_values_and_by_rows(
    tmp_path: Path, key: str | None
) -> None:
    expected = made(tmp_path, key, keep=8)

    with holdfast.open(tmp_path, key=key) as store:
        assert store.gc(holdfast.Retention(last=2)).rows
        assert expected == store.restore("talk")[1]
        with by_rows():
            assert expected == store.restore("talk")[1]
        assert [] == verify(store.opened, deep=True).findings
    assert all(map(is_bundle, bodies(tmp_path)))


@pytest.mark.parametrize("at", [8, 45, 80, 110, -1])
def test_a_pack_that_was_changed_gives_no_value_and_is_named(tmp_path: Path, at: int) -> None:
    expected = made(tmp_path, None)
    body = bytearray(bodies(tmp_path)[2])
    body[at] ^= 1
    sql = "UPDATE pack SET body=? WHERE id=(SELECT id FROM pack ORDER BY id LIMIT 1 OFFSET 2)"
    change(tmp_path, sql, bytes(body))

    with holdfast.open(tmp_path) as store:
        with contextlib.suppress(holdfast.Damaged):
            assert expected == store.restore("talk")[1]  # Its rows may be as they were.
        named = [found.where for found in verify(store.opened).findings]
    assert any(where.startswith("pack 0x1") for where in named)

    if named == [where for where in named if where.startswith("pack")]:
        plan_repair(tmp_path).apply()
        assert [] == findings(tmp_path)


def test_a_pack_from_another_line_of_history_gives_no_value(tmp_path: Path) -> None:
    made(tmp_path, None)
    with holdfast.open(tmp_path) as store:
        rows = range(row_id(1, 0), store.opened.records.end(1) + 1)
        whole = len(store.opened.reader.beside(rows))
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as link, link:
        id_, first, body = link.execute(
            "SELECT id, first, body FROM pack LIMIT 1 OFFSET 2"
        ).fetchone()
        [store_id] = link.execute("SELECT value FROM meta WHERE key='store_id'").fetchone()
        head, payload = body[:8] + b"x" * 32 + body[40:72], memoryview(body)[104:]
        forged = head + pack_mac(store_id, (first, id_), head, payload) + payload
        link.execute("UPDATE pack SET body=? WHERE id=?", (forged, id_))

    with holdfast.open(tmp_path) as store:
        assert 0 < len(store.opened.reader.beside(rows)) < whole


def test_a_store_of_an_older_holdfast_keeps_packs_that_it_can_read(
    tmp_path: Path, key: str | None
) -> None:
    with patch.object(connection, "VALUES", ""):
        expected = made(tmp_path, key, last=9)
    with holdfast.open(tmp_path, key=key) as store:
        assert expected == store.restore("talk")[1]
        store.run(talk, 9, id="another")

    assert not any(map(is_bundle, bodies(tmp_path)))


def test_a_run_that_was_carried_to_another_store_has_its_values_there(
    tmp_path: Path, key: str | None
) -> None:
    expected = made(tmp_path / "here", key)

    with (
        holdfast.open(tmp_path / "here", key=key) as here,
        holdfast.open(tmp_path / "there") as there,
    ):
        run = here.opened.reader.find("talk")
        assert run is not None
        admit(there.opened, collect(here.opened, run))
        assert expected == there.restore("talk")[1]
        assert [] == verify(there.opened, deep=True).findings


def findings(path: Path) -> list[str]:
    with holdfast.open(path) as store:
        return [found.where for found in verify(store.opened, deep=True).findings]
