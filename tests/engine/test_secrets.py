"""Secrets in a run: stored as references, looked up at a restart, not revived when expired."""

import base64
import copy
import datetime as dt
import json
import logging
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import holdfast
from holdfast.clock import Clock, SystemClock
from holdfast.model.secrets import Redacted
from holdfast.store.codec.vault import Vault, vault
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Stage, World
from tests.engine.spill import spilled

VALUE = "kelp+rock/4711 ü holds"
NAME = "env:SHOP_KEY"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a program of its own: nothing is declared yet, one variable is set."""
    monkeypatch.setenv("SHOP_KEY", VALUE)
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch, clock: Clock | None = None) -> None:
    """A new process knows no secrets."""
    monkeypatch.setattr(vault, "__dict__", vars(Vault(clock=clock)))


def test_a_secret_is_text_that_sdks_take_and_logs_do_not_show() -> None:
    key = holdfast.secret(NAME)

    assert isinstance(key, str)
    assert f"Bearer {VALUE}" == f"Bearer {key}"
    assert VALUE.encode() == key.encode()
    assert json.dumps(VALUE) == json.dumps(key)
    assert VALUE == key.reveal()
    assert type(key.reveal()) is str
    assert ["<secret env:SHOP_KEY>"] * 3 == [repr(key), str(key), "%s" % key]  # noqa: UP031 as logging
    assert "[<secret env:SHOP_KEY>]" == str([key])
    assert key is copy.deepcopy(key)
    with pytest.raises(holdfast.UsageError, match="not pickled"):
        pickle.dumps(key)


def test_a_file_a_command_and_a_given_value_are_secrets_too(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")

    assert "from a file" == holdfast.secret(f"file:{tmp_path}/key")
    assert "from-a-command" == holdfast.secret("cmd:printf from%ca%ccommand - -")
    assert "given value" == holdfast.secret("name:db", value="given value")


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("env:NOT_THERE", "variable NOT_THERE is not set"),
        ("file:/not/there", "cannot be read"),
        ("cmd:false", "status 1"),
        ("cmd:not-a-command-here", "cannot be run"),
        ("name:db", "with value="),
    ],
)
def test_a_secret_that_is_not_there_is_refused_with_the_reason(reference: str, why: str) -> None:
    with pytest.raises(holdfast.SecretMissing, match=why):
        holdfast.secret(reference)


@pytest.mark.parametrize("reference", ["SHOP_KEY", "vault:x", "env:", "", "env:" + "x" * 1000])
def test_a_reference_that_is_none_is_refused(reference: str) -> None:
    with pytest.raises(holdfast.UsageError, match="env:NAME"):
        holdfast.secret(reference)


@dataclass
class Account:
    """A class of the user's that holds a key."""

    name: str
    key: str


holdfast.register(Account)


def keeper(world: World) -> holdfast.Agent[..., Any]:
    """An agent that keeps a key everywhere it can, and crashes once in its second turn."""

    @holdfast.step
    def login(key: str, body: dict[str, str]) -> dict[str, object]:
        world.ask(f"login {key == body['key']}")
        return {"token": key, "header": f"Bearer {key}", "at": dt.date(2026, 1, 2)}

    @holdfast.effect(key="key", idempotent=True)
    def pay(key: str) -> list[str]:
        return [world.ask("pay"), f"{key}!"]

    @holdfast.agent
    def keep(run: holdfast.Run, given: str) -> list[object]:
        for turn in run.turns():
            if turn == 0:
                run.state["key"] = holdfast.secret(NAME)
                run.state["line"] = f"use {given} or {given}"
                run.state["account"] = Account("kelp", given)
                run.state["set"] = {given, "other"}
                run.state[given] = "as a key"
                run.state["forms"] = forms_of(given)
            answer = login(run.state["key"], {"key": given})
            run.state.setdefault("answers", []).append(answer)
            paid = pay(f"pay with {run.state['key'].reveal()}")
            run.checkpoint(label=f"after {given}")
            if turn == 1:
                world.ask("crash")
                return [run.state["key"], run.state["line"], answer, paid]
        raise AssertionError

    return keep


def forms_of(value: str) -> list[str]:
    raw = value.encode()
    whole = base64.b64encode(b"user:" + raw).decode()
    return [raw.hex(), raw.hex().upper(), quote(value), whole, json.dumps({"a": value})]


