"""`holdfast config show`: every setting and where it comes from."""

import typer

from holdfast.cli.grid import Grid
from holdfast.cli.noun import Noun
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell

CLOSING = closing(("holdfast config show", "HOLDFAST_STORE=/tmp/s holdfast config --json"), (0, 2))

config = typer.Typer(
    cls=Noun,
    epilog=CLOSING,
    rich_markup_mode=None,
    add_completion=False,
    help="Settings; without an act, `config` is `config show`.",
)


@config.callback()
def _noun() -> None:
    """Settings."""


@config.command("show", epilog=CLOSING)
def show(
    *,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting and where it comes from.

    The first that says it wins: flag, HOLDFAST_… variable, holdfast.toml, [tool.holdfast] in
    pyproject.toml (both searched upwards from here), ~/.config/holdfast/config.toml, default.
    """
    found = settings(store, output, app, as_json=as_json)
    lines = [
        {"key": each.key, "value": each.shown, "origin": each.origin}
        for each in found.settings.values()
    ]
    rows = [(str(line["key"]), _text(line["value"]), str(line["origin"])) for line in lines]
    emit(
        found.output,
        document={"settings": lines},
        lines=lines,
        grids=[Grid(columns=("key", "value", "origin"), rows=rows)],
    )
    for each in found.unknown:
        tell(f"note: {each.key}={each.shown} is no setting of this Holdfast and has no effect")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value or "(none)")
