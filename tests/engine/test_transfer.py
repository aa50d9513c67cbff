"""A run is carried to another store as one file, whole or not at all."""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import holdfast
from holdfast.capture.renumber import renumber
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.engine.parcel import MAGIC, Parcel, from_bytes, to_bytes
from holdfast.engine.transfer import admit, collect
from holdfast.model.run import Status
from holdfast.store.open import Opened, open_store
from holdfast.store.verify import verify
from tests.engine.kit import RUN, Crash, Stage, World, text
from tests.engine.test_retain import forgetful


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    found = open_store(path, SystemClock(), key=given_key())
    try:
        yield found
    finally:
        found.close()


def parcel(path: Path, id_: str = RUN) -> Parcel:
    with opened(path) as found:
        run = found.reader.find(id_)
        assert run is not None
        return from_bytes(to_bytes(collect(found, run)), "file")


def states(path: Path, id_: str) -> list[Any]:
    with holdfast.open(path) as store:
        points = store.checkpoints(id_, every_turn=True)
        return [(point.turn, point.root, store.restore(point)[1]) for point in points]


def is_whole(path: Path) -> bool:
    with opened(path) as found:
        report = verify(found, deep=True)
    assert [] == report.findings
    return report.is_whole


@holdfast.step
def chat(n: int, size: int = 3000) -> dict[str, Any]:
    return {"role": "assistant", "content": text(n, size), "n": n}


@holdfast.effect(key="n")
def pay(n: int) -> int:
    return n


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def talk(run: holdfast.Run, turns: int = 40) -> str:
    run.state.update(messages=[], odd={1: []}, large=None)
    for turn in run.turns():
        run.state["messages"].append(chat(turn))
        run.state.setdefault("pairs", []).append(("user", text(turn, 500)))
        run.state["odd"][1].append(chat(turn, 10))
        pay(turn)
        if turn == 3:
            run.state["large"] = chat(1000, 300_000)
            run.checkpoint("large", only=["large"])
        if turn == 20:
            run.state["messages"] = run.state["messages"][-7:]
        if turn == turns:
            return "done"
    raise AssertionError


@holdfast.agent
def filler(run: holdfast.Run) -> None:
    for turn in run.turns():
        if turn == 3:
            return


def test_an_imported_run_is_the_same_at_every_point(stage: Stage, tmp_path: Path) -> None:
    stage.live(talk)
    carried = parcel(stage.path)

    other = Stage(tmp_path / "other")
    for n in range(3):
        other.live(filler, id=f"filler-{n}")  # So that runs and branches have other numbers here.
    with opened(other.path) as found:
        run = admit(found, carried)

    assert (RUN, 4) == (run.body.id, run.row.head)
    assert 41 <= len(states(stage.path, RUN))
    assert states(stage.path, RUN) == states(other.path, RUN)
    assert "done" == other.live(talk)
    assert is_whole(other.path)


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def heavy(run: holdfast.Run, turns: int) -> int:
    run.state["texts"] = {}
    for turn in run.turns():
        # Each too small to lie aside by itself; what changed in the turn is not.
        run.state["texts"] = {str(n): text((turn, n), 1000) for n in range(100)}
        if turn == turns:
            return turn
    raise AssertionError


def test_a_large_change_of_the_state_reads_back_under_other_numbers(
    stage: Stage, tmp_path: Path
) -> None:
    stage.live(heavy, 6)
    other = Stage(tmp_path / "other")
    other.live(filler, id="filler")

    with opened(other.path) as found:
        admit(found, parcel(stage.path))

        assert [] == list(found.objects.ids())
    assert 7 <= len(states(stage.path, RUN))
    assert states(stage.path, RUN) == states(other.path, RUN)
    assert is_whole(other.path)


