"""`holdfast repair`: what can be kept of a damaged store; with `--apply`, keep it."""

from typing import Annotated

import msgspec
import typer

from holdfast.cli import apps
from holdfast.cli.bars import progress_bar
from holdfast.cli.carry import restart_command
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.text import plural
from holdfast.engine.fates import Fate
from holdfast.engine.repair import Repair, plan_repair

CLOSING = closing(("holdfast repair", "holdfast repair --apply"), (0, 1, 2, 3, 7, 8))
EXIT_DAMAGED = 7
ACTS = {
    "filed": "its catalog row is made anew; nothing is lost",
    "cut": "rows from the first bad one on are moved aside",
    "carried": "bad rows are moved aside; the newest state that restores is kept",
    "lost": "nothing of it can be kept; all of it is moved aside",
}


def repair(
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it. Without this, only the plan is shown.")
    ] = False,
    store: StorePath = None,
    app: Apps = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Show what can be kept of a damaged store; with `--apply`, keep it.

    Nothing is deleted: what is true is written into a new database, and the old one and bad files
    are moved into `lost/` in the store's directory. No process may have the store open meanwhile.
    Damage that was found and not repaired yet ends with status 7. `--app` names the modules of
    classes that a state holds: one that is kept behind damage is written anew.
    """
    config = settings(store, output, app, as_json=as_json)
    apps.load(config.app)
    with progress_bar("reading") as progress:
        plan = plan_repair(config.store, progress=progress)
    into = plan.apply() if apply else None
    status = "whole" if not plan.is_needed else "repaired" if apply else "damaged"
    document = {
        "store": str(plan.path),
        "status": status,
        "lost": None if into is None else str(into),
        "runs": plan.runs,
        "objects": plan.objects,
        "strays": plan.strays,
    }
    emit(
        config.output,
        document={"repair": document, "fates": plan.fates, "findings": plan.findings},
        lines=[
            *({"kind": "fate", **msgspec.structs.asdict(fate)} for fate in plan.fates),
            {"kind": "summary", **document},
        ],
        grids=_grids(config, plan, status, None if into is None else str(into)),
    )
    return EXIT_DAMAGED if status == "damaged" else 0


def _grids(config: Config, plan: Repair, status: str, into: str | None) -> list[Grid | str]:
    if not plan.is_needed:
        return [f"the store at {plan.path} is whole; there is nothing to repair"]
    hurt = [fate for fate in plan.fates if fate.act != "lost"]
    known = [
        ("store", str(plan.path)),
        ("damage", f"{plural(len(plan.findings), 'finding')} (`holdfast verify` lists them)"),
        ("runs", f"{plan.runs} are kept, {len(hurt)} of them not as they were"),
        *(("large values", f"{name} is moved aside") for name in plan.objects),
        *(("belongs to no run", each) for each in plan.strays),
        ("result", _result(status, into)),
    ]
    grids: list[Grid | str] = [Grid(columns=("", " "), rows=known, has_header=False)]
    if plan.fates:
        columns = ("run", "what is done", "newest point", "turns kept", "turns lost", "rows lost")
        rows = [_row(fate) for fate in plan.fates]
        right = frozenset(columns[3:])
        grids += ["", Grid(columns=columns, rows=rows, right=right)]
    for fate in plan.fates:
        grids += _notes(config, fate)
    return grids


def _row(fate: Fate) -> tuple[str, ...]:
    counts = map(str, (fate.turns_kept, fate.turns_lost, fate.rows_lost))
    return fate.run, ACTS[fate.act], fate.point or "none", *counts


def _notes(config: Config, fate: Fate) -> list[Grid | str]:
    notes: list[Grid | str] = [f"{fate.run}: {fate.why}"]
    if fate.checkpoints_lost:
        notes.append(f"{fate.run}: checkpoints lost: {', '.join(fate.checkpoints_lost)}")
    told = {"done after what is left": fate.effects_done}
    told["not known to be done"] = fate.effects_unsure
    for what, names in told.items():
        if names:
            listed = ", ".join(names)
            again = restart_command(fate.run, config, (fate.module,) if fate.module else ())
            notes.append(f"{fate.run}: {what}: {listed}; look, then `{again}`")
    return notes


def _result(status: str, into: str | None) -> str:
    if status == "repaired":
        return f"repaired; what was there before is in {into}"
    return "nothing was changed; `holdfast repair --apply` does it"
