"""Every example runs; killed anywhere and run again, it comes to the same end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert sorted(ENDS) == sorted(file.name for file in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", ENDS)
def test_an_example_runs_and_runs_again(name: str, tmp_path: Path) -> None:
    first, again = play(name, tmp_path), play(name, tmp_path)

    assert ("", "") == (first.stderr, again.stderr)
    assert ENDS[name] == first.stdout.splitlines()[-1]
    assert [ENDS[name]] == again.stdout.splitlines()


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
