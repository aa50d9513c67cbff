"""Repair of runs with more than one line of history, or with damage in more than one place."""

import sqlite3
import time
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.model.branches import Settled
from holdfast.model.ids import row_id
from holdfast.model.journal import Entry, Happened, Undone
from holdfast.store.keys.local import RootKey
from holdfast.store.reader import Placed
from tests.corruption.scene import small_parts
from tests.corruption.test_offer import newest_object, spoil
from tests.corruption.test_repair import whole

done: list[str] = []


class Crash(BaseException):
    """The process dies here, as far as the run can tell."""


@pytest.fixture(autouse=True)
def _forget() -> None:
    done.clear()


@holdfast.step
def look(turn: int) -> dict[str, Any]:
    return {"turn": turn, "text": f"page {turn}"}


@holdfast.step
def read(turn: int) -> str:
    return f"{turn}" * 66_000


def cancel(_outcome: str, order: str) -> None:
    done.append(f"cancel {order}")


@holdfast.effect(key="order", undo=cancel)
def place(order: str) -> str:
    done.append(f"place {order}")
    return f"placed {order}"


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def buyer(run: holdfast.Run, last: int, end: str = "") -> int:
    run.state["seen"] = []
    for turn in run.turns():
        run.state["seen"].append(look(turn))
        run.state["next"] = look(turn + 1)
        if turn == last and end == "reads":
            read(turn)
            raise Crash
        if turn == last and end == "marks":
            run.checkpoint(label="here")
            raise Crash
        place(f"order {turn}")
        if turn == last:
            if end == "dies":
                raise Crash
            return turn
    raise AssertionError


@holdfast.effect(key="mail")
def send(mail: str) -> str:
    done.append(mail)
    return f"sent {mail}"


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def sender(run: holdfast.Run, last: int) -> int:
    for turn in run.turns():
        look(turn)
        send(f"mail {turn}")
        if turn == last:
            return turn
    raise AssertionError


def holds(path: Path, id_: int, kind: type[Entry]) -> bool:
    """Whether a row is there and holds such an entry."""
    with holdfast.open(path) as store, suppress(holdfast.Damaged):
        row = store._opened.reader.row(id_).row  # noqa: SLF001 what lies beneath the handle
        return any(isinstance(entry, kind) for entry in row.entries)
    return False


def rows(path: Path, run: str) -> list[Placed]:
    with holdfast.open(path) as store:
        reader = store._opened.reader  # noqa: SLF001 what lies beneath the handle
        found = reader.find(run)
        assert found is not None
        return list(reader.back(found.row.head))[::-1]


def place_of(path: Path, run: str, kind: type[Entry], nth: int = 0) -> int:
    """The sequence of the nth row of a run that holds such an entry."""
    found = [
        each.id for each in rows(path, run) if any(isinstance(e, kind) for e in each.row.entries)
    ]
    return found[nth]


def spoil_row(path: Path, id_: int) -> None:
    spoil(path, id_ >> 32, id_ & 0xFFFFFFFF)


@pytest.mark.parametrize("lost", [Undone, Settled])
def test_a_rollback_whose_end_is_damaged_is_repaired_and_undoes_nothing_twice(
    tmp_path: Path, lost: type[Entry]
) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(buyer, 3, id="run")
        store.plan_rollback("run", to=1).apply()
    assert ["cancel order 3", "cancel order 2"] == done[-2:]
    spoil_row(tmp_path, place_of(tmp_path, "run", lost))
    done.clear()

    (fate,) = holdfast.plan_repair(tmp_path).fates
    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    with holdfast.open(tmp_path) as store:
        found = store.get("run")
        waiting = store.inbox()
        assert [0, 1] == [each["turn"] for each in store.restore("run")[1]["seen"]]
        if lost is Undone:
            assert holdfast.Status.FAILED is found.status
            assert all(f"order {n}" in str(found.error) for n in (2, 3))
            told = {f"the undo of place(order='order {n}')" for n in (3, 2)}
            assert told <= set(fate.effects_unsure)
            assert waiting
        else:
            assert holdfast.Status.RUNNING is found.status
    assert [] == done


