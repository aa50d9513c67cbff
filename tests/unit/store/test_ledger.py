"""The ledger: outside what rolls back, open to all, and the first word stands."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine import transfer
from holdfast.engine.given import given_key
from holdfast.errors import Damaged
from holdfast.model.ledger import Said
from holdfast.policy.standing import Standing
from holdfast.store import ledger as ledgers
from holdfast.store.ledger import Ledger
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Run
from holdfast.store.verify import verify
from holdfast.store.writer import PACK_BYTES


@holdfast.agent
def idle(run: holdfast.Run) -> str:
    return run.id


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Opened]:
    with contextlib.closing(open_store(path, SystemClock(), key=given_key())) as found:
        yield found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with holdfast.open(tmp_path / "store") as store:
        store.run(idle, id="run-1")
    return tmp_path / "store"


def found(store: Opened) -> Run:
    run = store.reader.find("run-1")
    assert run is not None
    return run


def ledger(store: Opened) -> Ledger:
    return Ledger(store.committer, store.reader, found(store))


def said(n: int, by: str = "ann", text: str = "") -> Said:
    return Said(
        key=bytes([n]),
        id=str(n),
        run="run-1",
        kind="question",
        text=text,
        asked=0.0,
        word="answered",
        value=None,
        by=by,
        note=None,
        at=0.0,
        nonce=by.encode(),
    )


def first_of(entry: Said, standing: Standing) -> Said | None:
    return None if entry.key in standing.words else entry


def test_a_ledger_that_was_never_written_holds_nothing_and_leaves_nothing(path: Path) -> None:
    with opened(path) as store:
        assert {} == ledger(store).read().words
        assert store.reader.ledger(found(store)) is None


def test_what_was_appended_is_read_by_everybody(path: Path) -> None:
    with opened(path) as store, opened(path) as other:
        theirs = ledger(other)
        ledger(store).add(0.0, lambda _: said(1))
        theirs.add(0.0, lambda _: said(2))

        assert ["1", "2"] == [each.id for each in ledger(store).read().words.values()]
        assert ["1", "2"] == [each.id for each in theirs.read().words.values()]


def test_it_stands_beside_the_history_and_the_run_stays_as_it_is(path: Path) -> None:
    with opened(path) as store:
        before = found(store)
        ledger(store).add(0.0, lambda _: said(1))

        assert before == found(store)
        assert [1] == [branch.no for branch in store.reader.branches(before)]
        beside = store.reader.branches(before, with_ledger=True)
        assert [1, 2] == [branch.no for branch in beside]
        assert [] == verify(store, deep=True).findings


def test_of_two_processes_that_open_it_at_once_the_older_branch_counts(path: Path) -> None:
    with opened(path) as store, opened(path) as other:
        mine, theirs = ledger(store), ledger(other)
        mine._begin(0.0)  # noqa: SLF001 both look, and both find none
        theirs._begin(0.0)  # noqa: SLF001 see above
        mine.add(0.0, lambda _: said(1, "ann"))
        theirs.add(0.0, lambda standing: first_of(said(1, "bob"), standing))

        assert ["ann"] == [each.by for each in ledger(store).read().words.values()]
        assert [] == verify(store, deep=True).findings


def test_of_many_who_say_the_same_thing_at_once_one_is_written(path: Path) -> None:
    wrote = []
    gate = threading.Barrier(6)

    def say(name: str) -> None:
        with opened(path) as store:
            mine = ledger(store)
            gate.wait()
            for n in range(20):
                standing = mine.add(0.0, lambda seen, n=n: first_of(said(n, name), seen))  # type: ignore[misc]  # mypy cannot infer it
                wrote.append((n, standing.words[bytes([n])].by))

    people = [threading.Thread(target=say, args=(f"p{n}",)) for n in range(6)]
    for each in people:
        each.start()
    for each in people:
        each.join()

    with opened(path) as store:
        stands = {n: ledger(store).read().words[bytes([n])].by for n in range(20)}
        rows = store.reader.ledger(found(store))
        assert rows is not None
        assert 21 == store.reader.end(rows.no) - rows.at - ((rows.no - 1) << 32)
    assert 120 == len(wrote)
    assert set(stands.items()) == set(wrote)


def test_a_long_ledger_is_packed_and_reads_the_same(path: Path) -> None:
    with opened(path) as store:
        mine = ledger(store)
        for n in range(120):
            mine.add(0.0, lambda _, n=n: said(n, text="x" * 1000))  # type: ignore[misc]  # mypy cannot infer it
        branch = store.reader.ledger(found(store))
        assert branch is not None
        loose, size = store.reader.tail(branch.no)

        assert loose > branch.no << 32 | 2
        assert size < PACK_BYTES
        assert list(range(120)) == [int(key[0]) for key in ledger(store).read().words]
        assert [] == verify(store, deep=True).findings


def test_a_word_raised_inside_writes_nothing(path: Path) -> None:
    def refuse(_: Standing) -> Said | None:
        raise ZeroDivisionError

    with opened(path) as store:
        with pytest.raises(ZeroDivisionError):
            ledger(store).add(0.0, refuse)

        assert {} == ledger(store).read().words


def test_a_ledger_that_cannot_be_written_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "ATTEMPTS_MAX", 3)
    with opened(path) as store:
        mine = ledger(store)
        mine.add(0.0, lambda _: said(1))
        monkeypatch.setattr(mine, "_append", lambda _: False)

        with pytest.raises(Damaged, match="nothing can be appended"):
            mine.add(0.0, lambda _: said(2))


def test_it_travels_with_its_run_and_its_words_stay_where_they_were_said(
    path: Path, tmp_path: Path
) -> None:
    with opened(path) as store, opened(tmp_path / "other") as other:
        ledger(store).add(0.0, lambda _: said(1))
        moved = transfer.admit(other, transfer.collect(store, found(store)))

        assert ["ann"] == [
            each.by for each in Ledger(other.committer, other.reader, moved).read().words.values()
        ]
        assert [] == verify(other, deep=True).findings
