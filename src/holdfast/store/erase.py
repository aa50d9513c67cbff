"""A run erased: its key destroyed, its rows deleted, and no page or log that still holds them.

Of an encrypted store, large values that it kept are left: without the run's rows nobody knows which
key opens them. Of an open store those that nobody else holds are removed too. What stays is a note
that there was such a run. Copies of the store made before are out of reach.
"""

import datetime as dt

from holdfast.errors import RunErased, RunHeld, RunShared, UnknownRun
from holdfast.store.gc import objects
from holdfast.store.gc.runs import remove
from holdfast.store.graves import Grave
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import is_gone

_FORKS = (
    "SELECT run FROM branch WHERE run<>:no "
    "AND parent IN (SELECT no FROM branch WHERE run=:no) "
    "UNION SELECT branch.run FROM effect JOIN branch ON branch.no = effect.id >> 32 "
    "WHERE effect.run=:no AND branch.run<>:no ORDER BY 1"
)


def erase(opened: Opened, id_: str, grave: Grave, *, with_forks: bool = False) -> list[str]:
    """Erase a run, and with `with_forks` those that have it as their history; says which.

    Doing it again goes on after a kill: the log is emptied also where the run is gone already.
    """
    doomed = to_erase(opened, id_, with_forks=with_forks)
    erased: list[str] = []
    for each in doomed:
        if not opened.leases.is_held(each.row.no) and remove(opened, [each], grave):
            erased.append(each.body.id)
        elif not is_gone(opened.reader, each):  # Else garbage collection removed it just now.
            raise _held(each)
    _wipe(opened)
    if id_ not in erased:
        raise UnknownRun(id_, str(opened.path))
    return erased


def to_erase(opened: Opened, id_: str, *, with_forks: bool = False) -> list[Run]:
    """The runs that erasing this one takes away, forks before what they are of.

    Where the run is gone already, what a kill may have left of it goes now.
    """
    try:
        run = opened.reader.find(id_)
    except RunErased:
        _wipe(opened)
        raise
    if run is None:
        raise UnknownRun(id_, str(opened.path))
    forks = _forks(opened, run)
    if forks and not with_forks:
        raise RunShared(id_, tuple(fork.body.id for fork in forks))
    return [*reversed(forks), run]


def _wipe(opened: Opened) -> None:
    """Let nothing of rows that are gone stand in the log, nor open values that only they named."""
    opened.records.empty_log()
    if not opened.records.is_sealed:
        named = objects.Named(opened)
        objects.remove(opened, named, objects.unnamed(opened, named))


def _forks(opened: Opened, run: Run) -> list[Run]:
    """Every run that reads rows of this one, also through another; a fork after what it is of.

    Children, whose effects stand in its ledger, count as such.
    """
    with opened.records.alone() as link:
        found = [run.row.no]
        for no in found:
            more = [each[0] for each in link.execute(_FORKS, {"no": no})]
            found += [each for each in more if each not in found]
    known = {each.row.no: each for each in opened.reader.runs()} if len(found) > 1 else {}
    return [known[no] for no in sorted(found[1:]) if no in known]


def _held(run: Run) -> RunHeld:
    since = dt.datetime.fromtimestamp(run.body.holder.since, dt.UTC)
    return RunHeld(run.body.id, str(run.body.holder), f"{since:%Y-%m-%d %H:%M:%S} UTC")
