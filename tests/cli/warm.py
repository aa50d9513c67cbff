"""A warm process that forks a child for each command line, so that a command costs milliseconds.

The child is what `python -m holdfast` would be: its folder, environment, streams and end are its
own. Orders come as lines of JSON on standard input; for each the child's process id is printed,
and when it has ended its exit status.
"""

import contextlib
import gc
import importlib
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast import failpoint
from holdfast.cli.main import COMMANDS, load, main

ROOT = Path(__file__).resolve().parents[2]
LOADED_LATE = (
    *("holdfast.engine.handle", "holdfast.engine.declare", "holdfast.engine.run"),
    *("holdfast.engine.checkpoint", "holdfast.store.codec.frame", "pydantic.main"),
)
"""What agents, and commands that come to it, load besides."""


class Warm:
    """The process; it is started by the first command, and serves one at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._serving = threading.Lock()

    def run(
        self, args: list[str], folder: Path, env: Mapping[str, str], text: str, wait_s: float
    ) -> subprocess.CompletedProcess[str]:
        """What `python -m holdfast` with these arguments prints, and how it ends."""
        with self._serving, tempfile.TemporaryDirectory() as place:
            streams = [Path(place, name) for name in ("stdin", "stdout", "stderr")]
            streams[0].write_text(text)
            order = {"args": args, "folder": str(folder), "env": dict(env)}
            pid = self._ask(json.dumps(order | {"streams": [str(each) for each in streams]}))
            status = self._read(pid, wait_s)
            out, err = (each.read_text() for each in streams[1:])
        return subprocess.CompletedProcess(args, status, out, err)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, order: str) -> int:
        if self._process is None:
            kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.warm"],
                cwd=ROOT,
                env={**kept, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def _read(self, pid: int, wait_s: float) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], wait_s)[0]:
            os.kill(pid, 9)
            self._process.stdout.readline()
            raise subprocess.TimeoutExpired("holdfast", wait_s)
        return int(self._process.stdout.readline())


def serve() -> int:
    """Serve orders until the standard input ends; in a child, do the one that it is for."""
    for name in COMMANDS:
        load(name)
    for module in LOADED_LATE:
        importlib.import_module(module)
    with contextlib.redirect_stderr(io.StringIO()):
        main(["runs", "--store", os.devnull])  # What typer loads for the first command.
    gc.freeze()  # No child looks through all this for what it may free.
    while line := sys.stdin.readline():
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return _command(order)
        _say(pid)
        _say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def _command(order: dict[str, Any]) -> int:
    for number, name in enumerate(order["streams"]):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(name, flags, 0o600), number)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path[0] = order["folder"]
    sys.argv = [sys.argv[0], *order["args"]]
    failpoint.arm_from(os.environ.get("HOLDFAST_FAILPOINT", ""))
    return main()


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(serve())
