"""`holdfast verify`: every byte of the store against its hashes."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from holdfast.cli import apps
from holdfast.cli.bars import progress_bar
from holdfast.cli.grid import Grid
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import opened, sqlite_note
from holdfast.cli.text import plural, size
from holdfast.engine.restores import try_points, with_points
from holdfast.errors import Damaged, UsageError
from holdfast.store.anchor import Anchor, check, parse
from holdfast.store.verify import Finding, Report, unreadable
from holdfast.store.verify import verify as verify_store

CLOSING = closing(("holdfast verify", "holdfast verify --deep --json"), (0, 1, 2, 3, 7))
EXIT_DAMAGED = 7
REMEDY = "damaged parts are never used; `holdfast repair` shows what can be kept"
SOUND = "every byte that is there is as it was written, so `holdfast repair` has nothing to mend; "
GO_BACK = f"{SOUND}`holdfast rollback RUN --to CP` goes back to a point that restores"
PUT_BACK = f"{SOUND}a copy of the store that is newer than the anchor holds what is missing"


def verify(
    *,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Decode every value and restore every checkpoint as well."),
    ] = False,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="ANCHOR",
            help="Also check that nothing is missing which this anchor saw; @FILE reads it there.",
        ),
    ] = None,
    store: StorePath = None,
    app: Apps = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Check every byte of the store against its hashes.

    Goes on after damage and names all of it; repairs nothing. Other processes may go on working
    meanwhile. With `--deep`, checkpoints are restored too, and pins and the newest point of every
    run (of a run with more than 1,000 checkpoints: the newest, and those with a label); `--app`
    names the modules of classes that states hold.
    """
    config = settings(store, output, app, as_json=as_json)
    if deep:
        apps.load(config.app)
    seen = None if anchor is None else parse(_text(anchor))
    report, remedy = _verify(config.store, seen, deep=deep)
    summary = {
        **msgspec.structs.asdict(report),
        "status": "whole" if report.is_whole else "damaged",
        "findings": len(report.findings) + report.more,
    }
    del summary["more"]
    findings = [{"kind": "finding", **msgspec.structs.asdict(each)} for each in report.findings]
    emit(
        config.output,
        document={"verify": summary, "findings": report.findings},
        lines=[*findings, {"kind": "summary", **summary}],
        grids=_grids(report, remedy),
    )
    return 0 if report.is_whole else EXIT_DAMAGED


def _verify(path: Path, seen: Anchor | None, *, deep: bool) -> tuple[Report, str]:
    """What was found, and what to do about it: bad bytes are repaired, and nothing else is."""
    try:
        with opened(path, must_be_whole=False) as found:
            with progress_bar("verifying") as progress:
                report = verify_store(found, deep=deep, progress=progress)
            remedy = REMEDY if not report.is_whole else PUT_BACK
            if deep:
                with progress_bar("restoring") as progress:
                    tried = try_points(found, progress)
                remedy = GO_BACK if report.is_whole and tried.findings else remedy
                report = with_points(report, tried)
            missed = [] if seen is None else list(check(found, seen))
            report = msgspec.structs.replace(report, findings=[*report.findings, *missed])
            return report, remedy
    except Damaged as damage:
        # Not even the catalog can be read: that is the one finding.
        return unreadable(path, damage, is_deep=deep), REMEDY


def _text(anchor: str) -> str:
    if not anchor.startswith("@"):
        return anchor
    try:
        return Path(anchor[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the anchor in {anchor[1:]} cannot be read ({error})"
        raise UsageError(msg) from error


def _grids(report: Report, remedy: str) -> list[Grid | str]:
    read = f"{plural(report.runs, 'run')}, {plural(report.rows, 'row')}, {size(report.bytes)}"
    known = [
        ("store", f"{report.path} (format {report.format})"),
        ("SQLite", sqlite_note()),
        ("read", f"{read}, every value decoded" if report.is_deep else read),
        *_restored(report),
        ("result", _result(report, remedy)),
    ]
    grids: list[Grid | str] = [Grid(columns=("", " "), rows=known, has_header=False)]
    if report.findings:
        rows = [(each.run or "", each.where, _what(each)) for each in report.findings]
        grids += ["", Grid(columns=("run", "where", "what"), rows=rows)]
    if report.more:
        grids.append(f"… and {report.more} more")
    return grids


def _restored(report: Report) -> list[tuple[str, str]]:
    if not report.is_deep:
        return []
    told = [plural(report.points, "point")]
    if report.points_unknown:
        told.append(f"{report.points_unknown} hold what is not known here (`--app` names modules)")
    if report.points_left:
        told.append(f"{report.points_left} older ones were not tried")
    rows = [("restored", "; ".join(told))]
    return [*rows, ("not known", report.points_unread)] if report.points_unread else rows


def _what(found: Finding) -> str:
    return found.why if found.good is None else f"{found.why}; {found.good} is the newest good one"


def _result(report: Report, remedy: str) -> str:
    if report.is_whole:
        return "whole"
    return f"damaged: {plural(len(report.findings) + report.more, 'finding')}; {remedy}"
