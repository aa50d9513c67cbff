"""What a process did to the files of a folder, as strace heard it: a list of acts, in order."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.testing.kill import WAIT_S_MAX
from tests.soak.part import ROOT

TRACE = "trace"
"""The file beside the folder in which the calls are written down."""
CALLS = (
    "openat,write,pwrite64,?io_submit,pwritev,writev,fsync,fdatasync,ftruncate,"
    "?rename,?renameat,?renameat2,?link,?linkat,?unlink,?unlinkat,?mkdir,?mkdirat"
)
_OF_BYTES = ("write", "pwrite64", "pwritev", "writev", "io_submit")
_LINE = re.compile(r"(?P<pid>\d+) +(?P<call>\w+)\((?P<rest>.*)\) += (?P<gave>-?\d+)")
_HEAD = re.compile(r"(\d+) +(\w+\(.*) <unfinished \.\.\.>$")
_TAIL = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_AT = re.compile(r"aio_offset=(\d+)")
_FILE = re.compile(r"\d+<((?:\\x[0-9a-f]{2})*)>")

Kind = Literal["make", "folder", "write", "cut", "flush", "move", "link", "remove"]


class Act(msgspec.Struct, frozen=True, array_like=True):
    """One call that changed something; paths are below the folder."""

    kind: Kind
    path: str
    to: str = ""
    data: bytes = b""
    at: int = -1
    """Where it was written; -1 is behind what was written before. For a cut, the new length."""
    is_data_only: bool = False


def record(command: list[str], place: Path, folder: str) -> list[Act]:
    """Run a command that says `ready` and then waits for a tracer; what it does in `folder`."""
    log = place / TRACE
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert b"ready\n" == child.stdout.readline()
        quiet = ["strace", "-f", "-y", "-xx", "-s", "16777216", "-qq", "-o", str(log)]
        subprocess.run([*quiet, "-e", f"trace={CALLS}", "-p", str(child.pid)], check=True)
        assert 0 == child.wait(WAIT_S_MAX)
    acts = list(_acts(_lines(log), str(place / folder)))
    log.unlink()
    return acts


def _lines(log: Path) -> Iterator[tuple[str, str, int]]:
    """Call, arguments and result of each line; of one that was interrupted, of both halves."""
    begun: dict[str, str] = {}
    with log.open(encoding="ascii") as lines:
        for line in lines:
            whole = line.rstrip("\n")
            if head := _HEAD.match(whole):
                begun[head[1]] = head[2]
                continue
            if tail := _TAIL.match(whole):
                whole = f"{tail[1]} {begun.pop(tail[1])}{tail[2]}"
            if (found := _LINE.match(whole)) and int(found["gave"]) >= 0:
                yield found["call"], found["rest"], int(found["gave"])


def _acts(  # noqa: C901, PLR0912 a case for each call
    lines: Iterator[tuple[str, str, int]], top: str
) -> Iterator[Act]:
    known: set[str] = set()
    for call, rest, gave in lines:
        paths = [_plain(text).decode() for text in _FILE.findall(rest)]
        texts = [_plain(text) for text in _TEXT.findall(rest)]
        names = [] if call in _OF_BYTES else [text.decode("utf-8", "replace") for text in texts]
        inside = [path.removeprefix(top + "/") for path in paths if path.startswith(top + "/")]
        named = [name.removeprefix(top + "/") for name in names if name.startswith(top + "/")]
        match call:
            case "openat" if named and "O_CREAT" in rest and named[0] not in known:
                known.add(named[0])
                yield Act("make", named[0])
            case "mkdir" | "mkdirat" if named:
                yield Act("folder", named[0])
            case "write" if inside:
                yield Act("write", inside[0], data=texts[0][:gave])
            case "pwrite64" if inside:
                at = int(rest.rpartition(", ")[2])
                yield Act("write", inside[0], data=texts[0][:gave], at=at)
            case "io_submit" if inside:  # One write, and where it says so the flush of it alone.
                at = int(_AT.findall(rest)[0])
                yield Act("write", inside[0], data=texts[0], at=at)
                if "RWF_DSYNC" in rest:
                    yield Act("flush", inside[0], data=texts[0], at=at, is_data_only=True)
            case "ftruncate" if inside:
                # Strace prints the length in decimal, whatever the strings are printed in.
                yield Act("cut", inside[0], at=int(rest.rpartition(", ")[2], 0))
            case "fsync" | "fdatasync":
                for path in inside or [""] * (top in paths):
                    yield Act("flush", path, is_data_only=call == "fdatasync")
            case "rename" | "renameat" | "renameat2" if len(named) == 2:
                known.discard(named[0])
                known.add(named[1])
                yield Act("move", named[0], to=named[1])
            case "link" | "linkat" if len(named) == 2:
                yield Act("link", named[0], to=named[1])
            case "unlink" | "unlinkat" if named:
                known.discard(named[0])
                yield Act("remove", named[0])
            case _:
                assert not (inside or named) or call == "openat", f"{call} is not understood"


def _plain(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
