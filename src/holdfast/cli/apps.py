"""The operator's modules: imported because a person named them, and searched for agents."""

import importlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.engine import agents
from holdfast.engine.agents import Agent
from holdfast.errors import UnknownAgent, UsageError


def load(names: Iterable[str]) -> frozenset[str]:
    """Import the named modules; `UsageError` says in one line why one does not import."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        _import(name)
    return frozenset(wanted)


def named(text: str) -> tuple[str, str]:
    """Module and agent of `module:agent`."""
    module, colon, agent = text.partition(":")
    if not (module and colon and agent) or not _is_dotted(module) or not _is_dotted(agent):
        msg = f"{text!r} does not name an agent; write module:agent, such as shop:trader"
        raise UsageError(msg)
    return module, agent


def find(agent: str, module: str, modules: frozenset[str]) -> Agent[..., Any]:
    """The agent among those that the named modules declare; nothing else is ever imported."""
    if not modules:
        raise UnknownAgent(f"{module}:{agent}", "no module was named to look it up in")
    try:
        return agents.find(agent, module, modules)
    except UnknownAgent as error:
        if any((each.module, each.name) == (module, agent) for each in agents.declared()):
            error.add_note(f"a named module imports it from {module}: name that one")
        raise


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UsageError(_why(name, error)) from error


def _why(name: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
        return (
            f"there is no module {error.name} here; run holdfast from the directory that holds "
            "it, or install it" + (f"; without .py it is {name[:-3]}" * name.endswith(".py"))
        )
    last = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        frame = next((each for each in reversed(frames) if not _is_ours(each)), frames[-1])
        place = f"{frame.filename}, line {frame.lineno}"
    return f"module {name} does not import: {last} ({place}); correct it and try again"


def _is_ours(frame: traceback.FrameSummary) -> bool:
    """Whether a line is one of Holdfast's own: what is to be corrected is the line that calls."""
    return Path(frame.filename).is_relative_to(Path(__file__).parents[1])
