"""`holdfast run module:agent`: start, continue, or print the recorded result."""

import json
import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli import apps
from holdfast.cli.carry import carry_out, warn_on_stderr
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import print_result, tell
from holdfast.engine.agents import Agent
from holdfast.engine.fitted import fitted_arguments
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.errors import UnknownRun, UsageError
from holdfast.model.cadence import pace_of

CLOSING = closing(
    (
        'holdfast run shop:trader --id run-42 --input \'{"symbol": "KELP"}\'',
        "holdfast run shop:trader --input @order.json",
        "holdfast run shop:trader --id run-42          # continues it, with its recorded input",
        "holdfast run shop:trader --id run-42 --supervise --stall 60s",
        "holdfast run shop:trader --checkpoint 'turns=5 | before_irreversible'",
    ),
    (0, 1, 2, 3, 5, 7, 8, 130, 143),
)

Supervise = Annotated[
    bool,
    typer.Option("--supervise", help="In a child process that is kept alive: killed, it goes on."),
]
Stall = Annotated[
    str | None,
    typer.Option(
        "--stall",
        metavar="TIME",
        help="With --supervise: so long without a record is a hang, such as 60s.",
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="CADENCE",
        help="When this run is saved, whatever its agent says: 'turns=5 | seconds=30s'.",
    ),
]
Snapshot = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        metavar="SECTION: CADENCE",
        help="When sections of its state are saved by themselves: 'memory: turns=1'.",
    ),
]
Durability = Annotated[
    str | None,
    typer.Option(
        "--durability",
        metavar="LEVEL",
        help="Which answers are waited for: durable, bounded or async.",
    ),
]
RESERVED = ("id", "stall", "spare", "checkpoint", "snapshot", "durability")
"""What `store.run` and `store.supervise` take for themselves."""
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def run(
    agent: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="The agent to run.")],
    *,
    id: Annotated[  # noqa: A002 the public word
        str | None,
        typer.Option("--id", metavar="ID", help="Id of the run; a new one if not given."),
    ] = None,
    input: Annotated[  # noqa: A002 the public word
        str | None,
        typer.Option(
            "--input",
            metavar="JSON|@FILE|-",
            help="Arguments: an object by name, an array in order, any other value as the only "
            "one; from a file with @, from stdin with -.",
        ),
    ] = None,
    supervise: Supervise = False,
    stall: Stall = None,
    checkpoint: Checkpoint = None,
    snapshot: Snapshot = None,
    durability: Durability = None,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Start an agent, continue it, or print its recorded result.

    Arguments become what the agent's annotations say, such as a Pydantic model, or are refused. The
    result is printed on stdout as JSON. The working directory is searched for the module. Ctrl-C
    and SIGTERM abandon the running step; what was recorded is kept, and how to go on is printed.
    """
    config = settings(store, output, app, as_json=as_json)
    module, name = apps.named(agent)
    args, kwargs = _arguments(input)
    _check_stall(stall, is_supervised=supervise)
    saving = _saving(checkpoint=checkpoint, snapshot=snapshot, durability=durability)
    warn_on_stderr()
    apps.load([module, *config.app])
    found = apps.find(name, module, frozenset({module}))
    if input is not None:
        args, kwargs = _fitted(found, args, kwargs)
    chosen = id or f"{name.rpartition('.')[2]}-{secrets.token_hex(6)}"
    with open_store(config.store, **config.saving) as opened:
        if input is None and not _is_known(opened, chosen):
            _check(found, args, kwargs)
        if id is None:
            tell(f"run {chosen}")
        result = carry_out(
            opened,
            chosen,
            lambda: (
                opened.supervise(found, *args, id=chosen, stall=stall, **saving, **kwargs)
                if supervise
                else opened.run(found, *args, id=chosen, **saving, **kwargs)
            ),
            config,
            (module,),
        )
    print_result(config.output, chosen, result)


def _arguments(text: str | None) -> Arguments:
    """What `--input` says, as positional and keyword arguments."""
    if text is None:
        return (), {}
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        value = json.loads(text)
    except OSError as error:
        raise UsageError(f"--input: {error.filename} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        msg = f"--input takes JSON, and this is none ({error}); a text is written '\"so\"'"
        raise UsageError(msg) from error
    match value:
        case dict():
            return (), value
        case list():
            return tuple(value), {}
        case _:
            return (value,), {}


def _fitted(agent: Agent[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Arguments in the types that the agent says it takes."""
    _check(agent, args, kwargs)
    return fitted_arguments(agent.fn, args, kwargs)


def _check(agent: Agent[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that the agent does not take, before anything is recorded."""
    try:
        agent.shape.bind(args, kwargs)
    except TypeError as error:
        msg = f"agent {agent.module}:{agent.name} cannot take this input: {error}; see --input"
        raise UsageError(msg) from error
    for name in RESERVED:
        if name in kwargs:
            msg = f"an argument called {name} cannot be given by name; give the input as an array"
            raise UsageError(msg)


def _check_stall(stall: str | None, *, is_supervised: bool) -> None:
    if stall is not None and not is_supervised:
        msg = "--stall says when a supervised run is hung; add --supervise"
        raise UsageError(msg)


def _saving(**said: str | None) -> dict[str, Any]:
    """How the run is saved; what cannot be meant is refused by the name of its option."""
    for name, value in said.items():
        try:
            pace_of(**{name: value})
        except UsageError as error:
            why = str(error).removeprefix(f"{name}=").removeprefix(":").removeprefix(",")
            raise UsageError(f"--{name}: {why.strip()}") from None
    return said


def _is_known(store: Store, run: str) -> bool:
    try:
        store.get(run)
    except UnknownRun:
        return False
    return True
