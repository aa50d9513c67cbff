"""`holdfast verify`: damage is found, named, and told by the exit status."""

import json
import sqlite3

import pytest

import holdfast
from holdfast.engine import retain
from holdfast.policy.retention import Retention
from tests.cli.kit import Shop, on_terminal


@pytest.mark.parametrize("flags", [(), ("--deep",)])
def test_a_whole_store_is_said_to_be_whole(history: Shop, flags: tuple[str, ...]) -> None:
    done = history("verify", *flags)

    assert (0, "") == (done.status, done.err)
    assert "5 runs" in done.out
    assert "whole" in done.out
    assert sqlite3.sqlite_version in done.out
    assert ("restored" in done.out) is bool(flags)


def test_deep_restores_checkpoints_with_the_classes_of_the_modules_that_are_named(
    history: Shop,
) -> None:
    done = history("verify", "--deep", "--app", "shop", "--json")
    wrong = history("verify", "--deep", "--app", "nosuchshop")

    assert 0 == done.status
    assert 4 <= done.data["verify"]["points"]
    assert (0, 0) == tuple(done.data["verify"][f"points_{what}"] for what in ("unknown", "left"))
    assert (2, True) == (wrong.status, "nosuchshop" in wrong.err)


def test_damage_is_named_with_its_run_and_ends_with_7(history: Shop) -> None:
    _change(history, "UPDATE j SET body=zeroblob(length(body)) WHERE id=(SELECT min(id) FROM j)")

    done = history("verify")
    told = history("verify", "--json")
    lines = [json.loads(line) for line in history("verify", "-o", "jsonl").out.splitlines()]

    assert (7, 7) == (done.status, told.status)
    assert "journal row 0x" in done.out
    assert "its hash does not match its bytes" in done.out
    assert "`holdfast repair` shows what can be kept" in done.out
    assert "damaged" == told.data["verify"]["status"]
    assert 1 <= told.data["verify"]["findings"] == len(told.data["findings"])
    assert {"finding", "summary"} == {line["kind"] for line in lines}


@holdfast.step
def write(turn: int) -> dict[str, str]:
    return {"text": f"page {turn} " * 40}


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def author(run: holdfast.Run) -> None:
    run.state["pages"] = []
    for turn in run.turns():
        page = write(turn)
        if turn % 3 == 0:
            run.state["pages"].append(page)
        if turn == 399:
            return


def test_a_point_that_does_not_restore_is_nothing_to_repair(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retain, "rows_used", lambda *_: set[int]())
    with holdfast.open(shop.store) as store:
        store.run(author, id="run")
        store.gc(Retention(last=2))

    done = shop("verify", "--deep")

    assert 7 == done.status
    assert "`holdfast repair` has nothing to mend" in done.out
    assert "`holdfast rollback RUN --to CP`" in done.out
    assert "nothing to repair" in shop("repair").out


def test_damage_does_not_hide_what_is_whole(history: Shop) -> None:
    _change(history, "UPDATE run SET mac=zeroblob(32) WHERE no=1")

    done = history("verify", "--json")

    assert ["run number 1"] == [finding["where"] for finding in done.data["findings"]]
    assert 5 == done.data["verify"]["runs"]


def test_a_command_that_meets_damage_ends_with_7_and_names_it(history: Shop) -> None:
    _change(history, "UPDATE run SET mac=zeroblob(32) WHERE no=1")

    done = history("show", "run-42")

    assert (7, "") == (done.status, done.out)
    assert "run number 1 is damaged" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", [("verify",), ("runs",), ("run", "shop:echo")])
def test_a_file_that_is_no_database_is_damage(history: Shop, command: tuple[str, ...]) -> None:
    for path in history.store.glob("store.db-*"):
        path.unlink()
    (history.store / "store.db").write_bytes(b"no database at all" * 500)

    done = history(*command)

    assert 7 == done.status
    assert "store.db" in done.out + done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["verify", "runs"])
def test_a_store_of_a_newer_version_is_refused_with_the_remedy(history: Shop, command: str) -> None:
    _change(history, "PRAGMA user_version=99")

    done = history(command)

    assert 2 == done.status
    assert "format 99" in done.err
    assert "upgrade holdfast" in done.err


def test_no_store_is_not_found(shop: Shop) -> None:
    assert 3 == shop("verify").status


def test_a_terminal_sees_the_same(history: Shop) -> None:
    done = on_terminal(history, "verify")

    assert 0 == done.status
    assert "whole" in done.out


def _change(shop: Shop, sql: str) -> None:
    with sqlite3.connect(shop.store / "store.db") as link:
        link.execute(sql)
    link.close()
