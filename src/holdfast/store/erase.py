"""A run erased: its key destroyed, its rows deleted, and no page or log that still holds them.

What is left of it are large values that it kept: without the run's rows nobody knows which key
opens them. Copies of the store made before are out of reach.
"""

import datetime as dt

from holdfast.errors import RunHeld, RunShared, UnknownRun, UsageError
from holdfast.store.gc.runs import remove
from holdfast.store.open import Opened
from holdfast.store.reader import Run

_FORKS = (
    "SELECT DISTINCT run FROM branch WHERE run<>:no "
    "AND parent IN (SELECT no FROM branch WHERE run=:no) ORDER BY run"
)


def erase(opened: Opened, id_: str, *, with_forks: bool = False) -> list[str]:
    """Erase a run, and with `with_forks` those that have it as their history; says which.

    Doing it again goes on after a kill: the log is emptied also where the run is gone already.
    """
    if not opened.records.is_sealed:
        why = "a run can be erased only from an encrypted store: `holdfast keys init` makes it one"
        raise UsageError(why)
    run = opened.reader.find(id_)
    if run is None:
        opened.records.empty_log()
        raise UnknownRun(id_, str(opened.path))
    forks = _forks(opened, run)
    if forks and not with_forks:
        raise RunShared(id_, tuple(fork.body.id for fork in forks))
    erased: list[str] = []
    for each in [*reversed(forks), run]:
        if opened.leases.is_held(each.row.no) or not remove(opened, each):
            raise _held(each)
        erased.append(each.body.id)
    opened.records.empty_log()
    return erased


def _forks(opened: Opened, run: Run) -> list[Run]:
    """Every run that reads rows of this one, also through another; a fork after what it is of."""
    with opened.records.alone() as link:
        found = [run.row.no]
        for no in found:
            more = [each[0] for each in link.execute(_FORKS, {"no": no})]
            found += [each for each in more if each not in found]
    known = {each.row.no: each for each in opened.reader.runs()} if len(found) > 1 else {}
    return [known[no] for no in sorted(found[1:])]


def _held(run: Run) -> RunHeld:
    since = dt.datetime.fromtimestamp(run.body.holder.since, dt.UTC)
    return RunHeld(run.body.id, str(run.body.holder), f"{since:%Y-%m-%d %H:%M:%S} UTC")
