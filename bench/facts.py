"""Where and with what the numbers were made; nothing that names the machine or its owner."""

import os
import platform
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("holdfast", "msgspec", "langgraph", "langgraph-checkpoint-sqlite", "dbos", "SQLAlchemy")


def gather() -> dict[str, str]:
    """Date, versions, processor, memory and file system."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: _version(name) for name in PACKAGES},
        "system": f"{platform.system()} {_kernel()} {platform.machine()}",
        "processor": _after_colon(Path("/proc/cpuinfo"), "model name"),
        "cores": str(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()),
        "memory": _after_colon(Path("/proc/meminfo"), "MemTotal"),
        "file system": _file_system(Path(tempfile.gettempdir())),
    }


def _kernel() -> str:
    """Major and minor version; the rest of a release name says who built it."""
    return ".".join(platform.release().split(".")[:2])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _after_colon(file: Path, name: str) -> str:
    if not file.exists():
        return "unknown"
    lines = file.read_text().splitlines()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith(name)]
    return found[0] if found else "unknown"


def _file_system(directory: Path) -> str:
    """The type of file system `directory` is on: that of the longest mount point above it."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    best = ("", "unknown")
    for line in mounts.read_text().splitlines():
        _device, point, kind, *_ = line.split()
        if directory.resolve().is_relative_to(point):
            best = max(best, (point, kind), key=lambda found: len(found[0]))
    return best[1]
