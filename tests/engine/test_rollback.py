"""`store.plan_rollback`: shown first, then done; it tells what was undone and what was not."""
# ruff: noqa: ARG001 handlers take what they are given

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import failpoint
from holdfast.clock import SystemClock
from holdfast.engine.parcel import from_bytes, to_bytes
from holdfast.engine.transfer import admit, collect
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from tests.engine.kit import RUN, Crash, Stage

TURNS = 6

world: dict[str, int] = {}
log: list[str] = []
fails: set[str] = set()
calls: dict[int, list[Callable[[], Any]]] = {}
stops_at = -1
hears: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (world, log, fails, calls, hears):
        each.clear()
    monkeypatch.setitem(globals(), "stops_at", -1)


def find(order: str, qty: int) -> dict[str, Any] | None:
    if "probe" in fails:
        raise ConnectionError("no line")
    return {"order": order, "qty": world[order]} if order in world else None


def cancel(outcome: dict[str, Any], order: str, idempotency_key: str = "") -> None:
    log.append(f"cancel {outcome['order']} {idempotency_key[:4]}")
    if "cancel" in fails:
        raise ConnectionError("no line")
    del world[order]
    if "late" in fails:
        raise TimeoutError("no answer")


@holdfast.effect(undo=cancel, probe=find, key="order")
def place(order: str, qty: int) -> dict[str, Any]:
    log.append(f"place {order}")
    world[order] = qty
    if "place" in fails:
        raise Crash
    return {"order": order, "qty": qty}


def refund(outcome: int, order: str) -> None:
    log.append(f"refund {order} {outcome}")
    if "refund" in fails:
        raise holdfast.NotDone("the books are closed")


@holdfast.effect(offset=refund, key="order")
def bill(order: str) -> int:
    log.append(f"bill {order}")
    return 7


@holdfast.effect(key="to")
def mail(to: str) -> str:
    log.append(f"mail {to}")
    if "mail" in fails:
        raise ConnectionError("no line")
    return "sent"


def unpick(outcome: str, item: str) -> None:
    log.append(f"unpick {item}")
    if "unpick" in fails:
        raise ConnectionError("no line")


@holdfast.effect(undo=unpick, key="item")
def pick(item: str) -> str:
    log.append(f"pick {item}")
    return item


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def trader(run: holdfast.Run) -> list[int]:
    run.state.setdefault("memory", {"turns": []})
    run.state.setdefault("plan", "first")
    hears[:] = run.rollbacks
    for turn in run.turns():
        hears[:] = run.rollbacks
        if turn == stops_at:
            raise Crash
        for call in calls.get(turn, []):
            call()
        run.state["memory"]["turns"].append(turn)
        run.state["plan"] = f"plan {turn}"
        if turn == TURNS - 1:
            return list(run.state["memory"]["turns"])
    raise AssertionError


def everything() -> None:
    calls[2] = [lambda: place("a", 1), lambda: bill("b")]
    calls[3] = [lambda: mail("ann"), lambda: place("c", 3)]


def findings(stage: Stage) -> list[Any]:
    opened = open_store(stage.path, SystemClock())
    try:
        return list(verify(opened, deep=True).findings)
    finally:
        opened.close()


def ways(effects: Any) -> dict[str, str]:  # noqa: ANN401 a sequence of effects
    return {each.effect.split("(")[0] + each.effect.split("'")[1]: each.how for each in effects}


def test_a_plan_shows_what_is_lost_and_taken_back_newest_first_and_changes_nothing(
    stage: Stage,
) -> None:
    everything()
    stage.live(trader)
    log.clear()

    with stage.open() as store:
        before = store.get(RUN)
        plan = store.plan_rollback(RUN, to=1)
        assert before == store.get(RUN)

    assert (RUN, 1, TURNS - 2) == (plan.run, plan.turn, plan.turns_lost)
    expected = {"placec": "undo", "mailann": "impossible", "billb": "offset", "placea": "undo"}
    assert list(expected.items()) == list(ways(plan.effects).items())
    assert {"plan", "memory.turns[2]"} <= {change.path for change in plan.changes}
    assert None is plan.cost_usd
    assert [] == log
    text = str(plan)
    assert f"rolls back run {RUN}" in text
    assert "mail(to='ann')" in text
    assert "cannot be undone (it has neither undo= nor offset=)" in text
    assert msgspec.json.encode(plan.as_dict(), enc_hook=str)


