"""Whatever is asked of a store while others remove runs from it: an answer, or that it is gone.

Each question is asked anew with garbage collected, or a run erased, before each of its looks at the
database in turn.
"""
# ruff: noqa: SLF001 the test stands between two looks at the database

import contextlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.main import main
from holdfast.engine.handle import Store
from holdfast.policy.retention import Retention
from holdfast.store.backends.reads import SqliteReads
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.keys.local import RootKey
from holdfast.store.verify import verify
from tests.engine.kit import text

Asked = Callable[[Store], object]

SHARE = 9
"""One in so many looks is tried in each test; which, differs from test to test."""
GONE = (holdfast.UnknownRun, holdfast.UnknownCheckpoint, holdfast.RunErased)


@holdfast.step
def draft(turn: int) -> str:
    return text(turn, 6000)


@holdfast.effect(key="turn")
def pay(turn: int) -> str:
    return f"paid {turn}"


@holdfast.agent(checkpoint=holdfast.every(turns=4))
def author(run: holdfast.Run, last: int = 16) -> int:
    for turn in run.turns():
        run.state["draft"] = draft(turn)
        if turn == 5:
            pay(turn)
        if turn == last:
            return last
    raise AssertionError


@holdfast.agent
def child(_run: holdfast.Run) -> str:
    return draft(0)


@holdfast.agent
def parent(run: holdfast.Run) -> str:
    for _ in run.turns():
        return run.child(child, id=f"{run.id}-child")
    raise AssertionError


@holdfast.agent
def broken(run: holdfast.Run) -> None:
    for turn in run.turns():
        draft(turn)
        if turn == 2:
            raise ValueError("no kelp")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("removed") / "store"
    with holdfast.open(path) as store:
        store.run(author, id="run")
        store.fork("run", at=8, new_id="fork")
        store.restart("fork")
        store.run(parent, id="parent")
        with pytest.raises(holdfast.RunFailed):
            store.run(broken, id="broken")
        store.run(author, 8, id="last")
    return path


class Intruder:
    """Does something once, before one of the looks at the database."""

    def __init__(self, act: Asked) -> None:
        self._act, self._at, self._looks = act, -1, 0
        self._other: Store | None = None

    def set(self, at: int, other: Store) -> None:
        self._at, self._looks, self._other = at, 0, other

    def look(self) -> None:
        self._looks += 1
        if self._looks == self._at and self._other is not None:
            other, self._other = self._other, None
            self._act(other)

    @property
    def has_come(self) -> bool:
        return self._other is None


def erase(store: Store) -> None:
    with contextlib.suppress(holdfast.RunHeld):  # Whoever asks works on it.
        store.erase("run", with_forks=True)


def collect(store: Store) -> None:
    store.gc(Retention(runs_last=1, last=1))


def prune(store: Store) -> None:
    store.gc(Retention(last=1))


@pytest.fixture(params=[erase, collect, prune], ids=lambda act: act.__name__)
def intruder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Intruder:
    intruder = Intruder(request.param)
    original = SqliteReads._link

    def link(self: SqliteReads) -> Any:  # noqa: ANN401 as the original
        intruder.look()
        return original(self)

    monkeypatch.setattr(SqliteReads, "_link", link)
    # It waits for those who read, and this thread does.
    monkeypatch.setattr(SqliteRecords, "empty_log", lambda _: None)
    return intruder


def command(*words: str) -> Asked:
    """A command line; it must not end as one that met damage, or a mistake of ours."""

    def ask(store: Store) -> None:
        told, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(said):
            status = main([*words, "--store", str(store.path)])
        assert status in (0, 3), said.getvalue()
        assert bool(told.getvalue()) == (status == 0)

    return ask


ASKED: dict[str, Asked] = {
    "run": lambda store: store.run(author, id="fork"),
    "restart": lambda store: store.restart("fork"),
    "fork": lambda store: store.fork("run", at=4, new_id="new"),
    "rollback": lambda store: store.plan_rollback("fork", to=12).apply(),
    "pin": lambda store: store.pin("run@5"),
    "decide": lambda store: store.decide("broken"),
    "inbox": lambda store: store.inbox(all=True),
    "erase": lambda store: store.erase("run", with_forks=True),
    "gc": lambda store: store.gc(Retention(runs_last=2)),
    "show": command("show", "run"),
    "show --at": command("show", "run", "--at", "5"),
    "show --tree": command("show", "parent", "--tree"),
    "show --every-turn": command("show", "run", "--every-turn"),
    "diff": command("diff", "run@3", "fork@9"),
    "du": command("du"),
    "du of a run": command("du", "run"),
    "anchor": command("anchor"),
    "verify": command("verify", "--deep"),
    "report storage": command("report", "storage"),
    "report cost": command("report", "cost", "--since", "1h"),
    "report metrics": command("report", "metrics"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_others_remove_meanwhile_is_gone_and_not_damaged(
    made: Path, tmp_path: Path, intruder: Intruder, name: str
) -> None:
    at = 1 + list(ASKED).index(name) % SHARE
    while True:
        place = tmp_path / str(at)
        shutil.copytree(made, place)
        with holdfast.open(place) as store, holdfast.open(place) as other:
            intruder.set(at, other)
            with contextlib.suppress(*GONE):
                ASKED[name](store)
            if not intruder.has_come:
                return
            assert verify(other._opened).is_whole
        at += SHARE


@pytest.mark.parametrize("seen", [True, False], ids=["listed", "found"])
def test_a_run_whose_key_is_destroyed_while_it_is_read_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, seen: bool
) -> None:
    key = RootKey(b"k" * 32, "file")
    with holdfast.open(tmp_path / "store", key=key) as store:
        for id_ in ("run", "last"):
            store.run(child, id=id_)
    original = SqliteReads.key
    left = ["run"]

    def wrapped(self: SqliteReads, no: int) -> bytes | None:
        if no and left:
            other.erase(left.pop())
        return original(self, no)

    with (
        holdfast.open(tmp_path / "store", key=key) as store,
        holdfast.open(tmp_path / "store", key=key) as other,
    ):
        other.get("run")
        monkeypatch.setattr(SqliteReads, "key", wrapped)

        if seen:
            assert ["last"] == [each.id for each in store.runs()]
        else:
            with pytest.raises(holdfast.RunErased):
                store.get("run")
