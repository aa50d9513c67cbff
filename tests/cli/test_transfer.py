"""`holdfast export` and `holdfast import`: a run as one file."""

from tests.cli.kit import Shop

FAMILY = """
from pathlib import Path

import holdfast


@holdfast.step
def ask() -> str:
    if Path("down").exists():
        raise ConnectionError("no line")
    return "told"


@holdfast.agent
def child(run: holdfast.Run) -> str:
    return ask()


@holdfast.agent
def parent(run: holdfast.Run) -> list:
    return [run.child(child, id=f"run-{n}") for n in (7, 8)]
"""


def test_a_run_goes_from_one_store_to_another(history: Shop) -> None:
    made = history("export", "run-42", "out.holdfast", "--json")
    taken = history("import", "out.holdfast", "--store", "other", "--json")
    shown = history("show", "run-42", "--path", "seen[:].n", "--store", "other")

    assert (0, 0) == (made.status, taken.status)
    assert ("run-42", "finished") == (taken.data["run"], taken.data["status"])
    assert made.data["rows"] == taken.data["rows"]
    assert [0, 1, 2] == shown.data
    assert 0 == history("verify", "--deep", "--store", "other").status


def test_a_run_that_is_there_is_refused_unless_it_gets_another_id(history: Shop) -> None:
    history("export", "run-42", "out.holdfast")
    refused = history("import", "out.holdfast")
    taken = history("import", "out.holdfast", "--as", "copy")

    assert (2, "") == (refused.status, refused.out)
    assert "--as" in refused.err
    assert 0 == taken.status
    assert taken.out.startswith("copy: ")
    assert "rows read back as they were written" in taken.out


def test_a_damaged_file_is_refused_and_a_file_that_is_there_is_kept(history: Shop) -> None:
    history("export", "run-42", "out.holdfast")
    again = history("export", "run-42", "out.holdfast")
    file = history.folder / "out.holdfast"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    damaged = history("import", "out.holdfast", "--store", "other")
    missing = history("import", "nothing.holdfast")

    assert (2, 7, 2) == (again.status, damaged.status, missing.status)
    assert "out.holdfast is there already" in again.err
    assert "out.holdfast is damaged: its hash does not match" in damaged.err
    assert "nothing was imported; copy the file again" in damaged.err
    assert "nothing.holdfast cannot be read" in missing.err


def test_children_that_a_run_goes_on_with_are_named_until_they_are_there_too(history: Shop) -> None:
    (history.folder / "family.py").write_text(FAMILY)
    (history.folder / "down").touch()
    history("run", "family:parent", "--id", "family")
    made = history("export", "family", "family.holdfast", "--json")
    child = history("export", "run-7", "child.holdfast", "--json")
    taken = history("import", "family.holdfast", "--store", "other", "--json")
    history("import", "child.holdfast", "--store", "other")
    again = history("import", "family.holdfast", "--store", "other", "--as", "copy", "--json")
    (history.folder / "down").unlink()
    history("restart", "family", "--app", "family")
    done = history("export", "family", "done.holdfast", "--json")

    assert (["run-7"], []) == (made.data["children"], child.data["children"])
    assert "its child run-7 is not in the file: export it too" in made.err
    assert (["run-7"], []) == (taken.data["missing"], again.data["missing"])
    assert "its child run-7 is not in this store: import it too" in taken.err
    assert ([], "") == (done.data["children"], done.err)


def test_what_is_no_export_is_refused_however_large_it_is(history: Shop) -> None:
    done = history("import", "/dev/zero", "--store", "other")

    assert (2, True) == (done.status, "/dev/zero is no exported run" in done.err)