def test_a_rollback_takes_effects_back_and_the_run_goes_on_from_there(stage: Stage) -> None:
    everything()
    stage.live(trader)
    log.clear()

    with stage.open() as store:
        rolled = store.plan_rollback(RUN, to=1).apply(reason="wrong quote")
        assert holdfast.Status.RUNNING is store.get(RUN).status
        state = store.restore(RUN)[1]

    assert {"placec": "undone", "mailann": "impossible", "billb": "offset", "placea": "undone"} == (
        ways(rolled.effects)
    )
    assert ["cancel c", "refund b", "cancel a"] == [" ".join(line.split()[:2]) for line in log]
    assert {} == world
    assert [0, 1] == state["memory"]["turns"]
    [note] = state["runtime"]["rollbacks"]
    assert ("wrong quote", ["mail(to='ann')"]) == (note["reason"], note["impossible"])
    assert 2 == len(note["undone"])
    assert [] == findings(stage)

    log.clear()
    assert list(range(TURNS)) == stage.live(trader)
    assert {"a": 1, "c": 3} == world, "what was undone is meant anew"
    assert ["place a", "bill b", "place c"] == log, "what stands is not done again"
    assert ["wrong quote"] == [each["reason"] for each in hears]
    assert [] == findings(stage)


def test_effects_done_anew_have_new_keys(stage: Stage) -> None:
    calls[2] = [lambda: place("a", 1)]
    stage.live(trader)
    with stage.open() as store:
        [first] = store.plan_rollback(RUN, to=1).apply().of("undone")
        store.run(trader, id=RUN)
        [second] = store.plan_rollback(RUN, to=1).apply().of("undone")
        store.run(trader, id=RUN)

    assert first.key != second.key
    cancelled = [line for line in log if line.startswith("cancel")]
    assert 2 == len(set(cancelled)), "each undo has a key of its own"
    assert {"a": 1} == world


def test_the_old_branch_stays_and_can_be_gone_back_to(stage: Stage) -> None:
    everything()
    result = stage.live(trader)
    with stage.open() as store:
        before = store.restore(RUN)[1]
        head = store.get(RUN).branch
        rolled = store.plan_rollback(RUN, to=1).apply()
        assert before == store.restore(rolled.safety or "")[1]
        gone = store.undo_rollback(RUN, reason="it was right")

        info = store.get(RUN)
        assert (holdfast.Status.FINISHED, head) == (info.status, info.branch)
        assert result == store.run(trader, id=RUN)
        assert before == store.restore(RUN)[1]
    assert {"placec": "undone", "billb": "offset", "placea": "undone"} == ways(gone)
    assert [] == findings(stage)


def test_going_back_to_an_unfinished_branch_goes_on_with_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything()
    monkeypatch.setitem(globals(), "stops_at", 4)
    stage.die(trader)
    monkeypatch.setitem(globals(), "stops_at", -1)
    with stage.open() as store:
        with pytest.raises(holdfast.UsageError, match="not rolled back"):
            store.undo_rollback(RUN)
        store.plan_rollback(RUN, to=0).apply()
        store.undo_rollback(RUN)
        log.clear()
        assert list(range(TURNS)) == store.run(trader, id=RUN)

    assert [] == log
    assert [] == findings(stage)


def test_only_some_sections_go_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    everything()
    monkeypatch.setitem(globals(), "stops_at", 4)
    stage.die(trader)
    monkeypatch.setitem(globals(), "stops_at", -1)
    log.clear()

    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=1, only=["memory"])
        assert (0, []) == (plan.turns_lost, plan.effects)
        assert {"memory"} == {change.path.split(".")[0] for change in plan.changes}
        plan.apply()
        state = store.restore(RUN)[1]
        assert ([0, 1], "plan 3") == (state["memory"]["turns"], state["plan"])
        assert ["memory"] == state["runtime"]["rollbacks"][0]["only"]
        assert [0, 1, 4, 5] == store.run(trader, id=RUN)
        with pytest.raises(holdfast.UsageError, match="no section 'nothing'"):
            store.plan_rollback(RUN, to=1, only="nothing")
    assert [] == log
    assert [] == findings(stage)