def test_known_secrets_come_back_exact_and_are_nowhere_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    holdfast.secret(NAME)
    stage.die(keeper(world), VALUE)
    world.dies_at = None
    forget(monkeypatch)
    holdfast.secret(NAME)

    key, line, answer, paid = stage.live(keeper(world), VALUE)

    assert VALUE == key
    assert type(key) is holdfast.Secret
    assert f"use {VALUE} or {VALUE}" == line
    assert {"token": VALUE, "header": f"Bearer {VALUE}", "at": dt.date(2026, 1, 2)} == answer
    assert f"pay with {VALUE}!" == paid[1]
    assert ["login True", "pay", "login True", "pay", "crash", "crash"] == world.asked
    assert [] == spilled(tmp_path / "store", [VALUE])


def test_a_renewed_secret_changes_no_question_and_comes_back_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    holdfast.secret(NAME)
    stage.die(keeper(world), VALUE)
    world.dies_at = None
    forget(monkeypatch)
    monkeypatch.setenv("SHOP_KEY", "rotated since, and longer than before")
    new = holdfast.secret(NAME).reveal()

    _, line, answer, _ = stage.live(keeper(world), new)

    assert f"use {new} or {new}" == line
    assert f"Bearer {new}" == answer["header"]
    assert ["pay", "pay", "crash", "crash"] == [w for w in world.asked if "login" not in w]


def simple(world: World, reference: str, **options: Any) -> holdfast.Agent[..., Any]:  # noqa: ANN401
    @holdfast.agent
    def simple(run: holdfast.Run) -> str:
        for turn in run.turns():
            if turn == 0:
                run.state["key"] = holdfast.secret(reference, **options)
            else:
                world.ask("crash")
                return f"{run.state['key']}"
        raise AssertionError

    return simple


def test_a_variable_is_looked_up_at_a_restart_though_nobody_declared_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    stage.die(simple(world, NAME))
    world.dies_at = None
    forget(monkeypatch)
    monkeypatch.setenv("SHOP_KEY", "new value")

    assert "new value" == stage.live(simple(world, NAME))


def test_a_run_whose_secret_is_gone_stops_unharmed_until_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    stage.die(simple(world, NAME))
    world.dies_at = None
    forget(monkeypatch)
    monkeypatch.delenv("SHOP_KEY")

    error = stage.fault(simple(world, NAME))
    with stage.open() as store:
        status = store.get(RUN).status
    monkeypatch.setenv("SHOP_KEY", "set again")

    assert isinstance(error, holdfast.SecretMissing)
    assert "variable SHOP_KEY is not set" in str(error)
    assert holdfast.Status.RUNNING == status
    assert "set again" == stage.live(simple(world, NAME))


@pytest.mark.parametrize("kind", ["cmd", "file"])
def test_a_store_alone_runs_no_command_and_reads_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "key").write_text("kept in a file")
    touch = f"cmd:sh -c 'echo x >> {tmp_path}/ran; cat {tmp_path}/key'"
    reference = touch if kind == "cmd" else f"file:{tmp_path}/key"
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    stage.die(simple(world, reference))
    world.dies_at = None
    forget(monkeypatch)
    ran = (tmp_path / "ran").read_text() if kind == "cmd" else ""

    error = stage.fault(simple(world, reference))

    assert isinstance(error, holdfast.SecretMissing)
    assert "has not declared it" in str(error)
    assert ran == ((tmp_path / "ran").read_text() if kind == "cmd" else "")
    declared = holdfast.secret(reference)
    assert declared == stage.live(simple(world, reference))


def test_an_expired_secret_is_not_brought_back_to_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    stage.die(simple(world, NAME, expires="1h"))
    world.dies_at = None
    forget(monkeypatch, ManualClock(SystemClock().now() + 3601))

    error = stage.fault(simple(world, NAME))
    renewed = holdfast.secret(NAME)

    assert "has expired" in str(error)
    assert renewed == stage.live(simple(world, NAME))


