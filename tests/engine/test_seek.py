"""A turn is found in a few looks, whatever the run was: old, cut off, run anew, in many loops."""

import contextlib
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.engine.seek import rows_from_turn
from holdfast.model.journal import TurnEnded
from holdfast.policy.retention import Retention
from holdfast.store.backends.base import JournalRow
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Placed
from tests.engine.kit import RUN, Crash, Stage, text

LOOPS = 3
TURNS_PER_LOOP = 15
LONG = 400


@holdfast.step
def think(what: str) -> str:
    return text(what, 600)


def eventful(stage: Stage) -> None:
    """A run of three loops with steps around them, cut off, failed and run anew on the way."""
    cuts, faults = {4, 21, 22}, {9, 30}

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state.setdefault("notes", [])
        for loop in range(LOOPS):
            think(f"before loop {loop}")
            done = 0
            for turn in run.turns():
                run.state["notes"].append(think(f"turn {turn}"))
                if turn in cuts:
                    cuts.remove(turn)
                    raise Crash
                if turn in faults:
                    faults.remove(turn)
                    raise ZeroDivisionError
                done = turn + 1
                if done == (loop + 1) * TURNS_PER_LOOP:
                    break
            think(f"after loop {loop}")

    stage.die(agent)
    while stage.info().status != "finished":
        with contextlib.suppress(Crash, holdfast.RunFailed):
            stage.restart(agent, redo_turn=stage.info().status == "failed")


@pytest.fixture
def opened(stage: Stage) -> Iterator[Opened]:
    eventful(stage)
    opened = open_store(stage.path, SystemClock(), key=given_key())
    yield opened
    opened.close()


def ends(rows: Iterator[Placed]) -> dict[int, tuple[int, int]]:
    """Where each turn's end stands."""
    return {
        entry.turn: (placed.id, index)
        for placed in rows
        for index, entry in enumerate(placed.row.entries)
        if isinstance(entry, TurnEnded)
    }


def test_the_rows_from_a_turn_on_hold_its_end_and_begin_right_before_it(opened: Opened) -> None:
    reader = opened.reader
    run = reader.find(RUN)
    assert run is not None
    head = run.row.head
    rows = list(reader.rows(head, reader.first(head), reader.end(head)))
    all_ends = ends(iter(rows))
    assert set(range(LOOPS * TURNS_PER_LOOP - 1)) <= set(all_ends)
    assert len(reader.line(head)) > 2, "turns were run anew, so the line has several branches"

    for turn, place in all_ends.items():
        found = list(rows_from_turn(reader, head, turn))

        assert found == rows[-len(found) :]
        assert place == ends(iter(found))[turn]
        assert [placed.id for placed in found].index(place[0]) <= 8, (
            "a turn's own rows, and a few of lives that were cut off"
        )


def test_a_turn_that_never_was_is_not_found(opened: Opened) -> None:
    run = opened.reader.find(RUN)
    assert run is not None

    found = ends(rows_from_turn(opened.reader, run.row.head, 10_000))

    assert 10_000 not in found


def test_turns_are_found_or_missed_rightly_when_most_of_a_run_was_collected(stage: Stage) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=10))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            run.state["note"] = think(f"turn {turn}")
            if turn == LONG:
                break

    stage.live(agent)
    with stage.open() as store:
        assert store.gc(Retention(every=50)).rows > LONG // 2
        kept = {point.turn for point in store.checkpoints(RUN)}

        missed: dict[int, str] = {}
        for turn in range(LONG):
            try:
                point, state = store.restore(f"{RUN}@{turn}")
            except holdfast.UnknownCheckpoint as error:
                missed[turn] = str(error)
            else:
                assert (turn, {"note": text(f"turn {turn}", 600)}) == (point.turn, state)
        assert {"note": text(f"turn {LONG}", 600)} == store.restore(f"{RUN}@{LONG}")[1]
        with pytest.raises(holdfast.UnknownCheckpoint, match=f"turn {LONG + 1} .* has not ended"):
            store.restore(f"{RUN}@{LONG + 1}")
    assert 2 < len(kept) < LONG // 10
    assert kept.isdisjoint(missed)
    assert len(missed) > LONG // 2
    assert all("garbage collection removed" in said for said in missed.values())


def test_a_turn_of_a_long_run_is_found_in_a_few_looks(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            think(f"turn {turn}")
            if turn == LONG:
                break

    stage.live(agent)
    opened = open_store(stage.path, SystemClock(), key=given_key())
    run = opened.reader.find(RUN)
    assert run is not None
    looks: list[int] = []
    read = opened.records.rows

    def counted(first: int, last: int) -> list[JournalRow]:
        looks.append(last - first + 1)
        return read(first, last)

    monkeypatch.setattr(opened.records, "rows", counted)
    found = rows_from_turn(opened.reader, run.row.head, LONG // 3)
    while LONG // 3 not in ends(iter([next(found)])):
        pass

    assert sum(looks) < 60
    opened.close()
