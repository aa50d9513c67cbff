"""Every example runs; killed anywhere and run again, it comes to the same end."""

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

EXAMPLES = Path(__file__).parents[2] / "examples"
ENDS = {
    "trader.py": "bought 40 KELP",
    "researcher.py": "5 findings",
    "crawler.py": "about index kelp rock shop team",
    "assistant.py": "9 messages, 4 vectors, related: ['is kelp farmed?', 'who eats kelp?']",
}
ONCE = {
    "trader.py": "placed",
    "researcher.py": "searched",
    "crawler.py": "fetched",
    "assistant.py": "asked",
}
SUPERVISED = {
    "support.py": "7 notes, 1 refund, 1 answer",
    "desk.py": "bought KELP, ROCK, TIDE, FOAM",
}
"""Examples that kill themselves and are kept alive."""
WITH_A_MODEL = {"writer.py": "tests/integration/test_model.py"}
"""Examples that need a language model, and where they are played."""
KILLS = ["step.called:2", "step.recorded:3", "turn.ended:1", "turn.opened:2", "run.taken:1"]


def play(name: str, folder: Path, kill_at: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOLDFAST_FAILPOINT": kill_at, "PYTHONUNBUFFERED": "1"}
    env.pop("HOLDFAST_STORE", None)
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_example_is_played_here() -> None:
    assert sorted({**ENDS, **SUPERVISED, **WITH_A_MODEL}) == sorted(
        file.name for file in EXAMPLES.glob("*.py")
    )


@pytest.mark.parametrize("name", [*ENDS, *SUPERVISED])
def test_an_example_runs_and_runs_again(name: str, tmp_path: Path) -> None:
    first, again = play(name, tmp_path), play(name, tmp_path)

    end = {**ENDS, **SUPERVISED}[name]
    assert ("", "") == (first.stderr, again.stderr)
    assert end == first.stdout.splitlines()[-1]
    assert [end] == again.stdout.splitlines()


def test_the_support_agent_keeps_its_promise(tmp_path: Path) -> None:
    play("support.py", tmp_path)

    with holdfast.open(tmp_path / ".holdfast") as store:
        run = store.get("ticket-7")
    told = json.loads(call(tmp_path, "show", "ticket-7", "-o", "json"))
    kinds = [e["failure"]["kind"] for e in told["events"] if e["decision"] is not None]
    resumed = [e["at"] for e in told["events"] if e["kind"] == "resumed"]
    killed = [e["at"] for e in told["events"] if e["kind"] == "decision"]
    assert ["transient", "timeout", "crash"] == kinds
    assert run.ended is not None
    assert run.ended - run.created < 180
    waits = [_seconds(back) - _seconds(gone) for gone, back in zip(killed, resumed, strict=True)]
    assert [] == [wait for wait in waits if wait > 30]
    assert 1 == len((tmp_path / "refunds.txt").read_text().splitlines())
    assert 1 == len((tmp_path / "mail.txt").read_text().splitlines())


def test_the_desk_places_no_order_twice_and_none_on_a_corrupted_quote(tmp_path: Path) -> None:
    played = play("desk.py", tmp_path)

    lines = (tmp_path / "exchange.jsonl").read_text().splitlines()
    book = [json.loads(line) for line in lines]
    cancelled = [(o["cancel"], o["cents"]) for o in book if o["symbol"] is None]
    placed = [(o["symbol"], o["cents"]) for o in book if o["symbol"] is not None]
    standing = [order for order in placed if order not in cancelled]
    assert [("ROCK", -1250), ("WAVE", 1040)] == cancelled
    assert ["KELP", "ROCK", "TIDE", "FOAM"] == [symbol for symbol, _ in standing]
    assert len(placed) == len(set(placed))
    assert "in doubt: place" in played.stdout.splitlines()


def call(folder: Path, *args: str) -> str:
    program = [sys.executable, "-m", "holdfast", *args]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True).stdout


def _seconds(at: str) -> float:
    return dt.datetime.fromisoformat(at).timestamp()


@pytest.mark.parametrize("name", ENDS)
def test_an_example_killed_again_and_again_comes_to_the_same_end(name: str, tmp_path: Path) -> None:
    said = [play(name, tmp_path, kill) for kill in KILLS]
    last = play(name, tmp_path)
    lines = [line for done in (*said, last) for line in done.stdout.splitlines()]

    assert -signal.SIGKILL in [done.returncode for done in said]
    assert ENDS[name] == lines[-1]
    assert "" == last.stderr
    if name == "trader.py":
        orders = (tmp_path / "orders.jsonl").read_text(encoding="utf-8").splitlines()
        assert 3 == len(orders) == len(set(orders))
    # Only what was cut off by a kill may have been asked twice.
    asked = [line for line in lines if line.startswith(ONCE[name])]
    assert len(asked) - len(set(asked)) <= len(KILLS)


def test_the_assistant_is_restartable_by_five_added_lines() -> None:
    text = (EXAMPLES / "assistant.py").read_text(encoding="utf-8")
    lines = [line.partition("  # (") for line in text.partition('"""\n\n')[2].splitlines()]
    added = [mark for _, _, mark in lines if mark.startswith("added")]

    assert 5 == len(added)
    assert [] == [code for code, _, mark in lines if "holdfast" in code and not mark]


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_the_assistant_killed_in_any_turn_goes_on_with_what_it_knew(
    tmp_path: Path, nth: int
) -> None:
    killed = play("assistant.py", tmp_path, f"step.recorded:{nth}")
    done = play("assistant.py", tmp_path)

    assert -signal.SIGKILL == killed.returncode
    assert 4 == killed.stdout.count("asked") + done.stdout.count("asked")
    assert ENDS["assistant.py"] == done.stdout.splitlines()[-1]


@pytest.mark.parametrize("point", ["effect.intended", "effect.called", "effect.recorded"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_the_trader_never_places_an_order_twice(tmp_path: Path, point: str, nth: int) -> None:
    killed = play("trader.py", tmp_path, f"{point}:{nth}")
    done = play("trader.py", tmp_path)

    assert -signal.SIGKILL == killed.returncode
    assert ENDS["trader.py"] == done.stdout.splitlines()[-1]
    orders = (tmp_path / "orders.jsonl").read_text(encoding="utf-8").splitlines()
    assert 3 == len(orders) == len(set(orders))
