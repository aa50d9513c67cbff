"""Options that commands share, and the help every command ends with."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.config import PREFIX, Config, load
from holdfast.errors import UsageError


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="PATH",
        help="Directory of the store.",
        readable=False,  # What can be done with it is told alike, whoever names it.
        show_default=False,
    ),
]
Output = Annotated[
    Format | None,
    typer.Option("--output", "-o", metavar="FORMAT", help="table, json or jsonl."),
]
AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json.")]
Apps = Annotated[
    list[str] | None,
    typer.Option("--app", metavar="MODULE", help="Module to look agents up in; may be repeated."),
]

Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="The store's key: file:PATH, env:NAME, passphrase, cmd:COMMAND or vault:URL.",
        show_default=False,
    ),
]

MEANINGS = {
    0: "done",
    1: "unexpected error, or the store cannot be written",
    2: "usage error; nothing was done",
    3: "no such run or store",
    5: "the run ended without success",
    6: "a promise or limit is not kept",
    7: "damage was found",
    8: "another process works on the run, or it waits for a person",
    130: "interrupted by Ctrl-C; the run can be restarted",
    143: "ended by SIGTERM; the run can be restarted",
}
"""What each exit status says."""


def closing(examples: tuple[str, ...], exits: tuple[int, ...]) -> str:
    """The end of a command's help: examples to copy, and what its exit statuses mean."""
    shown = "\n".join(f"  {example}" for example in examples)
    listed = "\n".join(f"  {status:<4} {MEANINGS[status]}" for status in exits)
    return f"\b\nExamples:\n{shown}\n\n\b\nExit status:\n{listed}"


def settings(
    store: Path | None = None,
    output: Format | None = None,
    app: list[str] | None = None,
    *,
    key: str | None = None,
    as_json: bool = False,
    more: Mapping[str, str | int | None] | None = None,
) -> Config:
    """The settings in force for a command that was given these flags."""
    if as_json and output is None:
        output = Format.JSON
    flags = {
        "store": None if store is None else str(store.expanduser()),
        "output": None if output is None else str(output),
        "app": app or None,
        "key": key,
    }
    try:
        here = Path.cwd()
    except OSError as error:
        msg = "the working directory is gone; change to one that is there, and try again"
        raise UsageError(msg) from error
    found = load({**flags, **(more or {})}, os.environ, here)
    # As if the user had said so: whatever this command opens or starts finds these there.
    for name in ("key", "notify_webhook", "notify_command", "notify_apprise", "notify_key"):
        if value := found.settings[name].value:
            os.environ[f"{PREFIX}{name.upper()}"] = value
    return found
