"""What rows held, removed: their hashes stay, so the chain of what is kept goes on."""

from collections.abc import Container

import msgspec

from holdfast.model.journal import Pruned, Row
from holdfast.store.backends import sweep
from holdfast.store.backends.base import JournalRow
from holdfast.store.open import Opened
from holdfast.store.reader import Run

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode


def prune(opened: Opened, run: Run, branch: int, gone: Container[int], now: float) -> int:
    """Prune packed rows of a branch of a run as it was read; 0 if somebody took it up since."""
    seals = opened.reader.seals.of(run.row.no)

    def pruned(row: JournalRow) -> JournalRow:
        held = _decode(seals.open_row(row, row.before))
        return seals.prune(row, _encode(Row(held.base, held.turn, [Pruned(now)])))

    with opened.records.alone() as link:
        if sweep.epoch_of(link, run.row.no) != run.row.epoch or opened.leases.is_held(run.row.no):
            return 0
        return sweep.prune(link, opened.records.packer, branch, gone, pruned)
