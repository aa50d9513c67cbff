"""`holdfast demo`: it kills, it counts from outside, and it says so when a promise is broken."""

import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from holdfast.cli.commands import demo as command
from holdfast.cli.demo import proof
from holdfast.cli.demo.killer import Broken, Death, Moment, live, plan, turns_for
from holdfast.cli.demo.process import Event, Scene
from holdfast.cli.demo.proof import Doubt, Look, Proof
from holdfast.cli.demo.table import grid
from holdfast.cli.demo.view import Picture
from holdfast.cli.demo.world import BANK, MAIL, MODEL
from holdfast.clock import SystemClock

HOLDFAST = [sys.executable, "-m", "holdfast"]

KEPT = Proof(
    seed=1,
    kills=2,
    lives=3,
    turns=10,
    turns_done=10,
    answers_recorded=20,
    answers_asked_twice=0,
    answers_lost_in_flight=1,
    effects_done=18,
    effects_done_twice=0,
    effects_missing=0,
    in_doubt=3,
    in_doubt_happened=1,
    in_doubt_did_not=1,
    in_doubt_repeated=1,
    in_doubt_left=0,
    is_result_same=True,
    cost_per_turn_ms=1.5,
    bytes_stored=40_000,
    seconds=2.0,
)


def holdfast(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*HOLDFAST, *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        check=False,
        capture_output=True,
        text=True,
    )


def test_an_agent_that_is_killed_again_and_again_keeps_every_promise(tmp_path: Path) -> None:
    done = holdfast("demo", "--kills", "4", "--seed", "3", "-o", "json", folder=tmp_path)

    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    assert {"is_kept": True, "kills": 4, "lives": 5, "turns_done": turns_for(4)}.items() <= (
        told.items()
    )
    assert told["in_doubt"] == (
        told["in_doubt_happened"] + told["in_doubt_did_not"] + told["in_doubt_repeated"]
    )
    assert [] == list(tmp_path.iterdir()), "the demo removes what it made"


def test_without_a_terminal_each_life_is_a_line_and_what_is_kept_can_be_looked_at(
    tmp_path: Path,
) -> None:
    done = holdfast("demo", "--kills", "1", "--seed", "2", "--keep", "kept", folder=tmp_path)
    shown = holdfast("show", "demo", "--store", "kept/store", "--json", folder=tmp_path)

    assert 0 == done.returncode, done.stderr
    lives = [line for line in done.stdout.splitlines() if line.startswith("life ")]
    assert 2 == len(lives)
    assert "life  2  came to the end of the run" == lives[-1]
    assert "finished" == json.loads(shown.stdout)["run"]["status"]


def test_a_directory_that_exists_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()

    done = holdfast("demo", "--keep", "mine", folder=tmp_path)

    assert 2 == done.returncode
    assert "--keep mine: File exists" in done.stderr
    assert [] == list((tmp_path / "mine").iterdir())


def test_ctrl_c_ends_the_agent_too_and_leaves_nothing_behind(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [*HOLDFAST, "demo", "--kills", "100"],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    while not running.stdout.readline().startswith("life  1"):
        pass

    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)

    assert 130 == running.returncode
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "broken",
    [
        {"turns_done": 9},
        {"answers_asked_twice": 1},
        {"effects_done_twice": 1},
        {"effects_missing": 1},
        {"in_doubt_left": 1},
        {"is_result_same": False},
    ],
    ids=str,
)
def test_a_broken_promise_is_said_and_ends_with_status_1(
    broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        command, "play", lambda *_args, **_kwargs: dataclasses.replace(KEPT, **broken)
    )

    assert 1 == command.demo(kills=2, seed=1)
    assert "a promise was not kept; repeat it with `holdfast demo --seed 1" in (
        capsys.readouterr().err
    )


def test_kept_promises_end_with_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "play", lambda *_args, **_kwargs: KEPT)

    assert 0 == command.demo(kills=2, seed=1)


