"""`holdfast restart`: continue runs from their newest point."""

import json
import shlex
import sqlite3
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.model.journal import Facts, Started
from holdfast.model.run import Holder, RunBody
from holdfast.store.codec import values
from holdfast.store.open import open_store
from holdfast.store.writer import create
from tests.cli.kit import Shop, on_terminal, wait_for

LATE = """
import asyncio
import holdfast


@holdfast.agent
async def dozer(run):
    await asyncio.sleep(30)


@holdfast.agent
async def impatient(run):
    try:
        async with asyncio.timeout(0.05):
            await run.child(dozer, id="child")
    except TimeoutError:
        return "without it"
"""

CLERK = """
import holdfast


@holdfast.effect(approve=True)
def send(to: str) -> None: ...


@holdfast.agent
def clerk(run: holdfast.Run) -> None:
    for turn in run.turns():
        return send("ann")
"""


def test_an_interrupted_run_goes_on_without_asking_anything_twice(history: Shop) -> None:
    done = history("restart", "killed", "--app", "shop")

    assert (0, "0\n", "") == (done.status, done.out, done.err)
    assert 1 == history.asked().count("chat 7")
    assert "finished" == history("show", "killed", "--json").data["run"]["status"]


@pytest.mark.parametrize("way", ["variable", "holdfast.toml", "pyproject.toml"])
def test_the_module_may_be_named_once_and_for_all(history: Shop, way: str) -> None:
    if way == "holdfast.toml":
        history.put(way, 'app = "shop"\n')
    elif way == "pyproject.toml":
        history.put(way, '[tool.holdfast]\napp = ["shop"]\n')

    done = history("restart", "killed", **({"HOLDFAST_APP": "shop"} if way == "variable" else {}))

    assert (0, "0\n") == (done.status, done.out)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("killed",), "no module was named"),
        (("--all",), "no module was named"),
        (("killed", "--app", "empty"), "declared: none"),
        (("killed", "--app", "torn"), "module torn does not import: ZeroDivisionError"),
        (("killed", "--app", "missing"), "there is no module missing"),
        (("killed", "--app", "a b"), "'a b' is not the name of a module"),
        (("killed", "--app", "face"), "a named module imports it from shop: name that one"),
        ((), "name one run by its id, or all of them with --all"),
        (("killed", "--all"), "name one run by its id, or all of them with --all"),
        (("--all", "--redo-turn"), "are said of one run"),
        (("doubtful", "--happened", "x=y", "--yes"), "the outcome is no JSON"),
        (("doubtful", "--app", "shop", "--not-done", "ffff", "--yes"), "no effect in doubt"),
    ],
)
def test_what_cannot_be_done_as_asked_changes_nothing(
    history: Shop, args: tuple[str, ...], said: str
) -> None:
    history.put("empty.py")
    history.put("torn.py", "1 / 0\n")
    history.put("face.py", "from shop import sleeper\n")
    before, asked = _rows(history), history.asked()

    done = history("restart", *args)

    assert (2, "") == (done.status, done.out)
    assert said in done.err
    assert "Traceback" not in done.err
    assert (before, asked) == (_rows(history), history.asked())


def test_an_unknown_run_is_not_found(history: Shop) -> None:
    assert 3 == history("restart", "nobody", "--app", "shop").status


def test_a_failed_run_is_tried_again(history: Shop) -> None:
    still = history("restart", "failed", "--app", "shop")
    history.put("fixed")
    well = history("restart", "failed", "--app", "shop")

    assert 5 == still.status
    assert "to try again:  holdfast restart failed --app shop" in still.err
    assert (0, '"well"\n') == (well.status, well.out)


def test_a_finished_run_has_no_turn_to_redo(history: Shop) -> None:
    done = history("restart", "run-42", "--app", "shop", "--redo-turn", "--yes")

    assert 0 == done.status
    assert "it has finished" in done.err
    assert "drop the recorded steps" not in done.err


def test_what_to_type_can_be_typed_of_a_run_whose_id_begins_with_a_dash(shop: Shop) -> None:
    shop.put("down")
    stopped = shop("run", "shop:payer", "--id=-p", "--input", '"o-9"')
    [line] = [each for each in stopped.err.splitlines() if each.startswith("if it did not")]
    not_done = line.partition("holdfast ")[2]
    shown = shop("show", "--", "-p").out
    (shop.folder / "down").unlink()

    done = shop(*shlex.split(not_done.replace(" -- ", " --yes -- ")))

    assert (0, {"paid": "o-9"}) == (done.status, json.loads(done.out))
    assert not_done in shown


