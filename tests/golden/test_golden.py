"""Stores of every released format are opened, read exactly, and their runs go on."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.golden import agents
from tests.golden.tell import KEY, KEY_TEXT, contents, findings

HERE = Path(__file__).parent
STORES = sorted(HERE.glob("v*/*/store.db"))
BYTES_MAX = 450_000
"""Of the stores of one format."""

golden = pytest.mark.parametrize(
    "place", [file.parent for file in STORES], ids=lambda p: f"{p.parent.name}-{p.name}"
)


@dataclasses.dataclass
class Account:
    """As the program has it now: version 2 of what `agents.Account` was."""

    owner: str
    cents: int


holdfast.register(Account, name="golden.account", version=2)


@holdfast.migrate("golden.account", from_=1, to=2)
def _to_cents(fields: dict[str, Any]) -> dict[str, Any]:
    return {"owner": fields["owner"], "cents": fields["euros"] * 100}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY.partition(":")[2], KEY_TEXT)


def copied(place: Path, into: Path) -> tuple[Path, str | None]:
    """A copy to work on, and the key it needs: the committed files stay as they are."""
    key = KEY if place.name == "sealed" else None
    return Path(shutil.copytree(place, into / "store")), key


@golden
def test_a_golden_store_is_whole_and_every_point_restores_as_it_was(
    place: Path, tmp_path: Path
) -> None:
    path, key = copied(place, tmp_path)
    expected = json.loads((place / "expected.json").read_text(encoding="utf-8"))

    assert [] == findings(path, key)
    assert expected == json.loads(json.dumps(contents(path, key)))


@golden
def test_the_runs_of_a_golden_store_go_on(place: Path, tmp_path: Path) -> None:
    path, key = copied(place, tmp_path)

    with holdfast.open(path, key=key) as store:
        assert 10 == len(store.run(agents.worker, id="packed")) - 1
        assert agents.VALUES.keys() == store.run(agents.collector, id="values").keys()
        with pytest.raises(agents.Crash):
            store.run(agents.worker, id="open")
        with pytest.raises(holdfast.RunFailed, match="branched"):
            store.restart("branched", agent=agents.worker)
        with pytest.raises(holdfast.InDoubt) as caught:
            store.run(agents.worker, id="doubtful")
        store.resolve("doubtful", caught.value.key, happened=True, outcome="placed by hand")
        assert 4 == len(store.run(agents.worker, id="doubtful"))
        with pytest.raises(holdfast.Waiting):
            store.run(agents.asker, id="asking")
        assert place.parent.name == "v1" or 20 == store.run(agents.talker, id="talk")
        if place.parent.name in ("v1-leaves", "v1-patches", "v1-tail"):
            assert 14 == store.run(agents.writer, id="letters")
            store.fork("letters", at="letters@5", new_id="another letter")
            assert 14 == store.restart("another letter", agent=agents.writer)
        if place.parent.name in ("v1-patches", "v1-tail"):
            length = store.run(agents.teller, id="tale")
            store.fork("tale", at="tale@4", new_id="another tale")
            assert length == store.restart("another tale", agent=agents.teller) > 70_000
        if place.parent.name == "v1-tail":
            assert [12, 12] == [store.run(agents.sailor, id=id_) for id_ in ("sailor", "mate")]
        store.run(agents.worker, "new", 1, id="new")

    assert [] == findings(path, key)
    assert not (path / "tail").exists()


@golden
def test_what_an_old_program_stored_is_migrated_as_it_is_read(place: Path, tmp_path: Path) -> None:
    path, key = copied(place, tmp_path)

    with holdfast.open(path, key=key) as store:
        points = store.checkpoints("bank", every_turn=True)
        accounts = [store.restore(point)[1]["account"] for point in points]
        assert 7 == store.run(agents.banker, id="bank")

    assert [Account("Ada", 500), Account("Ada", 600)] == accounts
    assert points[0].root is not None


def test_golden_stores_are_small() -> None:
    assert STORES
    for folder in HERE.glob("v*"):
        assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < BYTES_MAX
