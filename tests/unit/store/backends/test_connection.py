"""A connection to the database: settings read back, schema compared, foreign errors named."""

import resource
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Damaged, HoldfastError, NewerFormat, StoreBusy, StoreUnwritable
from holdfast.store.backends.connection import (
    PRAGMAS,
    check,
    connect,
    create,
    named,
    transaction,
    translate,
)
from holdfast.store.backends.schema import FORMAT

STORE_ID = b"sixteen bytes id"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database that was just made."""
    link = connect(tmp_path / "store.db")
    create(link, STORE_ID)
    link.close()
    return tmp_path / "store.db"


def reopened(file: Path) -> bytes:
    """The store's id, as a process that opens the file finds it."""
    link = connect(file)
    try:
        create(link, b"another id, 16 b")
        return check(link, file)
    finally:
        link.close()


def tamper(file: Path, *statements: str) -> None:
    link = sqlite3.connect(file, isolation_level=None)
    for statement in statements:
        link.execute(statement)
    link.close()


@pytest.mark.parametrize("for_reading", [False, True])
def test_every_setting_is_in_force_on_every_connection(tmp_path: Path, for_reading: bool) -> None:
    link = connect(tmp_path / "store.db", for_reading=for_reading)

    found = {name: link.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}

    assert PRAGMAS == found
    assert int(for_reading) == link.execute("PRAGMA query_only").fetchone()[0]
    link.close()


def test_a_setting_that_sqlite_does_not_take_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # Where a file of that name is made, which SQLite does not use.

    with pytest.raises(StoreUnwritable, match=r"did not take journal_mode=wal: \('memory',\)"):
        connect(Path(":memory:"))


def test_a_sqlite_without_memory_mapping_needs_none_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unmapped(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 -- as it is
            return super().execute("SELECT 1 WHERE 0" if "mmap_size" in sql else sql, *args)

    genuine = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: genuine(*a, factory=Unmapped, **k))

    link = connect(tmp_path / "store.db")

    assert 2 == link.execute("PRAGMA synchronous").fetchone()[0]
    link.close()


def test_tables_are_made_once_and_the_store_keeps_its_id(file: Path) -> None:
    assert STORE_ID == reopened(file)
    assert STORE_ID == reopened(file)


@pytest.mark.parametrize(
    ("statement", "named_"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON j BEGIN DELETE FROM j; END", "t"),
        ("CREATE TRIGGER run AFTER INSERT ON j BEGIN DELETE FROM j; END", "run"),
        ("CREATE VIEW v AS SELECT * FROM run", "v"),
        ("CREATE TABLE extra (x)", "extra"),
        ("CREATE INDEX more ON run (epoch)", "more"),
        ("ALTER TABLE j ADD COLUMN more", "j"),
        ("ALTER TABLE j RENAME TO k", "j"),
        ("DROP INDEX branch_run", "branch_run"),
        ("DROP TABLE effect", "effect"),
    ],
)
def test_any_other_schema_is_refused_and_the_stranger_named(
    file: Path, statement: str, named_: str
) -> None:
    tamper(file, statement)

    with pytest.raises(Damaged, match=f"schema is damaged: {named_} is not defined as Holdfast"):
        reopened(file)


def test_a_trigger_with_the_name_of_a_table_is_not_hidden_by_the_table(file: Path) -> None:
    tamper(
        file,
        "CREATE TRIGGER j AFTER INSERT ON run BEGIN DELETE FROM run; END",
        "PRAGMA writable_schema=1",
        "UPDATE sqlite_master SET rowid=rowid+100 WHERE name='j' AND type='table'",
    )

    with pytest.raises(Damaged, match="schema"):
        reopened(file)


def test_a_store_of_a_newer_format_is_refused_and_left_alone(file: Path) -> None:
    tamper(file, f"PRAGMA user_version={FORMAT + 1}", "CREATE TABLE news (x)")
    before = file.read_bytes()

    with pytest.raises(NewerFormat, match=f"has format {FORMAT + 1}, this Holdfast knows {FORMAT}"):
        reopened(file)

    assert before == file.read_bytes()


