"""`import holdfast` is cheap: it loads no framework, no server and no terminal."""

import subprocess
import sys

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
