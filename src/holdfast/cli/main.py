"""Parse, import one command on demand, and turn every error into a message and an exit status."""

import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast import errors
from holdfast.cli.output import put, tell
from holdfast.store.codec.vault import Guard, guarded
from holdfast.version import VERSION

COMMANDS = {
    "run": "Start an agent, continue it, or print its recorded result.",
    "runs": "List runs, newest first.",
    "show": "Show what happened to a run: turns, steps, effects, restarts.",
    "diff": "Show what is different in the state between two points.",
    "restart": "Continue a run from its newest point.",
    "fork": "Make a new run from a point of another.",
    "rollback": "Go back to an older point; undo what was done since.",
    "inbox": "Answer what waits for a person: questions, approvals, doubts.",
    "watch": "Recover every run whose process is gone, as a service.",
    "advise": "Say how to save: which way, how often, and what it costs.",
    "report": "Say what happened, in numbers: promises, money, room.",
    "du": "Explain the bytes of a store, or of one run.",
    "export": "Write a run into one verified file.",
    "import": "Put an exported run into this store.",
    "gc": "Remove what no rule keeps; says first what would go and why.",
    "pin": "Keep a run or checkpoint whatever the rules say.",
    "unpin": "Leave a run or checkpoint to the rules again.",
    "keys": "Encrypt a store, give it new keys, or show which it has.",
    "erase": "Erase a run for good: nobody can read it any more.",
    "anchor": "Print how far history goes, to be kept elsewhere.",
    "verify": "Check every byte of the store against its hashes.",
    "repair": "Show what can be kept of a damaged store; keep it.",
    "drill": "Run an agent under injected faults; measure its promises.",
    "doctor": "Look for what could go wrong on this machine.",
    "config": "Show every setting and where it comes from.",
    "demo": "Kill an agent a dozen times; see that nothing is lost.",
}
"""Each command, defined by the function or `typer.Typer` of its name in `commands/<name>.py`;
`import` is a word of Python's, so there it is `import_`."""

EXITS: dict[type[BaseException], int] = {
    errors.HoldfastError: 1,
    errors.UsageError: 2,
    errors.UnknownRun: 3,
    errors.RunErased: 3,
    errors.UnknownCheckpoint: 3,
    errors.UnknownQuestion: 3,
    errors.AlreadyAnswered: 8,
    errors.RunStopped: 5,
    errors.InDoubt: 8,
    errors.Waiting: 8,
    errors.Blocked: 8,
    errors.Escalated: 8,
    errors.Fenced: 8,
    errors.RunHeld: 8,
    errors.Paused: 8,
    errors.NotPaused: 8,
    errors.StoreError: 1,
    errors.StoreNotFound: 3,
    errors.StoreChanged: 8,
    errors.NewerFormat: 2,
    errors.KeyNeeded: 2,
    errors.WrongKey: 2,
    errors.NotEncrypted: 2,
    errors.StoreInUse: 8,
    errors.Damaged: 7,
}
"""Error → exit status; the nearest class in the error's line of ancestors counts."""

ADVISING = (errors.NotStorable, errors.StoreUnwritable, errors.NestedCall, errors.NotInRun)
"""Errors whose text says what helps in their case, which is not always what their class says."""

EXIT_OK = 0
EXIT_UNEXPECTED = 1
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a file says that results are printed into; the store has errors of its own."""
PROGRAM = "holdfast"
PYDANTIC = "Value error, "
"""What some versions of typer put before the words of a refused choice."""
TRACEBACK = "HOLDFAST_TRACEBACK"
KEY = "HOLDFAST_KEY"
KEY_OPTION = "--key"
COMPLETE = "_HOLDFAST_COMPLETE"
"""Set by the shell when it asks for completions."""


class Commands(TyperGroup):
    """The commands by name and one line each; only the one that is called is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 typer has its own click
        """The command that `args` begin with, imported now."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and load(str(name)), rest


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status."""
    words = sys.argv[1:] if args is None else list(args)
    _fill_closed()
    try:
        return _told(words)
    except BrokenPipeError:
        _forget(sys.stdout, sys.stderr)  # Whoever read what we said has seen enough.
        return EXIT_BROKEN_PIPE


