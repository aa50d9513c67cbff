"""`holdfast runs`: the runs of a store, newest first."""

import json
import signal

import pytest

from tests.cli.kit import Shop, on_terminal


def test_the_table_shows_each_run_with_its_status_and_error(history: Shop) -> None:
    done = history("runs")

    lines = [line.split() for line in done.out.splitlines()]
    assert 0 == done.status
    assert ["ID", "AGENT", "STATUS", "CREATED", "TOOK", "ERROR"] == lines[0]
    assert ["killed", "failed", "doubtful", "run-43", "run-42"] == [line[0] for line in lines[1:]]
    assert ["interrupted", "failed", "in", "finished", "finished"] == [
        line[2] for line in lines[1:]
    ]
    assert "ValueError: out of kelp" in done.out


def test_the_bare_noun_lists_as_its_act_does(history: Shop) -> None:
    bare = history("runs", "-o", "jsonl", "--limit", "2")
    act = history("runs", "list", "-o", "jsonl", "--limit", "2")

    assert 2 == len(bare.out.splitlines())
    assert bare == act


@pytest.mark.parametrize(
    ("status", "ids"),
    [
        ("interrupted", ["killed"]),
        ("running", []),
        ("finished", ["run-43", "run-42"]),
        ("failed", ["failed"]),
        ("in-doubt", ["doubtful"]),
        ("diverged", []),
    ],
)
def test_a_status_chooses_runs(history: Shop, status: str, ids: list[str]) -> None:
    done = history("runs", "--status", status, "--json")

    assert ids == [run["id"] for run in done.data["runs"]]


def test_json_has_a_schema_version_and_names_that_stay(history: Shop) -> None:
    listed = history("runs", "--json").data
    lines = history("runs", "-o", "jsonl").out.splitlines()

    assert 1 == listed["schema_version"]
    assert [
        [
            "agent",
            "branch",
            "created",
            "ended",
            "epoch",
            "error",
            "holder",
            "id",
            "module",
            "status",
            "took_s",
            "version",
        ]
    ] * 5 == [sorted(run) for run in listed["runs"]]
    assert [{"schema_version": 1, **run} for run in listed["runs"]] == list(map(json.loads, lines))


def test_an_unknown_status_is_a_usage_error(history: Shop) -> None:
    done = history("runs", "--status", "sleepy")

    assert (2, "") == (done.status, done.out)
    assert "sleepy" in done.err


def test_no_store_is_told_from_an_empty_one(shop: Shop) -> None:
    none = shop("runs")
    shop("run", "shop:trader")  # Refused for want of input, after the store was made.

    empty = shop("runs")

    assert (3, "") == (none.status, none.out)
    assert "there is no store at .holdfast" in none.err
    assert (0, "no runs\n") == (empty.status, empty.out)


def test_a_terminal_gets_colours_and_a_pipe_does_not(history: Shop) -> None:
    piped = history("runs")
    coloured = on_terminal(history, "runs")
    plain = on_terminal(history, "runs", NO_COLOR="1")

    assert "\x1b[" not in piped.out
    assert "\x1b[32mfinished" in coloured.out
    assert "\x1b[3" not in plain.out
    assert all("doubtful" in done.out for done in (piped, coloured, plain))


def test_watching_refreshes_until_ctrl_c(history: Shop) -> None:
    done = on_terminal(history, "runs", "--watch", until="run-42", end=signal.SIGINT)

    assert 0 == done.status
    assert 2 <= done.out.count("run-42")
    assert "Traceback" not in done.out


def test_watching_without_a_terminal_prints_once(history: Shop) -> None:
    done = history("runs", "--watch")

    assert 0 == done.status
    assert 1 == done.out.count("run-42")


def test_a_run_is_cancelled_and_revived(history: Shop) -> None:
    cancelled = history("runs", "cancel", "killed", "--reason", "enough", "--json")
    again = history("runs", "cancel", "killed")
    refused = history("restart", "killed", "--app", "shop")
    listed = history("runs", "--status", "cancelled", "--json")
    finished = history("runs", "cancel", "run-42")
    nobody = history("runs", "cancel", "nobody")
    revived = history("restart", "killed", "--app", "shop", "--revive")

    assert (0, 0, 5, 0) == (cancelled.status, again.status, refused.status, revived.status)
    assert (2, 3) == (finished.status, nobody.status)
    assert ("cancelled", False) == (cancelled.data["status"], cancelled.data["is_asked"])
    assert "enough" in refused.err
    assert "--revive" in refused.err
    assert ["killed"] == [each["id"] for each in listed.data["runs"]]
