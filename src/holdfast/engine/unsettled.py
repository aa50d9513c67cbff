"""Effects that a rollback was to take back and could not: what is left, whatever runs since."""

from collections.abc import Iterator

from holdfast.engine import tools
from holdfast.engine.depend import Lost, arranged
from holdfast.engine.losses import way
from holdfast.engine.outcomes import Entered, Fates
from holdfast.model.branches import RolledBack
from holdfast.model.ids import branch_of
from holdfast.model.journal import Declined, Happened, Intended, Undone
from holdfast.model.rollback import Take, Taken
from holdfast.store.marks import intent_mark, key_mark
from holdfast.store.reader import Reader, Run, first_row


def may_be_retried(reader: Reader, take: Take) -> bool:
    """Whether there is, or elsewhere may be, something that could take the effect back."""
    meant = _meant(reader, take)
    spec = None if meant is None else tools.find(meant.call.name, meant.module)
    return spec is None or spec.undo is not None or spec.offset is not None


def unsettled(reader: Reader, run: Run) -> list[Lost]:
    """Effects that rollbacks of a run left standing, in the order in which they are taken back.

    One that is back on the run's line, or was taken over by another line, is used and stays.
    """
    fates, ends = Fates(reader, run.ledger), reader.ends(run.row.head)
    found: dict[str, Lost] = {}
    for take in _takes(reader, run):
        meant = _meant(reader, take)
        if meant is None or take.key in found or take.row <= ends.get(branch_of(take.row), -1):
            continue
        fate = fates.of(Entered(meant=meant, at=(take.row, take.index)))
        if isinstance(fate, Undone | Declined) or _is_used(fates, meant, take):
            continue
        if may_be_retried(reader, take):
            taken = way(meant, fate if isinstance(fate, Happened) else None)
            found[take.key] = Lost(meant=meant, at=(take.row, take.index), taken=taken)
    return arranged(reader, list(found.values()))


def last_word(reader: Reader, run: Run, key: str) -> Undone | None:
    """What came of the newest attempt to take an effect back."""
    fates, last = Fates(reader, run.ledger), None
    for placed in reader.some(fates.rows(key_mark(key))):
        for entry in placed.row.entries:
            if isinstance(entry, Undone) and entry.key == key:
                last = entry
    return last


def why_left(reader: Reader, run: Run, taken: Taken) -> str:
    """Why an effect still stands."""
    said = last_word(reader, run, taken.key)
    if said is not None and said.error is not None:
        return f"{said.error.name}: {said.error.message}"
    return taken.why or (said.how if said is not None else "it was not tried")


def _takes(reader: Reader, run: Run) -> Iterator[Take]:
    """What rollbacks of a run were to take back, the newest rollback first."""
    for branch in sorted(reader.branches(run), key=lambda each: each.no, reverse=True):
        for entry in reader.row(first_row(branch)).row.entries:
            if isinstance(entry, RolledBack):
                yield from entry.takes


def _meant(reader: Reader, take: Take) -> Intended | None:
    """The intent of an effect; None where garbage collection removed it."""
    entries = reader.row(take.row).row.entries
    meant = entries[take.index] if take.index < len(entries) else None
    return meant if isinstance(meant, Intended) else None


def _is_used(fates: Fates, meant: Intended, take: Take) -> bool:
    """Whether another line of history took the effect over: its outcome answers there."""
    mark = intent_mark(meant.call, meant.module)
    own = branch_of(take.row)
    return any(
        each.meant.key == take.key and branch_of(each.at[0]) != own
        for each in fates.entered(fates.rows(mark))
    )
