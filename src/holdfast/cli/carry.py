"""Carrying a run out for an operator: Ctrl-C, SIGTERM, warnings, and what to type next."""

import logging
import shlex
import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from holdfast.cli.config import Config
from holdfast.cli.output import tell
from holdfast.engine import tools
from holdfast.engine.handle import Store
from holdfast.engine.sigterm import on_sigterm
from holdfast.errors import (
    Blocked,
    Diverged,
    Escalated,
    Expired,
    InDoubt,
    InvalidState,
    Paused,
    Rejected,
    RunFailed,
    RunStopped,
    UnknownRun,
    UsageError,
    Waiting,
)
from holdfast.model.ids import MAIN

T = TypeVar("T")

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

ANSWERED = (Expired, Rejected)
"""Errors that are recorded answers: a restart comes to them again, a turn run anew does not."""


def carry_out(
    store: Store, run: str, work: Callable[[], T], config: Config, apps: tuple[str, ...] = ()
) -> T:
    """Do `work` on a run; a signal abandons it cleanly, and every end says how to go on.

    The library installs no signal handlers: this is the only place that does.
    """
    ended = _ended(store, run)
    again = restart_command(run, config, apps)
    is_terminated = False

    def on_term() -> None:
        nonlocal is_terminated
        is_terminated = True

    take_back = on_sigterm(on_term)
    try:
        return _failing(store, run, work, ended)
    except KeyboardInterrupt:
        why = "SIGTERM" if is_terminated else "interrupted"
        tell(f"{why}: what run {run} has recorded is kept; continue it with\n  {again}")
        raise typer.Exit(EXIT_TERMINATED if is_terminated else EXIT_INTERRUPTED) from None
    except RunStopped as error:
        for note in _next(error, again, config):
            error.add_note(note)
        raise
    finally:
        take_back()


def restart_command(run: str, config: Config, apps: tuple[str, ...] = ()) -> str:
    """What to type, word for word, to continue a run from here.

    What a script declares is found in the module of its name, which only its owner knows, and has
    named where any is.
    """
    words = ["holdfast", "restart", run]
    known = config.settings["app"]
    if known.origin == "--app":
        apps = (*apps, *known.value)
    if known.value:
        apps = tuple(each for each in apps if each != MAIN)
    for name in dict.fromkeys("MODULE" if each == MAIN else each for each in apps):
        if known.origin == "--app" or name not in known.value:
            words += ["--app", name]
    words += _same_store(config)
    if run.startswith("-"):  # It would be taken for an option.
        words = [*words[:2], *words[3:], "--", run]
    return shlex.join(words)


def with_option(command: str, *words: str) -> str:
    """The same command with an option more, which must not stand behind a run like `-- -d`."""
    known = shlex.split(command)
    at = known.index("--") if "--" in known else len(known)
    return shlex.join([*known[:at], *words, *known[at:]])


def there(command: str, config: Config) -> str:
    """A command as it must be typed to be about the same store as this one."""
    return " ".join([command, shlex.join(_same_store(config))]).strip()


def _same_store(config: Config) -> list[str]:
    is_named = config.settings["store"].origin == "--store"
    return ["--store", str(config.store)] if is_named else []


def warn_on_stderr() -> None:
    """Show warnings of the library, unless the operator's program shows log records itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    handler.addFilter(lambda _record: not logging.getLogger().handlers)
    logging.getLogger("holdfast").addHandler(handler)


def _failing(store: Store, run: str, work: Callable[[], T], ended: float | None) -> T:
    """Do `work`; a misuse that ended the run now is the run's failure, not the operator's."""
    try:
        return work()
    except UsageError as error:
        if _ended(store, run) != ended:
            raise RunFailed(run, type(error).__name__, str(error)) from error
        raise


def _ended(store: Store, run: str) -> float | None:
    try:
        return store.get(run).ended
    except UnknownRun:
        return None


def _next(error: RunStopped, again: str, config: Config) -> list[str]:
    match error:
        case InDoubt():
            return [
                f"if it happened:  {with_option(again, '--happened', _with_outcome(error))}",
                f"if it did not:   {with_option(again, '--not-done', error.key)}",
            ]
        case Blocked():
            return [f"to do it all the same:  {with_option(again, '--allow', error.key)}"]
        case Diverged():
            return [f"with today's code:  {with_option(again, '--redo-turn')}"]
        case Waiting():
            return [f"to answer:  {there(error.command, config)}", f"then:       {again}"]
        case RunFailed() | InvalidState() | Escalated() | Paused():
            return [_once_more(error, again)]
        case _:
            return []


def _with_outcome(error: InDoubt) -> str:
    """The effect's key, with a place for its outcome where it says that it gives something back."""
    gives = any(
        getattr(spec.fn, "__annotations__", {}).get("return") not in (None, "None")
        for spec in tools.declared()
        if spec.shape.name == error.effect
    )
    return f"{error.key}=JSON" if gives else error.key


def _once_more(error: RunStopped, again: str) -> str:
    if isinstance(error.__cause__, ANSWERED):
        return f"to ask again:  {with_option(again, '--redo-turn')}"
    when = "once it may go on" if isinstance(error, Paused) else "to try again"
    return f"{when}:  {again}"