def test_an_expired_secret_is_not_brought_back_inside_a_text_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def header(run: holdfast.Run) -> str:
        for turn in run.turns():
            if turn == 0:
                run.state["header"] = f"Bearer {holdfast.secret(NAME, expires='1h').reveal()}"
            else:
                world.ask("crash")
                return str(run.state["header"])
        raise AssertionError

    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    stage.die(header)
    world.dies_at = None
    forget(monkeypatch, ManualClock(SystemClock().now() + 3601))

    error = stage.fault(header)
    with stage.open() as store:
        told, state = store.restore(f"{RUN}@0")
    renewed = holdfast.secret(NAME)

    assert isinstance(error, holdfast.SecretMissing)
    assert "has expired" in str(error)
    assert "Bearer <secret env:SHOP_KEY>" == state["header"]
    assert "has expired" in told.degraded["header"]
    assert f"Bearer {renewed.reveal()}" == stage.live(header)


def test_a_reference_that_holds_the_value_is_refused() -> None:
    with pytest.raises(holdfast.UsageError, match="holds the value itself"):
        holdfast.secret("cmd:echo kelp-and-rock")


def test_an_expired_secret_cannot_be_declared() -> None:
    with pytest.raises(holdfast.SecretMissing, match="expired already"):
        holdfast.secret(NAME, expires=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(holdfast.UsageError, match="duration"):
        holdfast.secret(NAME, expires="tomorrow")


class ShopError(Exception):
    """An error of the user's, with an attribute."""


def test_errors_and_tracebacks_are_recorded_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    holdfast.secret(NAME)
    stage = Stage(tmp_path / "store")

    @holdfast.step
    def fail() -> None:
        error = ShopError(f"401 for {VALUE}", {"key": VALUE})
        error.response = f"key {VALUE}"  # type: ignore[attr-defined]
        raise error from ValueError(f"cause {VALUE}")

    @holdfast.agent
    def failing(_run: holdfast.Run) -> None:
        try:
            fail()
        except ShopError as error:
            logging.getLogger("holdfast").exception("seen %s", error.args)
            raise

    failed = stage.fault(failing)

    assert isinstance(failed, holdfast.RunFailed)
    assert VALUE not in str(failed)
    assert [] == spilled(tmp_path / "store", [VALUE])
    assert VALUE not in caplog.text
    assert "401 for <secret env:SHOP_KEY>" in caplog.text


def test_the_users_own_texts_can_be_redacted_too() -> None:
    holdfast.secret(NAME)

    assert "use <secret env:SHOP_KEY> now" == holdfast.redact(f"use {VALUE} now")
    assert "nothing here" == holdfast.redact("nothing here")


def test_a_run_id_with_a_secret_in_it_is_refused(tmp_path: Path) -> None:
    holdfast.secret("name:id", value="customer-kelp-4711")

    error = Stage(tmp_path / "store").fault(simple(World(), NAME), id="for-customer-kelp-4711")

    assert isinstance(error, holdfast.UsageError)
    assert "'for-<secret name:id>' holds a secret" in str(error)


GITHUB = "ghp_" + "a1B2" * 9


def leaking(world: World) -> holdfast.Agent[..., Any]:
    @holdfast.step
    def fetch() -> dict[str, str]:
        return {"text": f"token {GITHUB}", "id": world.ask("fetch")}

    @holdfast.agent
    def leak(run: holdfast.Run) -> object:
        for turn in run.turns():
            if turn == 0:
                run.state["notes"] = [f"my token is {GITHUB}."]
            answer = fetch()
            if turn == 1:
                world.ask("crash")
                return [run.state["notes"][0], answer["text"]]
        raise AssertionError

    return leak


def test_what_looks_secret_is_redacted_and_every_restore_says_degraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, stage = World(), Stage(tmp_path / "store")
    world.dies_at = "crash"
    stage.die(leaking(world))
    world.dies_at = None
    forget(monkeypatch)
    told = [entry for entry in stage.journal() if isinstance(entry, Redacted)]
    caplog.clear()

    note, answer = stage.live(leaking(world))

    assert "my token is <redacted: github-token " in note
    assert "token <redacted: github-token " in answer
    assert {'state["notes"][0]', 'the answer of leaking.<locals>.fetch["text"]'} == {
        entry.place for entry in told
    }
    assert 'degraded: state["notes"][0]' in caplog.text
    assert "degraded: the answer of leaking.<locals>.fetch" in caplog.text
    assert ["fetch", "fetch", "crash", "crash"] == world.asked
    assert [] == spilled(tmp_path / "store", [GITHUB])


def test_the_life_that_saw_a_secret_still_has_it(tmp_path: Path) -> None:
    note, answer = Stage(tmp_path / "store").live(leaking(World()))

    assert [f"my token is {GITHUB}.", f"token {GITHUB}"] == [note, answer]


def test_a_strict_store_refuses_what_looks_secret_before_it_is_written(tmp_path: Path) -> None:
    with (
        holdfast.open(tmp_path / "store", secrets="strict") as store,
        pytest.raises(holdfast.SecretFound, match=r"the answer of .*fetch\[\"text\"\]") as hit,
    ):
        store.run(leaking(World()), id=RUN)

    assert "github-token" == hit.value.kind
    assert [] == spilled(tmp_path / "store", [GITHUB])


def test_a_place_that_is_allowed_is_left_alone(tmp_path: Path) -> None:
    allow = ('state["notes"]', "the answer of leaking.<locals>.fetch", "the result of the run")
    rules = holdfast.SecretRules(strict=True, allow=allow)

    with holdfast.open(tmp_path / "store", secrets=rules) as store:
        store.run(leaking(World()), id=RUN)

    assert [] != spilled(tmp_path / "store", [GITHUB])


def test_an_allowed_variable_that_looks_secret_is_marked_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_TOKEN", GITHUB)

    with holdfast.open(tmp_path / "store", environment=["CI_TOKEN"]) as store:
        store.run(simple(World(), NAME), id=RUN)

    assert [] == spilled(tmp_path / "store", [GITHUB])
    with pytest.raises(holdfast.SecretFound, match="environment CI_TOKEN"):
        holdfast.open(tmp_path / "other", environment=["CI_TOKEN"], secrets="strict")


def test_the_mode_is_one_of_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(holdfast.UsageError, match="'redact' or 'strict'"):
        holdfast.open(tmp_path / "store", secrets="loose")


def test_what_people_are_asked_and_say_holds_no_secret(stage: Stage) -> None:
    key = holdfast.secret(NAME)

    @holdfast.effect(approve=True)
    def send(token: str) -> str:
        return f"sent {len(token)}"

    @holdfast.agent
    def asker(run: holdfast.Run) -> str:
        run.budget("usd", 10).spend(1, what=f"with {key.reveal()}")
        with run.critical(f"under {key.reveal()}"):
            answer = run.ask(f"Use {key.reveal()}?")
        return f"{answer}, {send(key.reveal())}"

    assert isinstance(stage.fault(asker), holdfast.Waiting)
    with stage.open() as store:
        store.answer(RUN, f"use {VALUE}")
    waiting = stage.fault(asker)
    assert isinstance(waiting, holdfast.Waiting)
    assert VALUE not in str(waiting)
    with stage.open() as store:
        store.approve(RUN, note=f"because of {VALUE}")

    assert f"use {VALUE}, sent {len(VALUE)}" == stage.live(asker)
    assert [] == spilled(stage.path, [VALUE])


@pytest.mark.parametrize("word", ["happened", "not done"])
def test_whoever_settles_a_doubt_leaves_no_secret_behind(stage: Stage, word: str) -> None:
    holdfast.secret(NAME)

    @holdfast.effect
    def send(token: str) -> str:
        if not is_over:
            raise TimeoutError(f"no word of {token}")
        return token

    @holdfast.agent
    def sender(run: holdfast.Run) -> str:  # noqa: ARG001 every agent takes it
        return send(VALUE)

    is_over = False
    doubt = stage.fault(sender)
    assert isinstance(doubt, holdfast.InDoubt)
    assert VALUE not in str(doubt)
    with stage.open() as store:
        outcome = VALUE if word == "happened" else None
        said = store.answer(RUN, word, outcome=outcome, by=f"ann with {VALUE}")
    is_over = True

    assert "ann with <secret env:SHOP_KEY>" == said.by
    assert VALUE == stage.live(sender)
    assert [] == spilled(stage.path, [VALUE])


def test_what_a_validator_says_shows_no_secret(stage: Stage) -> None:
    holdfast.secret(NAME)

    def refuses(state: dict[str, Any]) -> None:
        raise ValueError(f"{VALUE} in {list(state)}")

    @holdfast.agent(validate=refuses)
    def keeper(run: holdfast.Run) -> None:
        run.state["note"] = 1

    refused = stage.fault(keeper)

    assert isinstance(refused, holdfast.InvalidState)
    assert "<secret env:SHOP_KEY> in ['note']" in str(refused)
    assert [] == spilled(stage.path, [VALUE])
