"""How often a process made the disk confirm a write, read from a log of its system calls."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.job import FIRST_STEP, LAST_STEP

SYNCS = frozenset({"fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"})
OPENS = frozenset({"open", "openat", "openat2"})
WRITES = frozenset({"write", "writev", "pwrite64", "pwritev", "pwritev2"})
HANDED = frozenset({"io_submit"})

_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_OPENED = re.compile(r'"([^"]*)"')
_WRITTEN = re.compile(r"^\d+<(.*?)>")


@dataclass(frozen=True, kw_only=True)
class Syncs:
    """Syncs of a whole process, and of the part of it between its two marks."""

    total: int
    in_loop: int


def is_available() -> bool:
    """Whether this machine can trace."""
    return shutil.which("strace") is not None


def command(log: Path) -> list[str]:
    """The prefix that logs every open, write and sync of a command and of all its threads."""
    calls = ",".join(sorted(SYNCS | OPENS | WRITES | HANDED))
    return [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-s",
        "40",
        "-e",
        f"trace={calls}",
        "-o",
        str(log),
    ]


def count(log: Path) -> Syncs:
    """Count fsync, fdatasync, sync_file_range, msync and writes that are flushed by themselves."""
    synchronous: set[str] = set()
    total = in_loop = 0
    is_in_loop = False
    for line in log.read_text(errors="replace").splitlines():
        call = _CALL.match(line)
        if call is None:
            continue
        name, rest = call.groups()
        if name in OPENS and ("O_DSYNC" in rest or "O_SYNC" in rest):
            synchronous.update(_OPENED.findall(rest)[:1])
        elif name in WRITES and FIRST_STEP.decode() in rest:
            is_in_loop = True
        elif name in WRITES and LAST_STEP.decode() in rest:
            is_in_loop = False
        elif _is_sync(name, rest, synchronous):
            total += 1
            in_loop += is_in_loop
    return Syncs(total=total, in_loop=in_loop)


def _is_sync(name: str, rest: str, synchronous: set[str]) -> bool:
    if name in SYNCS:
        return name != "msync" or "MS_SYNC" in rest
    written = _WRITTEN.match(rest)
    through = name in WRITES and written is not None and written[1] in synchronous
    return through or (name in WRITES | HANDED and ("RWF_DSYNC" in rest or "RWF_SYNC" in rest))
