"""A child is a run of its own whose end its parent records; a crash of either loses nothing."""

import asyncio
import threading
import time
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from holdfast.model.ids import RUN_ID_CHARS_MAX
from holdfast.model.journal import Kept, Spawned
from tests.engine.kit import RUN, Crash, Stage, World, moments, reaching


class Team:
    """A parent and its children, which ask a world."""

    def __init__(self, world: World, *, kids: int = 3, limit: int = 0) -> None:
        self.world, self.kids, self.limit = world, kids, limit

        @holdfast.step
        def ask(what: str) -> str:
            return world.ask(what)

        @holdfast.agent
        def kid(run: holdfast.Run, n: int) -> str:
            run.state["said"] = []
            for turn in run.turns():
                run.state["said"].append(ask(f"kid {n} turn {turn}"))
                if turn == 1:
                    break
            return "+".join(run.state["said"])

        @holdfast.agent
        def parent(run: holdfast.Run) -> list[str]:
            first = ask("parent")
            if self.limit:
                return [first, *run.children([(kid, n) for n in range(kids)], limit=self.limit)]
            return [first, *(run.child(kid, n) for n in range(kids))]

        self.parent, self.kid = parent, kid

    def expected(self) -> list[str]:
        return ["parent", *(f"kid {n} turn 0+kid {n} turn 1" for n in range(self.kids))]


def plain(result: list[str]) -> list[str]:
    """Without how often each was asked."""
    return ["+".join(part.split("#")[0] for part in each.split("+")) for each in result]


def ids(stage: Stage) -> list[str]:
    return [entry.id for entry in stage.journal() if isinstance(entry, Spawned)]


def test_a_child_is_a_run_of_its_own_that_knows_its_parent(stage: Stage, world: World) -> None:
    team = Team(world, kids=2)

    assert team.expected() == plain(stage.live(team.parent))

    with stage.open() as store:
        kids = [store.get(id_) for id_ in ids(stage)]
        assert [RUN, RUN] == [kid.origin.run for kid in kids if kid.origin]
        assert ["finished", "finished"] == [kid.status for kid in kids]
        assert [1, 1] == [len(store.checkpoints(kid.id, every_turn=True)) - 1 for kid in kids]
        assert all(kid.id.startswith(f"{RUN}.kid-") for kid in kids)


def test_the_end_of_a_child_is_a_checkpoint_of_its_parent(stage: Stage, world: World) -> None:
    stage.live(Team(world, kids=2).parent)

    assert ["on_child", "on_child"] == [e.why for e in stage.journal() if isinstance(e, Kept)]


@pytest.mark.parametrize("limit", [0, 2])
def test_killed_at_any_moment_no_answer_of_parent_or_child_is_asked_again(
    stage: Stage, world: World, limit: int
) -> None:
    team = Team(world, kids=2, limit=limit)
    taken = list(moments(stage, team.parent, outside=lambda: list(world.asked)))

    assert {"child.beginning", "child.begun", "child.recording", "child.recorded"} <= {
        name for name, _, _ in taken
    }
    for name, moment, before in taken:
        again = World()
        survivor = Team(again, kids=2, limit=limit)
        assert survivor.expected() == plain(moment.live(survivor.parent)), name
        # What was under way in the moment of the kill may be asked again.
        assert len(set(before) & set(again.asked)) <= 1 + limit, name
        assert len({*before, *again.asked}) == 5, name


@pytest.mark.parametrize("dies_at", ["kid 0 turn 1", "kid 1 turn 0", "kid 2 turn 1"])
def test_a_parent_whose_child_crashed_goes_on_with_that_child(
    stage: Stage, world: World, dies_at: str
) -> None:
    team = Team(world)
    world.dies_at = dies_at
    stage.die(team.parent)
    world.dies_at = None

    assert team.expected() == plain(stage.live(team.parent))
    assert [dies_at] == world.repeated


def test_many_children_work_at_once_but_no_more_than_the_limit(stage: Stage) -> None:
    at_work: list[int] = []
    now = 0
    lock = threading.Lock()

    @holdfast.step
    def work(n: int) -> int:
        nonlocal now
        with lock:
            now += 1
            at_work.append(now)
        time.sleep(0.05)
        with lock:
            now -= 1
        return n * n

    @holdfast.agent
    def kid(_run: holdfast.Run, n: int) -> int:
        return work(n)

    @holdfast.agent
    def parent(run: holdfast.Run) -> list[int]:
        found: list[int] = run.children([(kid, n) for n in range(12)], limit=4)
        return found

    assert [n * n for n in range(12)] == stage.live(parent)
    assert 2 <= max(at_work) <= 4


