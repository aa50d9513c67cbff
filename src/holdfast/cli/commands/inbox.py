"""`holdfast inbox`: what waits for a person, and the answers."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli import apps
from holdfast.cli.carry import restart_command
from holdfast.cli.config import Config
from holdfast.cli.items import detail, grid, line
from holdfast.cli.noun import Noun
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, put, tell
from holdfast.cli.stores import find_run, opened
from holdfast.clock import SystemClock
from holdfast.engine import tools
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.engine.inbox import Inbox
from holdfast.engine.item import DOUBT, HAPPENED, Item
from holdfast.engine.notify import Told
from holdfast.engine.outcomes import Fates
from holdfast.engine.resolve import doubts
from holdfast.errors import UsageError
from holdfast.model.limits import seconds

EXITS = (0, 1, 2, 3, 7, 8)
CLOSING = closing(
    (
        "holdfast inbox",
        "holdfast inbox list --all -o json",
        "holdfast inbox show 3f2a",
        "holdfast inbox answer 3f2a yes --as ann",
        "holdfast inbox answer run-42 yes",
        "holdfast inbox approve 3f2a",
        "holdfast inbox reject 3f2a --note 'too much'",
        "holdfast inbox answer 9c1e happened --outcome '{\"id\": 7}'",
        "holdfast inbox notify --webhook https://example.com/hook --key env:HOOK_KEY",
    ),
    EXITS,
)

Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of what waits, how it begins, or that of its run.")
]
By = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Who says it; else the system's user.")
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; recorded with it.")]

inbox = typer.Typer(
    cls=Noun,
    epilog=CLOSING,
    rich_markup_mode=None,
    add_completion=False,
    help="Answer what waits for a person; without an act, `inbox` is `inbox list`.",
)


@inbox.callback()
def _noun() -> None:
    """Questions, approvals and effects in doubt of a store."""


@inbox.command("list", epilog=CLOSING)
def list_(
    *,
    all_: Annotated[bool, typer.Option("--all", help="Also what was answered or expired.")] = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List what waits for a person, oldest first."""
    config = settings(store, output, as_json=as_json)
    clock = SystemClock()
    with opened(config.store) as found:
        items = Inbox(found, clock).items(is_all=all_)
    shown = [item for item in items if all_ or item.state == "open"]
    lines = [line(item) for item in shown]
    emit(
        config.output,
        document={"inbox": lines},
        lines=lines,
        grids=[grid(shown, clock.now()) if shown else "nothing waits for a person"],
    )


