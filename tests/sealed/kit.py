"""What tests of encrypted stores share: a key, an agent whose every word is planted, raw files."""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import holdfast
from holdfast.clock import SystemClock
from holdfast.store.keys.local import RootKey
from holdfast.store.open import Opened, open_store
from holdfast.store.verify import verify

KEY = RootKey(b"k" * 32, "file")
OTHER = RootKey(b"o" * 32, "file")
WORDS = (
    *("planted-argument", "planted-answer", "planted-state", "planted-label", "planted-large"),
    *("planted-error", "planted-outcome", "planted-run", "planted_tool"),
)
LARGE = "planted-large " * 8000


@holdfast.step
def planted_tool(text: str) -> str:
    return f"planted-answer {text}"


@holdfast.effect(key="text")
def act(text: str) -> str:
    return f"planted-outcome {text}"


class Crash(BaseException):
    """The process dies here, as far as the run can tell."""


@holdfast.agent
def keeper(
    run: holdfast.Run, text: str, *, turns: int = 3, fails: bool = False, dies: bool = False
) -> str:
    run.state["notes"] = []
    for turn in run.turns():
        run.state["notes"].append(f"planted-state {planted_tool(text)} {turn}")
        act(f"{text} {turn}")
        if turn == 1:
            run.state["large"], run.state["larger"] = LARGE, LARGE * 2
            run.checkpoint(label="planted-label")
        if turn == turns:
            if dies:
                raise Crash
            if fails:
                raise ValueError("planted-error")
            return text
    raise AssertionError


@holdfast.agent
def muser(run: holdfast.Run) -> None:
    """Has no effects, so that its newest rows stand in the tail when it dies."""
    for turn in run.turns():
        run.state["notes"] = f"planted-state {planted_tool('planted-argument')} {turn}"
        if turn == 3:
            raise Crash


def kill(path: Path, into: Path, key: RootKey | None = KEY, run: str = "planted-run-mused") -> None:
    """What a kill leaves of the store at `path` while that run goes on."""
    with holdfast.open(path, key=key or "") as store:
        with contextlib.suppress(Crash):
            store.run(muser, id=run)
        shutil.copytree(path, into)
    (into / "store.db-shm").unlink()


def fill(path: Path, key: RootKey | None = KEY, *, runs: int = 2, turns: int = 3) -> None:
    """A store with finished runs, a failed one, and one that was interrupted."""
    with holdfast.open(path, key=key or "") as store:
        for number in range(runs):
            store.run(keeper, "planted-argument", turns=turns, id=f"planted-run-{number}")
        for word in ("fails", "dies"):
            given: dict[str, Any] = {"turns": 2, word: True}
            with contextlib.suppress(holdfast.RunFailed, Crash):
                store.run(keeper, "planted-argument", id=f"planted-run-{word}", **given)


def opened(
    path: Path, key: RootKey | None = KEY, *, whole: bool = True, alone: bool = False
) -> Opened:
    return open_store(
        path, SystemClock(), key=key, must_exist=True, must_be_whole=whole, alone=alone
    )


def runs(path: Path, key: RootKey | None = KEY) -> list[str]:
    with holdfast.open(path, key=key or "") as store:
        return [run.id for run in store.runs()]


def findings(path: Path, key: RootKey | None = KEY) -> list[str]:
    """What a deep verification of the store finds."""
    found = opened(path, key, whole=False)
    try:
        return [f"{each.where}: {each.why}" for each in verify(found, deep=True).findings]
    finally:
        found.close()


def states(path: Path, key: RootKey | None = KEY) -> dict[str, object]:
    """Every state of every run at each of its points."""
    with holdfast.open(path, key=key or "") as store:
        return {
            point.id: store.restore(point)[1]
            for run in store.runs()
            for point in store.checkpoints(run.id, every_turn=True)
        }


def files(path: Path) -> dict[Path, bytes]:
    """Every file of a store, raw."""
    return {each: each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def found_in(path: Path, *needles: bytes | str) -> list[tuple[str, bytes]]:
    """Which of the needles stand in which raw file of the store."""
    wanted = [each.encode() if isinstance(each, str) else each for each in needles]
    return [
        (file.name, needle)
        for file, data in files(path).items()
        for needle in wanted
        if needle in data
    ]


def rows(link: sqlite3.Connection) -> Iterator[tuple[str, int, str]]:
    """Every stored body: table, number, name of its key column."""
    for table, key in (("run", "no"), ("branch", "no"), ("j", "id"), ("pack", "id"), ("key", "no")):
        for (number,) in link.execute(f"SELECT {key} FROM {table}").fetchall():
            yield table, number, key