def test_asynchronous_parents_await_their_children(stage: Stage) -> None:
    @holdfast.step
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    @holdfast.agent
    async def kid(_run: holdfast.Run, n: int) -> int:
        return await work(n)

    @holdfast.agent
    def sync_kid(run: holdfast.Run, n: int) -> int:
        return int(run.call(lambda n: n + 10, n))

    @holdfast.agent
    async def parent(run: holdfast.Run) -> list[int]:
        one = await run.child(kid, 1)
        many = await run.children([(kid, 2), (sync_kid, 3)], limit=2)
        both = await asyncio.gather(run.child(kid, 4), run.child(kid, 5))
        return [one, *many, *both]

    assert [2, 3, 13, 5, 6] == stage.live(parent)


def test_a_failure_of_a_child_is_what_came_of_it_and_stays_so(stage: Stage) -> None:
    lives: list[str] = []
    tried: list[int] = []

    @holdfast.agent
    def kid(_run: holdfast.Run) -> None:
        tried.append(1)
        raise KeyError("missing")

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        try:
            run.child(kid, id="kid")
        except holdfast.ChildFailed as error:
            lives.append(error.error)
        said = run.call("-".join, ["went", "on"])
        if len(lives) == 1:
            raise Crash
        return str(said)

    stage.die(parent)
    assert "went-on" == stage.live(parent)

    assert ["KeyError: 'missing'"] * 2 == lives
    assert [1] == tried
    assert "failed" == stage.info("kid").status


def test_a_failed_parent_that_is_restarted_tries_its_failed_child_again(stage: Stage) -> None:
    faults = [KeyError("missing")]

    @holdfast.agent
    def kid(_run: holdfast.Run) -> str:
        if faults:
            raise faults.pop()
        return "mended"

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        return run.child(kid)

    error = stage.fault(parent)

    assert isinstance(error.__cause__, holdfast.ChildFailed)
    assert "mended" == stage.restart(parent)


def test_what_policy_would_restart_is_restarted_in_place(stage: Stage) -> None:
    faults = [ConnectionResetError("cut"), ConnectionResetError("again")]

    @holdfast.agent
    def kid(_run: holdfast.Run) -> str:
        if faults:
            raise faults.pop()
        return "there"

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        return run.child(kid, id="kid")

    with stage.open() as store:
        decision = None
        try:
            result = store.run(parent, id=RUN)
        except holdfast.RunFailed as error:
            result, decision = str(error), store.decide("kid")

    assert ("there", None) == (result, decision)
    assert stage.info("kid").epoch > 1


def test_a_child_is_restarted_also_if_what_is_pending_is_flushed_as_it_fails(stage: Stage) -> None:
    lives: list[holdfast.Run] = []

    @holdfast.agent
    def kid(run: holdfast.Run) -> str:
        lives.append(run)
        if len(lives) == 1:
            raise ConnectionResetError
        return "there"

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        return run.child(kid, id="kid")

    def flush(name: str) -> None:
        if name == "run.failing":
            lives[-1]._session.flush()  # noqa: SLF001 as the housekeeper may at any moment

    with reaching(flush):
        assert "there" == stage.live(parent)


def test_errors_may_stand_among_the_results(stage: Stage) -> None:
    @holdfast.agent
    def kid(_run: holdfast.Run, n: int) -> int:
        if n == 1:
            raise KeyError(n)
        return n

    @holdfast.agent
    def parent(run: holdfast.Run, quiet: bool) -> list[Any]:
        calls = [(kid, n) for n in range(3)]
        found = run.children(calls, return_errors=quiet)
        return [each if isinstance(each, int) else type(each).__name__ for each in found]

    assert [0, "ChildFailed", 2] == stage.live(parent, quiet=True)
    error = stage.fault(parent, quiet=False, id="loud")
    assert isinstance(error.__cause__, holdfast.ChildFailed)


