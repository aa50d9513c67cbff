"""The benchmark's own side of each comparison still runs, and says what it is asked to say."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [f"{n:04d} " * 200 for n in range(400)]
BLOCK = 25
CHAT, RESTORE = "chat_ours", "restore_ours"

Measure = Callable[..., dict[str, Any]]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    """Runs one of the benchmark's programs, all on the same directory; gives what it reports."""
    (tmp_path / "data").mkdir()
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS))
    result = tmp_path / "seen.json"

    def measure(system: str, what: str, *, turns: int, runs: int = 1) -> dict[str, Any]:
        job = {
            "what": what,
            "directory": str(tmp_path / "data"),
            "texts": str(tmp_path / "texts.json"),
            "result": str(result),
            "turns": turns,
            "runs": runs,
        }
        command = [sys.executable, "-m", f"bench.systems.{system}", json.dumps(job)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert 0 == ended.returncode, ended.stderr
        seen: dict[str, Any] = json.loads(result.read_text())
        return seen

    return measure


@pytest.mark.parametrize(
    ("what", "runs"), [("one", 1), ("threads", 3), ("asyncio", 3), ("tasks", 3)]
)
def test_every_turn_of_every_conversation_asks_the_model_once(
    measure: Measure, what: str, runs: int
) -> None:
    seen = measure(CHAT, what, turns=4, runs=runs)

    assert runs * 4 - 1 == len(seen["turn_ns"])
    assert seen["wall_ns"] > 0


def test_an_open_and_an_encrypted_store_take_blocks_of_turns_by_turns(measure: Measure) -> None:
    seen = measure("pair_ours", "pair", turns=2 * BLOCK)

    assert 2 * (BLOCK - 1) == len(seen["open"]) == len(seen["sealed"])
    assert 0 < seen["open_bytes"] < seen["sealed_bytes"] * 2


def test_blocks_of_turns_stand_between_blocks_of_bare_commits(measure: Measure) -> None:
    seen = measure(CHAT, "beside", turns=2 * BLOCK)

    floors = [taken for name, taken in seen.items() if "INSERT" in name]
    assert 2 * (BLOCK - 1) == len(seen["ours"])
    assert [2 * BLOCK] * 3 == [len(taken) for taken in floors]


def test_states_are_read_back_and_compared(measure: Measure) -> None:
    measure(CHAT, "one", turns=40)
    newest = measure(RESTORE, "newest", turns=40, runs=2)
    earlier = measure(RESTORE, "earlier", turns=20)

    assert 2 == len(newest["restore_ns"]) == len(newest["frame_ns"])
    assert newest["state_bytes"] > 80_000
    assert earlier.get("bytes_read", 1) > 0  # Only Linux counts them.


def test_a_fork_is_measured_where_there_is_one(measure: Measure) -> None:
    measure(RESTORE, "build", turns=1)
    forked = measure(RESTORE, "fork", turns=1, runs=2)

    assert len(forked["fork_ns"]) in {0, 2}


def test_the_command_names_its_subjects() -> None:
    command = [sys.executable, "-m", "bench", "nothing"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 2 == ended.returncode
    assert "no subject nothing" in ended.stderr
    assert "restore (state)" in ended.stderr


def test_a_task_is_timed_with_and_without_saving_by_turns(measure: Measure) -> None:
    seen = measure("pause_ours", "pairs", turns=1, runs=2)

    assert 2 == len(seen["saved"]) == len(seen["bare"])
    assert min(seen["bare"]) >= 0.1 * 1e9


def test_a_flush_is_counted_however_it_is_asked_for(tmp_path: Path) -> None:
    tail = "17</store/tail>"
    log = tmp_path / "log"
    log.write_text(
        f"1 fdatasync({tail}) = 0\n"
        f'1 pwrite64({tail}, "HFt1"..., 4096, 0) = 4096\n'
        f"1 io_submit(0x7f, 1, [{{aio_rw_flags=RWF_DSYNC, aio_fildes={tail}}}]) = 1\n"
        f"1 io_submit(0x7f, 1, [{{aio_fildes={tail}}}]) = 1\n"
        '1 openat(AT_FDCWD</>, "/other", O_WRONLY|O_DSYNC) = 3</other>\n'
        '1 write(3</other>, "a", 1) = 1\n'
    )

    program = "import pathlib; from bench import trace; print(trace.count(pathlib.Path({!r})))"
    command = [sys.executable, "-c", program.format(str(log))]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "Syncs(total=3, in_loop=0)\n" == said
