"""Items of the inbox as people and programs see them, and what to type next."""

from collections.abc import Sequence

from holdfast.cli.carry import there
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.text import duration, moment, short
from holdfast.cli.values import to_json
from holdfast.engine.item import DOUBT, Item
from holdfast.report.event import when

COLUMNS = ("id", "kind", "run", "since", "expires", "state", "question")


def commands(item: Item, again: str, config: Config) -> list[str]:
    """What may be typed to answer an item; `again` restarts its run."""
    if item.kind == "escalation":
        return [again, there(f"holdfast inbox answer {item.id} dismiss", config)]
    return [there(each, config) for each in _words(item)]


def _words(item: Item) -> list[str]:
    match item.kind:
        case "approval":
            return [f"holdfast inbox approve {item.id}", f"holdfast inbox reject {item.id}"]
        case "doubt":
            return [
                f"holdfast inbox answer {item.id} happened --outcome JSON",
                f"holdfast inbox answer {item.id} 'not done'",
            ]
        case _:
            options = item.options or ["ANSWER"]
            return [f"holdfast inbox answer {item.id} {_word(option)}" for option in options]


def _word(option: str) -> str:
    return option if option.isalnum() else "'" + option.replace("'", "'\\''") + "'"


def waiting(items: Sequence[Item], again: str, config: Config) -> list[tuple[str, str]]:
    """What a waiting run waits for, for the head of its story; or how it goes on."""
    rows: list[tuple[str, str]] = []
    for item in items:
        if item.state == "open" and item.kind != DOUBT:
            rows.append(("waits for", f"{item.text} ({item.kind} {item.id})"))
            rows += [("", f"to answer:  {each}") for each in commands(item, again, config)]
    if rows:
        return rows
    newest = max(items, key=lambda item: item.at or 0.0, default=None)
    if newest is not None and newest.at is not None:
        rows.append(("heard", f"{short(newest.text)}: {_state(newest)}"))
    return [*rows, ("next", again)]


def grid(items: Sequence[Item], now: float) -> Grid:
    """One row for each item."""
    rows = [
        (
            item.id,
            item.kind,
            item.run,
            f"{duration(now - item.since)} ago",
            "" if item.expires is None else moment(when(item.expires)),
            _state(item),
            short(item.text),
        )
        for item in items
    ]
    return Grid(columns=COLUMNS, rows=rows)


def detail(item: Item, again: str, config: Config) -> Grid:
    """All that is known of one item; `again` restarts its run."""
    rows = [
        ("id", item.id),
        ("kind", item.kind),
        ("run", item.run),
        ("asks", item.text),
        ("options", ", ".join(item.options)),
        ("since", moment(when(item.since))),
        ("expires", "" if item.expires is None else moment(when(item.expires))),
        ("default", "" if item.default is None else to_json(item.default, indent=None)),
        ("state", _state(item)),
        ("said", "" if item.at is None else moment(when(item.at))),
        ("answer", "" if item.answer is None else to_json(item.answer, indent=None)),
        ("note", item.note or ""),
    ]
    for name, value in (item.arguments or {}).items():
        rows.append((f"  {name}", to_json(value, indent=None)))
    if item.state == "open":
        rows += [("to answer", each) for each in commands(item, again, config)]
    return Grid(columns=("", " "), rows=[row for row in rows if row[1]], has_header=False)


def line(item: Item) -> dict[str, object]:
    """The same for programs."""
    return {
        "id": item.id,
        "kind": item.kind,
        "run": item.run,
        "question": item.text,
        "state": item.state,
        "options": item.options,
        "arguments": item.arguments,
        "default": item.default,
        "since": when(item.since),
        "expires": None if item.expires is None else when(item.expires),
        "answer": item.answer,
        "by": item.by,
        "note": item.note,
        "at": None if item.at is None else when(item.at),
    }


def _state(item: Item) -> str:
    return f"{item.state} by {item.by}" if item.by else item.state
