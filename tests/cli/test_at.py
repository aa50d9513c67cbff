"""`show --at`, `show --checkpoints`, `diff` and `du`: the state at any point, and its bytes."""

import json

import pytest

import holdfast
from tests.cli.kit import Shop


def test_the_state_at_a_turn_is_printed(history: Shop) -> None:
    first = history("show", "run-42", "--at", "0")
    second = history("show", "run-42", "--at", "1")

    assert 0 == first.status
    assert [0] == [seen["n"] for seen in first.data["seen"]]
    assert [0, 1] == [seen["n"] for seen in second.data["seen"]]


def test_a_turn_of_a_run_is_its_own_where_another_run_is_called_so(history: Shop) -> None:
    made = history("fork", "run-42", "--at", "1", "--as", "run-42@0")

    assert 0 == made.status
    shown = history("show", "run-42", "--at", "0", "--json").data
    assert ("run-42", 1) == (shown["checkpoint"]["run"], len(shown["value"]["seen"]))
    forked = history("fork", "run-42", "--at", "0", "--as", "another")
    assert (0, "") == (forked.status, forked.err)
    assert 2 == len(history("show", "run-42@0", "--path", "seen").data)


def test_a_path_picks_a_part_of_the_newest_state(history: Shop) -> None:
    done = history("show", "run-42", "--path", "seen[-2:].usage.output_tokens")

    assert (0, [1, 2]) == (done.status, done.data)


def test_json_tells_the_checkpoint_with_the_value(history: Shop) -> None:
    done = history("show", "run-42", "--at", "1", "--path", "seen[1].n", "--json").data

    assert ("seen[1].n", 1) == (done["path"], done["value"])
    told = done["checkpoint"]
    assert ("run-42", "checkpoint", 1, 4) == (told["run"], told["kind"], told["turn"], told["step"])
    assert 64 == len(told["root"])
    assert "scripted" == told["model"]


def test_checkpoints_are_listed_and_each_can_be_shown(history: Shop) -> None:
    table = history("show", "run-42", "--checkpoints")
    listed = history("show", "run-42", "--checkpoints", "--json").data["checkpoints"]

    assert [0, 1] == [point["turn"] for point in listed]
    for point in listed:
        assert point["id"] in table.out
        whole = history("show", "run-42", "--at", point["id"], "--path", "seen")
        short = history("show", "run-42", "--at", point["id"].removeprefix("run-42@"))
        assert point["turn"] + 1 == len(whole.data) == len(short.data["seen"])


def test_every_turn_lists_the_ends_of_turns_and_run(history: Shop) -> None:
    lines = history("show", "run-42", "--every-turn", "-o", "jsonl").out.splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]

    assert ["checkpoint", "checkpoint", "recovery point"] == kinds


def test_a_run_without_checkpoints_says_how_to_see_its_turns(history: Shop) -> None:
    assert "--every-turn" in history("show", "failed", "--checkpoints").out


@pytest.mark.parametrize(
    ("args", "status", "why"),
    [
        (
            ("show", "run-42", "--at", "other@1"),
            2,
            "other@1 is a point of run other, not of run-42",
        ),
        (("show", "run-42", "--path", "seen[-:]"), 2, "cannot be read from '[-:]'"),
        (("show", "run-42", "--path", "seen.append"), 2, "nothing at seen.append"),
        (("show", "run-42", "--at", "9"), 3, "turn 9 of run 'run-42' has not ended"),
        (("show", "run-42", "--at", "1.0.0"), 3, "no checkpoint 'run-42@1.0.0'"),
        (("show", "run-42", "--at", "0", "--path", "sean"), 2, "there is nothing at sean"),
        (("show", "run-42", "--path", "seen["), 2, "cannot be read from '['"),
        (
            ("show", "run-42", "--at", "0", "--checkpoints", "--tree"),
            2,
            "--at or --path, --checkpoints or --every-turn, --tree: each shows something else",
        ),
        (("diff", "run-42", "run-42@x"), 3, "no checkpoint 'run-42@x'"),
        (("diff", "run-42", "nobody"), 3, "no run 'nobody'"),
        (("du", "nobody"), 3, "no run 'nobody'"),
    ],
)
def test_what_is_not_there_is_named(
    history: Shop, args: tuple[str, ...], status: int, why: str
) -> None:
    done = history(*args)

    assert (status, "") == (done.status, done.out)
    assert why in done.err


def test_differences_are_a_table_or_json(history: Shop) -> None:
    table = history("diff", "run-42@0", "run-42@1")
    data = history("diff", "run-42@0", "run-42@1", "--json").data

    [change] = data["changes"]
    assert ("added", "seen[1]", 1) == (change["kind"], change["path"], change["after"]["n"])
    assert ("run-42@0", "run-42@1") == (data["before"], data["after"])
    assert ["KIND", "PATH", "BEFORE", "AFTER"] == table.out.splitlines()[0].split()
    assert table.out.splitlines()[1].startswith("added  seen[1]")


def test_differences_are_found_between_runs_whose_ids_are_cut_short(history: Shop) -> None:
    done = history("diff", "run-43", "run-42@0")

    assert (0, "no difference\n") == (done.status, done.out)


def on_disk(shop: Shop) -> int:
    return sum(file.stat().st_size for file in shop.store.rglob("*") if file.is_file())


def test_the_parts_of_a_store_add_up_to_what_is_on_the_disk(history: Shop) -> None:
    table = history("du")
    done = history("du", "--json").data

    assert on_disk(history) == done["bytes"] == sum(part["bytes"] for part in done["parts"])
    assert all(part["bytes"] >= 0 for part in done["parts"])
    assert {"run-42", "run-43", "doubtful", "failed", "killed"} == {r["run"] for r in done["runs"]}
    assert done["runs"][0]["run"] in table.out


def test_what_repairs_moved_aside_and_a_log_that_was_left_count_too(history: Shop) -> None:
    aside = history.store / "lost" / "2026-01-01T00-00-00Z"
    aside.mkdir(parents=True)
    (aside / "store.db").write_bytes(b"x" * 5000)
    (history.store / "repairing").mkdir()
    (history.store / "repairing" / "ready").write_bytes(b"x" * 7)

    @holdfast.agent
    def noting(run: holdfast.Run) -> None:
        run.state["note"] = "x" * 60_000

    with holdfast.open(history.store) as store:  # Holds the log, as a process at work does.
        store.run(noting, id="noted")
        done = history("du", "--json").data
        whole = on_disk(history)

    parts = {part["what"]: part["bytes"] for part in done["parts"]}
    assert whole == done["bytes"]
    assert 5007 == parts["moved aside by repairs"]
    assert parts["write-ahead log"] > 0


def test_the_journal_of_a_run_is_explained_by_kind(history: Shop) -> None:
    done = history("du", "run-42", "--json").data

    counts = {part["what"]: part["count"] for part in done["parts"]}
    assert (3, 2, 2) == (counts["Answer"], counts["Happened"], counts["TurnEnded"])
    assert all(part["bytes"] > 0 for part in done["parts"] if part["count"])
