"""`holdfast rollback RUN --to CP`: go back to an older point, after showing what that means."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from holdfast.cli import apps
from holdfast.cli.carry import restart_command
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import ask, can_ask, emit, put, tell
from holdfast.cli.stores import find_run, opened
from holdfast.cli.values import to_json
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.engine.item import UNDO
from holdfast.errors import UsageError
from holdfast.model.limits import seconds
from holdfast.model.rollback import Taken
from holdfast.model.run import RunInfo
from holdfast.policy.effects import TAKEN_BACK

CLOSING = closing(
    (
        "holdfast rollback run-42 --to 7 --app shop --dry-run",
        "holdfast rollback run-42 --to 7 --app shop --yes",
        "holdfast rollback run-42 --to before:3f2a --app shop",
        "holdfast rollback run-42 --to newest-valid --app shop",
        "holdfast rollback run-42 --to 7 --only memory --yes",
        "holdfast rollback run-42 --undo --yes",
        "holdfast rollback run-42 --retry --app shop",
    ),
    (0, 1, 2, 3, 7, 8),
)
COLUMNS = ("effect", "key", "came to", "why")
EXIT_LEFT = 8
UNDOES = "--undo goes back to the branch before"
NONE_LEFT = "no undo of it has failed; what has neither undo= nor offset= stands"
GOES_BACK = "the head of run {} goes back to the branch that its last rollback left"

To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="CP",
        help="A checkpoint, a turn, newest-valid, before:KEY of an effect, or start.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="SECTION", help="Only this section; may be repeated."),
]
Undo = Annotated[
    bool, typer.Option("--undo", help="Go back to the branch that the last rollback left.")
]
Again = Annotated[
    bool, typer.Option("--retry", help="Try again the undos that failed; nothing else changes.")
]
ForkEffects = Annotated[
    bool, typer.Option("--fork-effects", help="What still stands may be done again: no fence.")
]
Wait = Annotated[
    str,
    typer.Option(
        "--wait", metavar="TIME", help="How long a process at work may take to pause the run."
    ),
]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says."""

    to: str | None
    only: list[str] | None
    is_undo: bool
    is_free: bool
    reason: str | None
    is_agreed: bool


def rollback(
    id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or how it begins.")],  # noqa: A002 the public word
    *,
    to: To = None,
    only: Only = None,
    undo: Undo = False,
    retry: Again = False,
    fork_effects: ForkEffects = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; recorded.")] = None,
    wait: Wait = "30s",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the plan.")] = False,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Move a run back to an older point: later effects are undone, or listed where they cannot be.

    The plan is shown first; without a terminal it needs --yes. Handlers (`undo=`, `offset=`,
    `probe=`) are looked up only in modules that you name with --app. The old branch is kept. A
    rollback that was cut off goes on where it was.

    A run that a process works on is paused first, after asking: that process lets it go at its
    next call. A supervised or watched run then goes on by itself, any other ends with status 8.
    """
    config = settings(store, output, app, as_json=as_json)
    if (undo or retry) and (to is not None or only):
        what = "--retry tries failed undos again" if retry else UNDOES
        raise UsageError(f"{what}; it takes neither --to nor --only")
    try:
        wait_s = seconds(wait)
    except ValueError as error:
        raise UsageError(f"--wait: {error}") from None
    with opened(config.store) as found:
        run = find_run(found.reader, id, config.store).body.id
    apps.load(config.app)
    asked = Asked(
        to=to, only=only, is_undo=undo, is_free=fork_effects, reason=reason, is_agreed=yes
    )
    with open_store(config.store, must_exist=True) as handle:
        if retry:
            return _retry(handle, config, run)
        if dry_run:
            return _show(handle, config, run, asked)
        if not undo:
            handle.plan_rollback(run, to=to, only=only)  # What is wrong is said before any pause.
        if not handle.get(run).is_held:
            return _carry_out(handle, config, run, asked)
        tell(f"{handle.get(run).holder} works on run {run}; it is asked to pause it")
        if not yes and not _agreed():
            return 0
        with handle.paused(run, wait=wait_s):
            status = _carry_out(handle, config, run, asked)
        tell("supervised or watched, the run goes on by itself")
        return status


def _carry_out(handle: Store, config: Config, run: str, asked: Asked) -> int:
    """Show what it means, ask, and do it; nobody works on the run now."""
    again = restart_command(run, config, (handle.get(run).module,))
    if asked.is_undo:
        return _undo(handle, config, run, asked)
    plan = handle.plan_rollback(run, to=asked.to, only=asked.only)
    tell(str(plan))
    if not asked.is_agreed and not _agreed():
        return 0
    rolled = plan.apply(fork_effects=asked.is_free, reason=asked.reason)
    told = msgspec.to_builtins(rolled)
    done = f"{run} goes on from {rolled.to}, on branch {rolled.branch}; continue it with\n  {again}"
    grids: list[Grid | str] = [_grid(rolled.effects)] if rolled.effects else []
    if any(item.run == run and item.kind == UNDO for item in handle.inbox()):
        retry = again.replace(" restart ", " rollback --retry ", 1)
        tell(f"what was not taken back: `{retry}` tries failed undos again")
    emit(config.output, document=told, lines=[told], grids=[*grids, done])
    return 0


def _show(handle: Store, config: Config, run: str, asked: Asked) -> int:
    if asked.is_undo:
        tell(GOES_BACK.format(run))
        return 0
    plan = handle.plan_rollback(run, to=asked.to, only=asked.only)
    document = plan.as_dict()
    if config.output == "table":
        put(str(plan))
    else:
        emit(config.output, document=document, lines=[document], grids=[to_json(document)])
    return 0


def _undo(handle: Store, config: Config, run: str, asked: Asked) -> int:
    tell(GOES_BACK.format(run))
    if not asked.is_agreed and not _agreed():
        return 0
    gone = handle.undo_rollback(run, reason=asked.reason)
    info: RunInfo = handle.get(run)
    told = {"run": run, "branch": info.branch, "undone": msgspec.to_builtins(gone)}
    text = f"{run} is on branch {info.branch} again"
    grids: list[Grid | str] = [text]
    if gone:
        grids += ["these effects of it were taken back, and are not done again:", _grid(gone)]
    emit(config.output, document=told, lines=[told], grids=grids)
    return 0


def _retry(handle: Store, config: Config, run: str) -> int:
    """Nothing is lost by it: what is done was agreed to when the run was rolled back."""
    effects = handle.retry_undos(run)
    told = {"run": run, "effects": msgspec.to_builtins(effects)}
    left = sum(each.how not in TAKEN_BACK for each in effects)
    done = f"{len(effects) - left} of {len(effects)} were taken back"
    grids: list[Grid | str] = [_grid(effects), done] if effects else [NONE_LEFT]
    emit(config.output, document=told, lines=[told], grids=grids)
    return EXIT_LEFT if left else 0


def _grid(effects: Sequence[Taken]) -> Grid:
    return Grid(columns=COLUMNS, rows=[(e.effect, e.key, e.how, e.why) for e in effects])


def _agreed() -> bool:
    if not can_ask():
        msg = "there is no terminal to ask on, so nothing was done; --yes goes ahead"
        raise UsageError(msg)
    is_agreed = ask("Go ahead?")
    if not is_agreed:
        tell("nothing was done")
    return is_agreed
