"""`holdfast restart ID|--all`: continue runs from their newest point."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.cli import apps
from holdfast.cli.carry import carry_out, restart_command, warn_on_stderr
from holdfast.cli.commands.run import print_result
from holdfast.cli.config import Config
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import Grid, ask, can_ask, emit, put, tell
from holdfast.cli.stores import find_run, opened, status_of_info
from holdfast.engine.handle import RUNS_MAX, Store
from holdfast.engine.handle import open as open_store
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.run import RunInfo, Status
from holdfast.report.timeline import Timeline, timeline

CLOSING = closing(
    (
        "holdfast restart run-42 --app shop",
        "holdfast restart --all --app shop --app billing",
        "holdfast restart run-42 --app shop --redo-turn",
        "holdfast restart run-42 --app shop --happened 3f2a='{\"id\": 7}'",
        "holdfast restart run-42 --app shop --not-done 3f2a --yes",
    ),
    (0, 1, 2, 3, 5, 7, 8, 130, 143),
)
EXIT_UNSUCCESSFUL = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """What a person says of an effect in doubt."""

    key: str
    happened: bool
    outcome: object = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Consent:
    """How far a person has agreed beforehand."""

    is_given: bool
    is_dry_run: bool


def restart(
    id: Annotated[  # noqa: A002 the public word
        str | None, typer.Argument(metavar="ID", help="Id of the run, or how it begins.")
    ] = None,
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="Every run that is interrupted or in doubt, oldest first.")
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
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why; recorded with --redo-turn.")
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
    holdfast.toml. What changes a run's record (--redo-turn, --happened, --not-done) shows its plan
    and asks first; without a terminal it needs --yes.
    """
    words = [*map(_said_happened, happened or ()), *map(_said_not_done, not_done or ())]
    if (id is None) != all_:
        msg = "name one run by its id, or all of them with --all"
        raise UsageError(msg)
    if all_ and (words or redo_turn):
        msg = "--redo-turn, --happened and --not-done are said of one run"
        raise UsageError(msg)
    config = settings(store, output, app, as_json=as_json)
    warn_on_stderr()
    if id is None:
        return _restart_all(config, is_failed_too=failed, is_dry_run=dry_run)
    consent = Consent(is_given=yes, is_dry_run=dry_run)
    return _restart_one(config, id, words, consent, redo_turn=redo_turn, reason=reason)


def _restart_one(
    config: Config,
    text: str,
    words: Sequence[Word],
    consent: Consent,
    *,
    redo_turn: bool,
    reason: str | None,
) -> int:
    with opened(config.store) as found:
        told = timeline(found.reader, find_run(found.reader, text, config.store))
    agent = apps.find(told.agent, told.module, apps.load(config.app))
    words = [_known(word, told) for word in words]
    plan = _plan(told, words, redo_turn=redo_turn)
    if consent.is_dry_run:
        put("\n".join(plan))
        return 0
    if words or redo_turn:
        tell("\n".join(plan))
        if not consent.is_given and not _agreed():
            return 0
    with open_store(config.store, must_exist=True) as store:
        for word in words:
            store.resolve(told.id, word.key, happened=word.happened, outcome=word.outcome)
        result = carry_out(
            lambda: store.restart(told.id, agent=agent, redo_turn=redo_turn, reason=reason),
            run=told.id,
            again=restart_command(told.id, config),
        )
    print_result(config.output, told.id, result)
    return 0


def _agreed() -> bool:
    if not can_ask():
        msg = "there is no terminal to ask on, so nothing was done; --yes goes ahead"
        raise UsageError(msg)
    is_agreed = ask("Go ahead?")
    if not is_agreed:
        tell("nothing was done")
    return is_agreed


def _plan(told: Timeline, words: Sequence[Word], *, redo_turn: bool) -> list[str]:
    """What will be done, in words."""
    plan = [f"run {told.id} of {told.module}:{told.agent}, {told.status}"]
    effects = {doubt.key: f"{doubt.effect}({doubt.asked})" for doubt in told.doubts}
    for word in words:
        what = "happened" if word.happened else "did not happen: it is done anew"
        plan.append(f"- record that {effects[word.key]} {what}; this cannot be taken back")
    if redo_turn:
        plan.append("- drop the recorded steps of the unfinished turn (kept on the old branch);")
        plan.append("  its effects stand and are matched by what they mean to do")
    plan.append("- continue it from its newest point")
    return plan


def _restart_all(config: Config, *, is_failed_too: bool, is_dry_run: bool) -> int:
    """One after the other, oldest first; goes on after one that does not end well."""
    rows: list[dict[str, object]] = []
    with open_store(config.store, must_exist=True) as store:
        waiting = [info for info in store.runs(limit=RUNS_MAX) if _is_due(info, is_failed_too)][
            ::-1
        ]
        modules = apps.load(config.app)
        for info in waiting:
            if is_dry_run:
                rows.append(_row(info, status_of_info(info), "would be restarted"))
            else:
                rows.append(_try(store, config, info, modules))
    emit(
        config.output,
        document={"runs": rows},
        lines=rows,
        grids=[_grid(rows) if rows else "nothing to restart"],
    )
    is_well = is_dry_run or all(row["status"] == Status.FINISHED for row in rows)
    return 0 if is_well else EXIT_UNSUCCESSFUL


def _is_due(info: RunInfo, is_failed_too: bool) -> bool:  # noqa: FBT001 private
    if info.status in {Status.FAILED, Status.DIVERGED}:
        return is_failed_too
    return info.is_interrupted or info.status is Status.IN_DOUBT


def _try(store: Store, config: Config, info: RunInfo, modules: frozenset[str]) -> dict[str, object]:
    try:
        agent = apps.find(info.agent, info.module, modules)
        carry_out(
            lambda: store.restart(info.id, agent=agent),
            run=info.id,
            again=restart_command(info.id, config),
        )
    except HoldfastError as error:
        return _row(info, status_of_info(store.get(info.id)), str(error))
    return _row(info, str(Status.FINISHED), "")


def _row(info: RunInfo, status: str, detail: str) -> dict[str, object]:
    return {
        "id": info.id,
        "agent": info.agent,
        "module": info.module,
        "status": status,
        "detail": detail,
    }


def _grid(rows: Sequence[dict[str, object]]) -> Grid:
    shown = [
        (str(row["id"]), f"{row['module']}:{row['agent']}", str(row["status"]), str(row["detail"]))
        for row in rows
    ]
    return Grid(columns=("id", "agent", "status", "detail"), rows=shown)


def _said_happened(text: str) -> Word:
    key, equals, outcome = text.partition("=")
    try:
        return Word(key=key, happened=True, outcome=json.loads(outcome) if equals else None)
    except ValueError as error:
        msg = f"--happened {key}=…: the outcome is no JSON ({error}); a text is written '\"so\"'"
        raise UsageError(msg) from error


def _said_not_done(text: str) -> Word:
    return Word(key=text, happened=False)


def _known(word: Word, told: Timeline) -> Word:
    """The word with its key in full; keys are named by their start, like ids."""
    keys = [doubt.key for doubt in told.doubts]
    alike = [key for key in keys if word.key and key.startswith(word.key)]
    if len(alike) != 1:
        what = (
            f"{len(alike)} effects in doubt have keys that begin with"
            if alike
            else ("no effect in doubt has the key")
        )
        known = ", ".join(keys) or "none"
        raise UsageError(f"run {told.id}: {what} {word.key!r} (in doubt: {known})")
    return Word(key=alike[0], happened=word.happened, outcome=word.outcome)
