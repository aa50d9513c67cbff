"""`import holdfast` is cheap: it loads no framework, no server and no terminal."""

import subprocess
import sys

import pytest

import holdfast

HEAVY = {
    "fastapi",
    "httpx",
    "langgraph",
    "numpy",
    "pydantic_ai",
    "ray",
    "rich",
    "torch",
    "typer",
    "uvicorn",
}


def test_importing_holdfast_loads_no_framework() -> None:
    program = "import holdfast, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert "holdfast" in loaded
    assert set() == HEAVY & set(loaded)


@pytest.mark.parametrize("package", ["holdfast", "holdfast.testing"])
def test_every_public_name_is_offered_before_it_was_used(package: str) -> None:
    program = f"import {package} as it; print(*{{*it.__all__}} - {{*dir(it)}})"

    missing = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert [] == missing


def test_every_public_name_is_there_and_others_are_refused() -> None:
    assert [] == [name for name in holdfast.__all__ if not hasattr(holdfast, name)]
    assert sorted(holdfast.__all__) == sorted(set(holdfast.__all__))
    with pytest.raises(AttributeError, match="no attribute 'stepp'"):
        _ = holdfast.stepp  # type: ignore[attr-defined]  # the point of the test
