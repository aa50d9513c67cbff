"""`holdfast watch` and `run --supervise`, as an operator uses them."""

import json
import os
import signal
from typing import Any

import pytest

from tests.cli.kit import Shop, wait_for


def interrupted(shop: Shop, id_: str, agent: str = "trader", value: str = '["KELP"]') -> None:
    """A run whose process was killed in the middle of its first turn's effect."""
    shop("run", f"shop:{agent}", "--id", id_, "--input", value, HOLDFAST_FAILPOINT="step.recorded")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def status(shop: Shop, id_: str) -> str:
    said: str = shop("show", id_, "-o", "json").data["run"]["status"]
    return said


def test_watch_recovers_every_run_whose_process_is_gone(shop: Shop) -> None:
    for n in range(3):
        interrupted(shop, f"run-{n}")

    done = shop("watch", "--app", "shop", "--once", "--workers", "2", "-o", "jsonl")

    assert 0 == done.status, done.err
    told = lines(done.out)
    assert {"run-0", "run-1", "run-2"} == {e["run"] for e in told if e["event"] == "finished"}
    assert {"restart"} == {e["event"] for e in told if "reason" in e}
    assert ["finished"] * 3 == [status(shop, f"run-{n}") for n in range(3)]
    chats = [what for what in shop.asked() if what == "chat 0"]
    assert 3 == len(chats)


def test_watch_leaves_alone_what_is_finished_failed_or_unknown_to_it(shop: Shop) -> None:
    shop.put("other.py", "import holdfast\n")
    shop("run", "shop:trader", "--id", "done", "--input", '["KELP"]')
    shop("run", "shop:broken", "--id", "failed")
    interrupted(shop, "lost")

    done = shop("watch", "--app", "other", "--once", "-o", "jsonl")

    assert 5 == done.status
    assert [("unknown agent", "lost")] == [(e["event"], e["run"]) for e in lines(done.out)]
    assert ["finished", "failed", "interrupted"] == [
        status(shop, id_) for id_ in ("done", "failed", "lost")
    ]


def test_watch_gives_a_run_that_dies_again_at_one_point_to_a_person(shop: Shop) -> None:
    shop.put(
        "poison.py",
        "import os, signal, holdfast\n"
        "@holdfast.agent\n"
        "def pill(run):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    shop("run", "poison:pill", "--id", "run-1")

    first = shop("watch", "--app", "poison", "--once", "-o", "jsonl")
    second = shop("watch", "--app", "poison", "--once", "-o", "jsonl")

    assert (5, 0) == (first.status, second.status)
    assert ["restart", "start", "escalate", "person"] == [e["event"] for e in lines(first.out)]
    assert "" == second.out
    assert "failed" == status(shop, "run-1")


def test_watch_goes_on_with_a_run_once_its_question_was_answered(shop: Shop) -> None:
    shop.put(
        "desk.py",
        "import holdfast\n"
        "@holdfast.agent\n"
        "def clerk(run):\n"
        "    return f\"told {run.ask('Well?')}\"\n",
    )
    for id_ in ("run-1", "run-2"):
        shop("run", "desk:clerk", "--id", id_)
    shop("inbox", "answer", "run-1", "yes")

    done = shop("watch", "--app", "desk", "--once", "-o", "jsonl")

    assert 0 == done.status, done.err
    assert ["finished", "waiting"] == [status(shop, id_) for id_ in ("run-1", "run-2")]


@pytest.mark.parametrize(
    ("end", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_stopped_watch_stops_its_processes_and_keeps_the_runs(
    shop: Shop, end: int, expected: int
) -> None:
    interrupted(shop, "run-1", "sleeper", "[600]")
    watch = shop.start("watch", "--app", "shop", "-o", "jsonl")
    wait_for((shop.folder / "waiting").exists)

    watch.send_signal(end)
    out, err = watch.communicate(timeout=60)

    assert expected == watch.returncode, err
    [pid] = [e["pid"] for e in lines(out) if e["event"] == "start"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert "interrupted" == status(shop, "run-1")


def test_watch_needs_a_module_to_look_agents_up_in(shop: Shop) -> None:
    shop("run", "shop:echo")

    done = shop("watch", "--once")

    assert 2 == done.status
    assert "no module was named" in done.err


def test_a_supervised_run_is_killed_and_prints_its_result(shop: Shop) -> None:
    child = shop.start("run", "shop:sleeper", "--id", "run-1", "--input", "[2]", "--supervise")
    wait_for((shop.folder / "waiting").exists)
    held = shop("runs", "-o", "json").data["runs"][0]["holder"]
    os.kill(held["pid"], signal.SIGKILL)

    out, err = child.communicate(timeout=60)

    assert (0, "2\n") == (child.returncode, out), err
    assert ["chat 7", "wait 2", "wait 2"] == shop.asked()
    events = shop("show", "run-1", "-o", "json").data["events"]
    [decision] = [e for e in events if e["kind"] == "decision"]
    assert ("crash", "restart") == (decision["failure"]["kind"], decision["decision"]["action"])


def test_a_stopped_supervisor_stops_its_child(shop: Shop) -> None:
    child = shop.start("run", "shop:sleeper", "--id", "run-1", "--input", "[600]", "--supervise")
    wait_for((shop.folder / "waiting").exists)
    child.terminate()

    _, err = child.communicate(timeout=60)

    assert 143 == child.returncode
    assert "holdfast restart run-1" in err
    assert "interrupted" == status(shop, "run-1")


def test_stall_is_said_of_supervised_runs_only(shop: Shop) -> None:
    done = shop("run", "shop:echo", "--stall", "5s")

    assert 2 == done.status
    assert "add --supervise" in done.err


def test_a_dry_run_says_what_would_be_decided(shop: Shop) -> None:
    interrupted(shop, "run-1")

    done = shop("restart", "run-1", "--app", "shop", "--dry-run")
    data = shop("restart", "run-1", "--app", "shop", "--dry-run", "-o", "json").data

    assert "by itself, supervised, it would be: restart" in done.out
    assert "off: deadline" in done.out
    assert "restart" == data["decision"]["action"]
    assert "interrupted" == status(shop, "run-1")