@pytest.mark.parametrize(
    ("failing", "expected", "stands"),
    [
        ("cancel", "impossible", True),
        ("late", "undone", False),
        ("probe", "unknown", True),
    ],
)
def test_an_undo_that_fails_has_a_defined_end(
    stage: Stage, failing: str, expected: str, stands: bool
) -> None:
    calls[2] = [lambda: place("a", 1)]
    stage.live(trader)
    fails.add(failing)

    with stage.open() as store:
        rolled = store.plan_rollback(RUN, to=1).apply()
        fails.clear()
        log.clear()
        store.run(trader, id=RUN)

    assert [expected] == [each.how for each in rolled.effects]
    assert stands == bool(rolled.effects[0].why)
    assert ([] if stands else ["place a"]) == log, "the fence knows what stands"
    assert {"a": 1} == world


@pytest.mark.parametrize("failing", ["unpick", "refund"])
def test_an_undo_without_a_probe_that_fails_is_unknown_or_impossible(
    stage: Stage, failing: str
) -> None:
    calls[2] = [lambda: pick("x"), lambda: bill("b")]
    stage.live(trader)
    fails.add(failing)

    with stage.open() as store:
        rolled = store.plan_rollback(RUN, to=1).apply()

    expected = {"pickx": "undone", "billb": "offset"}
    expected |= {"pickx": "unknown"} if failing == "unpick" else {"billb": "impossible"}
    assert expected == ways(rolled.effects)


def test_an_undo_that_cannot_take_what_it_is_given_was_not_called_and_is_tried_again_once_mended(
    stage: Stage,
) -> None:
    undone: list[str] = []

    def broken(outcome: str, item: str, shelf: str) -> None:
        undone.append(item)

    def mended(outcome: str, item: str) -> None:
        undone.append(item)

    def fetch(item: str) -> str:
        return item

    took = holdfast.effect(undo=mended, key="item")(fetch)

    @holdfast.agent
    def fetcher(run: holdfast.Run) -> str:
        for turn in run.turns():
            if turn == 1:
                return took("kelp")
        raise AssertionError

    def declare(undo: Callable[..., None]) -> None:
        def today(item: str, shelf: str = "top") -> str:
            raise AssertionError

        today.__qualname__ = fetch.__qualname__
        holdfast.effect(undo=undo, key="item")(today)

    stage.live(fetcher)
    declare(broken)
    with stage.open() as store:
        [left] = store.plan_rollback(RUN, to=0).apply().effects
        assert ("impossible", []) == (left.how, undone)
        assert "does not take the outcome and the recorded arguments (missing" in left.why
        declare(mended)
        [tried] = store.retry_undos(RUN)

    assert ("undone", ["kelp"]) == (tried.how, undone)


def test_what_is_gone_already_is_not_undone_again(stage: Stage) -> None:
    calls[2] = [lambda: place("a", 1)]
    stage.live(trader)
    world.clear()
    log.clear()

    with stage.open() as store:
        rolled = store.plan_rollback(RUN, to=1).apply()

    assert ["undone"] == [each.how for each in rolled.effects]
    assert [] == log


@pytest.mark.parametrize("happened", [True, False])
def test_an_effect_in_doubt_is_looked_up_and_undone_or_cancelled(
    stage: Stage, happened: bool
) -> None:
    calls[2] = [lambda: place("a", 1)]
    fails.add("place")
    stage.die(trader)
    fails.clear()
    log.clear()
    if not happened:
        world.clear()

    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0)
        assert ["ask"] == [each.how for each in plan.effects]
        rolled = plan.apply()
        store.run(trader, id=RUN)

    assert ["undone" if happened else "cancelled"] == [each.how for each in rolled.effects]
    assert {"a": 1} == world
    assert "place a" in log


def test_an_effect_in_doubt_without_a_probe_stays_unknown(stage: Stage) -> None:
    calls[2] = [lambda: mail("ann")]
    fails.add("mail")
    assert isinstance(stage.fault(trader), holdfast.InDoubt)
    fails.clear()

    with stage.open() as store:
        rolled = store.plan_rollback(RUN, to=1).apply()
        assert ["unknown"] == [each.how for each in rolled.effects]
        with pytest.raises(holdfast.InDoubt):
            store.run(trader, id=RUN)
    assert ["mail ann"] == log