def test_a_run_that_a_person_refused_is_told_how_to_ask_again(shop: Shop) -> None:
    shop.put("clerk.py", CLERK)
    shop("run", "clerk:clerk", "--id", "c")
    shop("inbox", "reject", "c")
    refused = shop("restart", "c", "--app", "clerk")
    again = "holdfast restart c --app clerk --redo-turn"

    assert 5 == refused.status
    assert "it was not done; let the agent do something else, or `holdfast restart" in refused.err
    assert f"to ask again:  {again}\n" in refused.err
    assert f"next        {again}\n" in shop("show", "c").out
    asked = shop(*again.split()[1:], "--yes")
    assert 8 == asked.status
    assert "waits for an approval" in asked.err


def test_a_run_that_another_process_works_on_is_left_alone(history: Shop) -> None:
    child = history.start("run", "shop:sleeper", "--id", "s", "--input", "60")
    wait_for((history.folder / "waiting").exists)
    try:
        done = history("restart", "s", "--app", "shop")
    finally:
        child.kill()
        child.communicate()

    assert 8 == done.status
    assert f"process {child.pid} on" in done.err


def test_an_agent_whose_signature_changed_shows_what_was_recorded(history: Shop) -> None:
    text = (history.folder / "shop.py").read_text()
    history.put(
        "shop.py", text.replace("seconds: float) -> float:\n    for", ") -> float:\n    for")
    )

    done = history("restart", "killed", "--app", "shop")

    assert 2 == done.status
    assert "seconds=0" in done.err
    assert "Traceback" not in done.err


class TestWords:
    """A person's word on an effect in doubt."""

    def test_it_happened_with_this_outcome(self, history: Shop) -> None:
        done = history("restart", "doubtful", "--app", "shop", *_said(history, '={"id": 7}'))

        assert {"id": 7} == done.data
        assert "record that pay(order='o-1') happened" in done.err
        assert 1 == history.asked().count("pay o-1")
        [effect] = _effects(history, "doubtful")
        assert ("happened", "person") == (effect["outcome"], effect["how"])

    def test_it_did_not_so_it_is_done_anew(self, history: Shop) -> None:
        (history.folder / "down").unlink()

        done = history("restart", "doubtful", "--app", "shop", "--not-done", _key(history), "--yes")

        assert {"paid": "o-1"} == done.data
        assert 2 == history.asked().count("pay o-1")
        [effect] = _effects(history, "doubtful")
        assert ("happened", "call", 2) == (effect["outcome"], effect["how"], effect["attempts"])

    def test_without_a_terminal_and_without_yes_nothing_is_done(self, history: Shop) -> None:
        before = _rows(history)

        done = history("restart", "doubtful", "--app", "shop", "--happened", _key(history))

        assert 2 == done.status
        assert "--yes" in done.err
        assert before == _rows(history)

    def test_a_dry_run_stops_after_the_plan(self, history: Shop) -> None:
        before = _rows(history)

        done = history("restart", "doubtful", "--app", "shop", *_said(history), "--dry-run")

        assert 0 == done.status
        assert "record that pay(order='o-1') happened" in done.out
        assert before == _rows(history)

    @pytest.mark.parametrize(("typed", "status"), [("y\n", "finished"), ("\n", "in doubt")])
    def test_on_a_terminal_the_plan_is_shown_and_asked_for(
        self, history: Shop, typed: str, status: str
    ) -> None:
        args = ("restart", "doubtful", "--app", "shop", "--happened", _key(history) + "={}")

        done = on_terminal(history, *args, typed=typed)

        assert 0 == done.status
        assert "record that pay(order='o-1') happened" in done.out
        assert status == history("show", "doubtful", "--json").data["run"]["status"]


class TestRedoTurn:
    """The code changed under a run."""

    def test_a_diverged_run_is_run_anew_with_todays_code_and_its_effects_stand(
        self, shop: Shop
    ) -> None:
        shop.put("version", "1")
        shop("run", "shop:fickle", "--id", "f")
        shop.put("version", "2")
        shop.put("fixed")

        diverged = shop("restart", "f", "--app", "shop")
        refused = shop("restart", "f", "--app", "shop", "--redo-turn")
        done = shop("restart", "f", "--app", "shop", "--redo-turn", "--yes", "--reason", "new code")

        assert (5, 2, 0) == (diverged.status, refused.status, done.status)
        assert "holdfast restart f --app shop --redo-turn" in diverged.err
        assert '"done"\n' == done.out
        assert ["chat 1", "pay once", "wait 0", "chat 2", "wait 0"] == shop.asked()
        told = shop("show", "f", "--json").data
        assert ["new code"] == [e["name"] for e in told["events"] if e["kind"] == "redone"]
        assert 2 == told["run"]["branches"]


