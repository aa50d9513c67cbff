"""What came of each run of a drill, as lines of a file that a stopped drill goes on from."""

import errno
import os
from pathlib import Path

import msgspec

from holdfast.errors import UsageError
from holdfast.report.episodes import Episode
from holdfast.report.metrics import Targets


class Head(msgspec.Struct, frozen=True, kw_only=True, tag="drill"):
    """The first line: which drill it is. Only the same one goes on in the file.

    `digest` is that of the whole scenario; files from before it was kept have none.
    """

    agent: str
    seed: int
    runs: int
    faults: tuple[str, ...]
    share: float
    scale: float
    unscaled: int
    cases: int
    stubs: tuple[str, ...]
    promises: Targets
    version: str
    machine: str
    command: str
    digest: str = ""

    def is_same(self, other: "Head") -> bool:
        """Whether results of both belong together; one may have more runs than the other."""
        free = ("runs", "version", "machine", "command", *([] if self.digest else ["digest"]))
        told = {name: getattr(self, name) for name in free}
        return msgspec.structs.replace(other, **told) == self


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="run", omit_defaults=True):
    """One run and what was found of it afterwards.

    `has_struck` says that the fault really came, at `struck_at`. `outcome` is finished, or the name
    of the error that ended it. `wrong` are places where the end is not that of the reference;
    `doubled` and `missing` count effects, `asked_twice` answers that were recorded and asked for
    again. `bytes` is what the run added to its store, `held_s` how long saving held it up, of the
    rest, `calls_s`.
    """

    no: int
    case: int
    fault: str | None = None
    has_struck: bool = False
    struck_at: float | None = None
    outcome: str = "finished"
    error: str = ""
    lives: int = 1
    episodes: list[Episode] = []
    doubled: int = 0
    missing: int = 0
    asked_twice: int = 0
    wrong: list[str] = []
    has_repaired: bool = False
    is_unscaled: bool = False
    bytes: int | None = None
    took_s: float = 0.0
    held_s: float | None = None
    calls_s: float | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the run kept every promise about what it did."""
        broken = self.doubled + self.missing + self.asked_twice + len(self.wrong)
        return self.outcome == "finished" and broken == 0


class Shared(msgspec.Struct, frozen=True, kw_only=True, tag="store"):
    """What a store of many runs takes beyond the rows of its runs, for each of them.

    `took_s` is how long all of them took, `workers` at a time.
    """

    runs: int
    bytes_per_run: float
    took_s: float = 0.0
    workers: int = 0


Entry = Head | Result | Shared
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Entry)


class Results(msgspec.Struct, kw_only=True):
    """All that a file holds."""

    head: Head
    runs: dict[int, Result]
    unscaled: list[Result]
    shared: list[Shared]


class Log:
    """The file of results: each line is written at once when its run has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, entry: Entry) -> None:
        """Add a line, or nothing: what a full disk took of it is cut off again."""
        line = _encode(entry) + b"\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            end = os.fstat(fd).st_size
            why = _written(fd, line)
            if why:
                os.ftruncate(fd, end)
                msg = f"results {self._path} cannot be written ({why})"
                raise UsageError(f"{msg}; mend that, then the same command goes on")
        finally:
            os.close(fd)


def _written(fd: int, line: bytes) -> str:
    """Why a line was not written, or not all of it; empty where it was."""
    try:
        count = os.write(fd, line)
    except OSError as error:
        return error.strerror or str(error)
    return "" if count == len(line) else os.strerror(errno.ENOSPC)


def mend(path: Path) -> None:
    """Cut off a last line that a kill left unfinished, so that the next one stands for itself."""
    data = path.read_bytes()
    os.truncate(path, data.rfind(b"\n") + 1)


def read(path: Path) -> Results:
    """The results in a file; a last line that was cut off is left out."""
    try:
        whole = [each for each in path.read_bytes().splitlines(keepends=True) if each[-1:] == b"\n"]
    except OSError as error:
        raise UsageError(f"results {path} cannot be read ({error.strerror})") from error
    lines = [_entry(path, number, line) for number, line in enumerate(whole, start=1)]
    if not lines or not isinstance(lines[0], Head):
        raise UsageError(f"{path} holds no results of a drill")
    runs = [each for each in lines if isinstance(each, Result)]
    return Results(
        head=lines[0],
        runs={each.no: each for each in runs if not each.is_unscaled},
        unscaled=[each for each in runs if each.is_unscaled],
        shared=[each for each in lines if isinstance(each, Shared)],
    )


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        found: Entry = _decoder.decode(line)
    except msgspec.MsgspecError as error:
        if number == 1:
            raise UsageError(f"{path} holds no results of a drill ({error})") from error
        msg = f"line {number} of {path} is damaged ({error})"
        raise UsageError(f"{msg}; take it out, and the drill makes that run again") from error
    return found