def test_a_seed_chooses_the_kills_and_every_kill_finds_its_moment() -> None:
    kills = plan(7, 12)

    assert kills == plan(7, 12)
    assert kills != plan(8, 12)
    assert set(Moment) == {kill.moment for kill in kills}
    assert sorted(kills, key=lambda kill: kill.turn) == kills
    assert all(kill.turn < turns_for(12) - 1 for kill in kills)


def test_a_recorded_answer_that_is_asked_again_is_counted(tmp_path: Path) -> None:
    asked = ["a", "b", "b", "c", "a", "d", "d"]
    (tmp_path / MODEL).write_text("".join(json.dumps({"question": q}) + "\n" for q in asked))
    looks = [_look(2, "a"), _look(5, "a", "b", "c"), _look(7, "a", "b", "c", "d")]

    # `b` had not been recorded when it was asked again; `a` had, and `d` twice in one life.
    assert 2 == proof.asked_twice(tmp_path, looks)
    assert 3 == proof.lost_in_flight(tmp_path)


def test_a_payment_that_the_bank_booked_twice_is_counted(tmp_path: Path) -> None:
    paid, again = {"ticket": "T-001", "cents": 5}, {"ticket": "T-002", "cents": 5}
    (tmp_path / BANK).write_text("".join(json.dumps(it) + "\n" for it in (paid, again, again)))
    mailed = {"ticket": "T-001", "key": "k", "is_new": True, "text": "done"}
    repeated = {**mailed, "is_new": False}
    (tmp_path / MAIL).write_text("".join(json.dumps(it) + "\n" for it in (mailed, repeated)))

    assert {
        ("refund", "T-001", 5): 1,
        ("refund", "T-002", 5): 2,
        ("mail", "T-001", "done"): 1,
    } == proof.effects(tmp_path)


def test_a_doubt_is_counted_once_however_often_it_is_found() -> None:
    doubt = Doubt(key="k", effect="refund", ticket="T-001")
    open_ = dataclasses.replace(_look(0), doubts=(doubt,))
    settled = dataclasses.replace(_look(0), known_by={"k": "probe", "other": "call"})

    assert {"probe": 1} == proof.settled([open_, open_, settled])
    assert {"nothing": 1} == proof.settled([open_, open_])


def test_a_life_that_ends_by_itself_and_not_well_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the store should be")
    scene = Scene(store=tmp_path / "store", world=tmp_path, tickets=1, pace=0)

    with pytest.raises(Broken, match="StoreUnwritable"):
        live(scene, None, SystemClock(), lambda _event: None)


def test_the_picture_shows_each_life_and_what_became_of_its_doubts() -> None:
    screen = io.StringIO()
    doubt = Doubt(key="k", effect="refund", ticket="T-001")
    first = dataclasses.replace(_look(1), doubts=(doubt,))
    second = dataclasses.replace(_look(1), known_by={"k": "call"})

    with Picture(Console(file=screen, force_terminal=True, width=120)) as picture:
        picture.begin(turns=10, kills=1, seed=4)
        picture.born(1)
        picture.hear(Event("turn", 1))
        picture.hear(Event("paying", "T-001"))
        picture.ended(Death(turn=1, last=Event("paying", "T-001"), after_ms=7.4), [first])
        picture.born(2)
        picture.ended(None, [first, second])
        picture.twin()

    shown = screen.getvalue()
    assert "turn  1: killed 7 ms after paying T-001" in shown
    assert "refund T-001: left in doubt" in shown
    assert "refund T-001: the probe found that it had not: done now" in shown
    assert "came to the end of the run" in shown


def test_the_table_sets_each_promise_beside_what_was_measured() -> None:
    rows = {row[0]: row[1:] for row in grid(KEPT).rows}

    assert ("10", "10", "2 kills, 3 lives") == rows["turns done"]
    assert ("0", "0", "1 answer cut off unrecorded, asked again") == rows["asked twice"]
    assert ("0", "0", "") == rows["done twice"]


def _look(asked: int, *recorded: str) -> Look:
    return Look(asked=asked, recorded=frozenset(recorded), turns=0, doubts=(), known_by={})
