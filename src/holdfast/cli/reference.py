"""The page `docs/reference/cli.md`, made from the parser: `python -m holdfast.cli.reference`."""

import sys
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from holdfast.cli.main import COMMANDS, EXITS, PROGRAM, load, program
from holdfast.cli.options import MEANINGS

WIDTH = 92
HEAD = """\
# Command line

Made from the parser by `python -m holdfast.cli.reference`; a test compares the two.

Results go to stdout, messages to stderr. `-o table|json|jsonl` chooses the form of a result; JSON
carries `schema_version` and names that stay. `NO_COLOR` is honoured; without a terminal there are
no colours, no questions and no progress bars. Ids may be cut short as long as one run alone begins
so. Completion: `holdfast --install-completion`.
"""


def render() -> str:
    """The whole page."""
    group = program()
    top = _context(group, PROGRAM, None)
    parts = [HEAD, _section(2, PROGRAM, group, top)]
    for name in COMMANDS:
        parts += _command(3, load(name), name, top)
    parts.append(_statuses())
    return "\n".join(parts)


def _command(level: int, command: Any, name: str, parent: Any) -> Iterator[str]:  # noqa: ANN401 typer has its own click
    context = _context(command, name, parent)
    yield _section(level, context.command_path, command, context)
    if isinstance(command, TyperGroup):
        for inner, act in command.commands.items():
            yield from _command(level + 1, act, inner, context)


def _context(command: Any, name: str, parent: Any) -> Any:  # noqa: ANN401 see above
    return command.context_class(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )


def _section(level: int, title: str, command: Any, context: Any) -> str:  # noqa: ANN401 see above
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    return f"{'#' * level} `{title}`\n\n```text\n{text}\n```\n"


def _statuses() -> str:
    """The table of exit statuses, and which error ends with which."""
    named: dict[int, list[str]] = {}
    for error, status in EXITS.items():
        named.setdefault(status, []).append(f"`{error.__name__}`")
    rows = "\n".join(
        f"| {status} | {meaning} | {', '.join(named.get(status, []))} |"
        for status, meaning in MEANINGS.items()
    )
    return f"## Exit statuses\n\n| status | meaning | errors |\n|---|---|---|\n{rows}\n"


if __name__ == "__main__":
    sys.stdout.write(render())
