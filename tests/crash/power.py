"""What a power cut leaves in the worst case: of every file what was flushed, and nothing else.

A child is traced by strace. Its writes count once their file was flushed, its names once their
directory was. Threads and memory maps are not followed, so the child has one thread, and what
SQLite maps (`-shm`) is left out: it is made anew from the log. What the library maps (`lock`) is
left empty: whoever opens the store first believes nothing of it.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ACK = "ACK "
CALLS = (
    "openat,write,pwrite64,?io_submit,fsync,fdatasync,?rename,?renameat,?renameat2,"
    "?unlink,?unlinkat,ftruncate,?mkdir,?mkdirat"
)
_LINE = re.compile(r"\d+\s+(\w+)\((.*)\)\s+= (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_AT = re.compile(r"aio_offset=(\d+)")
_FD = re.compile(r"(\d+)<((?:\\x[0-9a-f]{2})+)>")


@dataclass
class Inode:
    """A file: its bytes as written, and as they are on the disk."""

    now: bytearray = field(default_factory=bytearray)
    kept: bytes = b""


class Disk:
    """One directory tree as a power cut would leave it. No flush of `left_out` counts."""

    def __init__(self, root: Path, left_out: Path | None = None) -> None:
        self._root, self._left_out = root, left_out
        self._now: dict[Path, Inode | None] = {root: None}
        self._kept: dict[Path, Inode | None] = {root: None}

    def do(self, call: str, args: str, result: int) -> None:  # noqa: C901 a case for each call
        """Take in one system call that succeeded."""
        if result < 0:
            return
        texts = [_bytes(each) for each in _TEXT.findall(args)]
        fds = [Path(_bytes(path).decode()) for _, path in _FD.findall(args)]
        match call:
            case "openat" if "O_CREAT" in args or "O_TRUNC" in args:
                self._open(Path(texts[-1].decode()), is_cut="O_TRUNC" in args)
            case "mkdir" | "mkdirat" if Path(texts[-1].decode()).parent in self._now:
                self._now[Path(texts[-1].decode())] = None
            case "rename" | "renameat" | "renameat2":
                self._rename(*(Path(text.decode()) for text in texts))
            case "unlink" | "unlinkat":
                self._now.pop(Path(texts[-1].decode()), None)
            case "ftruncate":
                inode = self._inode(fds[0])
                size = int(args.rpartition(",")[2])
                inode.now = inode.now[:size].ljust(size, b"\0")
            case "write":
                self._inode(fds[0]).now += texts[0]
            case "pwrite64":
                self._write(self._inode(fds[0]), texts[0], int(args.rpartition(",")[2]))
            case "io_submit":  # One write. That it ended well is not shown, but acknowledged.
                self._write_through(fds[0], texts[0], int(_AT.findall(args)[0]), args)
            case "fsync" | "fdatasync":
                self._flush(fds[0])
            case _:
                pass  # A file that was there, opened again.

    def _open(self, path: Path, *, is_cut: bool) -> None:
        if path.parent in self._now and path not in self._now:
            self._now[path] = Inode()
        elif is_cut and path in self._now:
            self._inode(path).now.clear()

    def _rename(self, old: Path, new: Path) -> None:
        if old in self._now:  # Else it is no file of ours.
            self._now[new] = self._now.pop(old)

    def _inode(self, path: Path) -> Inode:
        return self._now.get(path) or Inode()  # Elsewhere, or unlinked: nothing is kept of it.

    @staticmethod
    def _write(inode: Inode, data: bytes, at: int) -> None:
        inode.now.extend(bytes(max(0, at - len(inode.now))))
        inode.now[at : at + len(data)] = data

    def _write_through(self, path: Path, data: bytes, at: int, args: str) -> None:
        """A write that is flushed by itself, where it says so: only what it wrote is kept."""
        inode = self._inode(path)
        self._write(inode, data, at)
        if "RWF_DSYNC" in args and path != self._left_out:
            kept = inode.kept.ljust(at, b"\0")
            inode.kept = kept[:at] + data + kept[at + len(data) :]

    def _flush(self, path: Path) -> None:
        inode = None if path == self._left_out else self._now.get(path)
        if inode is not None:
            inode.kept = bytes(inode.now)
        elif path in self._now and path != self._left_out:
            gone = [each for each in self._kept if each.parent == path and each != path]
            for each in gone:
                del self._kept[each]
            self._kept |= {each: it for each, it in self._now.items() if each.parent == path}

    def leave(self, place: Path) -> None:
        """Make at `place` what is left; a name below a directory that is lost is lost too."""
        place.mkdir()
        for path in sorted(self._kept):
            target = place / path.relative_to(self._root)
            if path == self._root or path.name.endswith("-shm") or not target.parent.is_dir():
                continue
            inode = self._kept[path]
            if inode is None:
                target.mkdir()
            else:
                target.write_bytes(inode.kept)


def cuts(
    program: str, root: Path, scratch: Path, left_out: Path | None = None
) -> Iterator[tuple[int, Path]]:
    """Run a child that works in the empty directory `root`; for each `ACK n` it prints: n, and
    what is left if the power goes at that moment. No flush of `left_out` counts.
    """
    trace = scratch / "trace"
    options = ["-f", "-y", "-xx", "-s", "16777216", "-qq", "-o", str(trace), "-e", f"trace={CALLS}"]
    command = ["strace", *options, sys.executable, "-c", program, str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    disk = Disk(root, left_out)
    for line in trace.read_text(encoding="ascii", errors="replace").splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        call, args, result = found[1], found[2], int(found[3])
        said = _said(call, args)
        if said is None:
            disk.do(call, args, result)
        else:
            left = scratch / f"left-{said}"
            disk.leave(left)
            yield said, left


def _said(call: str, args: str) -> int | None:
    text = _TEXT.search(args) if call == "write" and args.startswith("1<") else None
    told = "" if text is None else _bytes(text[1]).decode("ascii", "replace")
    return int(told.removeprefix(ACK)) if told.startswith(ACK) else None


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))