def test_a_large_change_that_an_older_import_put_aside_is_read(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.live(heavy, 6)
    other = Stage(tmp_path / "other")
    other.live(filler, id="filler")
    with opened(other.path) as found:
        monkeypatch.setattr(
            "holdfast.engine.transfer._readable",
            lambda data, moved: found.chunks.keep(renumber(data, moved)),
        )
        admit(found, parcel(stage.path))

        assert list(found.objects.ids())
    assert states(stage.path, RUN) == states(other.path, RUN)
    assert is_whole(other.path)


def test_a_run_with_branches_goes_on_where_it_was_taken(
    stage: Stage, world: World, tmp_path: Path
) -> None:
    @holdfast.step
    def ask(n: int) -> str:
        return world.ask(f"{n}")

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> list[str]:
        run.state["said"] = []
        for turn in run.turns():
            run.state["said"].append(ask(turn))
            if turn in (2, 4):
                pay(turn)
                ask(100 + turn)
            if turn == 6:
                return list(run.state["said"])
        raise AssertionError

    other = Stage(tmp_path / "other")
    other.live(filler, id="filler")
    world.dies_at = "102"
    stage.die(agent)
    world.dies_at = "104"
    with pytest.raises(Crash):
        stage.restart(agent, redo_turn=True)
    world.dies_at = None
    carried = parcel(stage.path)
    with opened(other.path) as found:
        admit(found, carried, "copy")

    assert states(stage.path, RUN) == states(other.path, "copy")
    assert is_whole(other.path)
    expected = ["0#1", "1#1", "2#2", "3#1", "4#1", "5#1", "6#1"]
    assert expected == other.live(agent, id="copy")
    assert is_whole(other.path)


def test_an_imported_run_is_forked_only_where_garbage_collection_left_enough(
    stage: Stage, tmp_path: Path
) -> None:
    def forks(path: Path) -> list[str]:
        made = []
        with holdfast.open(path) as store:
            for point in points:
                with contextlib.suppress(holdfast.UnknownCheckpoint, holdfast.UsageError):
                    store.fork(RUN, at=point)
                    made.append(point)
        return made

    stage.live(forgetful, 60, id=RUN)
    with holdfast.open(stage.path) as store:
        points = [point.id for point in store.checkpoints(RUN, every_turn=True)]
        store.gc(holdfast.Retention(last=2))
    with opened(tmp_path / "other") as found:
        admit(found, parcel(stage.path))

    made = forks(stage.path)

    assert 0 < len(made) < len(points) - 1
    assert made == forks(tmp_path / "other")


def test_a_child_is_whole_where_it_is_imported(stage: Stage, tmp_path: Path) -> None:
    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        return str(run.child(talk, 2, id="child"))

    stage.live(parent)
    with opened(tmp_path / "other") as found:
        admit(found, parcel(stage.path, "child"))

    assert is_whole(tmp_path / "other")


def test_a_run_that_is_there_already_is_not_touched(stage: Stage) -> None:
    stage.live(talk, 3)
    carried = parcel(stage.path)
    before = stage.journal()

    with opened(stage.path) as found:
        with pytest.raises(holdfast.UsageError, match="--as"):
            admit(found, carried)
        admit(found, carried, "copy")

    assert before == stage.journal()
    assert states(stage.path, RUN) == states(stage.path, "copy")


def test_a_store_of_an_older_holdfast_takes_no_run_that_names_leaves(
    stage: Stage, tmp_path: Path
) -> None:
    stage.live(talk)
    stage.live(filler, id="plain")
    carried = parcel(stage.path), parcel(stage.path, "plain")
    holdfast.open(tmp_path / "old").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "old" / "store.db")) as link, link:
        link.execute(
            "UPDATE meta SET value=CAST(replace(CAST(value AS TEXT), 'leaves ', '') AS BLOB) "
            "WHERE key='incompat'"
        )

    with opened(tmp_path / "old") as found:
        with pytest.raises(holdfast.UsageError, match="import it into a new store"):
            admit(found, carried[0])
        admit(found, carried[1])

    assert is_whole(tmp_path / "old")


def test_an_interrupted_run_goes_on_in_the_other_store(stage: Stage, tmp_path: Path) -> None:
    dies = [True]

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        run.state["said"] = []
        for turn in run.turns():
            run.state["said"].append(chat(turn)["n"])
            if turn == 5 and dies:
                raise Crash
            if turn == 8:
                return list(run.state["said"])
        raise AssertionError

    stage.die(agent)
    dies.clear()
    other = Stage(tmp_path / "other")
    with opened(other.path) as found:
        admit(found, parcel(stage.path))

    assert list(range(9)) == other.live(agent)
    assert is_whole(other.path)


def test_no_bit_of_the_file_can_be_changed_unnoticed(stage: Stage) -> None:
    stage.live(talk, 1)
    with opened(stage.path) as found:
        run = found.reader.find(RUN)
        assert run is not None
        data = to_bytes(collect(found, run))

    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        with pytest.raises((holdfast.Damaged, holdfast.UsageError)):
            from_bytes(bytes(changed), "file")
    for end in range(0, len(data), 11):
        with pytest.raises((holdfast.Damaged, holdfast.UsageError)):
            from_bytes(data[:end], "file")


def test_a_newer_version_is_refused() -> None:
    data = MAGIC + (5).to_bytes(2, "big")

    with pytest.raises(holdfast.UsageError, match="of version 5, this Holdfast knows 4"):
        from_bytes(data + hashlib.sha256(data).digest(), "file")


def test_a_file_that_no_export_made_is_refused_whatever_its_header_says(
    stage: Stage, tmp_path: Path
) -> None:
    stage.live(talk, 3)
    whole = parcel(stage.path)
    header, body = whole.header, whole.header.body
    odd = [
        replace(header, epoch=-1),
        replace(header, epoch=1 << 63),
        replace(header, head=7),
        replace(header, branches=[*header.branches, *header.branches]),
        replace(header, branches=[]),
        replace(header, body=replace(body, id="")),
        replace(header, body=replace(body, id="x\n")),
        replace(header, body=replace(body, status=Status.FAILED)),
        replace(header, body=replace(body, agent="another")),
        replace(header, rows=1 << 40),
    ]

    for each in odd:
        file = to_bytes(Parcel(header=each, rows=whole.rows, large=whole.large))
        with opened(tmp_path / "other") as found:
            with pytest.raises(holdfast.Damaged):
                admit(found, from_bytes(file, "file"))
            assert [] == list(found.reader.runs())


def test_a_large_value_that_did_not_come_along_is_missed_before_anything_is_written(
    stage: Stage, tmp_path: Path
) -> None:
    stage.live(talk, 4)
    whole = parcel(stage.path)
    assert whole.large

    for chunk in whole.large:
        rest = {name: data for name, data in whole.large.items() if name != chunk}
        with opened(tmp_path / "other") as found:
            with pytest.raises(holdfast.Damaged, match="it is named but not there"):
                admit(found, Parcel(header=whole.header, rows=whole.rows, large=rest))
            assert None is found.reader.find(RUN)


def test_rows_that_do_not_fit_together_change_nothing(stage: Stage, tmp_path: Path) -> None:
    stage.live(talk, 3)
    whole = parcel(stage.path)
    holed = Parcel(header=whole.header, rows=whole.rows[:3] + whole.rows[4:], large=whole.large)

    with opened(tmp_path / "other") as found:
        with pytest.raises(holdfast.Damaged, match="rows of it are missing"):
            admit(found, holed)
        assert None is found.reader.find(RUN)
        admit(found, whole)
