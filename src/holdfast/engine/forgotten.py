"""Effects that were done, or may have been, and that a repaired run knows nothing of."""

from collections.abc import Container, Sequence

from holdfast.engine.fates import Patient
from holdfast.engine.question import show
from holdfast.model.ids import branch_of
from holdfast.model.journal import Declined, Entry, Happened, Intended
from holdfast.model.ledger import Opened
from holdfast.store.repair.sift import Sifted, Stray


def unsure_of(
    patient: Patient, head: Sifted, added: Sequence[Entry], every: Container[int]
) -> list[str]:
    """Effects of which it is not known any more whether they were done.

    `added` is what is known of them beyond the healthy beginning of the run's `head`; `every` are
    the branches that are kept: what is indexed in another is lost with it.
    """
    lost = [each.lost for each in patient.branches]
    lines: list[Sifted | Stray] = [*patient.branches, *patient.strays]
    read = {placed.id for each in lines for placed in each.rest}
    known = {each.key for each in _entries(head) if isinstance(each, Happened | Declined)}
    known |= {each.key for each in added if isinstance(each, Intended)}
    intended = [each for each in _entries(head) if isinstance(each, Intended)]
    names = [told(each) for each in intended if each.key not in known]
    hidden = {
        id_
        for id_ in patient.indexed
        if id_ not in read and (branch_of(id_) not in every or any(id_ in ids for ids in lost))
    }
    names += ["one that cannot be read"] * len(hidden)
    names += ["any in rows that are gone"] * bool(patient.gone)
    if any(each.lost and is_ledger(each) for each in patient.branches):
        names.append("approvals in rows of the ledger that are lost")
    return names


def lost_besides(
    patient: Patient, head: Sifted, carried: Container[str]
) -> tuple[list[str], list[str]]:
    """Effects that damage took from other lines of a run's ledger: of unknown fate, and done.

    The fence does not know of them any more. Those that are `carried` into rows made anew, or
    stand elsewhere too, it does.
    """
    lines = [*patient.branches, *patient.kin]
    standing = {
        entry.key
        for each in lines
        for placed in each.kept
        for entry in placed.row.entries
        if isinstance(entry, Happened)
    }
    unsure: list[str] = []
    done: list[str] = []
    others: list[Sifted | Stray] = [line for line in lines if line is not head and line.lost]
    for each in [*others, *patient.strays]:
        entries = _entries(each)
        ended = {entry.key for entry in entries if isinstance(entry, Happened | Declined)}
        over = {entry.key for entry in entries if isinstance(entry, Happened)}
        for entry in entries:
            if not isinstance(entry, Intended) or entry.key in carried or entry.key in standing:
                continue
            if entry.key in over:
                done.append(told(entry))
            elif entry.key not in ended:
                unsure.append(told(entry))
        read = {placed.id for placed in each.rest}
        hidden = {id_ for id_ in patient.indexed if id_ in each.lost and id_ not in read}
        unsure += ["one that cannot be read"] * len(hidden)
    return list(dict.fromkeys(unsure)), list(dict.fromkeys(done))


def done_in(head: Sifted, added: Sequence[Entry]) -> list[str]:
    """Effects whose outcome can be read in rows that are cut off: a run that goes on asks anew."""
    done = {each.key for each in _entries(head) if isinstance(each, Happened)}
    done -= {each.key for each in added if isinstance(each, Happened)}
    intended = [each for each in _entries(head) if isinstance(each, Intended) and each.key in done]
    return list(dict.fromkeys(told(each) for each in intended))


def _entries(head: Sifted | Stray) -> list[Entry]:
    """What can be read behind the healthy beginning."""
    until = head.until if isinstance(head, Sifted) else (-1, 0)
    return [
        entry
        for placed in head.rest
        for index, entry in enumerate(placed.row.entries)
        if (placed.id, index) > until
    ]


def told(intended: Intended) -> str:
    """An effect as people read it."""
    return show(intended.call.name, intended.call.asked)


def is_ledger(found: Sifted) -> bool:
    """Whether a branch stands beside its run's history, as its ledger."""
    return bool(found.kept) and any(isinstance(e, Opened) for e in found.kept[0].row.entries)
