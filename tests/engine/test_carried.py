"""A secret is carried through every way a run can go, and stays in the process."""

import logging
import sys
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast.engine.parcel import from_bytes, to_bytes
from holdfast.engine.transfer import admit, collect
from holdfast.store.codec.vault import Vault, vault
from tests.docs.blocks import ROOT
from tests.engine import carried
from tests.engine.spill import forms, spilled

VALUE = "kelp+rock/4711 ü holds"
TELLER = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"


def test_a_secret_is_nowhere_outside_whatever_becomes_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vault, "__dict__", vars(Vault()))
    monkeypatch.setenv("CARRIED_KEY", VALUE)
    monkeypatch.syspath_prepend(str(ROOT))  # The child imports the agent's module too.
    caplog.set_level(logging.DEBUG)
    key, given = carried.key(), {"token": VALUE}
    tell = holdfast.Notify(command=[sys.executable, "-c", TELLER, str(tmp_path / "told")])
    errors = []

    with holdfast.open(tmp_path / "store", notify=tell) as store:
        with pytest.raises(holdfast.Waiting) as waits:
            store.supervise(carried.carrier, str(tmp_path), given, id="run", spare=False)
        errors.append(str(waits.value))
        fork = store.fork(
            "run", at=1, state={"note": f"edit {key}"}, new_id="fork", reason=f"because {key}"
        )
        edited = store.restore(fork.id)[1]["note"]
        with pytest.raises(holdfast.Waiting):
            store.restart(fork.id, agent=carried.carrier, reason=f"again {key}")
        plan = store.plan_rollback(fork.id, to=1)
        shown = repr(plan)
        plan.apply()
        store.cancel(fork.id, reason=f"stop {key}")
        (question,) = [item for item in store.inbox() if item.run == "run"]
        with pytest.raises(holdfast.UsageError) as refused:
            store.answer(question.id, f"perhaps {key}")
        errors.append(str(refused.value))
        store.answer(question.id, "yes", by=f"ann {key}")
        result = store.restart("run", agent=carried.carrier)

    assert (given, VALUE, "yes") == (result["given"], result["key"], result["answer"])
    assert f"use {VALUE}" == result["log"][-1]
    assert f"edit {VALUE}" == edited
    assert "may <secret env:CARRIED_KEY> go?" in (tmp_path / "told").read_text()
    assert [] == spilled(tmp_path, [VALUE])
    said = "\n".join([caplog.text, shown, *errors]).encode()
    assert [] == [form for form, needle in forms(VALUE) if needle in said]


@pytest.mark.parametrize("is_declared_first", [True, False])
def test_an_export_holds_references_that_the_other_store_puts_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_declared_first: bool
) -> None:
    """One that was made before the secret was declared, too; but that holds it in clear."""
    monkeypatch.setattr(vault, "__dict__", vars(Vault()))
    monkeypatch.setenv("CARRIED_KEY", VALUE)
    (tmp_path / "died").touch()
    if is_declared_first:
        carried.key()
    with holdfast.open(tmp_path / "store") as store:
        with pytest.raises(holdfast.Waiting):
            store.run(carried.carrier, str(tmp_path), {"token": VALUE}, id="run")
        found = store._opened.reader.find("run")  # noqa: SLF001 no public way in yet
        assert found is not None
        parcel = collect(store._opened, found)  # noqa: SLF001 as above

    (tmp_path / "parcel").write_bytes(to_bytes(parcel, None))
    (tmp_path / "open").write_bytes(msgspec.msgpack.encode([parcel.header, parcel.rows]))
    with holdfast.open(tmp_path / "other") as store:
        admit(store._opened, from_bytes((tmp_path / "parcel").read_bytes(), "parcel"))  # noqa: SLF001 as above
        state = store.restore("run@1")[1]

    assert f"use {VALUE}" == state["brain"]["log"][0]
    assert is_declared_first == (spilled(tmp_path, [VALUE]) == [])
