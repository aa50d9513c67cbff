"""User code passes `mypy --strict`, and what is wrong in it is found there."""

import re
import subprocess
import sys
from pathlib import Path

import holdfast

USER = Path(__file__).with_name("user.py")
ROOT = Path(__file__).parents[2]

WRONG = """\
import holdfast

@holdfast.step
def chat(text: str) -> int:
    return 1

@holdfast.effect
async def pay(order: str) -> bool:
    return True

@holdfast.agent
def agent(run: holdfast.Run, n: int) -> str:
    chat(3)  # E: arg-type
    chat("a", "b")  # E: call-arg
    chat(words="a")  # E: call-arg
    said: str = chat("a")  # E: assignment
    chat.bare(4)  # E: arg-type
    for turn in run.turns():
        turn.upper()  # E: attr-defined
    run.call(len, 3)  # E: arg-type
    run.state = {}  # E: assignment
    return said

@holdfast.agent  # E: arg-type
def no_run(n: int) -> str:
    return ""

@holdfast.step(raises=[int])  # E: list-item
def wrong_option(text: str) -> str:
    return text

def use(store: holdfast.Store) -> None:
    result: int = store.run(agent, 3)  # E: assignment
    store.run(len)  # E: call-overload

async def ause() -> None:
    paid: str = await pay("o1")  # E: assignment
    pay("o1") + 1  # E: operator
"""


def strict(file: Path) -> str:
    """What `mypy --strict` says of a file, without the settings of this project."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--no-error-summary",
            f"--cache-dir={ROOT / '.mypy_cache' / 'user'}",
            str(file),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
    )
    return done.stdout + done.stderr


def test_user_code_passes_the_strictest_check() -> None:
    assert "" == strict(USER)


def test_mistakes_of_users_are_found_where_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG, encoding="utf-8")
    expected = {
        (number, code)
        for number, line in enumerate(WRONG.splitlines(), start=1)
        for code in re.findall(r"# E: ([\w-]+)", line)
    }

    found = re.findall(r"^wrong\.py:(\d+): error: .*\[([\w-]+)\]$", strict(file), re.MULTILINE)

    assert expected <= {(int(number), code) for number, code in found}
    assert {number for number, _ in expected} == {int(number) for number, _ in found}


def test_the_package_says_that_it_has_types() -> None:
    assert holdfast.__file__ is not None
    assert Path(holdfast.__file__).with_name("py.typed").is_file()
