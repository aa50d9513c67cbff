"""A secret declared after its value was stored in clear: old points restore, and it is told."""

import logging
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.model.secrets import Exposed
from holdfast.store.codec.vault import Vault, vault
from tests.engine.kit import RUN, Stage, World
from tests.engine.spill import spilled

VALUE = "kelp-4711-holds-fast"
NAME = "env:SHOP_KEY"
GITHUB = "ghp_" + "a1B2" * 9


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a program of its own: nothing is declared yet, one variable is set."""
    monkeypatch.setenv("SHOP_KEY", VALUE)
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process knows no secrets."""
    monkeypatch.setattr(vault, "__dict__", vars(Vault()))


def careless(world: World, late: Any = None) -> holdfast.Agent[..., Any]:  # noqa: ANN401 a reference
    """An agent that keeps a key in clear; with `late` it declares it in its second turn."""

    @holdfast.step
    def login(body: dict[str, str]) -> dict[str, str]:
        world.ask("login")
        return {"token": VALUE, "key": body["key"]}

    @holdfast.effect(key="key")
    def pay(key: str) -> str:
        return world.ask(f"pay {len(key)}")

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def careless(run: holdfast.Run) -> str:
        run.state.setdefault("answers", [])
        for turn in run.turns():
            if turn == 1 and late is not None:
                holdfast.secret(late, value=VALUE)
            answer = login({"key": VALUE})
            run.state["answers"].append(answer)
            run.state["note"] = f"use {VALUE} in turn {turn}"
            run.state.setdefault(f"by {VALUE}", turn)
            login(answer)
            run.checkpoint(label="middle")
            if turn == 2:
                pay(VALUE)
                world.ask("crash")
                return str(run.state["note"])
        raise AssertionError

    return careless


def test_points_from_before_a_secret_was_declared_restore_and_say_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.live(careless(World()))
    before = {}
    with stage.open() as store:
        for point in store.checkpoints(RUN):
            assert {} == store.restore(point)[0].degraded
            before[point.id] = store.restore(point)[1]
    forget(monkeypatch)
    holdfast.secret(NAME)

    with stage.open() as store:
        for id_, state in before.items():
            told, found = store.restore(id_)
            assert state == found
            assert {"answers", "note", f"by {VALUE}"} == set(told.degraded)
            assert "before <secret env:SHOP_KEY> was declared" in told.degraded["note"]
            assert f"holdfast erase {RUN}" in told.degraded["note"]
            assert [] == store.diff(id_, id_)


def test_a_secret_declared_on_the_way_makes_no_point_damaged_for_anybody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.live(careless(World(), late="name:token"))
    with stage.open() as store:
        ids = [point.id for point in store.checkpoints(RUN) if point.label is None]
        here = [store.restore(id_)[0].degraded for id_ in ids]
    forget(monkeypatch)

    with stage.open() as store:
        elsewhere = [store.restore(id_)[0].degraded for id_ in ids]

    assert all("stored in clear" in told["answers"] for told in here)
    assert not any("state" in told for told in here)
    assert {} == elsewhere[0]
    assert "cannot be confirmed here" in elsewhere[-1]["state"]


@pytest.mark.parametrize("has_more", [False, True])
def test_a_run_started_with_a_secret_in_clear_goes_on_once_it_is_declared(
    stage: Stage, *, has_more: bool
) -> None:
    is_fixed = False

    @holdfast.agent
    def agent(run: holdfast.Run, note: str, *more: str) -> str:
        if not is_fixed:
            raise RuntimeError(run.id, more)
        return note

    args = (f"use {VALUE}", "kelp")[: 1 + has_more]
    stage.fault(agent, *args)
    holdfast.secret("name:token", value=VALUE)
    other = stage.fault(agent, "use another one")
    is_fixed = True

    assert isinstance(other, holdfast.AgentMismatch)
    assert VALUE not in str(other)
    assert f"use {VALUE}" == stage.restart(agent)
    assert f"use {VALUE}" == stage.live(agent, *args)


