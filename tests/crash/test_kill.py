"""The kill kit: a program is killed where asked, and its own command line continues the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing.kill import Failpoint, Syscall, attach, can_trace, run

pytestmark = pytest.mark.crash
needs_strace = pytest.mark.skipif(
    not can_trace(), reason="strace is missing, or may not trace here"
)

PROGRAM = """
import os
import holdfast

@holdfast.step
def chat(messages: list[str]) -> str:
    os.write(1, b"asked %d\\n" % len(messages))
    return f"answer {len(messages)}"

@holdfast.agent
def talker(run: holdfast.Run) -> list[str]:
    run.state.setdefault("messages", [])
    for turn in run.turns():
        run.state["messages"].append(chat(run.state["messages"]))
        if turn == 2:
            return holdfast.plain(run.state["messages"])

with holdfast.open() as store:
    print(store.run(talker, id="run-42"))
"""
RESULT = "['answer 0', 'answer 1', 'answer 2']"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return [sys.executable, str(file)]


def test_a_program_killed_at_a_failpoint_continues_by_the_same_command(
    tmp_path: Path, command: list[str]
) -> None:
    killed = run(command, at=Failpoint(name="step.recorded", nth=2), cwd=tmp_path)
    continued = run(command, cwd=tmp_path)

    assert killed.was_killed
    assert ["asked 0", "asked 1"] == killed.output.splitlines()
    assert ["asked 2", RESULT] == continued.output.splitlines()


@needs_strace
@pytest.mark.strace
def test_a_program_killed_at_a_system_call_continues_by_the_same_command(
    tmp_path: Path, command: list[str]
) -> None:
    # The fourth write is that of the answer to question 1.
    killed = run(command, at=Syscall(name="write", nth=4), cwd=tmp_path)
    continued = run(command, cwd=tmp_path)

    assert killed.was_killed
    assert ["asked 0", "asked 1"] == killed.output.splitlines()
    assert ["asked 2", RESULT] == continued.output.splitlines()


@needs_strace
@pytest.mark.strace
def test_a_program_whose_flush_failed_says_so_and_continues_by_the_same_command(
    tmp_path: Path, command: list[str]
) -> None:
    run(command, at=Failpoint(name="run.created"), cwd=tmp_path)

    failed = run(command, at=Syscall(name="fdatasync", nth=4, error="EIO"), cwd=tmp_path)
    continued = run(command, cwd=tmp_path)

    assert 1 == failed.status
    place = tmp_path / ".holdfast"
    assert f"StoreUnwritable: the store at {place} cannot be written" in failed.output
    assert RESULT == continued.output.splitlines()[-1]


def test_a_program_that_never_gets_there_ends_as_usual(tmp_path: Path, command: list[str]) -> None:
    ended = run(command, at=Failpoint(name="step.recorded", nth=4), cwd=tmp_path)

    assert not ended.was_killed
    assert 0 == ended.status


@needs_strace
@pytest.mark.strace
def test_a_process_that_waits_for_its_tracer_is_killed_where_asked(tmp_path: Path) -> None:
    program = (
        "import os; from holdfast.testing.kill import await_tracer; await_tracer(); "
        "[os.write(1, b'x') for _ in range(5)]"
    )
    with (tmp_path / "written").open("wb") as written:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=written)
        with attach(process.pid, Syscall(name="write", nth=4)):
            status = process.wait()

    assert -9 == status
    assert "xxx" == (tmp_path / "written").read_text(encoding="ascii")


def test_a_failpoint_of_the_caller_is_not_handed_on(tmp_path: Path, command: list[str]) -> None:
    env = {**os.environ, "HOLDFAST_FAILPOINT": "step.recorded"}

    assert 0 == run(command, env=env, cwd=tmp_path).status