def test_targets_have_many_names(stage: Stage) -> None:
    everything()
    stage.live(trader)

    with stage.open() as store:
        points = store.checkpoints(RUN)
        effects = store.plan_rollback(RUN, to="start").effects
        key = next(each.key for each in effects if "mail" in each.effect)
        turns = {
            "checkpoint": store.plan_rollback(RUN, to=points[2]).turn,
            "id": store.plan_rollback(RUN, to=points[2].id).turn,
            "name": store.plan_rollback(RUN, to=f"{RUN}@2").turn,
            "before": store.plan_rollback(RUN, to=f"before:{key[:8]}").turn,
            "newest": store.plan_rollback(RUN, to="newest-valid").turn,
            "start": store.plan_rollback(RUN, to="start").turn,
        }
        for bad, why in (
            ("nothing", "nothing"),
            (99, "99"),
            ("before:zz", "no effect .* --dry-run` lists them"),
            (None, "where to"),
            (1.5, "not 1.5"),
            (True, "not True"),
        ):
            with pytest.raises(holdfast.HoldfastError, match=why):
                store.plan_rollback(RUN, to=bad)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(holdfast.UsageError, match="only= names no section"):
            store.plan_rollback(RUN, to=1, only=[])

    expected = {"checkpoint": 2, "id": 2, "name": 2, "before": 2, "newest": 4, "start": None}
    assert expected == turns


def test_a_rollback_to_the_start_runs_everything_anew(stage: Stage) -> None:
    everything()
    stage.live(trader)
    with stage.open() as store:
        store.plan_rollback(RUN, to="start").apply()
        assert list(range(TURNS)) == store.run(trader, id=RUN)
    assert [] == findings(stage)


def test_a_run_at_work_is_not_rolled_back(stage: Stage) -> None:
    held: list[Exception] = []

    def try_it() -> None:
        with stage.open() as other, pytest.raises(holdfast.RunHeld) as caught:
            other.plan_rollback(RUN, to="start").apply()
        held.append(caught.value)

    calls[2] = [try_it]
    assert list(range(TURNS)) == stage.live(trader)
    assert 1 == len(held)


def test_a_plan_that_the_run_has_overtaken_is_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "stops_at", 3)
    stage.die(trader)
    monkeypatch.setitem(globals(), "stops_at", -1)
    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0)
        store.run(trader, id=RUN)
        with pytest.raises(holdfast.UsageError, match="plan it again"):
            plan.apply()
        assert holdfast.Status.FINISHED is store.get(RUN).status


def test_with_forked_effects_what_stands_is_done_again_under_another_key(stage: Stage) -> None:
    calls[2] = [lambda: mail("ann")]
    stage.live(trader)
    with stage.open() as store:
        store.plan_rollback(RUN, to=1).apply(fork_effects=True)
        store.run(trader, id=RUN)
        store.plan_rollback(RUN, to=1).apply()
        store.run(trader, id=RUN)

    assert ["mail ann", "mail ann"] == log


def test_a_fork_rolled_back_before_its_beginning_takes_nothing_of_its_parent_back(
    stage: Stage,
) -> None:
    everything()
    stage.live(trader)
    with stage.open() as store:
        store.fork(RUN, at=3, new_id="fork")
        rolled = store.plan_rollback("fork", to=1).apply()
        told = {(each.how, each.why) for each in rolled.effects}
        assert {("kept", "the run that this one comes from did it")} == told
        log.clear()
        assert list(range(TURNS)) == store.run(trader, id="fork")
        held = {(each.how, each.why) for each in store.plan_rollback(RUN, to=1).effects}
        assert {("kept", "another branch or run of this history holds it too")} == held
        part = store.plan_rollback(RUN, to=1, only=["memory"]).effects
        assert {("kept", "only sections go back")} >= {(each.how, each.why) for each in part}

    assert {"a": 1, "c": 3} == world
    assert [] == log
    assert [] == findings(stage)