def test_a_restart_with_a_new_declaration_finds_its_calls_again_and_tells(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.dies_at = "crash"
    stage.die(careless(world))
    world.dies_at = None
    forget(monkeypatch)
    holdfast.secret(NAME)
    caplog.set_level(logging.WARNING, "holdfast")

    assert f"use {VALUE} in turn 2" == stage.live(careless(world))

    assert 6 == world.asked.count("login")
    assert 1 == sum(what.startswith("pay") for what in world.asked)
    assert f"`holdfast erase {RUN}`" in caplog.text
    told = [entry for entry in stage.journal() if isinstance(entry, Exposed)]
    assert [[NAME]] == [entry.references for entry in told]


def test_an_effect_done_before_the_declaration_is_not_done_again_after_a_rollback(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.dies_at = "crash"
    stage.die(careless(world))
    world.dies_at = None
    forget(monkeypatch)
    holdfast.secret(NAME)

    with stage.open() as store:
        store.plan_rollback(RUN, to=1).apply()
        store.restart(RUN, agent=careless(world))

    assert 1 == sum(what.startswith("pay") for what in world.asked)


def test_an_effect_done_before_the_declaration_is_not_done_again_when_its_turn_is_run_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.dies_at = "crash"
    stage.die(careless(world))
    world.dies_at = None
    forget(monkeypatch)
    holdfast.secret(NAME)

    stage.restart(careless(world), redo_turn=True)

    assert 1 == sum(what.startswith("pay") for what in world.asked)


def test_what_is_stored_after_the_declaration_holds_the_reference_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdfast.secret(NAME)
    stage = Stage(tmp_path / "store")

    stage.live(careless(World()))
    with stage.open() as store:
        points = [store.restore(point)[0] for point in store.checkpoints(RUN)]
    forget(monkeypatch)
    monkeypatch.delenv("SHOP_KEY")
    with stage.open() as store:
        unresolved = [store.restore(point) for point in store.checkpoints(RUN)]

    assert [] == spilled(stage.path, [VALUE])
    assert [{}] * 5 == [told.degraded for told in points]
    for told, _ in unresolved:
        assert "variable SHOP_KEY is not set" in told.degraded["note"]
        assert "came without its value" in told.degraded["answers"]
    assert "use <secret env:SHOP_KEY> in turn 2" == unresolved[-1][1]["note"]


def test_what_was_allowed_when_it_was_stored_restores_whatever_the_reader_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def allowed(run: holdfast.Run) -> None:
        for _ in run.turns():
            run.state["fixtures"] = [GITHUB]
            run.checkpoint()
            return

    rules = holdfast.SecretRules(strict=True, allow=('state["fixtures"]',))
    with holdfast.open(tmp_path / "store", secrets=rules) as store:
        store.run(allowed, id=RUN)

    for mode in ("redact", "strict"):
        forget(monkeypatch)
        with holdfast.open(tmp_path / "store", secrets=mode) as store:
            (point,) = store.checkpoints(RUN)
            told, state = store.restore(point)
            assert {"fixtures": [GITHUB]} == state
            assert {} == told.degraded
            assert [] == store.diff(point, RUN)


def test_a_state_that_is_not_the_one_that_was_hashed_is_still_damage(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets excuse a hash that differs only where secrets were known or stand."""

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def plain(run: holdfast.Run) -> None:
        for _ in run.turns():
            run.state["n"] = 1
            run.checkpoint()
            return

    monkeypatch.setattr("holdfast.engine.save.digest", lambda _state, **_: bytes(32))
    stage.live(plain)
    holdfast.secret(NAME)

    with stage.open() as store, pytest.raises(holdfast.Damaged, match="does not match its root"):
        store.restore(store.checkpoints(RUN)[0])


def test_a_key_with_a_secret_in_it_hashes_the_same_with_and_without_its_value(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "zzz-sorts-behind-the-mark")
    key = holdfast.secret(NAME).reveal()

    @holdfast.agent
    def keyed(run: holdfast.Run) -> None:
        for _ in run.turns():
            run.state.update({key: 1, "middle": 2, f"a {key}": 3})
            run.checkpoint()
            return

    stage.live(keyed)
    forget(monkeypatch)
    monkeypatch.setenv("SHOP_KEY", "aaa-sorts-before-the-others")

    with stage.open() as store:
        (point,) = store.checkpoints(RUN)
        told, state = store.restore(point)
        monkeypatch.delenv("SHOP_KEY")
        forget(monkeypatch)
        unresolved = store.restore(point)[0]

    assert {"aaa-sorts-before-the-others", "middle", "a aaa-sorts-before-the-others"} == set(state)
    assert {} == told.degraded
    assert all("came without its value" in why for why in unresolved.degraded.values())
    assert 2 == len(unresolved.degraded)
