"""A critical section that is left by an error leaves nothing behind that can be taken back."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

import holdfast
from holdfast.model.journal import Aborted, Saved, Undone
from tests.engine.kit import RUN, Stage, World, moments


class Bank:
    """A world that can be changed back: what was moved, by idempotency key."""

    def __init__(self) -> None:
        self.moved: dict[str, int] = {}
        self.log: list[str] = []
        self.is_closed = False

    def move(self, amount: int, idempotency_key: str) -> str:
        self.log.append(f"move {amount}")
        self.moved[idempotency_key] = amount
        return f"moved {amount}"

    def back(self, outcome: str, amount: int) -> None:
        self.log.append(f"back {amount} ({outcome})")
        if self.is_closed:
            raise holdfast.NotDone("the bank is closed")
        for key, moved in list(self.moved.items()):
            if moved == amount:
                del self.moved[key]


def fail() -> NoReturn:
    raise ZeroDivisionError("the books do not balance")


def effects(bank: Bank) -> tuple[Any, Any, Any]:
    """An effect that can be undone, one that can be offset, one that stands for good."""

    @holdfast.effect(undo=bank.back, key="amount")
    def move(amount: int, idempotency_key: str = "") -> str:
        return bank.move(amount, idempotency_key)

    @holdfast.effect(offset=lambda _outcome, to: bank.log.append(f"sorry {to}"), key="to")
    def mail(to: str) -> str:
        bank.log.append(f"mail {to}")
        return "sent"

    @holdfast.effect(key="what")
    def shout(what: str) -> str:
        bank.log.append(f"shout {what}")
        return "heard"

    return move, mail, shout


def test_a_section_that_ends_well_is_saved_before_and_nothing_else(stage: Stage) -> None:
    bank = Bank()
    move, _, _ = effects(bank)

    @holdfast.agent
    def mover(run: holdfast.Run) -> str:
        for _ in run.turns():
            with run.critical("transfer") as section:
                done = move(5)
            assert [] == section.effects
            return str(done)
        return ""

    assert "moved 5" == stage.live(mover)
    saved = [entry for entry in stage.journal() if isinstance(entry, Saved)]
    assert ["transfer"] == [entry.mark.label for entry in saved]
    assert ["move 5"] == bank.log


def test_an_error_takes_back_what_can_be_and_lists_the_rest_newest_first(stage: Stage) -> None:
    bank = Bank()
    move, mail, shout = effects(bank)

    notes: list[str] = []

    @holdfast.agent
    def mover(run: holdfast.Run) -> list[tuple[str, str]]:
        run.state["moves"] = ["none"]
        for _ in run.turns():
            section = run.critical("transfer")
            try:
                with section:
                    run.state["moves"].append(move(5))
                    run.state["more"] = mail("ann")
                    shout("done")
                    fail()
            except ZeroDivisionError as error:
                notes.append(f"{error.__notes__[0]}; {holdfast.plain(run.state)}")
                return [
                    (each.effect.partition("(")[0].rpartition(".")[2], each.how)
                    for each in section.effects
                ]
        return []

    told = stage.live(mover)

    assert [
        "transfer was aborted; its effects: 1 impossible, 1 offset, 1 undone; {'moves': ['none']}"
    ] == notes
    assert [("shout", "impossible"), ("mail", "offset"), ("move", "undone")] == told
    assert ["move 5", "mail ann", "shout done", "sorry ann", "back 5 (moved 5)"] == bank.log
    assert {} == bank.moved


def test_an_undo_that_fails_is_listed_and_the_rest_goes_on(stage: Stage) -> None:
    bank = Bank()
    bank.is_closed = True
    move, mail, _ = effects(bank)

    @holdfast.agent
    def mover(run: holdfast.Run) -> list[str]:
        section = run.critical()
        try:
            with section:
                mail("ann")
                move(5)
                fail()
        except ZeroDivisionError:
            return [f"{each.how}: {each.why}" for each in section.effects]

    assert ["impossible: the bank is closed", "offset: "] == stage.live(mover)


def test_what_was_taken_back_can_be_done_again(stage: Stage) -> None:
    bank = Bank()
    move, _, _ = effects(bank)

    @holdfast.agent
    def mover(run: holdfast.Run) -> str:
        for _ in run.turns():
            try:
                with run.critical():
                    move(5)
                    fail()
            except ZeroDivisionError:
                return str(move(5))
        return ""

    assert "moved 5" == stage.live(mover)
    assert ["move 5", "back 5 (moved 5)", "move 5"] == bank.log
    assert 1 == len(bank.moved)


def test_a_crash_inside_a_section_is_no_abort(stage: Stage, world: World) -> None:
    bank = Bank()
    move, _, _ = effects(bank)

    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def mover(run: holdfast.Run) -> list[str]:
        for _ in run.turns():
            with run.critical():
                return [move(5), think("on")]
        return []

    world.dies_at = "on"
    stage.die(mover)
    world.dies_at = None

    assert ["moved 5", "on#2"] == stage.live(mover)
    assert ["move 5"] == bank.log


def test_a_section_may_wait_for_a_person(stage: Stage) -> None:
    bank = Bank()
    move, _, _ = effects(bank)

    @holdfast.agent
    def mover(run: holdfast.Run) -> list[object]:
        for _ in run.turns():
            with run.critical():
                return [move(5), run.ask("Go on?")]
        return []

    assert isinstance(stage.fault(mover), holdfast.Waiting)
    with stage.open() as store:
        store.answer("run-1", "yes")
    assert ["moved 5", "yes"] == stage.live(mover)
    assert ["move 5"] == bank.log


@pytest.mark.parametrize(("failing", "expected"), [("fork", "[] ['kept']"), (RUN, "['kept'] []")])
def test_what_another_line_of_history_did_or_took_over_is_kept(
    stage: Stage, failing: str, expected: str
) -> None:
    """An abort in a fork does not take back what its parent did, nor the other way round."""
    bank = Bank()
    move, _, _ = effects(bank)
    found: dict[str, list[str]] = {}

    def fork() -> None:
        """Made while the parent is inside, and run to its end."""
        with stage.open() as store:
            store.fork(RUN, at=0, new_id="fork")
        beside = threading.Thread(target=lambda: stage.live(mover, id="fork"))
        beside.start()
        beside.join()

    @holdfast.agent
    def mover(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 1:
                with contextlib.suppress(ZeroDivisionError), run.critical("transfer") as section:
                    move(5)
                    if run.id == RUN:
                        run.call(fork)
                    if run.id == failing:
                        fail()
                found[run.id] = [taken.how for taken in section.effects]
                return

    stage.live(mover)

    assert expected == f"{found[RUN]} {found['fork']}"
    assert ["move 5"] == bank.log


def share_parts(state: dict[str, Any]) -> None:
    state["b"] = state["a"]
    state["d"] = state["c"]["in"]
    state["c"]["in"].append(4)


def reorder_parts(state: dict[str, Any]) -> None:
    state["a"] = state.pop("a")
    state["c"]["x"] = state["c"].pop("x")


def move_parts(state: dict[str, Any]) -> None:
    state["e"] = [state.pop("d"), state["c"].pop("in")]
    state["e"][0]["n"] = 5
    state["log"][0], state["log"][1] = state["log"][1], state["log"][0]
    state["log"][0]["n"] = 6


@pytest.mark.parametrize("change", [share_parts, reorder_parts, move_parts])
def test_an_abort_puts_the_state_back_whatever_was_shared_moved_or_reordered(
    stage: Stage, change: Callable[[Any], None]
) -> None:
    @holdfast.agent
    def changer(run: holdfast.Run) -> str:
        twice = [9]
        run.state.update(a=[1], b=[2], c={"x": 1, "in": [3]}, d={"n": [0]}, one=twice, two=twice)
        run.state["log"] = [{"n": 1}, {"n": 2}]
        for _ in run.turns():
            a, before = run.state["a"], repr(holdfast.plain(run.state))
            with contextlib.suppress(ZeroDivisionError), run.critical("changes"):
                change(run.state)
                run.state["two"] = [8]
                fail()
            assert before == repr(holdfast.plain(run.state))
            assert a is run.state["a"]
            assert run.state["one"] is run.state["two"]
            return before
        return ""

    before = stage.live(changer)
    with stage.open() as store:
        assert before == repr(store.restore(RUN)[1])


def test_an_abort_that_nobody_catches_ends_the_run_with_its_error(stage: Stage) -> None:
    bank = Bank()
    move, _, _ = effects(bank)

    @holdfast.agent
    def mover(run: holdfast.Run) -> None:
        for _ in run.turns():
            with run.critical():
                move(5)
                fail()

    error = stage.fault(mover)
    assert isinstance(error.__cause__, ZeroDivisionError)
    with pytest.raises(holdfast.RunFailed, match="ZeroDivisionError"):
        stage.restart(mover)
    assert ["move 5", "back 5 (moved 5)"] == bank.log


def test_a_killed_abort_goes_on_and_takes_nothing_back_twice(stage: Stage, world: World) -> None:
    bank = Bank()
    move, mail, _ = effects(bank)

    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def mover(run: holdfast.Run) -> list[str]:
        run.state["seen"] = []
        for _ in run.turns():
            try:
                with run.critical("both"):
                    run.state["seen"].append(think("before"))
                    move(5)
                    mail("ann")
                    fail()
            except ZeroDivisionError:
                run.state["seen"].append(think("before"))
                return list(holdfast.plain(run.state["seen"]))
        return []

    copies = list(moments(stage, mover, outside=lambda: list(bank.log)))
    begun = [name for name, _, _ in copies].index("critical.aborting")

    unknown = set()
    for name, copy, before in copies[begun:]:
        bank.log[:] = before
        seen = copy.live(mover)

        entries = copy.journal()
        taken = [entry.how for entry in entries if isinstance(entry, Undone)]
        assert 1 == len(seen), name
        assert 1 == sum(isinstance(entry, Aborted) for entry in entries), name
        assert [] == [each for each in set(bank.log) if bank.log.count(each) > 1], name
        assert 2 == len(taken), name
        if "unknown" in taken:
            unknown.add(name)
        else:
            assert ["offset", "undone"] == taken, name
            assert ["move 5", "mail ann", "sorry ann", "back 5 (moved 5)"] == bank.log, name
    assert {"undo.calling", "undo.called"} <= unknown  # Cut off there, nobody can tell.
    assert "critical.aborted" not in unknown


def test_an_error_of_ones_own_comes_back_as_itself_where_it_is_named(
    stage: Stage, world: World
) -> None:
    class Unbalanced(Exception):
        """The books do not balance."""

    def unbalanced() -> NoReturn:
        raise Unbalanced("by 5")

    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def mover(run: holdfast.Run) -> str:
        for _ in run.turns():
            try:
                with run.critical(raises=[Unbalanced]):
                    unbalanced()
            except Unbalanced as error:
                return think(str(error))
        return ""

    world.dies_at = "by 5"
    stage.die(mover)
    world.dies_at = None

    assert "by 5#2" == stage.live(mover)


def test_a_section_inside_another_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def mover(run: holdfast.Run) -> None:
        with run.critical(), run.critical():
            pass

    assert "does not stand inside another" in str(stage.fault(mover))


def test_a_section_inside_a_step_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def mover(run: holdfast.Run) -> None:
        run.call(run.critical().__enter__)

    assert isinstance(stage.fault(mover), holdfast.NestedCall)


def test_a_name_that_is_none_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def mover(run: holdfast.Run) -> None:
        run.critical("")

    assert "a critical section's name" in str(stage.fault(mover))


def test_an_async_agent_has_sections_too(stage: Stage) -> None:
    bank = Bank()

    @holdfast.effect(undo=bank.back, key="amount")
    async def move(amount: int, idempotency_key: str = "") -> str:
        return bank.move(amount, idempotency_key)

    @holdfast.agent
    async def mover(run: holdfast.Run) -> list[str]:
        section = run.critical()
        try:
            with section:
                await move(5)
                fail()
        except ZeroDivisionError:
            return [each.how for each in section.effects]

    assert ["undone"] == stage.live(mover)


def test_a_crash_of_the_world_while_undoing_is_unknown_and_said(stage: Stage) -> None:
    bank = Bank()

    def fails(outcome: str, amount: int) -> None:
        raise TimeoutError(f"{outcome} {amount}")

    @holdfast.effect(undo=fails, key="amount")
    def move(amount: int, idempotency_key: str = "") -> str:
        return bank.move(amount, idempotency_key)

    @holdfast.agent
    def mover(run: holdfast.Run) -> list[str]:
        section = run.critical()
        try:
            with section:
                move(5)
                fail()
        except ZeroDivisionError:
            return [each.how for each in section.effects]

    assert ["unknown"] == stage.live(mover)