def test_a_large_answer_that_is_gone_is_not_carried_along(tmp_path: Path) -> None:
    with small_parts(), holdfast.open(tmp_path) as store, suppress(Crash):
        store.run(buyer, 8, "reads", id="run")
    newest_object(tmp_path).unlink()
    spoil_row(tmp_path, row_id(1, 2))

    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    with holdfast.open(tmp_path) as store:
        assert 6 <= len(store.restore("run")[1]["seen"])


def test_an_effect_behind_a_second_gap_is_told_and_not_done_again_silently(tmp_path: Path) -> None:
    with small_parts(), holdfast.open(tmp_path) as store, suppress(Crash):
        store.run(buyer, 8, "dies", id="run")
    assert "place order 8" == done[-1]
    newest = place_of(tmp_path, "run", Happened, -1)
    spoil_row(tmp_path, row_id(1, 2))
    spoil_row(tmp_path, newest - 2)

    (fate,) = holdfast.plan_repair(tmp_path).fates
    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    assert "carried" == fate.act
    assert "place(order='order 8')" in fate.effects_done
    with holdfast.open(tmp_path) as store:
        assert holdfast.Status.FAILED is store.get("run").status


@pytest.mark.parametrize("who", ["rolled back", "forked"])
def test_effects_lost_on_another_line_are_told_and_not_done_again_silently(
    tmp_path: Path, who: str
) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(sender, 4, id="run")
        if who == "forked":
            store.fork("run", at=1, new_id="goes on")
        else:
            store.plan_rollback("run", to=1).apply()
    name = "goes on" if who == "forked" else "run"
    sent = [row_id(1, n) for n in range(40) if holds(tmp_path, row_id(1, n), Happened)]
    spoil_row(tmp_path, sent[3] - 2)

    fates = {fate.run: fate for fate in holdfast.plan_repair(tmp_path).fates}
    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    assert {"send(mail='mail 3')", "send(mail='mail 4')"} <= set(fates[name].effects_done)
    assert "cut" == fates[name].act
    with holdfast.open(tmp_path) as store:
        assert holdfast.Status.FAILED is store.get(name).status
        assert "mail 4" in str(store.get(name).error)
    assert [] == holdfast.plan_repair(tmp_path).fates