def test_a_child_that_waits_for_a_person_lets_its_parent_wait(stage: Stage) -> None:
    @holdfast.agent
    def kid(run: holdfast.Run) -> str:
        return str(run.ask("go on?"))

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        return f"kid says {run.child(kid, id='kid')}"

    error = stage.fault(parent)

    assert isinstance(error, holdfast.Waiting)
    assert ("waiting", "waiting") == (stage.info().status, stage.info("kid").status)
    with stage.open() as store:
        [item] = store.inbox()
        store.answer(item.id, "yes")
        assert "kid says yes" == store.run(parent, id=RUN)


def test_a_fork_of_a_parent_whose_child_is_under_way_begins_its_own(stage: Stage) -> None:
    @holdfast.agent
    def child(run: holdfast.Run) -> object:
        return run.ask("Well?")

    @holdfast.agent
    def parent(run: holdfast.Run) -> object:
        for turn in run.turns():
            if turn == 1:
                return run.child(child)
        raise AssertionError

    assert isinstance(stage.fault(parent), holdfast.Waiting)
    with stage.open() as store:
        store.fork(RUN, new_id="fork")
    waits = stage.fault(parent, id="fork")
    assert isinstance(waits, holdfast.Waiting)

    with stage.open() as store:
        assert 2 == len(store.inbox())
        store.fork(RUN, new_id="gone")
        store.cancel("gone")
        store.answer(waits.question, "for the fork")
        assert "for the fork" == store.restart("fork", agent=parent)
        [left] = store.inbox()
        store.answer(left.id, "for the run")
        assert "for the run" == store.restart(RUN, agent=parent)


def test_an_effect_in_doubt_in_a_child_stops_the_parent_too(stage: Stage) -> None:
    @holdfast.effect
    def pay() -> None:
        raise ConnectionResetError

    @holdfast.agent
    def kid(_run: holdfast.Run) -> None:
        pay()

    @holdfast.agent
    def parent(run: holdfast.Run) -> None:
        run.child(kid, id="kid")

    error = stage.fault(parent)

    assert isinstance(error, holdfast.InDoubt)
    assert "run kid" in str(error)
    assert ("in doubt", "in doubt") == (stage.info().status, stage.info("kid").status)


def test_cancelling_a_parent_cancels_its_children(stage: Stage, world: World) -> None:
    team = Team(world)
    world.dies_at = "kid 1 turn 1"
    stage.die(team.parent)

    with stage.open() as store:
        store.cancel(RUN)
        statuses = [str(store.get(id_).status) for id_ in (RUN, *ids(stage))]

    assert ["cancelled", "finished", "cancelled"] == statuses


