"""Packs: journal rows that have aged, compressed together, each with its hash as it was.

A pack holds rows of one branch without a gap, and beside them the values that states name, so that
a state can be read without the rows. It is written and its rows are deleted in one
transaction, after it was read back; whoever reads rows does not see the difference.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, Protocol

import msgspec

from holdfast import failpoint
from holdfast.errors import Damaged
from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.store.backends.base import Beside, JournalRow
from holdfast.store.backends.cuts import Cutter, cut, joined, named
from holdfast.store.codec.frame import HEADER_BYTES, bundle, is_bundle, open_frame, seal, unbundle

CACHE_PACKS = 4
CUT_FROM = 32
"""From this row of a branch on, values stand beside rows: of a short one the rows are soon read."""
_BEGIN = 128
"""So many bytes tell a pack that was written anew: lengths stand there, its hash or its seal."""
_LEVEL = 3
"""Of zstd: as fast as level 1 on what a pack holds, and a twentieth smaller."""

_encode = msgspec.msgpack.Encoder().encode


class _Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    mac: bytes
    body: bytes


_decode = msgspec.msgpack.Decoder(list[_Packed]).decode


class Around:
    """Where a pack stands, looked up when a packer asks."""

    def __init__(
        self,
        link: sqlite3.Connection,
        first: int,
        beside: Mapping[int, JournalRow] = MappingProxyType({}),
    ) -> None:
        self._link, self._first, self._beside = link, first, beside

    def run(self) -> int:
        """The number of the run whose rows they are."""
        return int(self._branch()[0])

    def key(self) -> bytes | None:
        """The run's wrapped key."""
        found = self._link.execute("SELECT body FROM key WHERE no=?", (self.run(),)).fetchone()
        return found[0] if found else None

    def before(self, end: Callable[[bytes], bytes]) -> bytes:
        """The hash that the first row follows: of the row before it, or of its branch.

        `end` says which hash is the last in the body of a pack.
        """
        if (row := self._beside.get(self._first - 1)) is not None:
            return row.mac
        asked = (self._first - 1,)
        if found := self._link.execute("SELECT mac FROM j WHERE id=?", asked).fetchone():
            return bytes(found[0])
        if found := self._link.execute("SELECT body FROM pack WHERE id=?", asked).fetchone():
            return end(bytes(found[0]))
        return bytes(self._branch()[1])

    def _branch(self) -> tuple[int, bytes]:
        no = branch_of(self._first)
        found = self._link.execute("SELECT run, mac FROM branch WHERE no=?", (no,)).fetchone()
        if found is None or type(found[0]) is not int or type(found[1]) is not bytes:
            raise Damaged(f"branch {no}", "it is named but not there")
        return found[0], found[1]


class Packer(Protocol):
    """Rows ↔ the body of a pack."""

    def open(self, rows: Sequence[JournalRow], around: Around) -> list[JournalRow]:
        """Rows of the journal as a pack keeps them."""

    def pack(self, rows: Sequence[JournalRow], around: Around) -> bytes:
        """The body of a pack of rows that `open` gave."""

    def unpack(self, first: int, last: int, body: bytes, around: Around) -> list[JournalRow]:
        """The rows that `pack` was given; `Damaged` for any others."""

    def beside(self, first: int, last: int, body: bytes, around: Around) -> Beside | None:
        """The values that the pack holds beside its rows; None in one of version 1."""


class OpenPacker:
    """Packs of version 1, which hold rows as they stand and nothing beside them."""

    def open(self, rows: Sequence[JournalRow], around: Around) -> list[JournalRow]:  # noqa: ARG002 these packs are not bound to their place
        """The rows as they are."""
        return list(rows)

    def pack(self, rows: Sequence[JournalRow], around: Around) -> bytes:  # noqa: ARG002 as above
        """The body of a pack of these rows."""
        return make(rows)

    def unpack(self, first: int, last: int, body: bytes, around: Around) -> list[JournalRow]:  # noqa: ARG002 as above
        """The rows of a pack."""
        return unpack(first, last, body)

    def beside(self, first: int, last: int, body: bytes, around: Around) -> Beside | None:  # noqa: ARG002 as above
        """Nothing."""
        return None


def make(rows: Sequence[JournalRow], cutter: Cutter | None = None) -> bytes:
    """What a pack holds of these rows; with a `cutter`, values beside those of a long branch."""
    if cutter is not None and seq_of(rows[0].id) >= CUT_FROM:
        return bundle([seal(each, _LEVEL) for each in cut(rows, cutter)])
    return seal(_encode([(row.mac, row.body) for row in rows]), _LEVEL)