def test_a_finished_run_stays_finished_when_another_line_of_it_is_damaged(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(sender, 4, id="run")
        store.plan_rollback("run", to=1).apply()
        assert 4 == store.run(sender, 4, id="run")
    sent = [row_id(1, n) for n in range(40) if holds(tmp_path, row_id(1, n), Happened)]
    spoil_row(tmp_path, sent[3] - 2)

    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    with holdfast.open(tmp_path) as store:
        assert 4 == store.run(sender, 4, id="run")
    assert [f"mail {n}" for n in range(5)] == done


def test_a_checkpoint_restores_though_the_beginning_of_its_life_is_lost(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        for again in (False, True):
            with suppress(Crash):
                if again:
                    store.restart("run", redo_turn=True)
                else:
                    store.run(buyer, 2, "marks", id="run")
        kept = store.checkpoints("run")[-1]
        state = store.restore(kept.id)[1]
    assert (2, "here") == (kept.branch, kept.label)
    with closing(sqlite3.connect(tmp_path / "store.db")) as link:
        ((last,),) = link.execute("SELECT max(id) FROM j WHERE id >> 32 = 1")
    spoil_row(tmp_path, last)

    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    with holdfast.open(tmp_path) as store:
        told, again_state = store.restore(kept.id)
    assert state == again_state
    assert (True, None) == (kept.platform is not None, told.platform)


def dies_and_goes_on(path: Path, how: str = "rolled back", key: RootKey | str = "") -> None:
    """A run whose newest row holds the end of a turn and a large answer, which is lost.

    It goes on from that end, on another branch, and finishes; `how` says on which.
    """
    lives: list[str] = ["first"]

    @holdfast.step
    def draft() -> str:
        return lives[-1] * 20_000

    @holdfast.agent
    def drafter(run: holdfast.Run) -> int:
        for turn in run.turns():
            if turn == 2:
                draft()
            if turn == 2 and lives == ["first"]:
                raise Crash
            place(f"order {turn}")
            if turn == 4:
                return turn
        raise AssertionError

    with holdfast.open(path, key=key) as store, suppress(Crash):
        store.run(drafter, id="run")
    newest_object(path).unlink()  # It lies in the row in which the turn before ends.
    lives.append("second")
    with holdfast.open(path, key=key) as store:
        if how == "forked":
            store.fork("run", at=1, new_id="goes on")
            assert 4 == store.restart("goes on")
            return
        store.plan_rollback("run", to="newest-valid").apply()
        assert 4 == store.run(drafter, id="run")
        if how == "rolled back twice":
            store.plan_rollback("run", to=2).apply()
            assert 4 == store.run(drafter, id="run")


def grown_from(path: Path) -> int:
    """The row that the newest branch grew from."""
    with closing(sqlite3.connect(path / "store.db")) as link:
        ((at,),) = link.execute("SELECT at FROM branch ORDER BY no DESC LIMIT 1")
    return int(at)


def test_effects_of_a_branch_that_grew_from_a_bad_row_are_told_by_what_they_are(
    tmp_path: Path,
) -> None:
    dies_and_goes_on(tmp_path)
    spoil_row(tmp_path, grown_from(tmp_path))

    (fate,) = holdfast.plan_repair(tmp_path).fates
    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    assert [f"place(order='order {n}')" for n in (2, 3, 4)] == fate.effects_done
    assert [] == fate.effects_unsure
    with holdfast.open(tmp_path) as store:
        assert "order 4" in str(store.get("run").error)
        (item,) = store.inbox()
        assert ("escalation", "run", ["dismiss"]) == (item.kind, item.run, item.options)
        assert "these effects were done after what is left: place(order='order 2')" in item.text
        store.answer(item.id, "dismiss")
        assert [] == store.inbox()


@pytest.mark.parametrize("is_sealed", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("how", ["rolled back", "rolled back twice", "forked"])
def test_a_branch_that_grew_before_a_lost_answer_of_the_same_row_is_kept_and_pays_nothing_again(
    tmp_path: Path, how: str, *, is_packed: bool, is_sealed: bool
) -> None:
    key = RootKey(b"k" * 32, "file") if is_sealed else ""
    path, name = tmp_path / "store", "goes on" if how == "forked" else "run"
    with small_parts() if is_packed else nullcontext():
        dies_and_goes_on(path, how, key)
    with holdfast.open(path, key=key) as store:
        points = {each.id: store.restore(each.id)[1] for each in store.checkpoints(name)}
    done.clear()

    fates = {fate.run: fate for fate in holdfast.plan_repair(path, key=key).fates}
    holdfast.plan_repair(path, key=key).apply()

    assert [] == holdfast.plan_repair(path, key=key).findings
    assert name not in fates or ([], []) == (fates[name].effects_done, fates[name].effects_unsure)
    assert "cut" == fates["run"].act  # Rows behind the beginning of the bad one are moved aside.
    with holdfast.open(path, key=key) as store:
        assert points == {each.id: store.restore(each.id)[1] for each in store.checkpoints(name)}
        assert holdfast.Status.FINISHED is store.get(name).status
        assert 4 == store.restart(name)
        assert [] == store.inbox()
        assert [] == done
        if how == "forked":
            assert 4 == store.restart("run")  # The fork has done its effects: they are given.
            assert [] == done


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def librarian(run: holdfast.Run, last: int) -> int:
    for turn in run.turns():
        time.sleep(0.02)  # The test tells the large values apart by when they were written.
        run.state["length"] = len(read(turn))
        place(f"order {turn}")
        if turn == last:
            return turn
    raise AssertionError


def test_of_an_encrypted_run_as_much_is_kept_as_of_another_though_it_lies_in_one_pack(
    tmp_path: Path,
) -> None:
    kept = []
    keys: dict[str, RootKey | str] = {"open": "", "sealed": RootKey(b"k" * 32, "file")}
    for name, key in keys.items():
        path = tmp_path / name
        with holdfast.open(path, key=key) as store:
            store.run(librarian, 6, id="run")
        objects = (path / "objects").glob("??/*")
        sorted(objects, key=lambda file: file.stat().st_mtime_ns)[3].unlink()

        (fate,) = holdfast.plan_repair(path, key=key).fates
        holdfast.plan_repair(path, key=key).apply()

        assert [] == holdfast.plan_repair(path, key=key).findings
        kept.append((fate.act, fate.point, fate.turns_kept, fate.effects_done, fate.effects_unsure))
    assert kept[0] == kept[1]
    assert 3 == kept[0][2]
