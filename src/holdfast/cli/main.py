"""Parse, import one command on demand, and turn every error into a message and an exit status."""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast import errors
from holdfast.cli.output import put, tell
from holdfast.version import VERSION

COMMANDS = {
    "run": "Start an agent, continue it, or print its recorded result.",
    "runs": "List runs, newest first.",
    "show": "Show what happened to a run: turns, steps, effects, restarts.",
    "restart": "Continue a run from its newest point.",
    "verify": "Check every byte of the store against its hashes.",
    "doctor": "Look for what could go wrong on this machine.",
    "config": "Show every setting and where it comes from.",
    "demo": "Kill an agent a dozen times and see that nothing is lost or repeated.",
}
"""Each command, defined by the function or `typer.Typer` of its name in `commands/<name>.py`."""

EXITS: dict[type[BaseException], int] = {
    errors.HoldfastError: 1,
    errors.UsageError: 2,
    errors.UnknownRun: 3,
    errors.RunStopped: 5,
    errors.InDoubt: 8,
    errors.Fenced: 8,
    errors.RunHeld: 8,
    errors.StoreError: 1,
    errors.StoreNotFound: 3,
    errors.NewerFormat: 2,
    errors.Damaged: 7,
}
"""Error → exit status; the nearest class in the error's line of ancestors counts."""

EXIT_BROKEN_PIPE = 141
TRACEBACK = "HOLDFAST_TRACEBACK"


class Commands(TyperGroup):
    """The commands by name and one line each; only the one that is called is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 typer has its own click
        """The command that `args` begin with, imported now."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and load(str(name)), rest


class Noun(TyperGroup):
    """A word with several acts; alone, or followed by options, it means the first of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 see Commands
        """Put the first act where none is named."""
        own = {*self.commands, *ctx.help_option_names}
        if not (args and args[0] in own) and not (ctx.resilient_parsing and not args):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def load(name: str) -> Any:  # noqa: ANN401 see Commands
    """Import one command."""
    module = importlib.import_module(f"holdfast.cli.commands.{name}")
    found = getattr(module, name)
    closing = getattr(module, "CLOSING", None)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        found.info.cls, found.info.epilog = Noun, closing
        found.rich_markup_mode = None
        return typer.main.get_group(found)
    app.command(name, epilog=closing, context_settings=SETTINGS)(found)
    return typer.main.get_command(app)


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def program() -> Any:  # noqa: ANN401 see Commands
    """The whole command line, with nothing imported yet."""
    app = typer.Typer(
        cls=Commands,
        rich_markup_mode=None,
        context_settings=SETTINGS,
        epilog="`holdfast COMMAND --help` shows options, examples and exit statuses.",
    )
    app.callback()(_top)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, help_ in COMMANDS.items():
        group.add_command(TyperCommand(name, help=help_))
    return group


def _top(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False,
) -> None:
    """Checkpoint, restart and roll back AI agents without losing or repeating work."""


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status."""
    raise NotImplementedError