@inbox.command("show", epilog=CLOSING)
def show(
    id: Id,  # noqa: A002 the public word
    *,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show one item in full: the question, the exact arguments, what was said and by whom.

    `--app` names the modules of classes among the arguments.
    """
    config = settings(store, output, app, as_json=as_json)
    apps.load(config.app)
    with opened(config.store) as found:
        item = Inbox(found, SystemClock()).find(id)
        module = find_run(found.reader, item.run, config.store).body.module
    again = restart_command(item.run, config, (module,))
    grids = [detail(item, again, config)]
    emit(config.output, document={"item": line(item)}, lines=[line(item)], grids=grids)


@inbox.command("approve", epilog=CLOSING)
def approve(
    id: Id,  # noqa: A002 the public word
    *,
    by: By = None,
    note: Note = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Allow an effect: once, with exactly the arguments that `inbox show` prints."""
    config = settings(store, output, as_json=as_json)
    with open_store(config.store, must_exist=True) as found:
        _tell(config, found, found.approve(id, by=by, note=note), "approved")


@inbox.command("reject", epilog=CLOSING)
def reject(
    id: Id,  # noqa: A002 the public word
    *,
    by: By = None,
    note: Note = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Refuse an effect; the agent is told, and may do something else."""
    config = settings(store, output, as_json=as_json)
    with open_store(config.store, must_exist=True) as found:
        _tell(config, found, found.reject(id, by=by, note=note), "rejected")


@inbox.command("answer", epilog=CLOSING)
def answer(
    id: Id,  # noqa: A002 the public word
    text: Annotated[
        str | None, typer.Argument(metavar="[ANSWER]", help="A text; for others see --value.")
    ] = None,
    *,
    value: Annotated[
        str | None, typer.Option("--value", metavar="JSON", help="The answer as JSON.")
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", metavar="JSON", help="What an effect that happened gave back."),
    ] = None,
    by: By = None,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question, or say of an effect in doubt that it `happened` or is `not done`.

    `--app` names the module of that effect, which says what it can have given back.
    """
    config = settings(store, output, app, as_json=as_json)
    if (text is None) == (value is None):
        msg = "give the answer as a text, or as JSON with --value"
        raise UsageError(msg)
    said = text if value is None else _json("--value", value)
    known = None if outcome is None else _json("--outcome", outcome)
    if said == HAPPENED:
        _learn(config, id, is_told=outcome is not None)
    with open_store(config.store, must_exist=True) as found:
        _tell(config, found, found.answer(id, said, outcome=known, by=by), "answered")


def _learn(config: Config, id_: str, *, is_told: bool) -> None:
    """Import what says what an effect in doubt gives back; else that must be told.

    It cannot be said again, and an agent that gets nothing instead would fail for good.
    """
    with opened(config.store) as found:
        item = Inbox(found, SystemClock()).find(id_)
        if item.kind != DOUBT:
            return
        run = find_run(found.reader, item.run, config.store)
        meant = doubts(found.reader.history(run)).get(item.id)
        is_known = Fates(found.reader, run.ledger).undoing(item.id) is not None
    apps.load(config.app)
    if meant is None or is_told or is_known:
        return
    if tools.find(meant.call.name, meant.module) is None:
        msg = (
            f"nothing here says what {meant.call.name} gives back; say it with `--outcome JSON` "
            "(null if it is nothing), or name its module with `--app`"
        )
        raise UsageError(msg)


@inbox.command("notify", epilog=CLOSING)
def notify(
    *,
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="Post each item there.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="CMD", help="Run this with each item as JSON on stdin."),
    ] = None,
    apprise: Annotated[
        str | None,
        typer.Option("--apprise", metavar="URL", help="Tell this address of Apprise (an extra)."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="env:NAME", help="The variable with the webhook's key."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="TIME", help="Look again so often; Ctrl-C ends."),
    ] = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Tell people of what waits and was not told yet: by webhook, by command, by Apprise.

    A run tells by itself when it begins to wait; this makes up for what did not arrive. An item
    that arrived is not sent again; each attempt for it bears the same `webhook-id`.
    """
    flags = {
        "notify_webhook": webhook,
        "notify_command": command,
        "notify_apprise": apprise,
        "notify_key": key,
    }
    config = settings(store, output, as_json=as_json, more=flags)
    wait_s = None if every is None else _every(every)
    with open_store(config.store, must_exist=True) as found:
        while True:
            status = _told(config, found.notify())
            if wait_s is None:
                return status
            SystemClock().sleep(wait_s)


def _every(text: str) -> float:
    try:
        return max(1.0, seconds(text))
    except ValueError as error:
        raise UsageError(f"--every: {error}") from None


def _told(config: Config, told: Sequence[Told]) -> int:
    rows = [
        {
            "id": each.item.id,
            "run": each.item.run,
            "how": each.how,
            "delivery": each.delivery,
            "told": each.why is None,
            "why": each.why,
        }
        for each in told
    ]
    words = [f"{row['id']} {row['how']} {row['why'] or 'told'}" for row in rows]
    emit(
        config.output,
        document={"told": rows},
        lines=rows,
        grids=words or ["nothing to tell"],
    )
    return 1 if any(each.why for each in told) else 0


def _json(option: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{option} takes JSON, and this is none ({error}); a text is written '\"so\"'"
        raise UsageError(msg) from error


def _tell(config: Config, store: Store, item: Item, word: str) -> None:
    """What was recorded, and how the run goes on."""
    again = restart_command(item.run, config, (store.get(item.run).module,))
    if config.output == "table":
        put(f"{item.id} {word}")
        tell(f"continue the run with\n  {again}")
        return
    document: dict[str, object] = {"id": item.id, "run": item.run, "word": word, "next": again}
    emit(config.output, document=document, lines=[document], grids=[])
