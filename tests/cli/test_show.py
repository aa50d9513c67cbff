"""`holdfast show`: what happened to a run."""

import json
import subprocess
import sys

from tests.cli.kit import Shop


def test_the_header_sums_a_run_up(history: Shop) -> None:
    done = history("show", "run-42")

    said = dict(line.split(None, 1) for line in done.out.partition("\n\n")[0].splitlines())
    assert 0 == done.status
    assert "run-42" == said["run"]
    assert "shop:trader (3)" == said["agent"]
    assert "symbol='KELP', rounds=2" == said["arguments"]
    assert "finished" == said["status"]
    assert "3 turns, 3 steps, 2 effects, 2 checkpoints, 0 restarts" == said["did"]
    assert "30 in, 3 out" == said["tokens"]


def test_a_section_of_which_no_snapshot_was_made_is_named(shop: Shop) -> None:
    snapshot = "memroy: turns=1; audit: never"
    shop("run", "shop:trader", "--id", "typo", "--input", '"KELP"', "--snapshot", snapshot)

    done = shop("show", "typo")

    said = dict(line.split("  ", 1) for line in done.out.partition("\n\n")[0].splitlines())
    assert "of memroy: there is no such section, or none was due" == said["no snapshot"].strip()


def test_the_timeline_shows_turns_steps_and_effects_in_order(history: Shop) -> None:
    done = history("show", "run-42", "--json")

    told = [(e["kind"], e["turn"], e["name"], e["outcome"]) for e in done.data["events"]][1:]
    assert [
        ("step", 0, "chat", "answered"),
        ("effect", 0, "pay", "happened"),
        ("turn", 0, None, "checkpoint"),
        ("step", 1, "chat", "answered"),
        ("effect", 1, "pay", "happened"),
        ("turn", 1, None, "checkpoint"),
        ("step", 2, "chat", "answered"),
        ("finished", None, None, None),
    ] == told


def test_the_code_of_the_agent_is_not_needed(history: Shop) -> None:
    (history.folder / "shop.py").unlink()

    assert 0 == history("show", "run-42").status


def test_jsonl_is_one_event_a_line_and_last_cuts_the_beginning_off(history: Shop) -> None:
    done = history("show", "run-42", "-o", "jsonl", "--last", "2")

    events = [json.loads(line) for line in done.out.splitlines()]
    assert [("run-42", "step"), ("run-42", "finished")] == [(e["run"], e["kind"]) for e in events]
    assert {1} == {event["schema_version"] for event in events}


def test_an_effect_in_doubt_is_listed_with_the_next_commands(history: Shop) -> None:
    done = history("show", "doubtful")
    [doubt] = history("show", "doubtful", "--json").data["run"]["in_doubt"]

    assert ("pay", "order='o-1'", 0) == (doubt["effect"], doubt["asked"], doubt["turn"])
    assert f"pay(order='o-1'), key {doubt['key']}" in done.out
    assert f"holdfast restart doubtful --app shop --happened {doubt['key']}" in done.out
    assert f"holdfast restart doubtful --app shop --not-done {doubt['key']}" in done.out


def test_an_interrupted_run_is_shown_with_the_command_that_goes_on(history: Shop) -> None:
    done = history("show", "killed")

    assert "interrupted" in done.out
    assert "holdfast restart killed --app shop\n" in done.out


def test_a_run_of_a_script_goes_on_by_the_module_of_its_name(shop: Shop) -> None:
    shop.put(
        "script.py",
        """
import holdfast

@holdfast.agent
def agent(run: holdfast.Run) -> None:
    raise ValueError("out of kelp")

if __name__ == "__main__":
    with holdfast.open() as store:
        store.run(agent, id="scripted")
""",
    )
    subprocess.run([sys.executable, "script.py"], cwd=shop.folder, capture_output=True, check=False)

    assert "holdfast restart scripted --app MODULE\n" in shop("show", "scripted").out
    assert "out of kelp" in shop("restart", "scripted", "--app", "script").err


def test_the_recorded_traceback_is_there_for_whoever_asks(history: Shop) -> None:
    assert "Traceback" not in history("show", "failed").out
    assert 'raise ValueError("out of kelp")' in history("show", "failed", "--trace").out


def test_an_id_may_be_cut_short_while_one_run_alone_begins_so(history: Shop) -> None:
    short = history("show", "doubt", "--json")
    exact = history("show", "run-42", "--json")
    several = history("show", "run-4")

    assert ("doubtful", "run-42") == (short.data["run"]["id"], exact.data["run"]["id"])
    assert (3, "") == (several.status, several.out)
    assert "run-43, run-42" in several.err


def test_an_unknown_id_is_not_found(history: Shop) -> None:
    done = history("show", "nobody")
    nothing = history("show", "")

    assert (3, "", 3) == (done.status, done.out, nothing.status)
    assert "no run 'nobody' in the store at .holdfast" in done.err


def test_what_an_agent_recorded_cannot_steer_the_terminal(shop: Shop) -> None:
    shop("run", "shop:payer", "--id", "r", "--input", '"\\u001b[2Jgone"')

    done = shop("show", "r")

    assert "\x1b" not in done.out
    assert "gone" in done.out


def test_the_words_of_an_error_cannot_steer_the_terminal_behind_a_pipe(shop: Shop) -> None:
    shop.put("rude.py", RUDE)
    shop("run", "rude:agent", "--id", "r")

    done = shop("show", "r", "--trace")

    assert "\x1b" not in done.out
    assert "\nValueError: \\x1b[2Jgone\n" in done.out


RUDE = r"""
import holdfast

@holdfast.agent
def agent(run):
    raise ValueError("\x1b[2Jgone")
"""

FAMILY = """
import holdfast

@holdfast.agent
def kid(run, n):
    if n == 2:
        raise KeyError(n)
    return n

@holdfast.agent
def parent(run):
    return len(run.children([(kid, n) for n in range(3)], return_errors=True))
"""


def test_a_run_is_shown_with_its_children(shop: Shop) -> None:
    (shop.folder / "family.py").write_text(FAMILY)
    shop("run", "family:parent", "--id", "p")

    said = dict(line.split(None, 1) for line in shop("show", "p").out.splitlines() if line.strip())
    told = shop("show", "p", "--tree", "--json").data["family"]
    tree = shop("show", "p", "--tree").out.splitlines()

    assert "3: 2 answered, 1 raised; --tree lists them" == said["children"]
    kids = ["finished", "finished", "failed"]
    assert [(0, "finished"), *((1, status) for status in kids)] == [
        (each["depth"], each["status"]) for each in told
    ]
    assert [told[n]["id"] for n in range(4)] == [line.split()[0] for line in tree[1:]]
    kid = shop("show", told[1]["id"]).out
    assert "child of" in kid