def last_mac(body: bytes) -> bytes:
    """The hash of the last row in a pack of version 1; none of one that cannot be read."""
    try:
        return _decode(open_frame(body, ""))[-1].mac
    except (Damaged, msgspec.DecodeError, IndexError):
        return b""


def unpack(first: int, last: int, body: bytes, begin: int = HEADER_BYTES) -> list[JournalRow]:
    """The rows that `make` was given, if those are from `first` to `last`.

    What it gave begins behind its header, or later.
    """
    where = f"pack {last:#x}"
    if type(first) is not int:
        raise Damaged(where, f"it begins with {first!r}")
    try:
        if is_bundle(body):
            values, pieces = (open_frame(each, where) for each in unbundle(body, 2, where, begin))
            rows = joined(first, values, pieces)
        else:
            found = enumerate(_decode(open_frame(body, where)), start=first)
            rows = [JournalRow(id=id_, mac=each.mac, body=each.body) for id_, each in found]
    except (ValueError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error
    if first + len(rows) - 1 != last:
        raise Damaged(where, f"it holds {len(rows)} rows, not those from {first!r}")
    return rows


def beside(
    span: tuple[int, int], ends: tuple[bytes, bytes], body: bytes, begin: int = HEADER_BYTES
) -> Beside:
    """The values that `make` laid beside the rows; what it gave begins as for `unpack`."""
    first, last = span
    where = f"pack {last:#x}"
    try:
        names, values = named(first, open_frame(unbundle(body, 2, where, begin)[0], where))
    except (ValueError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error
    return Beside(first=first, last=last, ends=ends, names=names, values=values)


class Ready(NamedTuple):
    """A pack made of rows, which gives them again."""

    rows: list[JournalRow]
    body: bytes

    @property
    def inner(self) -> list[int]:
        """The rows that need not stand loose before the pack is written: all but the last two.

        The last one is told to be the next by the one before it.
        """
        return [row.id for row in self.rows[:-2]]


def ready(
    link: sqlite3.Connection,
    packer: Packer,
    first: int,
    last: int,
    new: JournalRow | None = None,
    *,
    beside: Mapping[int, JournalRow] = MappingProxyType({}),
) -> Ready:
    """A pack of the rows from `first` to `last`, or of those before it and a `new` one.

    Some may stand `beside` the database. Made before a commit begins, it keeps nobody else from
    committing meanwhile.
    """
    found = loose(link, first, last if new is None else new.id - 1, beside)
    rows = _without_gap(found if new is None else [*found, new])
    around = Around(link, rows[0].id, beside)
    kept = packer.open(rows, around)
    body = packer.pack(kept, around)
    if kept != packer.unpack(rows[0].id, last, body, around):  # No `assert`: -O drops those.
        raise _unlike(last)
    return Ready(rows, body)


def write(
    link: sqlite3.Connection,
    packer: Packer,
    first: int,
    last: int,
    made: Ready | None = None,
    *,
    beside: Mapping[int, JournalRow] = MappingProxyType({}),
) -> set[int]:
    """Inside a transaction: put the rows from `first` to `last` into a pack; says which it holds.

    One that is `made` already is taken if the rows are still those that it was made of.
    """
    known = link.execute("SELECT 1 FROM pack WHERE id=?", (last,)).fetchone()
    held = set[int]()
    if known is None:
        if made is None or made.rows != _without_gap(loose(link, first, last, beside)):
            made = ready(link, packer, first, last, beside=beside)
        first = made.rows[0].id
        held.update(range(first, last + 1))
        failpoint.reach("pack.writing")
        link.execute("INSERT INTO pack VALUES (?,?,?)", (last, first, made.body))
        found = link.execute("SELECT body FROM pack WHERE id=?", (last,)).fetchone()
        if found != (made.body,):
            raise _unlike(last)
        failpoint.reach("pack.written")
    link.execute("DELETE FROM j WHERE id BETWEEN ? AND ?", (first, last))
    return held


def insert(link: sqlite3.Connection, rows: Iterable[JournalRow]) -> None:
    """Let rows stand loose."""
    for row in rows:
        link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))


def _unlike(last: int) -> Damaged:
    return Damaged(f"pack {last:#x}", "it does not read back as it was written")


def read_rows(link: sqlite3.Connection, first: int, last: int) -> list[JournalRow]:
    """The unpacked rows from `first` to `last`, in order."""
    found = link.execute(
        "SELECT id, mac, body FROM j WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
    ).fetchall()
    return [JournalRow(id=id_, mac=mac, body=body) for id_, mac, body in found]


