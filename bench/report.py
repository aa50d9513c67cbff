"""Results as people and programs read them: a page with tables, and JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.figures import Result, Table
from bench.scale import Scale

RESULTS = Path(__file__).parent / "results"


def page(results: Sequence[Result], facts: Mapping[str, str], scale: Scale) -> str:
    """Everything, as Markdown that also reads well in a terminal."""
    return "\n".join(_lines(results, facts, scale)) + "\n"


def save(results: Sequence[Result], facts: Mapping[str, str], scale: Scale) -> None:
    """Write `latest.md` and `latest.json`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.md").write_text(page(results, facts, scale))
    record = {
        "facts": facts,
        "scale": scale.name,
        "subjects": {result.subject: _record(result) for result in results},
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (RESULTS / "latest.json").write_text(text + "\n")


def _record(result: Result) -> dict[str, object]:
    return {
        "title": result.title,
        "targets": [
            {
                "promise": target.promise,
                "limit": target.limit,
                "measured": target.measured,
                "verdict": target.verdict,
            }
            for target in result.targets
        ],
        "numbers": result.numbers,
    }


def _lines(results: Sequence[Result], facts: Mapping[str, str], scale: Scale) -> Iterator[str]:
    yield "# What Holdfast costs"
    yield ""
    yield " · ".join(f"{name} {value}" for name, value in facts.items())
    if scale.name != "full":
        yield ""
        yield f"**A {scale.name} run: smaller sizes and few repetitions, not for quoting.**"
    for result in results:
        yield ""
        yield f"## {result.title}"
        yield ""
        yield from _table(result.table)
        yield ""
        yield result.note
    yield ""
    yield "## Targets"
    yield ""
    rows = [target.as_row() for result in results for target in result.targets]
    yield from _table(Table(columns=("promise", "target", "measured", "verdict"), rows=rows))


def _table(table: Table) -> Iterator[str]:
    """A Markdown table whose columns line up; the first is words, the others are numbers."""
    rows = [list(table.columns), *(list(row) for row in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    for number, row in enumerate(rows):
        first, *others = (
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"| {' | '.join([first, *others])} |"
        if number == 0:
            left, *right = ("-" * width for width in widths)
            yield f"|{'|'.join([f' {left} ', *(f' {dashes}:' for dashes in right)])}|"
