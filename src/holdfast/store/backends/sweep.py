"""What is taken out of the database: a run with all that is its own, or what rows of it held."""

import sqlite3
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import chain

from holdfast import failpoint
from holdfast.errors import Damaged
from holdfast.model.ids import row_id
from holdfast.store.backends import catalog
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.connection import transaction
from holdfast.store.backends.packs import Around, Packer

FLOOR = "floor"
"""The key in `meta` of the highest numbers of run and branch that were ever removed."""

TAIL = "tail"
"""The key in `meta` of the generation of the tail whose rows the database has not taken in."""


def generation(link: sqlite3.Connection) -> int:
    """The generation of the tail that counts now; -1 where that is not what was written."""
    value = noted(link, TAIL)
    if value is None:
        return 0
    number = value[:8]
    return int.from_bytes(number, "big") if value == _checked(number) else -1


def begin_generation(link: sqlite3.Connection, number: int) -> None:
    """Inside a transaction that takes in all rows of the tail: the next generation begins."""
    row = (TAIL, _checked(number.to_bytes(8, "big")))
    link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def _checked(number: bytes) -> bytes:
    """A number that is known to be what was written: a wrong one would hide rows."""
    return number + zlib.crc32(number).to_bytes(4, "big")


def pruned_key(branch: int) -> str:
    """The key in `meta` of how many times rows of a branch were pruned.

    Where there is none, every point of the branch is there; where it grew, one may be gone since.
    """
    return f"pruned/{branch}"


def pruned_again(before: bytes | None) -> bytes:
    """What stands under that key when it has happened once more."""
    return (int.from_bytes(before or b"", "big") + 1).to_bytes(8, "big")


def floor(link: sqlite3.Connection) -> tuple[int, int]:
    """The highest numbers of run and branch that were removed: they are never given again."""
    found = noted(link, FLOOR)
    if found is None:
        return 0, 0
    return int.from_bytes(found[:8], "big"), int.from_bytes(found[8:], "big")


def next_numbers(link: sqlite3.Connection) -> tuple[int, int]:
    """The numbers of the next run and the next branch: above all that there are or ever were."""
    runs, branches = link.execute(
        "SELECT (SELECT max(no) FROM run), (SELECT max(no) FROM branch)"
    ).fetchone()
    removed = floor(link)
    return max(runs or 0, removed[0]) + 1, max(branches or 0, removed[1]) + 1


def noted(link: sqlite3.Connection, key: str) -> bytes | None:
    """What is noted under a key about the whole store; None: nothing."""
    found = link.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
    return found[0] if found is not None and type(found[0]) is bytes else None


def epoch_of(link: sqlite3.Connection, no: int) -> int | None:
    """The epoch of a run now; None if it is not there."""
    found = link.execute("SELECT epoch FROM run WHERE no=?", (no,)).fetchone()
    return found[0] if found else None


def size(link: sqlite3.Connection, no: int) -> int:
    """About how many bytes of the database are a run's own."""
    total = 0
    for branch, *_ in catalog.branches(link, no):
        for table in ("j", "pack"):
            found = link.execute(
                f"SELECT coalesce(sum(length(body)), 0) FROM {table} WHERE id BETWEEN ? AND ?",  # noqa: S608 a word of ours
                (row_id(branch, 0), row_id(branch + 1, 0) - 1),
            ).fetchone()
            total += found[0]
    return total


def branches(
    link: sqlite3.Connection, no: int, epoch: int, *, beside: Sequence[int] = ()
) -> list[int] | None:
    """The branches of a run that may go; None at another epoch, or while others need it.

    Those are forks that grew from it, and children whose effects stand in its ledger, but for the
    runs that go `beside` it.
    """
    if epoch_of(link, no) != epoch:
        return None
    own = [each[0] for each in catalog.branches(link, no)]
    going = ",".join(map(str, {no, *beside}))
    grown = link.execute(
        f"SELECT 1 FROM branch WHERE run NOT IN ({going}) "  # noqa: S608 numbers
        "AND parent IN (SELECT no FROM branch WHERE run=?)",
        (no,),
    ).fetchone()
    shared = link.execute(
        "SELECT 1 FROM effect WHERE run=? "  # noqa: S608 numbers
        f"AND id >> 32 NOT IN (SELECT no FROM branch WHERE run IN ({going}))",
        (no,),
    ).fetchone()
    return None if grown or shared else own


def indexed(link: sqlite3.Connection, ledger: int, *, besides: tuple[bytes, bytes]) -> list[int]:
    """The branches with rows that the ledger of a run finds by other marks than these."""
    found = link.execute(
        "SELECT DISTINCT id >> 32 FROM effect WHERE run=? AND intent NOT IN (?, ?)",
        (ledger, *besides),
    )
    return [each[0] for each in found]