def loose(
    link: sqlite3.Connection, first: int, last: int, beside: Mapping[int, JournalRow]
) -> list[JournalRow]:
    """The unpacked rows from `first` to `last`, in order, with those `beside` the database."""
    found = read_rows(link, first, last)
    more = [row for id_, row in beside.items() if first <= id_ <= last]
    if not more:
        return found
    both = {row.id: row for row in chain(found, more)}
    return [both[id_] for id_ in sorted(both)]


def end(link: sqlite3.Connection, branch: int) -> int:
    """The id of the newest row of a branch, loose or packed; -1 where it has none."""
    span = row_id(branch, 0), row_id(branch + 1, 0) - 1
    newest = [
        link.execute(f"SELECT max(id) FROM {rows} WHERE id BETWEEN ? AND ?", span).fetchone()[0]  # noqa: S608 our own names
        for rows in ("j", "pack")
    ]
    if any(type(id_) is int and not span[0] <= id_ <= span[1] for id_ in newest):
        # SQLite found it among others by a key that is not its own.
        raise Damaged(f"branch {branch}", "the keys of its rows are out of order")
    return max(id_ if type(id_) is int else -1 for id_ in newest)


def _begins(link: sqlite3.Connection, id_: int) -> tuple[int, bytes] | None:
    """How long a pack is and how it begins, without reading the rest; None: there is none."""
    try:
        with link.blobopen("pack", "body", id_, readonly=True) as body:
            return len(body), body.read(_BEGIN)
    except sqlite3.Error:
        return None


def _without_gap(rows: list[JournalRow]) -> list[JournalRow]:
    """The newest of these rows that follow each other; older ones stay loose."""
    start = len(rows) - 1
    while start > 0 and rows[start - 1].id == rows[start].id - 1:
        start -= 1
    return rows[start:]


class Packs:
    """Reads packs; the last few are kept, because rows are read in runs.

    A kept one is compared with what stands there now: garbage collection writes packs anew.
    """

    def __init__(self, packer: Packer) -> None:
        self._packer = packer
        self._kept: dict[int, tuple[tuple[int, bytes], list[JournalRow]]] = {}

    def rows(self, link: sqlite3.Connection, first: int, last: int) -> Iterator[JournalRow]:
        """The packed rows from `first` to `last`, in order."""
        found = link.execute(
            "SELECT id, first FROM pack WHERE id BETWEEN ? AND ? ORDER BY id",
            (first, row_id(branch_of(last) + 1, 0) - 1),
        )
        with contextlib.closing(found):  # Left open by an error, it would keep the database open.
            for end, start in found:
                if type(start) is int and start > last:
                    return
                rows = self._open(link, start, end)
                yield from rows[max(0, first - start) : max(0, last - start + 1)]

    def beside(self, link: sqlite3.Connection, first: int, last: int) -> Iterator[Beside | Damaged]:
        """The values beside packed rows from `first` to `last`, pack by pack, or what is wrong."""
        found = link.execute(
            "SELECT id, first, body FROM pack WHERE id BETWEEN ? AND ? ORDER BY id",
            (first, row_id(branch_of(last) + 1, 0) - 1),
        )
        with contextlib.closing(found):  # As above: what is damaged remembers where it was found.
            for end, start, body in found:
                if type(start) is not int or type(body) is not bytes:
                    continue  # Its rows say so when they are read.
                if start > last:
                    return
                try:
                    values = self._packer.beside(start, end, body, Around(link, start))
                except Damaged as damage:
                    yield damage
                else:
                    if values is not None:
                        yield values

    def last(self, link: sqlite3.Connection, first: int, last: int) -> JournalRow | None:
        """The newest packed row from `first` to `last`, which end a branch."""
        found = link.execute(
            "SELECT id, first FROM pack WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (first, last),
        ).fetchone()
        return self._open(link, found[1], found[0])[-1] if found else None

    def _open(self, link: sqlite3.Connection, first: int, last: int) -> list[JournalRow]:
        known = self._kept.pop(last, None)
        if known is None or known[0] != _begins(link, last):
            found = link.execute("SELECT body FROM pack WHERE id=?", (last,)).fetchone()
            if found is None or type(found[0]) is not bytes:
                raise Damaged(f"pack {last:#x}", "it is named but not there")
            if type(first) is not int:
                raise Damaged(f"pack {last:#x}", f"it begins with {first!r}")
            rows = self._packer.unpack(first, last, found[0], Around(link, first))
            known = (len(found[0]), found[0][:_BEGIN]), rows
        self._kept[last] = known
        while len(self._kept) > CACHE_PACKS:
            del self._kept[next(iter(self._kept))]
        return known[1]
