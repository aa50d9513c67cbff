"""200 secrets planted wherever data of the user's enters: none is found outside the process."""

import json
import os
import random
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.store.codec.vault import Vault, vault
from tests.engine import planting
from tests.engine.spill import forms, spilled
from tests.unit.store.codec.keys import samples

COUNT = 200
GARDENS = 5


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "__dict__", vars(Vault()))


def passwords() -> Iterator[str]:
    """Secrets of no form that anybody would recognise; the program declares them."""
    chance = random.Random(4711)  # noqa: S311 a seed
    letters = string.ascii_letters + string.digits
    while True:
        yield "".join(chance.choices(letters, k=40))
        yield "".join(chance.choices(letters + string.punctuation + " ", k=12))
        yield "".join(chance.choices("0123456789abcdef", k=32))
        yield "".join(chance.choices(letters + "äöüßλ漢字🐚", k=16))
        yield "\n".join("".join(chance.choices(letters + "+/", k=64)) for _ in range(3))


def planted(kind: str) -> list[tuple[str, str]]:
    """Places and secrets: each place in turn, until there are enough."""
    places = list(planting.PLANTERS) * (COUNT // len(planting.PLANTERS) + 1)
    if kind == "declared":
        found = [value for _, value in zip(range(COUNT), passwords(), strict=False)]
        for number, value in enumerate(found):
            holdfast.secret(f"name:{number}", value=value)
        return list(zip(places, found, strict=False))
    shapes = [key for _ in range(COUNT // 20) for _, key in samples()]
    return list(zip(places, shapes[:COUNT], strict=False))


@pytest.mark.parametrize("kind", ["declared", "undeclared"])
def test_planted_secrets_are_nowhere_in_store_logs_or_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    plants = planted(kind)
    secrets = [secret for _, secret in plants]
    monkeypatch.setenv("PLANTED", secrets[0])
    caplog.set_level("DEBUG")

    with holdfast.open(tmp_path / "store", environment=["PLANTED"]) as store:
        for number in range(GARDENS):
            monkeypatch.setattr(planting, "PLANTED", plants[number::GARDENS])
            result = store.run(
                planting.garden, secrets[1:3], named=secrets[3], id=f"garden-{number}"
            )
        for agent, secret in zip(
            (planting.failing, planting.doubting, planting.asking), secrets[4:], strict=False
        ):
            with pytest.raises(holdfast.HoldfastError):
                store.run(agent, secret, id=agent.name)
        (question,) = [item for item in store.inbox() if item.run == "asking"]
        store.answer(question.id, {"said": secrets[7]}, by=f"ann {secrets[8]}")
        assert {"said": secrets[7]} == store.restart("asking", agent=planting.asking)

    assert {"given": secrets[1:3], "named": secrets[3], "last": secrets[-1]} == result
    assert COUNT == len(secrets)
    assert set(planting.PLANTERS) == {place for place, _ in plants}
    shown = output(tmp_path, "garden-0", "garden-4", "failing", "doubting", "asking")
    assert [] == spilled(tmp_path, secrets)
    assert [] == found_in(caplog.text, secrets)
    assert [] == found_in(shown, secrets)
    assert 10_000 < len(shown)


def output(folder: Path, *runs: str) -> str:
    """What the command line tells of the runs, in a process that knows no secret."""
    commands = [["runs", "-o", "json"], ["runs"], ["inbox", "--all"]]
    for run in runs:
        commands += [["show", run], ["show", run, "-o", "json"], ["export", run, f"{run}.run"]]
    commands += [["show", "garden-0", "--at", "30"], ["diff", "garden-1@3", "garden-1@38"]]
    commands += [
        ["show", "garden-2", "--checkpoints"],
        ["restart", "failing"],
        ["verify", "--deep"],
    ]
    env = {**os.environ, "HOLDFAST_STORE": str(folder / "store"), "HOLDFAST_TRACEBACK": "1"}
    env.pop("PLANTED")
    program = (
        "import json, sys; from holdfast.cli.main import main\n"
        "sys.exit(any(main(words) not in {0, 2, 3} for words in json.loads(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(commands)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout + done.stderr


def found_in(text: str, secrets: list[str]) -> list[str]:
    data = text.encode("utf-8", "surrogatepass")
    return [secret for secret in secrets for _, needle in forms(secret) if needle in data]


def test_the_search_finds_what_is_stored_in_clear(tmp_path: Path) -> None:
    """The proof above would find a secret if there were one: here nobody declared it."""
    secret = "kelp-holds-on-to-rock-4711"  # noqa: S105 made up

    @holdfast.agent
    def careless(run: holdfast.Run) -> None:
        run.state["text"] = secret
        for turn in run.turns():
            planting.echo(secret.encode().hex() if turn else secret * 3000)
            if turn:
                return

    with holdfast.open(tmp_path / "store") as store:
        store.run(careless, id="run-1")

    found = " ".join(spilled(tmp_path, [secret]))
    assert "raw" in found
    assert "hex" in found
