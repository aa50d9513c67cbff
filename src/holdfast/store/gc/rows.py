"""What rows held, removed: their hashes stay, so the chain of what is kept goes on.

Which rows nobody needs is found out while others go on working. A branch that grew meanwhile, or a
point that was pinned, may need what nobody needed before; then nothing is removed this time.
"""

from collections.abc import Container

import msgspec

from holdfast.model.journal import Pruned, Row
from holdfast.store.backends import sweep
from holdfast.store.backends.base import JournalRow
from holdfast.store.gc import pins
from holdfast.store.open import Opened
from holdfast.store.reader import Run

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode


class Seen(msgspec.Struct, frozen=True):
    """What was there when it was judged which rows are needed: the newest branch, and pins."""

    branch: int
    pins: frozenset[pins.Pin]


def look(opened: Opened) -> Seen:
    """What there is now; to be asked before the runs are read that are judged."""
    with opened.records.alone() as link:
        return Seen(sweep.newest(link), frozenset(pins.read(link)))


def prune(
    opened: Opened, run: Run, branch: int, gone: Container[int], now: float, *, seen: Seen
) -> int:
    """Prune packed rows of a branch of a run as it was read; 0 if somebody took it up since.

    Also 0 if a line of history that goes through it has begun since, or anything was pinned.
    """
    seals = opened.reader.seals.of(run.row.no)

    def pruned(row: JournalRow) -> JournalRow:
        held = _decode(seals.open_row(row, row.before))
        return seals.prune(row, _encode(Row(held.base, held.turn, [Pruned(now)])))

    with opened.records.alone() as link:
        if sweep.epoch_of(link, run.row.no) != run.row.epoch:
            return 0
        if any(opened.leases.is_held(no) for no in sweep.users(link, branch)):
            return 0  # A fork that is held may be about to be rolled back to a point of it.
        if sweep.is_grown(link, branch, seen.branch) or not pins.read(link) <= seen.pins:
            return 0
        return sweep.prune(link, opened.records.packer, branch, gone, pruned)