def _fill_closed() -> None:
    """Give a stream that was closed for us (`>&-`) to nobody.

    Each takes the number of the one that is missing, so that no file of a store gets it, which
    whatever is printed would go into.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 for good


def _forget(*streams: TextIO) -> None:
    """Keep Python from flushing into them once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _told(words: list[str]) -> int:
    """Run a command line; an error is told to the person who gave it."""
    try:
        # What is shown to people are references; a run that is carried out gets the values.
        with guarded(Guard(resolves=False)):
            status = _invoke(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 the one place where every error ends
        return _explain(error, words)
    return status


def _invoke(words: list[str]) -> int:
    group = program()
    if os.environ.get(COMPLETE):
        group.main(prog_name=PROGRAM)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with group.make_context(PROGRAM, words) as context:
            status = group.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return status if isinstance(status, int) else EXIT_OK


def program() -> Any:  # noqa: ANN401 see Commands
    """The whole command line; no command is imported yet."""
    app = typer.Typer(
        cls=Commands,
        invoke_without_command=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=f"`{PROGRAM} COMMAND --help` shows options, examples and exit statuses.",
    )
    app.callback()(_top)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, help_ in COMMANDS.items():
        group.add_command(TyperCommand(name, help=help_))
    return group


def load(name: str) -> Any:  # noqa: ANN401 see Commands
    """Import one command."""
    word = f"{name}_" if iskeyword(name) else name
    module = importlib.import_module(f"holdfast.cli.commands.{word}")
    found = getattr(module, word)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, epilog=getattr(module, "CLOSING", None))(found)
    return typer.main.get_command(app)


def _print_version(is_asked: bool) -> None:  # noqa: FBT001 as typer calls it
    if is_asked:
        put(f"{PROGRAM} {VERSION}")
        raise typer.Exit


def _top(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 its callback does the work
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            KEY_OPTION,
            metavar="KEY",
            help="The key of an encrypted store: file:PATH, env:NAME, passphrase, cmd:COMMAND, "
            "vault:URL.",
        ),
    ] = None,
) -> None:
    """Checkpoint, restart and roll back AI agents without losing or repeating work."""
    if key is not None:
        os.environ[KEY] = key  # Where every command looks for it.
    if context.invoked_subcommand is None:
        put(context.get_help())


def _explain(error: Exception, words: Sequence[str]) -> int:
    """Tell a person what went wrong and what to do next; returns the exit status."""
    if os.environ.get(TRACEBACK):
        tell("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        path = PROGRAM if context is None else context.command_path
        said = _place_of(error, words, path) or error.format_message().replace(PYDANTIC, "")
        tell(f"error: {said}\n`{path} --help` shows how it is used")
        return error.exit_code
    if isinstance(error, errors.HoldfastError):
        text = str(error)
        is_told = error.remedy in text or isinstance(error, ADVISING)
        hint = "" if is_told else f"; {error.remedy}"
        tell("\n".join([f"error: {text}{hint}", *getattr(error, "__notes__", ())]))
        return next(EXITS[kind] for kind in type(error).__mro__ if kind in EXITS)
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        _forget(sys.stdout)
        tell(f"error: the output could not be written: {error.strerror}; what was done stands")
        return EXIT_UNEXPECTED
    tell(
        f"error: unexpected {type(error).__name__}: {error}\n"
        f"this is a mistake of Holdfast's; {TRACEBACK}=1 in the environment shows where"
    )
    return EXIT_UNEXPECTED


def _place_of(error: Exception, words: Sequence[str], path: str) -> str:
    """Where an option goes that was given before the command it belongs to, or behind it."""
    is_unknown = hasattr(error, "possibilities")  # Else it is known, and its value lacks.
    option = getattr(error, "option_name", None) if is_unknown else None
    if option == KEY_OPTION and path != PROGRAM:
        rest = path.removeprefix(f"{PROGRAM} ")
        return f"{option} goes before the command: `{PROGRAM} {option} KEY {rest} …`"
    if option is None or path != PROGRAM:
        return ""
    command = next((word for word in words if word in COMMANDS), None)
    found = load(command or "verify")
    known = [found, *getattr(found, "commands", {}).values()]
    if not any(option in each.opts for part in known for each in part.params):
        return ""
    return f"{option} goes after the command: `{PROGRAM} {command or 'COMMAND'} {option} …`"
