"""A passphrase typed on a terminal: asked for once, twice where it is new, never shown."""

import os
import pty
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of Unix")

WORDS = "correct horse battery"


def talk(
    place: Path, command: Sequence[str], answers: Sequence[tuple[str, str]]
) -> tuple[int, str]:
    """Run the command on a terminal of its own; type each answer when its question is asked."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        env = {name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST")}
        os.execve(sys.executable, [sys.executable, "-m", "holdfast", *command], env)  # noqa: S606 ourselves
    left, seen, end = list(answers), "", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 4096).decode()
            except OSError:
                break  # It has ended.
        if left and left[0][0] in seen.rpartition("\n")[2]:
            os.write(terminal, left.pop(0)[1].encode() + b"\n")
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert [] == left
    return os.waitstatus_to_exitcode(status), seen


def test_a_passphrase_is_typed_twice_for_a_new_store_and_once_for_an_old_one(
    tmp_path: Path,
) -> None:
    first = ("passphrase of the store: ", WORDS)
    again = ("passphrase of the store, again: ", WORDS)

    made = talk(tmp_path, ["keys", "init", "--key", "passphrase"], [first, again])
    used = talk(tmp_path, ["--key", "passphrase", "runs"], [first])
    wrong = talk(tmp_path, ["--key", "passphrase", "runs"], [(first[0], "something else")])

    assert (0, 0, 2) == (made[0], used[0], wrong[0])
    assert "no runs" in used[1]
    assert "does not open" in wrong[1]
    assert WORDS not in made[1] + used[1]


def test_what_is_typed_in_two_ways_makes_no_store(tmp_path: Path) -> None:
    command, first = ["keys", "init", "--key", "passphrase"], ("passphrase of the store: ", WORDS)

    status, seen = talk(tmp_path, command, [first, (", again: ", "corect horse battery")])
    after, _ = talk(tmp_path, command, [first, (", again: ", WORDS)])

    assert 2 == status
    assert "are not the same" in seen
    assert 0 == after


def test_a_rotation_asks_for_the_old_and_the_new_one(tmp_path: Path) -> None:
    old, new = ("passphrase of the store: ", WORDS), ("new passphrase of the store: ", "new horse")
    again = ("new passphrase of the store, again: ", "new horse")
    talk(tmp_path, ["keys", "init", "--key", "passphrase"], [old, (", again: ", WORDS)])

    command = ["keys", "rotate", "--key", "passphrase", "--new", "passphrase"]
    status, _ = talk(tmp_path, command, [old, new, again])

    assert 0 == status
    assert 2 == talk(tmp_path, ["--key", "passphrase", "runs"], [old])[0]
    assert 0 == talk(tmp_path, ["--key", "passphrase", "runs"], [(old[0], "new horse")])[0]
