"""`holdfast gc`: rules from flags, variables and files, the plan, and what goes."""

import os
import random

import pytest

import holdfast
from tests.cli.kit import Shop


@holdfast.agent
def echo(_run: holdfast.Run) -> str:
    return "done"


@holdfast.step
def page(number: int) -> str:
    return random.Random(number).randbytes(9000).hex()  # noqa: S311 it is to repeat


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def reader(run: holdfast.Run) -> None:
    for turn in run.turns():
        run.state["page"] = page(turn)
        if turn == 20:
            return


@pytest.fixture
def runs(shop: Shop) -> Shop:
    """A shop with four runs that have ended."""
    with holdfast.open(shop.folder / ".holdfast") as store:
        for number in range(4):
            store.run(echo, id=f"run-{number}")
    return shop


def left(shop: Shop) -> list[str]:
    with holdfast.open(shop.folder / ".holdfast") as store:
        return [run.id for run in store.runs()]


def test_a_plan_says_what_goes_and_why_the_rest_stays(runs: Shop) -> None:
    runs("pin", "run-0")

    told = runs("gc", "--dry-run", "--runs-last", "1", "--json").data

    assert {
        "run-0": ["pinned"],
        "run-1": [],
        "run-2": [],
        "run-3": ["among the last 1"],
    } == {fate["id"]: fate["why"] for fate in told["runs"]}
    assert 4 == len(left(runs))


def test_rules_come_from_the_file_and_a_flag_is_stronger(runs: Shop) -> None:
    runs.put("holdfast.toml", "[retention]\nruns_last = 3\n")

    assert 0 == runs("gc").status
    assert ["run-3", "run-2", "run-1"] == left(runs)
    assert 0 == runs("gc", "--runs-last", "1").status
    assert ["run-3"] == left(runs)


def test_with_rules_in_the_file_a_run_that_ends_takes_the_garbage_along(runs: Shop) -> None:
    runs.put("holdfast.toml", "[retention]\nruns_last = 2\n")

    runs("run", "shop:echo", "--id", "run-4")

    assert ["run-4", "run-3"] == left(runs)


def test_a_rule_that_cannot_be_read_is_refused_before_anything_goes(runs: Shop) -> None:
    told = runs("gc", "--quota", "0")

    assert 2 == told.status
    assert "--quota: quota is 0" in told.err
    assert "Traceback" not in told.err


def test_half_written_files_of_the_dead_go_and_are_counted(runs: Shop) -> None:
    folder = runs.folder / ".holdfast" / "objects" / "ab"
    folder.mkdir(parents=True)
    for name, age in (("old", 7_200), ("young", 0)):
        part = folder / f"ab{name}.part"
        part.write_bytes(b"half")
        then = part.stat().st_mtime - age
        os.utime(part, (then, then))

    assert "1 file that a crash left half-written" in runs("gc", "--dry-run").out
    assert 1 == runs("gc", "--json").data["parts"]
    assert ["abyoung.part"] == [part.name for part in folder.iterdir()]


@pytest.mark.parametrize("act", ["pin", "unpin"])
def test_a_name_that_no_run_has_is_told_as_that(runs: Shop, act: str) -> None:
    for name, why in (("nobody", "no run 'nobody'"), ("run-1@99", "turn 99 of run 'run-1'")):
        done = runs(act, name)

        assert 3 == done.status
        assert why in done.err


def test_what_a_pruned_run_did_is_told_as_of_what_is_left(shop: Shop) -> None:
    with holdfast.open(shop.folder / ".holdfast") as store:
        store.run(reader, id="run-1")
    before = shop("show", "run-1").out
    shop("gc", "--last", "2")
    after = shop("show", "run-1").out

    assert "did         21 turns, 21 steps" in before
    assert "pruned" not in before
    assert (
        "\npruned      older rows, by garbage collection; steps, checkpoints, tokens are" in after
    )


STOCK = """
from dataclasses import dataclass

import holdfast
import numpy as np


@dataclass
class Item:
    text: str


@holdfast.step
def find(n: int) -> Item:
    return Item(f"item {n}")


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def keeper(run: holdfast.Run) -> None:
    for turn in run.turns():
        noise = np.random.default_rng(turn).random(40_000)
        run.state.update(vector=noise, item=find(turn))
        if turn == 20:
            return
"""


def test_no_rule_about_checkpoints_needs_the_classes_that_the_states_hold(shop: Shop) -> None:
    shop.put("stock.py", STOCK)
    assert 0 == shop("run", "stock:keeper", "--id", "run-1").status

    told = shop("gc", "--last", "2", "--dry-run", "--json")
    done = shop("gc", "--last", "2", "--json")

    assert (0, 0) == (told.status, done.status), told.err
    fates = {fate["id"]: fate["why"] for fate in told.data["checkpoints"] if fate["why"]}
    assert [
        ["among the last 2", "second newest that verifies"],
        ["among the last 2", "newest that verifies"],
    ] == list(fates.values())[-2:]
    assert told.data["rows"] == done.data["rows"] > 0
    for point in fates:
        assert 0 == shop("show", "run-1", "--at", point, "--app", "stock", "-o", "json").status
    assert 0 == shop("verify", "--deep").status
