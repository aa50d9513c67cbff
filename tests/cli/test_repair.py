"""`holdfast repair`: a plan first, then the same done, and told by the exit status."""

import json
import shlex
import sqlite3

from tests.cli.kit import Shop, on_terminal
from tests.corruption.test_offer import spoil


def test_a_whole_store_needs_no_repair(history: Shop) -> None:
    done = history("repair")

    assert (0, "") == (done.status, done.err)
    assert "nothing to repair" in done.out
    assert "whole" == history("repair", "--apply", "--json").data["repair"]["status"]


def test_the_plan_says_what_is_done_and_changes_nothing(history: Shop) -> None:
    _harm(history)

    done = history("repair")

    assert 7 == done.status
    assert "run-42" in done.out
    assert "moved aside" in done.out
    assert "`holdfast repair --apply`" in done.out
    assert not (history.store / "lost").exists()
    assert 7 == history("verify").status


def test_apply_does_it_and_says_where_the_rest_is(history: Shop) -> None:
    _harm(history)

    done = history("repair", "--apply")

    assert 0 == done.status
    assert "repaired; what was there before is in .holdfast/lost/" in done.out
    assert (0, 0) == (history("verify", "--deep").status, history("show", "run-42").status)


def test_whoever_could_read_the_database_before_can_read_it_repaired(history: Shop) -> None:
    _harm(history)
    (history.store / "store.db").chmod(0o660)

    history("repair", "--apply")

    assert 0o660 == (history.store / "store.db").stat().st_mode & 0o777


def test_what_to_type_after_a_look_at_lost_effects_names_module_and_store(history: Shop) -> None:
    spoil(history.store, 1, 3)

    told = history("repair", "--store", str(history.store), "--app", "shop").out
    bare = history("repair").out

    store = shlex.quote(str(history.store))
    assert f"look, then `holdfast restart run-42 --app shop --store {store}`" in told
    assert "look, then `holdfast restart run-42 --app shop`" in bare


STOCK = """
from dataclasses import dataclass

import holdfast
import numpy as np


@dataclass
class Item:
    name: str


@holdfast.step
def find(n: int) -> Item:
    return Item(f"item {n}")


@holdfast.agent
def keeper(run: holdfast.Run) -> None:
    for turn in run.turns():
        run.state.update(vector=np.arange(turn), item=find(turn))
        if turn == 4:
            return
"""


def test_a_state_that_holds_classes_is_repaired_where_their_module_is_named(shop: Shop) -> None:
    shop.put("stock.py", STOCK)
    assert 0 == shop("run", "stock:keeper", "--id", "run-1").status
    spoil(shop.store, 1, 3)

    unknown = shop("repair", "--apply", "--app", "numpy")
    asked = shop("repair")
    done = shop("repair", "--apply", "--app", "stock")

    assert (2, 2, 0) == (unknown.status, asked.status, done.status)
    assert "stored as 'stock:Item', which this program does not know" in unknown.err
    assert "--app MODULE" in unknown.err
    assert "register(TheClass)" not in unknown.err
    assert "--app numpy" in asked.err
    kept = shop("show", "run-1", "--path", "item.name", "--app", "stock")
    assert "item 0" == kept.data


def test_programs_read_the_same(history: Shop) -> None:
    _harm(history)

    told = history("repair", "-o", "json")
    lines = [json.loads(line) for line in history("repair", "-o", "jsonl").out.splitlines()]
    applied = history("repair", "--apply", "--json")

    assert (7, "damaged", None) == (
        told.status,
        told.data["repair"]["status"],
        told.data["repair"]["lost"],
    )
    assert ["run-42"] == [fate["run"] for fate in told.data["fates"]]
    assert ["fate", "summary"] == [line["kind"] for line in lines]
    assert "repaired" == applied.data["repair"]["status"]
    assert applied.data["repair"]["lost"].startswith(".holdfast/lost/")


def test_a_file_that_is_no_database_cannot_be_repaired(history: Shop) -> None:
    for path in history.store.glob("store.db-*"):
        path.unlink()
    (history.store / "store.db").write_bytes(b"no database at all" * 500)

    done = history("repair")

    assert 7 == done.status
    assert "put a copy of the store back" in done.err
    assert "Traceback" not in done.err


def test_no_store_is_not_found(shop: Shop) -> None:
    assert 3 == shop("repair").status


def test_a_terminal_sees_the_same(history: Shop) -> None:
    _harm(history)

    assert "moved aside" in on_terminal(history, "repair").out


def _harm(shop: Shop) -> None:
    """Change the newest row of run-42."""
    with sqlite3.connect(shop.store / "store.db") as link:
        [(no, head)] = [
            (no, head) for no, head, body in link.execute("SELECT no, head, body FROM run")
            if b"run-42" in body
        ]  # fmt: skip
        sql = "UPDATE j SET body=zeroblob(9) WHERE id=(SELECT max(id) FROM j WHERE id>>32=?)"
        if not link.execute(sql, (head,)).rowcount:
            link.execute("UPDATE pack SET body=zeroblob(9) WHERE id>>32=?", (head,))
        assert no
    link.close()
