"""A connection to the database file: settings read back, schema compared, foreign errors named."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast import failpoint
from holdfast.errors import Damaged, NewerFormat, StoreBusy, StoreError, StoreUnwritable
from holdfast.store.backends.place import refused
from holdfast.store.backends.schema import (
    FORMAT,
    LEAVES,
    PATCHES,
    SEALED,
    SEALED_TABLES,
    TABLES,
    TAIL,
    VALUES,
)

APPLICATION = 0x484F4C44
"""`HOLD`: says whose file it is."""

PAGE_BYTES = 4096

PRAGMAS: dict[str, int | str] = {
    "journal_mode": "wal",
    "synchronous": 2,
    "wal_autocheckpoint": 0,
    "mmap_size": 0,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "secure_delete": 1,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
}
"""What every connection is set to, and is checked to be."""

FOREIGN = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""What SQLite raises, also about a file that is not as it was written."""


def connect(file: Path, *, for_reading: bool = False) -> sqlite3.Connection:
    """Open the file with every setting of `PRAGMAS` in force; one that is new is its owner's."""
    _make(file)
    link = sqlite3.connect(
        file, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    try:
        _set(link, file)
        if for_reading:
            link.execute("PRAGMA query_only=1")
    except BaseException:
        link.close()
        raise
    return link


def _make(file: Path) -> None:
    """A new file for nobody but its owner; its log takes over the mode.

    One that is there is not even opened: to close it would let go of SQLite's locks on it.
    """
    with contextlib.suppress(OSError):  # SQLite says what is wrong with the place.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _set(link: sqlite3.Connection, file: Path) -> None:
    for name, wanted in PRAGMAS.items():
        link.execute(f"PRAGMA {name}={wanted}").fetchall()
        found = link.execute(f"PRAGMA {name}").fetchone()
        if name == "mmap_size" and found is None:
            continue  # Built without memory mapping: there is nothing to switch off.
        if found is None or found[0] != wanted:
            raise StoreUnwritable(str(file), f"SQLite did not take {name}={wanted}: {found}")


def create(
    link: sqlite3.Connection, store_id: bytes, root: Callable[[bytes], bytes] | None = None
) -> bool:
    """Make the tables if the file is new, and say so; a kill leaves it new.

    `root` makes an encrypted store: it is given the store's id and returns the store's own key.
    """
    if not is_new(link):
        return False
    key = None if root is None else root(store_id)
    failpoint.reach("store.creating")
    with transaction(link):
        for sql in TABLES.values():
            link.execute(sql)
        link.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
        link.execute(
            "INSERT INTO meta VALUES ('incompat', ?), ('compat', ?)",
            (f"{LEAVES} {PATCHES} {TAIL} {VALUES}".encode(), b""),
        )
        if key is not None:
            mark_sealed(link, key)
        link.execute("INSERT INTO meta VALUES ('pad', ?)", (b"",))
        link.execute(f"PRAGMA application_id={APPLICATION}")
        link.execute(f"PRAGMA user_version={FORMAT}")
    failpoint.reach("store.created")
    return True


def is_new(link: sqlite3.Connection) -> bool:
    """Whether no store was made in the file yet, or its making was cut off."""
    return not link.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def mark_sealed(link: sqlite3.Connection, key: bytes) -> None:
    """Inside a transaction: make it an encrypted store, whose own wrapped key is `key`."""
    for sql in SEALED_TABLES.values():
        link.execute(sql)
    features = " ".join(sorted({*_features(link), SEALED}))
    link.execute("UPDATE meta SET value=? WHERE key='incompat'", (features.encode(),))
    link.execute("INSERT INTO key VALUES (0, ?)", (key,))


def is_sealed(link: sqlite3.Connection) -> bool:
    """Whether the store says that it is encrypted."""
    return SEALED in _features(link)


def holds_values(link: sqlite3.Connection) -> bool:
    """Whether packs of the store may hold values beside their rows; older ones have no such."""
    return VALUES in _features(link)


def names_leaves(link: sqlite3.Connection) -> bool:
    """Whether saves in the store may name leaves; in older ones none does."""
    return LEAVES in _features(link)


def holds_patches(link: sqlite3.Connection) -> bool:
    """Whether large values in the store may be patches on others; in older ones none is."""
    return PATCHES in _features(link)


def holds_tail(link: sqlite3.Connection) -> bool:
    """Whether the newest rows of the store may stand beside the database; in older ones none do."""
    return TAIL in _features(link)


def _features(link: sqlite3.Connection) -> set[str]:
    found = link.execute("SELECT value FROM meta WHERE key='incompat'").fetchone()
    value = found[0] if found else b""
    return {*(value.decode("utf-8", "replace") if type(value) is bytes else str(value)).split()}


def check(link: sqlite3.Connection, file: Path) -> bytes:
    """The store's id, once format and schema are exactly those this Holdfast writes."""
    version = link.execute("PRAGMA user_version").fetchone()[0]
    if version > FORMAT:
        raise NewerFormat(str(file.parent), str(version), str(FORMAT))
    if link.execute("PRAGMA application_id").fetchone()[0] != APPLICATION or version < FORMAT:
        raise Damaged(str(file), "this is not a database of Holdfast")
    # Compared as pairs, not by name: a trigger may bear the name of a table.
    found = {*link.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()}
    features = _features(link) if ("meta", TABLES["meta"]) in found else set()
    if unknown := features - {LEAVES, PATCHES, SEALED, TAIL, VALUES}:
        flags = ", ".join(sorted(unknown))
        raise NewerFormat(str(file.parent), f"{version} with {flags}", str(FORMAT))
    wanted = TABLES | SEALED_TABLES if SEALED in features else TABLES
    if odd := found ^ {*wanted.items()}:
        name = min(str(name) for name, _ in odd)
        raise Damaged(f"{file}, schema", f"{name} is not defined as Holdfast defines it")
    meta = dict(link.execute("SELECT key, value FROM meta").fetchall())
    if meta.get("incompat") is None:
        raise Damaged(f"{file}, meta", "it does not say which features the store needs")
    store_id = meta.get("store_id")
    if not isinstance(store_id, bytes) or len(store_id) != 16:  # noqa: PLR2004 a store id has 16 bytes
        raise Damaged(f"{file}, meta", "the store has no id")
    return store_id


@contextlib.contextmanager
def transaction(link: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; on an error nothing, and the error rises."""
    try:
        link.execute("BEGIN IMMEDIATE")
        yield
        link.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            link.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def named(file: Path) -> Iterator[None]:
    """Turn what SQLite raises into an error of ours that says what to do next."""
    try:
        yield
    except FOREIGN as error:
        raise translate(error, file) from error


def translate(error: Exception, file: Path) -> StoreError:
    """The error of ours for an error of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_FULL:
            return StoreUnwritable(str(file.parent), "the disk is full")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return refused(file.parent, str(error))
        case sqlite3.SQLITE_IOERR if _is_full(file.parent):  # Where its log could not grow.
            return StoreUnwritable(str(file.parent), "the disk is full")
        case sqlite3.SQLITE_IOERR:
            return StoreUnwritable(str(file.parent), f"the disk reported an error ({error})")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(str(file.parent), 5.0)
        case _:
            return Damaged(str(file), str(error))


def _is_full(place: Path) -> bool:
    """Whether not one page more fits on the disk."""
    try:
        found = os.statvfs(place)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < PAGE_BYTES
