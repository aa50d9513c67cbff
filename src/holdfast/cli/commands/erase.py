"""`holdfast erase RUN`: a run made unreadable for good."""

from typing import Annotated

import typer

from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell
from holdfast.cli.stores import opened
from holdfast.cli.text import plural
from holdfast.clock import SystemClock
from holdfast.errors import UsageError
from holdfast.store.erase import erase as erase_run
from holdfast.store.erase import to_erase
from holdfast.store.graves import Grave
from holdfast.store.repair.rebuild import LOST

CLOSING = closing(("holdfast erase run-42 --yes",), (0, 1, 2, 3, 7, 8))


def erase(
    id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, whole.")],  # noqa: A002 the public word
    *,
    with_forks: Annotated[
        bool, typer.Option("--with-forks", help="Also the runs that have it as their history.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without this nothing is done.")
    ] = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Erase a run: nothing of it can be read any more, by anybody.

    Its key is destroyed and its rows are deleted, also from free pages and the log. Large values
    that other runs hold stay theirs. That there was such a run stays known, by a hash of its id,
    and no other run gets this id. Copies of the store made before are out of reach; of a store that
    is not encrypted, so is what the disk itself still holds.
    """
    config = settings(store, output, as_json=as_json)
    with opened(config.store) as found:
        if not yes:
            doomed = ", ".join(run.body.id for run in to_erase(found, id, with_forks=with_forks))
            msg = f"erasing {doomed} cannot be undone; say `--yes` to do it"
            raise UsageError(msg)
        grave = Grave(SystemClock().now(), "`holdfast erase`")
        erased = erase_run(found, id, grave, with_forks=with_forks)
    if (config.store / LOST).exists():
        tell(f"{config.store / LOST} holds what repairs moved aside, perhaps also of this run")
    told = {"erased": erased}
    text = f"{plural(len(erased), 'run')} erased: {', '.join(erased)}"
    emit(config.output, document=told, lines=[told], grids=[text])