def test_a_store_that_needs_something_unknown_is_refused(file: Path) -> None:
    tamper(file, "UPDATE meta SET value=CAST('encrypted' AS BLOB) WHERE key='incompat'")

    with pytest.raises(NewerFormat, match="1 with encrypted"):
        reopened(file)


def test_what_a_newer_holdfast_says_may_be_ignored_is_ignored(file: Path) -> None:
    tamper(file, "UPDATE meta SET value=CAST('hints' AS BLOB) WHERE key='compat'")

    assert STORE_ID == reopened(file)


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA application_id=7",
        "PRAGMA user_version=0",
        "PRAGMA user_version=-3",
        "DELETE FROM meta WHERE key='store_id'",
        "UPDATE meta SET value='text of 16 chars' WHERE key='store_id'",
        "UPDATE meta SET value=x'00' WHERE key='store_id'",
        "UPDATE meta SET value='text' WHERE key='incompat'",
    ],
)
def test_a_database_that_is_not_ours_is_refused(file: Path, statement: str) -> None:
    tamper(file, statement)

    with pytest.raises((Damaged, NewerFormat)):
        reopened(file)


def test_a_transaction_is_whole_or_not_at_all(file: Path) -> None:
    link = connect(file)

    def insert_and_fail(error: BaseException, *statements: str) -> None:
        with transaction(link):
            for statement in statements:
                link.execute(statement)
            raise error

    with pytest.raises(KeyboardInterrupt):
        insert_and_fail(KeyboardInterrupt(), "INSERT INTO j VALUES (1, x'00', x'00')")
    with transaction(link):
        link.execute("INSERT INTO j VALUES (2, x'00', x'00')")
    with pytest.raises(KeyError):  # Ended behind its back: there is nothing left to undo.
        insert_and_fail(KeyError(), "COMMIT")

    assert [(2,)] == link.execute("SELECT id FROM j").fetchall()
    assert not link.in_transaction
    link.close()


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("what it said")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_FULL, StoreUnwritable, "the disk is full"),
        (sqlite3.SQLITE_READONLY, StoreUnwritable, "what it said"),
        (sqlite3.SQLITE_CANTOPEN, StoreUnwritable, "what it said"),
        (sqlite3.SQLITE_PERM, StoreUnwritable, "what it said"),
        (sqlite3.SQLITE_IOERR, StoreUnwritable, "the disk reported an error"),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnwritable, "the disk reported an error"),
        (sqlite3.SQLITE_BUSY, StoreBusy, "locked for 5 s"),
        (sqlite3.SQLITE_LOCKED, StoreBusy, "locked for 5 s"),
        (sqlite3.SQLITE_CORRUPT, Damaged, "what it said"),
        (sqlite3.SQLITE_NOTADB, Damaged, "what it said"),
        (0, Damaged, "what it said"),
    ],
)
def test_each_error_of_sqlite_has_a_name_of_ours(
    code: int, kind: type[HoldfastError], words: str
) -> None:
    error = translate(sqlite_error(code), Path("there/store.db"))

    assert kind is type(error)
    assert words in str(error)


def test_a_program_with_too_many_files_open_is_told_to_close_some(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(list(Path("/dev/fd").iterdir())) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        error = translate(sqlite_error(sqlite3.SQLITE_CANTOPEN), tmp_path / "store.db")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert "too many open files; close files and connections" in str(error)


def test_what_is_raised_inside_is_named_and_keeps_its_cause() -> None:
    cause = sqlite_error(sqlite3.SQLITE_FULL)

    with pytest.raises(StoreUnwritable) as caught, named(Path("there/store.db")):
        raise cause

    assert cause is caught.value.__cause__
    with pytest.raises(KeyError), named(Path("there/store.db")):
        raise KeyError
