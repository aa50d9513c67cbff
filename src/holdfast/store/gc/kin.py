"""Which runs stay while another does: what forks grow from, children, effects in one ledger.

The fence knows an effect by its row, wherever that stands. If a child or a fork were removed and
the run whose ledger it shares were not, what it did would be done again after a rollback.
"""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.model.run import Status
from holdfast.store.backends import sweep
from holdfast.store.marks import CHILD, SPLIT
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import of_each


class Need(msgspec.Struct, frozen=True):
    """Run `of` stays while run `by` does; both by number."""

    by: int
    of: int
    why: str


def needs(opened: Opened, runs: Sequence[Run]) -> list[Need]:
    """Everything for which one of these runs needs another of them."""
    reader = opened.reader
    found = of_each(reader, runs, reader.branches)
    branches = [branch for of_one in found for branch in of_one]
    owner = {branch.no: branch.run for branch in branches}
    grown = {
        (branch.run, owner.get(branch.parent, branch.run)) for branch in branches if branch.parent
    }
    return [
        *(Need(run, of, "a fork grows from it") for run, of in sorted(grown) if run != of),
        *_begun(runs),
        *_in_ledgers(opened, runs, owner),
    ]


def _begun(runs: Sequence[Run]) -> Iterator[Need]:
    """Children of runs that have not finished: what they gave may not be recorded there yet."""
    open_ = {run.body.id: run for run in runs if run.body.status is not Status.FINISHED}
    for run in runs:
        origin = run.body.origin
        if origin is not None and origin.is_child and origin.run in open_:
            parent = open_[origin.run]
            yield Need(parent.row.no, run.row.no, f"run {origin.run}, which began it, may go on")


def _in_ledgers(opened: Opened, runs: Sequence[Run], owner: dict[int, int]) -> Iterator[Need]:
    names = {run.row.no: run.body.id for run in runs}
    shared = [run for run in runs if run.ledger != run.row.no and run.ledger in names]
    done = {ledger: _done_in(opened, ledger, owner) for ledger in {run.ledger for run in shared}}
    for run in shared:
        no, ledger = run.row.no, run.ledger
        yield Need(no, ledger, f"run {run.body.id} shares its ledger")
        if no in done[ledger]:
            yield Need(ledger, no, f"its effects stand in the ledger of run {names[ledger]}")


def _done_in(opened: Opened, ledger: int, owner: dict[int, int]) -> set[int]:
    """The runs that did something, or took it back, in the ledger of a run."""
    seals = opened.reader.seals.of(ledger)
    with opened.records.alone() as link:
        found = sweep.indexed(link, ledger, besides=(seals.mark(SPLIT), seals.mark(CHILD)))
    return {owner[branch] for branch in found if branch in owner}