def test_a_plan_names_the_forks_that_have_in_their_history_what_is_undone(stage: Stage) -> None:
    calls[2] = [lambda: place("a", 1)]
    calls[4] = [lambda: mail("ann")]
    stage.live(trader)
    with stage.open() as store:
        store.fork(RUN, at=1, new_id="before")
        store.fork(RUN, at=2, new_id="after")
        store.fork("after", new_id="again")
        store.fork(RUN, at=3, new_id="gone back")
        store.plan_rollback("gone back", to=0).apply()
        plan = store.plan_rollback(RUN, to=1)
        of_fork = store.plan_rollback("after", to=1)
        later = store.plan_rollback(RUN, to=3)
        part = store.plan_rollback(RUN, to=1, only=["memory"])

    assert ["after", "again"] == plan.forks == plan.as_dict()["forks"]
    assert "- fork after has in its history what is undone" in str(plan)
    assert [] == of_fork.forks == later.forks == part.forks
    assert ["impossible"] == [each.how for each in later.effects]


async def test_asynchronous_handlers_are_awaited(stage: Stage) -> None:
    async def unmake(outcome: str, what: str) -> None:
        log.append(f"unmake {outcome} {what}")

    @holdfast.effect(undo=unmake)
    async def make(what: str) -> str:
        return f"made {what}"

    @holdfast.agent
    async def maker(run: holdfast.Run) -> None:
        async for turn in run.turns():
            if turn == 1:
                await make("it")
            if turn == 2:
                return

    with stage.open() as store:
        await store.arun(maker, id=RUN)
        store.plan_rollback(RUN, to=0).apply()

    assert ["unmake made it it"] == log


def test_the_newest_valid_point_passes_the_validators_of_the_agent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(state: dict[str, Any]) -> bool:
        return len(state["memory"]["turns"]) <= limit

    limit = 99
    monkeypatch.setitem(globals(), "stops_at", 5)
    monkeypatch.setattr(trader, "validate", (holdfast.validate(small),))
    stage.die(trader)

    with stage.open() as store:
        newest = store.plan_rollback(RUN, to="newest-valid").turn
        limit = 3
        valid = store.plan_rollback(RUN, to="newest-valid").turn

    assert (4, 2) == (newest, valid)


def test_a_store_that_is_encrypted_rolls_back_and_forks(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", "passphrase")
    monkeypatch.setenv("HOLDFAST_PASSPHRASE", "correct horse battery staple")
    everything()
    stage.live(trader)
    with stage.open() as store:
        store.plan_rollback(RUN, to=1).apply()
        assert list(range(TURNS)) == store.run(trader, id=RUN)
        store.fork(RUN, at=2, new_id="fork")
        log.clear()
        assert list(range(TURNS)) == store.run(trader, id="fork")
        store.undo_rollback(RUN)

    assert [] == log


@pytest.mark.parametrize("is_cut_off", [True, False])
def test_a_run_that_was_rolled_back_is_carried_to_another_store(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cut_off: bool
) -> None:
    everything()
    monkeypatch.setitem(globals(), "stops_at", 5)
    stage.die(trader)
    monkeypatch.setitem(globals(), "stops_at", -1)
    with stage.open() as store:
        store.run(trader, id="another")  # So that numbers differ there.
        store.plan_rollback(RUN, to=3).apply()
        store.undo_rollback(RUN)
        if is_cut_off:
            failpoint.arm("rollback.moved", crash)
            with pytest.raises(Crash):
                store.plan_rollback(RUN, to=1, only="memory").apply()
            failpoint.disarm()
        else:
            store.plan_rollback(RUN, to=1, only="memory").apply()
    other = Stage(tmp_path / "other")
    source, target = (open_store(each.path, SystemClock()) for each in (stage, other))
    run = source.reader.find(RUN)
    assert run is not None
    with other.open() as store:
        store.run(trader, id="first")
    admit(target, from_bytes(to_bytes(collect(source, run)), RUN))
    source.close()
    target.close()

    with other.open() as store:
        if is_cut_off:
            with pytest.raises(holdfast.RollbackUnfinished):
                store.run(trader, id=RUN)
            store.plan_rollback(RUN).apply()
        assert [0, 1, 5] == store.run(trader, id=RUN)
    assert [] == findings(other)


def crash() -> None:
    raise Crash