def test_a_child_that_ends_while_its_parent_is_cancelled_keeps_none_of_its_siblings(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def ask(n: int) -> int:
        if len(world.asked) < 3:
            world.asked.append(str(n))
            raise Crash
        return n

    @holdfast.agent
    def kid(run: holdfast.Run, n: int) -> int:  # noqa: ARG001 an agent takes it
        return ask(n)

    @holdfast.agent
    def parent(run: holdfast.Run) -> list[int]:
        return list(run.children([(kid, n) for n in range(3)], limit=3))

    stage.die(parent)
    taken: list[str] = []

    def taking() -> None:
        taken.append("parent" if not taken else "kid")
        if len(taken) == 2:  # The first child, when all of them were looked for.
            with stage.open() as other:
                other.restart(ids(stage)[1], agent=kid)

    failpoint.arm("run.taken", taking)
    with stage.open() as store:
        store.cancel(RUN)
        statuses = [str(store.get(id_).status) for id_ in (RUN, *ids(stage))]

    assert ["cancelled", "cancelled", "finished", "cancelled"] == statuses


def test_cancelling_a_parent_at_work_stops_it_and_its_child(stage: Stage) -> None:
    def wait() -> None:
        with stage.open() as other:
            other.cancel(RUN)

    def nap() -> None:
        time.sleep(0.05)

    @holdfast.agent
    def kid(run: holdfast.Run) -> None:
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        until = time.monotonic() + 30
        while time.monotonic() < until:
            run.call(nap)

    @holdfast.agent
    def parent(run: holdfast.Run) -> None:
        run.child(kid, id="kid")

    error = stage.fault(parent)

    assert isinstance(error, holdfast.Cancelled)
    assert ("cancelled", "cancelled") == (stage.info().status, stage.info("kid").status)


def nap() -> None:
    time.sleep(0.05)


def test_a_revived_parent_goes_on_with_the_children_that_were_cancelled_with_it(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def grandchild(_run: holdfast.Run) -> str:
        return ask("deep")

    @holdfast.agent
    def child(run: holdfast.Run) -> str:
        return run.child(grandchild)

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        return run.child(child)

    world.dies_at = "deep"
    stage.die(parent)
    world.dies_at = None

    with stage.open() as store:
        store.cancel(RUN)
        assert 3 == len(list(store.runs(status="cancelled")))
        assert "deep#2" == store.restart(RUN, agent=parent, revive=True)
        assert [] == list(store.runs(status="cancelled"))


@pytest.mark.parametrize("quick", [False, True])
def test_a_child_that_comes_after_the_cancelling_of_its_parent_is_not_carried_out(
    stage: Stage, *, quick: bool
) -> None:
    """One that waits for its turn is not begun; one that began in between is cancelled too."""

    @holdfast.agent
    def kid(run: holdfast.Run, nth: int) -> None:
        if nth == 0:
            with stage.open() as other:
                other.cancel(RUN)
        until = time.monotonic() + 30
        while time.monotonic() < until and not (quick and nth == 0):
            run.call(nap)

    @holdfast.agent
    def parent(run: holdfast.Run) -> None:
        run.children([(kid, nth) for nth in range(4)], limit=1)

    error = stage.fault(parent)

    assert isinstance(error, holdfast.Cancelled)
    statuses = [str(stage.info(id_).status) for id_ in (RUN, *ids(stage))]
    assert ["cancelled", *(["finished"] if quick else []), "cancelled"] == statuses


class Shop:
    """A parent that lets a child pay; after a rollback it is asked for again, maybe otherwise."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.words = ["first"]
        self.amounts = [5]

        @holdfast.effect(key="order")
        def pay(order: str, amount: int) -> str:
            self.paid.append(f"{order} {amount}")
            return f"paid {len(self.paid)}"

        @holdfast.agent
        def clerk(_run: holdfast.Run, order: str, words: str) -> str:  # noqa: ARG001 another wording
            return pay(order, self.amounts[-1])

        @holdfast.agent(checkpoint=holdfast.every(turns=1))
        def parent(run: holdfast.Run) -> list[str]:
            run.state["paid"] = []
            for turn in run.turns():
                if turn == 1:
                    orders = ["o-1", "o-1"] if self.words[-1] == "twice" else ["o-1"]
                    for order in orders:
                        run.state["paid"].append(run.child(clerk, order, self.words[-1]))
                if turn == 2:
                    break
            return list(run.state["paid"])

        self.parent, self.clerk = parent, clerk

    def roll_back(self, stage: Stage) -> holdfast.RollbackPlan:
        with stage.open() as store:
            plan = store.plan_rollback(RUN, to=f"{RUN}@0")
            plan.apply()
        return plan


def test_the_fence_spans_parent_and_children(stage: Stage) -> None:
    shop = Shop()
    assert ["paid 1"] == stage.live(shop.parent)

    plan = shop.roll_back(stage)
    shop.words.append("another wording")

    assert ["paid 1"] == stage.restart(shop.parent)
    assert ["o-1 5"] == shop.paid
    assert 1 == len(plan.children)
    assert f"child {plan.children[0]}" in str(plan)


def test_the_same_scope_with_another_intent_is_blocked_in_a_new_child(stage: Stage) -> None:
    shop = Shop()
    stage.live(shop.parent)
    shop.roll_back(stage)
    shop.words.append("another wording")
    shop.amounts.append(7)

    with pytest.raises(holdfast.Blocked):
        stage.restart(shop.parent)

    assert ["o-1 5"] == shop.paid


def test_siblings_that_do_the_same_on_purpose_do_it_each(stage: Stage) -> None:
    shop = Shop()
    shop.words.append("twice")

    assert ["paid 1", "paid 2"] == stage.live(shop.parent)

    shop.roll_back(stage)
    assert ["paid 1", "paid 2"] == stage.restart(shop.parent)
    assert ["o-1 5", "o-1 5"] == shop.paid


def test_a_parent_is_kept_as_long_as_a_child_stands_in_its_ledger(stage: Stage) -> None:
    shop = Shop()
    stage.live(shop.parent)

    with stage.open() as store:
        store.gc(holdfast.Retention(runs_last=1))
        left = {run.id for run in store.runs()}

    assert {RUN, *ids(stage)} == left


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda run: run.child(print), "takes an agent, not builtin"),
        (lambda run: run.children([(print,)]), "takes an agent"),
        (lambda run: run.children([], limit=0), "whole number from 1"),
        (lambda run: run.children([print]), r"written \(agent, \*args\), not <built-in"),
        (lambda run: run.children([()]), r"takes calls, .*, not \(\)"),
        (lambda run: run.children("ab"), "takes calls, .*, not 'a'"),
    ],
)
def test_what_is_no_child_is_refused(stage: Stage, wrong: Any, why: str) -> None:  # noqa: ANN401 any call
    @holdfast.agent
    def parent(run: holdfast.Run) -> None:
        wrong(run)

    with pytest.raises(holdfast.UsageError, match=why):
        stage.live(parent)


def test_the_id_of_a_run_that_is_no_child_of_it_is_refused(stage: Stage, world: World) -> None:
    team = Team(world)
    stage.live(team.kid, 7, id="stranger")

    @holdfast.agent
    def parent(run: holdfast.Run) -> None:
        run.child(team.kid, 7, id="stranger")

    with pytest.raises(holdfast.UsageError, match="is no child of run"):
        stage.live(parent)


def test_a_child_that_is_asked_for_under_another_id_is_told_by_its_ids(stage: Stage) -> None:
    ids = ["one", "two"]

    @holdfast.agent
    def kid(run: holdfast.Run, n: int) -> str:  # noqa: ARG001 asked for by the parent
        return run.id

    @holdfast.agent
    def parent(run: holdfast.Run) -> str:
        run.child(kid, 1, id=ids[0])
        raise RuntimeError

    stage.fault(parent)
    ids.reverse()

    with stage.open() as store, pytest.raises(holdfast.Diverged) as caught:
        store.restart(RUN, agent=parent)

    assert "kid(n=1, id='one')" in str(caught.value)
    assert "kid(n=1, id='two')" in str(caught.value)


def test_children_of_children_have_ids_that_fit_however_deep_they_are(stage: Stage) -> None:
    @holdfast.agent
    def dig(run: holdfast.Run, depth: int) -> int:
        return 1 + (run.child(dig, depth - 1) if depth else 0)

    assert 31 == stage.live(dig, 30)

    with stage.open() as store:
        known = [run.id for run in store.runs()]
    assert 31 == len(set(known))
    assert max(map(len, known)) <= RUN_ID_CHARS_MAX


@pytest.mark.parametrize("dies_at", [None, "turn 1"])
def test_what_a_child_changes_is_its_own_killed_or_not(
    stage: Stage, world: World, dies_at: str | None
) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def kid(run: holdfast.Run, words: list[str]) -> int:  # noqa: ARG001 an agent takes one
        words.append("its own")
        return len(words)

    @holdfast.agent
    def parent(run: holdfast.Run) -> list[object]:
        run.state["words"], counts = ["first"], []
        for turn in run.turns():
            counts.append(run.child(kid, run.state["words"]))
            ask(f"turn {turn}")
            if turn == 1:
                break
        return [holdfast.plain(run.state["words"]), counts[-1]]

    world.dies_at = dies_at
    if dies_at is not None:
        stage.die(parent)
        world.dies_at = None

    assert [["first"], 2] == stage.live(parent)


def test_a_child_that_changed_what_it_was_given_is_restarted_in_place(stage: Stage) -> None:
    lives: list[int] = []

    @holdfast.agent
    def kid(run: holdfast.Run, words: list[str]) -> int:  # noqa: ARG001 an agent takes one
        words.append("its own")
        lives.append(len(words))
        if len(lives) == 1:
            msg = "the line is down"
            raise ConnectionError(msg)
        return len(words)

    @holdfast.agent
    def parent(run: holdfast.Run) -> int:
        return int(run.child(kid, ["first"]))

    assert 2 == stage.live(parent)
    assert [2, 2] == lives
