"""`holdfast restart ID|--all`: continue runs from their newest point."""

from typing import Annotated

import typer

from holdfast.cli.carry import warn_on_stderr
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.restarts import Consent, How, restart_all, restart_one
from holdfast.cli.words import said_happened, said_not_done
from holdfast.errors import UsageError

CLOSING = closing(
    (
        "holdfast restart run-42 --app shop",
        "holdfast restart --all --app shop --app billing",
        "holdfast restart run-42 --app shop --redo-turn",
        "holdfast restart run-42 --app shop --happened 3f2a='{\"id\": 7}'",
        "holdfast restart run-42 --app shop --not-done 3f2a --yes",
        "holdfast restart run-42 --app shop --allow 3f2a",
    ),
    (0, 1, 2, 3, 5, 7, 8, 130, 143),
)


def restart(
    id: Annotated[  # noqa: A002 the public word
        str | None, typer.Argument(metavar="ID", help="Id of the run, or how it begins.")
    ] = None,
    *,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Every interrupted, doubtful or answered run, oldest first."),
    ] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="With --all: also failed and diverged ones.")
    ] = False,
    redo_turn: Annotated[
        bool, typer.Option("--redo-turn", help="Run the unfinished turn anew with today's code.")
    ] = False,
    happened: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=JSON]", help="The effect in doubt happened, with this outcome."),
    ] = None,
    not_done: Annotated[
        list[str] | None,
        typer.Option("--not-done", metavar="KEY", help="The effect in doubt did not happen."),
    ] = None,
    allow: Annotated[
        str | None,
        typer.Option("--allow", metavar="KEY", help="Let the effect pass that the fence stopped."),
    ] = None,
    revive: Annotated[
        bool, typer.Option("--revive", help="Go on with a run that was cancelled.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why; recorded with --redo-turn, --allow.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the plan.")] = False,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Continue a run from its newest point; nothing recorded is lost or repeated.

    The agent is looked up only in modules that you name: with --app, $HOLDFAST_APP or `app` in
    holdfast.toml. What changes a run's record (--redo-turn, --happened, --not-done, --allow) shows
    its plan and asks first; without a terminal it needs --yes.
    """
    words = [*map(said_happened, happened or ()), *map(said_not_done, not_done or ())]
    if (id is None) != all_:
        msg = "name one run by its id, or all of them with --all"
        raise UsageError(msg)
    if all_ and (words or redo_turn or allow):
        msg = "--redo-turn, --happened, --not-done and --allow are said of one run"
        raise UsageError(msg)
    config = settings(store, output, app, as_json=as_json)
    warn_on_stderr()
    if id is None:
        return restart_all(config, is_failed_too=failed, is_dry_run=dry_run)
    consent = Consent(is_given=yes, is_dry_run=dry_run)
    how = How(words=words, redo_turn=redo_turn, allow=allow, revive=revive, reason=reason)
    return restart_one(config, id, consent, how)
