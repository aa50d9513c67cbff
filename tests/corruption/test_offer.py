"""A damaged point is refused, and the newest one that restores is named with the line to type."""

import contextlib
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.main import main
from holdfast.model.ids import row_id
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.packs import make
from holdfast.store.codec import frame
from holdfast.store.packer import rows_in
from tests.corruption.scene import Crash, keeper


def spoil(path: Path, branch: int, seq: int) -> None:
    """Change a row of the journal, loose or in its pack."""
    id_ = row_id(branch, seq)
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        if link.execute("UPDATE j SET body=zeroblob(9) WHERE id=?", (id_,)).rowcount:
            return
        sql = "SELECT id, first, body FROM pack WHERE first<=? AND id>=? AND id>>32=?"
        last, first, body = link.execute(sql, (id_, id_, branch)).fetchone()
        rows = [
            JournalRow(id=row.id, mac=row.mac, body=bytes(9)) if row.id == id_ else row
            for row in rows_in(first, last, body)
        ]
        link.execute("UPDATE pack SET body=? WHERE id=?", (make(rows), last))


def newest_object(path: Path) -> Path:
    """The large value that was written last."""
    return max((path / "objects").glob("??/*"), key=lambda file: file.stat().st_mtime_ns)


def test_the_newest_point_that_restores_is_named(path: Path) -> None:
    with holdfast.open(path) as store:
        points = [point.id for point in store.checkpoints("packed", every_turn=True)]
        known = {id_: store.restore(id_)[1] for id_ in points}
    spoil(path, 1, 19)  # In the last but one turn: what comes after stands on it.

    with holdfast.open(path) as store:
        with pytest.raises(holdfast.Damaged, match="newest good point of the run is") as caught:
            store.restore("packed")
        good = caught.value.good
        assert good is not None
        assert known[good] == store.restore(good)[1]
        later = points[points.index(good) + 1 :]
        for id_ in later:
            with pytest.raises(holdfast.Damaged):
                store.restore(id_)
        assert later
        assert f"holdfast show packed --at {good}" in str(caught.value)


def test_a_run_that_cannot_go_on_names_it_too(path: Path) -> None:
    spoil(path, 4, 12)

    with (
        holdfast.open(path) as store,
        pytest.raises(holdfast.Damaged, match="newest good point of the run is branched@"),
    ):
        store.restart("branched", agent=keeper)


def test_nothing_is_named_where_nothing_restores(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        for table in ("j", "pack"):
            link.execute(f"UPDATE {table} SET body=zeroblob(9) WHERE id>>32 IN (2, 3, 4)")

    with holdfast.open(path) as store, pytest.raises(holdfast.Damaged) as caught:
        store.restore("branched")

    assert caught.value.good is None


def bomb(length: int) -> bytes:
    """A frame that says `length` bytes and would become a hundred times as many."""
    sealed = frame.seal(bytes(length * 100))
    return sealed[:4] + length.to_bytes(4, "big") + sealed[8:]


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda data: data[:-1], "not exactly one zstd frame"),
        (lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:], ""),
        (lambda _: bomb(66_005), "not exactly one zstd frame"),
        (lambda data: b"\x09" + data[1:], "a newer Holdfast wrote it"),
        (lambda _: frame.seal(b"another" * 9999), "do not match its name"),
    ],
    ids=["truncated", "flipped", "bomb", "unknown version", "swapped"],
)
def test_a_bad_object_is_named_and_older_points_are_offered(
    path: Path, harm: Callable[[bytes], bytes], why: str
) -> None:
    file = newest_object(path)
    file.write_bytes(harm(file.read_bytes()))

    with holdfast.open(path) as store:
        with pytest.raises(holdfast.Damaged, match="chunk") as caught:
            store.restore("large")
        assert file.name in str(caught.value)
        assert why in caught.value.why
        assert caught.value.good is not None
        assert store.restore(caught.value.good)[0].run == "large"


def test_the_command_line_shows_the_line_that_works(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(path, 1, 19)

    status = main(["show", "packed", "--at", "6", "--store", str(path)])
    told = capsys.readouterr().err
    line = told.rpartition("`holdfast ")[2].partition("`")[0].split()

    assert (7, "Traceback" in told) == (status, False)
    assert 0 == main([*line, "--store", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["checkpoint"]["run"] == "packed"


def test_a_large_value_that_cannot_be_read_is_damage_and_a_good_point_is_named(path: Path) -> None:
    file = newest_object(path)
    file.unlink()
    file.mkdir()

    with holdfast.open(path) as store:
        with pytest.raises(holdfast.Damaged, match="cannot be read") as caught:
            store.restore("large")
        assert caught.value.good is not None
        store.restore(caught.value.good)


def test_a_repair_moves_aside_the_bad_files_that_are_there(path: Path) -> None:
    *_, away, link = sorted((path / "objects").glob("??/*"))
    away.unlink()
    link.unlink()
    link.symlink_to("nowhere")

    plan = holdfast.plan_repair(path)
    into = plan.apply()

    assert [link.name] == plan.objects
    assert into is not None
    assert (into / "objects" / link.name).is_symlink()
    assert not link.is_symlink()


@pytest.mark.parametrize("is_cut_off", [False, True], ids=["to its end", "to that value"])
def test_a_checkpoint_that_stands_in_one_row_with_a_lost_value_outlives_a_repair(
    tmp_path: Path, *, is_cut_off: bool
) -> None:
    path = tmp_path / "store"
    with holdfast.open(path) as store:
        with contextlib.suppress(Crash):
            DYING.update({2} if is_cut_off else {})
            store.run(hoarder, 4, id="run")
        DYING.clear()
        points = store.checkpoints("run", every_turn=True)
        known = {point.id: store.restore(point.id)[1] for point in points}
    newest = sorted((path / "objects").glob("??/*"), key=lambda file: file.stat().st_mtime_ns)
    newest[2].unlink()  # Of turn 2; the row that names it begins with the end of turn 1.
    with holdfast.open(path) as store:
        before = [id_ for id_ in known if known[id_]["page"][0] < 2]
        assert before == [id_ for id_ in known if _restores(store, id_)][:2]

    (fate,) = holdfast.plan_repair(path).fates
    holdfast.plan_repair(path).apply()

    assert not {*before} & {*fate.checkpoints_lost}
    assert holdfast.plan_repair(path).findings == []
    with holdfast.open(path) as store:
        for id_ in before:
            assert known[id_] == store.restore(id_)[1]
        if not is_cut_off:
            assert known[points[-1].id] == store.restore("run")[1]
        assert 4 == store.restart("run", agent=hoarder)
        assert bytes([4]) == store.restore("run")[1]["page"][:1]


def _restores(store: holdfast.Store, id_: str) -> bool:
    try:
        store.restore(id_)
    except holdfast.Damaged:
        return False
    return True


DYING: set[int] = set()
"""Turns in which the hoarder's process dies."""


@holdfast.step
def fetch(turn: int) -> bytes:
    return bytes([turn]) * 7 + random.Random(turn).randbytes(90_000)  # noqa: S311 any bytes


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def hoarder(run: holdfast.Run, last: int) -> int:
    for turn in run.turns():
        run.state["page"] = fetch(turn)
        if turn in DYING:
            raise Crash
        if turn == last:
            return turn
    raise AssertionError