def newest(link: sqlite3.Connection) -> int:
    """The highest number of a branch; later ones are above it."""
    return int(link.execute("SELECT coalesce(max(no), 0) FROM branch").fetchone()[0])


def is_grown(link: sqlite3.Connection, branch: int, since: int) -> bool:
    """Whether a line of history that goes through a branch was begun since branch `since`."""
    found = link.execute(
        "WITH RECURSIVE line(no, parent) AS (SELECT no, parent FROM branch WHERE no>? UNION "
        "SELECT branch.no, branch.parent FROM branch JOIN line ON branch.no=line.parent) "
        "SELECT 1 FROM line WHERE parent=?",
        (since, branch),
    ).fetchone()
    return found is not None


def users(link: sqlite3.Connection, branch: int) -> list[int]:
    """The numbers of the runs with a line of history that goes through a branch."""
    # With the plus SQLite reads all branches once for each that it finds, which are few; without,
    # it sorts them first, which takes six times as long.
    found = link.execute(
        "WITH RECURSIVE grown(no, run) AS (SELECT no, run FROM branch WHERE no=? UNION "
        "SELECT branch.no, branch.run FROM branch JOIN grown ON +branch.parent=grown.no) "
        "SELECT DISTINCT run FROM grown",
        (branch,),
    )
    return [each[0] for each in found]


def remove(
    link: sqlite3.Connection,
    doomed: Mapping[int, list[int]],
    notes: Sequence[tuple[str, bytes]] = (),
) -> None:
    """Delete runs, each with its branches, their rows, packs and index entries, in one transaction.

    The store remembers the `notes` under their keys.
    """
    failpoint.reach("gc.deleting")
    with transaction(link):
        for no, own in doomed.items():
            _delete(link, no, own)
        runs, lines = floor(link)
        numbers = max([runs, *doomed]), max([lines, *chain.from_iterable(doomed.values())])
        value = b"".join(number.to_bytes(8, "big") for number in numbers)
        for row in ((FLOOR, value), *notes):
            link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
    failpoint.reach("gc.deleted")


def _delete(link: sqlite3.Connection, no: int, own: list[int]) -> None:
    for branch in own:
        low, high = row_id(branch, 0), row_id(branch + 1, 0) - 1
        link.execute("DELETE FROM j WHERE id BETWEEN ? AND ?", (low, high))
        link.execute("DELETE FROM pack WHERE id BETWEEN ? AND ?", (low, high))
        link.execute("DELETE FROM meta WHERE key=?", (pruned_key(branch),))
    link.execute("DELETE FROM branch WHERE run=?", (no,))
    link.execute("DELETE FROM effect WHERE run=?", (no,))
    marks = ",".join("?" * len(own))  # In the ledger of the run it was forked from.
    link.execute(f"DELETE FROM effect WHERE id >> 32 IN ({marks})", own)  # noqa: S608 marks
    link.execute("DELETE FROM run WHERE no=?", (no,))
    if link.execute("SELECT 1 FROM sqlite_master WHERE name='key'").fetchone():
        link.execute("DELETE FROM key WHERE no=?", (no,))


def prune(
    link: sqlite3.Connection,
    packer: Packer,
    branch: int,
    gone: Container[int],
    pruned: Callable[[JournalRow], JournalRow],
) -> int:
    """Replace the packed rows of a branch that are in `gone`, in one transaction; says how many."""
    found = link.execute(
        "SELECT id, first, body FROM pack WHERE id BETWEEN ? AND ?",
        (row_id(branch, 0), row_id(branch + 1, 0) - 1),
    ).fetchall()
    count = 0
    failpoint.reach("gc.pruning")
    with transaction(link):
        for last, first, body in found:
            around = Around(link, first)
            rows = packer.unpack(first, last, body, around)
            left = [pruned(row) if row.id in gone else row for row in rows]
            due = sum(1 for row in rows if row.id in gone)
            if due:
                packed = packer.pack(left, around)
                link.execute("UPDATE pack SET body=? WHERE id=?", (packed, last))
                if left != packer.unpack(first, last, packed, around):  # As in `packs.write`.
                    raise Damaged(f"pack {last:#x}", "it does not read back as it was written")
                count += due
        if count:
            note_pruned(link, branch)
    failpoint.reach("gc.pruned")
    return count


def note_pruned(link: sqlite3.Connection, branch: int) -> None:
    """Note that rows of a branch were pruned once more."""
    key = pruned_key(branch)
    row = (key, pruned_again(noted(link, key)))
    link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
