"""`holdfast verify`: every byte of the store against its hashes."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from holdfast.cli.bars import progress_bar
from holdfast.cli.grid import Grid
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import opened, sqlite_note
from holdfast.cli.text import plural, size
from holdfast.errors import Damaged, UsageError
from holdfast.store.anchor import Anchor, check, parse
from holdfast.store.verify import Report, unreadable
from holdfast.store.verify import verify as verify_store

CLOSING = closing(("holdfast verify", "holdfast verify --deep --json"), (0, 1, 2, 3, 7))
EXIT_DAMAGED = 7
REMEDY = "damaged parts are never used; `holdfast repair` shows what can be kept"


def verify(
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Decode every recorded value as well.")
    ] = False,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="ANCHOR",
            help="Also check that nothing is missing which this anchor saw; @FILE reads it there.",
        ),
    ] = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Check every byte of the store against its hashes.

    Goes on after damage and names all of it; repairs nothing. Other processes may go on working
    meanwhile.
    """
    config = settings(store, output, as_json=as_json)
    seen = None if anchor is None else parse(_text(anchor))
    report = _verify(config.store, seen, deep=deep)
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
        grids=_grids(report),
    )
    return 0 if report.is_whole else EXIT_DAMAGED


def _verify(path: Path, seen: Anchor | None, *, deep: bool) -> Report:
    try:
        with opened(path, must_be_whole=False) as found, progress_bar("verifying") as progress:
            report = verify_store(found, deep=deep, progress=progress)
            missed = [] if seen is None else list(check(found, seen))
            return msgspec.structs.replace(report, findings=[*report.findings, *missed])
    except Damaged as damage:
        # Not even the catalog can be read: that is the one finding.
        return unreadable(path, damage, is_deep=deep)


def _text(anchor: str) -> str:
    if not anchor.startswith("@"):
        return anchor
    try:
        return Path(anchor[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the anchor in {anchor[1:]} cannot be read ({error})"
        raise UsageError(msg) from error


def _grids(report: Report) -> list[Grid | str]:
    read = f"{plural(report.runs, 'run')}, {plural(report.rows, 'row')}, {size(report.bytes)}"
    known = [
        ("store", f"{report.path} (format {report.format})"),
        ("SQLite", sqlite_note()),
        ("read", f"{read}, every value decoded" if report.is_deep else read),
        ("result", _result(report)),
    ]
    grids: list[Grid | str] = [Grid(columns=("", " "), rows=known, has_header=False)]
    if report.findings:
        rows = [(each.run or "", each.where, each.why) for each in report.findings]
        grids += ["", Grid(columns=("run", "where", "what"), rows=rows)]
    if report.more:
        grids.append(f"… and {report.more} more")
    return grids


def _result(report: Report) -> str:
    if report.is_whole:
        return "whole"
    return f"damaged: {plural(len(report.findings) + report.more, 'finding')}; {REMEDY}"