class TestAll:
    """Every run that needs it."""

    def test_interrupted_and_doubtful_runs_are_restarted_and_failed_ones_on_request(
        self, history: Shop
    ) -> None:
        history.put("fixed")

        first = history("restart", "--all", "--app", "shop", "--json")
        second = history("restart", "--all", "--failed", "--app", "shop", "-o", "jsonl")

        ends = [(run["id"], run["status"]) for run in first.data["runs"]]
        assert 5 == first.status
        assert [("doubtful", "in doubt"), ("killed", "finished")] == ends
        assert 5 == second.status
        assert ['"doubtful"', '"failed"'] == [
            line.partition('"id": ')[2].partition(",")[0] for line in second.out.splitlines()
        ]
        assert "finished" == history("show", "failed", "--json").data["run"]["status"]

    def test_all_well_ends_with_0_and_a_table(self, history: Shop) -> None:
        history("restart", "doubtful", "--app", "shop", *_said(history))

        done = history("restart", "--all", "--app", "shop")
        nothing = history("restart", "--all", "--app", "shop")

        assert 0 == done.status
        assert ["killed", "shop:sleeper", "finished"] == done.out.splitlines()[1].split()
        assert (0, "nothing to restart\n") == (nothing.status, nothing.out)

    def test_a_child_that_its_parent_gave_up_is_none_of_them(self, shop: Shop) -> None:
        shop.put("late.py", LATE)
        shop("run", "late:impatient", "--id", "parent")

        done = shop("restart", "--all", "--app", "late")

        assert (0, "nothing to restart\n") == (done.status, done.out)
        assert "interrupted" == shop("show", "child", "--json").data["run"]["status"]

    def test_a_dry_run_names_them(self, history: Shop) -> None:
        before = _rows(history)

        done = history("restart", "--all", "--dry-run", "--json")

        assert ["doubtful", "killed"] == [run["id"] for run in done.data["runs"]]
        assert before == _rows(history)


@pytest.mark.parametrize("module", ["os", "shop"])
def test_a_planted_row_runs_nothing(history: Shop, module: str) -> None:
    _plant(history.store, module, "system", ["touch pwned"])
    history.put("shop.py", "from os import system\n")

    one = history("restart", "planted", "--app", "shop")
    every = history("restart", "--all", "--app", "shop", "--app", "os")
    run = history("run", "os:system", "--id", "planted")

    assert (2, 5, 2) == (one.status, every.status, run.status)
    assert "agent" in one.err
    assert not (history.folder / "pwned").exists()


def _plant(store: Path, module: str, agent: str, args: list[object]) -> None:
    """A run as an attacker with the file in hand would write it: every hash is right."""
    holder = Holder(pid=1, host="elsewhere", since=0.0)
    body = RunBody(id="planted", agent=agent, module=module, created=0.0, holder=holder)
    encoded = values.encode([args, {}])
    facts = Facts("0.1.0", "3.11", "linux")
    started = Started(0.0, agent, module, None, encoded, b"", [], None, None, holder, facts)
    opened = open_store(store, SystemClock())
    try:
        assert create(opened.committer, opened.reader.seals, body, started) is not None
    finally:
        opened.close()


def _key(shop: Shop) -> str:
    """The start of the key of the doubtful effect, as a person would type it."""
    [doubt] = shop("show", "doubtful", "--json").data["run"]["in_doubt"]
    return str(doubt["key"])[:8]


def _said(shop: Shop, outcome: str = "={}") -> tuple[str, ...]:
    return ("--happened", _key(shop) + outcome, "--yes")


def _effects(shop: Shop, run: str) -> list[dict[str, object]]:
    events = shop("show", run, "--json").data["events"]
    return [event for event in events if event["kind"] == "effect"]


def _rows(shop: Shop) -> list[tuple[object, ...]]:
    """Every row of the store, to see that none was added or changed."""
    with sqlite3.connect(f"file:{shop.store / 'store.db'}?mode=ro", uri=True) as link:
        tables = ("run", "branch", "j", "pack", "effect")
        found = [row for name in tables for row in link.execute(f"SELECT * FROM {name}")]
    link.close()
    return found
