"""A budget: gross, shared, exact, refused when it would be passed, and never given back."""

import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

import holdfast
from holdfast.model.ledger import Spent
from holdfast.policy.standing import Standing
from holdfast.store.ledger import Ledger
from tests.engine.kit import RUN, Stage, World, moments


def balances(stage: Stage, id_: str = RUN) -> list[tuple[str, str, str]]:
    with stage.open() as store:
        return [(each.name, str(each.spent), str(each.limit)) for each in store.budgets(id_)]


def test_what_is_spent_is_counted_and_what_is_left_is_told(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> list[object]:
        tokens, usd = run.budget("tokens", 1000), run.budget("usd", 0.3)
        return [tokens.left, tokens.spend(700), usd.spend(0.1), usd.spend(0.2), usd.left]

    assert [1000, 300, 0.2, 0.0, 0.0] == stage.live(spender)
    assert [("tokens", "700", "1000"), ("usd", "0.3", "0.3")] == balances(stage)


def test_numbers_come_back_as_the_limit_was_given(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> list[object]:
        return [
            run.budget("a", 5).spend(2),
            run.budget("b", 5.0).spend(2),
            run.budget("c", Decimal("5.00")).spend(Decimal("0.01")),
        ]

    told = stage.live(spender)

    assert [3, 3.0, Decimal("4.99")] == told
    assert [int, float, Decimal] == [type(each) for each in told]


def test_what_would_pass_the_limit_is_refused_and_the_agent_may_go_on(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def spender(run: holdfast.Run) -> str:
        budget = run.budget("usd", 10)
        for _ in run.turns():
            budget.spend(8)
            try:
                budget.spend(3, what="the large model")
            except holdfast.BudgetSpent as error:
                return think(f"cheaper: {error.left} left of {error.amount}")
        return ""

    world.dies_at = "cheaper: 2 left of 3"
    stage.die(spender)
    world.dies_at = None

    assert "cheaper: 2 left of 3#2" == stage.live(spender)
    assert [("usd", "8", "10")] == balances(stage)


def test_a_budget_that_nobody_minds_ends_the_run_until_its_limit_is_raised(stage: Stage) -> None:
    limit = [10]

    @holdfast.agent
    def spender(run: holdfast.Run) -> object:
        for turn in run.turns():
            left = run.budget("usd", limit[0]).spend(4)
            if turn == 2:
                return left
        return None

    error = stage.fault(spender)
    assert isinstance(error.__cause__, holdfast.BudgetSpent)
    assert "budget usd has 2 left and 4 is to be spent" in str(error)
    limit[0] = 20

    assert 8 == stage.restart(spender)
    assert [("usd", "12", "20")] == balances(stage)


def test_what_is_spent_already_counts_even_past_the_limit(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> list[str]:
        tokens = run.budget("tokens", 100)
        for _ in run.turns():
            said = []
            for amount in (60, 70, 1):
                try:
                    said.append(f"{tokens.spend(amount, done=True)} left")
                except holdfast.BudgetSpent as error:
                    said.append(f"refused with {error.left} left")
            return said
        return []

    assert ["40 left", "refused with 40 left", "refused with 0 left"] == stage.live(spender)
    assert [("tokens", "131", "100")] == balances(stage)


def test_an_interrupted_run_spends_once(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> list[object]:
        for turn in run.turns():
            run.state.setdefault("left", []).append(run.budget("usd", 10).spend(2))
            if turn == 2:
                return list(holdfast.plain(run.state["left"]))
        return []

    copies = list(moments(stage, spender, outside=lambda: None))

    assert len(copies) > 20
    for name, copy, _ in copies:
        assert [8, 6, 4] == copy.live(spender), name
        assert [("usd", "6", "10")] == balances(copy), name


def test_a_turn_run_anew_spends_anew_for_the_budget_is_gross(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> object:
        for _ in run.turns():
            run.budget("usd", 10).spend(6)
            return run.ask("Well?")
        return None

    assert isinstance(stage.fault(spender), holdfast.Waiting)

    with pytest.raises(holdfast.RunFailed, match="has 4 left and 6 is to be spent"):
        stage.restart(spender, redo_turn=True)
    assert [("usd", "6", "10")] == balances(stage)


def test_threads_and_tasks_that_spend_at_once_never_pass_the_limit(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> int:
        budget = run.budget("usd", 10)

        def spend(n: int) -> bool:
            try:
                budget.spend(3, what=f"part {n}")
            except holdfast.BudgetSpent:
                return False
            return True

        for _ in run.turns():
            with ThreadPoolExecutor(8) as pool:
                return sum(pool.map(run.wrap(spend), range(8)))
        return 0

    assert 3 == stage.live(spender)
    assert [("usd", "9", "10")] == balances(stage)


def test_processes_that_share_a_ledger_never_pass_the_limit_together(stage: Stage) -> None:
    @holdfast.agent
    def idle(run: holdfast.Run) -> str:
        return run.id

    stage.live(idle)
    spent = []
    gate = threading.Barrier(4)

    def spend(name: str) -> None:
        with stage.open() as store:
            opened = store._opened  # noqa: SLF001 as a fork in another process would
            run = opened.reader.find(RUN)
            assert run is not None
            ledger = Ledger(opened.committer, opened.reader, run)
            gate.wait()
            for n in range(10):

                def make(standing: Standing, n: int = n) -> Spent | None:
                    total = standing.spent("usd") + 1
                    if total > 25:
                        return None
                    id_ = f"{name}-{n}".encode()
                    return Spent(id_, "usd", name, "1", str(total), "25", None, 0.0)

                ledger.add(0.0, make)
            spent.append(name)

    people = [threading.Thread(target=spend, args=(f"p{n}",)) for n in range(4)]
    for each in people:
        each.start()
    for each in people:
        each.join()

    assert 4 == len(spent)
    assert [("usd", "25", "25")] == balances(stage)


def test_what_is_left_is_recorded_as_it_was_read(stage: Stage, world: World) -> None:
    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def spender(run: holdfast.Run) -> str:
        budget = run.budget("usd", 10)
        for _ in run.turns():
            before = budget.left
            budget.spend(4)
            return think(f"{before} then {budget.left}")
        return ""

    world.dies_at = "10 then 6"
    stage.die(spender)
    world.dies_at = None

    assert "10 then 6#2" == stage.live(spender)


def test_another_run_has_a_budget_of_its_own(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> object:
        return run.budget("usd", 10).spend(6)

    assert [4, 4] == [stage.live(spender, id="one"), stage.live(spender, id="two")]


@pytest.mark.parametrize(
    ("name", "limit", "amount", "why"),
    [
        ("", 1, 1, "a budget's name"),
        ("x" * 101, 1, 1, "a budget's name"),
        ("usd", -1, 1, "finite number from 0"),
        ("usd", True, 1, "not bool"),
        ("usd", "10", 1, "not str"),
        ("usd", float("inf"), 1, "finite number"),
        ("usd", 10.0, -0.5, "nothing is given back"),
        ("usd", 10.0, float("nan"), "finite number"),
        ("usd", 10, 0.5, "counts whole numbers"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    stage: Stage,
    name: str,
    limit: Any,  # noqa: ANN401 also wrong ones
    amount: Any,  # noqa: ANN401 see above
    why: str,
) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> object:
        return run.budget(name, limit).spend(amount)

    error = stage.fault(spender)

    assert isinstance(error, holdfast.UsageError)
    assert why in str(error)


def test_a_step_does_not_spend(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> object:
        return run.call(run.budget("usd", 10).spend, 1)

    assert isinstance(stage.fault(spender), holdfast.NestedCall)


def test_a_fork_shares_the_budget_of_its_lineage(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> list[object]:
        budget = run.budget("usd", 10)
        for turn in run.turns():
            run.state.setdefault("left", []).append(budget.spend(4))
            if turn == 1:
                return list(holdfast.plain(run.state["left"]))
        return []

    assert [6, 2] == stage.live(spender)
    with stage.open() as store:
        store.fork(RUN, at=f"{RUN}@0", new_id="fork")

    error = stage.fault(spender, id="fork")

    assert "has 2 left and 4 is to be spent" in str(error)
    assert [("usd", "8", "10")] == balances(stage) == balances(stage, "fork")


def test_a_rollback_gives_nothing_back(stage: Stage) -> None:
    @holdfast.agent
    def spender(run: holdfast.Run) -> object:
        budget = run.budget("usd", 10)
        for turn in run.turns():
            left = budget.spend(4)
            if turn == 1:
                return run.ask(f"{left} left; go on?")
        return None

    assert isinstance(stage.fault(spender), holdfast.Waiting)
    with stage.open() as store:
        store.plan_rollback(RUN, to=f"{RUN}@0").apply()

    assert "has 2 left and 4 is to be spent" in str(stage.fault(spender))
    assert [("usd", "8", "10")] == balances(stage)
