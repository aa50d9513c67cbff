"""`holdfast demo`: an agent is killed a dozen times and continued; then the proof."""

import contextlib
import dataclasses
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from holdfast.cli.demo.proof import Proof
from holdfast.cli.demo.stage import play
from holdfast.cli.demo.table import grid
from holdfast.cli.demo.view import Lines, Picture, View
from holdfast.cli.options import AsJson, Output, closing, settings
from holdfast.cli.output import emit, is_terminal, put, tell
from holdfast.clock import SystemClock
from holdfast.errors import UsageError

EXIT_BROKEN = 1
CLOSING = closing(
    ("holdfast demo", "holdfast demo --seed 7 --kills 20", "holdfast demo --keep kept -o json"),
    (0, 2, 130),
)
CLOSING += f"\n  {EXIT_BROKEN:<4} a promise was not kept"
KILLS = 12
KILLS_MAX = 100
SEED_MAX = 10_000

Kills = Annotated[int, typer.Option(min=1, max=KILLS_MAX, help="How often the agent is killed.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Chooses the moments of the kills.", show_default="new")
]
Keep = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="A new directory that is kept, to look at.", dir_okay=True),
]


def demo(
    kills: Kills = KILLS,
    seed: Seed = None,
    keep: Keep = None,
    output: Output = None,
    as_json: AsJson = False,  # noqa: FBT002 handed on by the parser
) -> int:
    """Kill an agent a dozen times and see that nothing is lost or repeated.

    A support agent with a scripted model pays refunds into an outside ledger and writes mails. Its
    process is killed with SIGKILL, also in the middle of payments, and started again each time.
    No key and no network are needed; everything happens in a directory that is removed afterwards.
    """
    how = settings(output=output, as_json=as_json).output
    seed = secrets.randbelow(SEED_MAX) if seed is None else seed
    with _folder(keep) as folder, _view(how) as view:
        proof = play(folder, kills=kills, seed=seed, clock=SystemClock(), view=view)
    _show(proof, how)
    if keep is not None:
        tell(f"kept; look at it with `holdfast show demo --store {keep / 'store'}`")
    if not proof.is_kept:
        tell(f"a promise was not kept; repeat it with `holdfast demo --seed {seed} --keep PATH`")
    return 0 if proof.is_kept else EXIT_BROKEN


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where store and world lie: a new directory that stays, or one that goes."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as made:
            yield Path(made)
        return
    try:
        keep.mkdir(parents=True)
    except OSError as error:
        msg = f"--keep {keep}: {error.strerror}; name a directory that can be made"
        raise UsageError(msg) from error
    yield keep


@contextlib.contextmanager
def _view(how: str) -> Iterator[View]:
    if how != "table":
        yield Lines(tell)
    elif is_terminal():
        with Picture(Console(highlight=False)) as picture:
            yield picture
    else:
        yield Lines(put)


def _show(proof: Proof, how: str) -> None:
    document = {**dataclasses.asdict(proof), "is_kept": proof.is_kept}
    emit(how, document=document, lines=[document], grids=["", grid(proof)])
