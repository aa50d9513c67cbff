"""The story of a run as tables: what it came to, what happened, what to do next."""

from dataclasses import dataclass

from holdfast.cli.carry import ANSWERED, restart_command, with_option
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.items import waiting
from holdfast.cli.stores import INTERRUPTED
from holdfast.cli.text import clock, duration, moment, plural, short, size
from holdfast.engine.budget import Balance
from holdfast.engine.item import Item
from holdfast.model.cadence import DURABLE, LOSES, never
from holdfast.model.decision import Decision
from holdfast.model.run import Status
from holdfast.report.doubts import Doubt
from holdfast.report.event import Event
from holdfast.report.timeline import Timeline

COLUMNS = ("time", "turn", "what", "took", "bytes", "tokens", "outcome")


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands in the ledger, beside the run's history."""

    items: list[Item]
    budgets: list[Balance]


def header(told: Timeline, status: str, config: Config, beside: Beside, *, is_held: bool) -> Grid:
    """What the run is and came to, and the next command where a person has to act."""
    counts = (
        (told.turns, "turn"),
        (told.steps, "step"),
        (told.effects, "effect"),
        (told.checkpoints, "checkpoint"),
        (told.restarts, "restart"),
    )
    again = restart_command(told.id, config, (told.module,))
    took = None
    if told.created is not None and told.ended is not None:
        took = (told.ended - told.created).total_seconds()
    rows = [
        ("run", told.id),
        ("agent", f"{told.module}:{told.agent}" + (f" ({told.version})" if told.version else "")),
        ("arguments", told.asked or "none"),
        ("status", status),
        (_came(told), told.origin.point if told.origin else ""),
        ("children", _children(told)),
        ("created", moment(told.created)),
        ("took", duration(took)),
        ("did", ", ".join(plural(count, noun) for count, noun in counts)),
        ("pruned", _pruned(told)),
        *_saving(told),
        ("tokens", _tokens(told.tokens_in, told.tokens_out)),
        ("stored", f"{size(told.bytes)} in {plural(told.rows, 'row')}"),
        ("branches", str(told.branches) if told.branches > 1 else ""),
        ("error", told.error or ""),
        ("decided", _last_decision(told) if told.error else ""),
        ("redacted", ", ".join(_places(told, "redacted"))),
        ("stored in clear", ", ".join(_places(told, "exposed"))),
        ("degraded", ", ".join(_places(told, "degraded"))),
    ]
    rows += [
        ("degraded", short(f"went on without section {event.name}: {event.error}"))
        for event in told.events
        if event.kind == "degraded"
    ]
    rows += [
        ("budget", f"{each.name}: {each.spent:f} of {each.limit:f} spent")
        for each in beside.budgets
    ]
    for doubt in told.doubts:
        rows += _doubt(doubt, again, is_held=is_held)
    if told.status is Status.WAITING:
        rows += waiting(beside.items, again, config)
    elif told.status is Status.ROLLING_BACK and not is_held:
        rows.append(("next", again.replace(" restart ", " rollback ", 1)))
    elif status == INTERRUPTED or (told.error and not told.doubts):
        is_anew = status == Status.DIVERGED or _is_answered(told)
        rows.append(("next", with_option(again, "--redo-turn") if is_anew else again))
    return Grid(columns=("", " "), rows=[row for row in rows if row[1]], has_header=False)


def _is_answered(told: Timeline) -> bool:
    """Whether a restart would come to the same end, since a person's answer or silence was it."""
    found = [event.failure.why for event in told.events if event.failure is not None]
    answered = [f"{each.__module__}.{each.__qualname__}" for each in ANSWERED]
    return told.status is Status.FAILED and bool(found) and found[-1] in answered


def _pruned(told: Timeline) -> str:
    if all(event.kind != "pruned" for event in told.events):
        return ""
    return "older rows, by garbage collection; steps, checkpoints, tokens are those of what is left"


def _came(told: Timeline) -> str:
    return "child of" if told.origin and told.origin.is_child else "forked from"


def _children(told: Timeline) -> str:
    """How many children the run began, and what came of them."""
    found = [event.outcome or "" for event in told.events if event.kind == "child"]
    counted = [f"{found.count(word)} {word}" for word in dict.fromkeys(found)]
    return f"{len(found)}: {', '.join(counted)}; --tree lists them" if found else ""


def _saving(told: Timeline) -> list[tuple[str, str]]:
    """When the run is saved, and what a crash may cost."""
    pace = told.pace
    said = [] if pace.checkpoint is None else [str(pace.checkpoint)]
    said += [f"{name}: {cadence}" for name, cadence in (pace.snapshot or {}).items()]
    kept = pace.durability or DURABLE
    loses = "loses" if kept == DURABLE else "may lose"
    lost = f"{kept}: a crash {loses} {LOSES[kept]}"
    bare = ", ".join(sorted(_without_snapshot(told)))
    return [
        ("saved", ", ".join(said)),
        ("durability", lost),
        ("no snapshot", f"of {bare}: there is no such section, or none was due" if bare else ""),
    ]


def _without_snapshot(told: Timeline) -> set[str]:
    """The sections that have a cadence of their own and no snapshot, as far as rows are kept."""
    asked = {name for name, own in (told.pace.snapshot or {}).items() if own != never()}
    if not asked or any(event.kind == "pruned" for event in told.events):
        return set()
    made = [event.name or "" for event in told.events if event.kind == "snapshot" and event.how]
    return asked - {name for names in made for name in names.split(", ")}


def _places(told: Timeline, kind: str) -> list[str]:
    """Where something was left out, or is missing since a restart."""
    return list(dict.fromkeys(e.name for e in told.events if e.kind == kind and e.name))


def _last_decision(told: Timeline) -> str:
    """What was decided about the failure that ended the run, in full."""
    made = [event.decision for event in told.events if event.kind == "decision" and event.decision]
    return decided(made[-1]) if made else ""


def _doubt(doubt: Doubt, again: str, *, is_held: bool) -> list[tuple[str, str]]:
    what = f"{doubt.effect}({doubt.asked}), key {doubt.key}, since {moment(doubt.since)}"
    if is_held:
        return [("under way", what)]
    return [
        ("in doubt", what),
        ("", f"if it happened:  {with_option(again, '--happened', doubt.key)}"),
        ("", f"if it did not:   {with_option(again, '--not-done', doubt.key)}"),
    ]


def event_grid(events: list[Event]) -> Grid:
    """The events, one row each."""
    rows = [
        (
            clock(event.at),
            "" if event.turn is None else str(event.turn),
            _what(event),
            duration(event.took_s),
            size(event.bytes),
            _tokens(event.tokens_in, event.tokens_out),
            short(_outcome(event)),
        )
        for event in events
    ]
    right = frozenset({"turn", "took", "bytes", "tokens"})
    return Grid(columns=COLUMNS, rows=rows, right=right)


_WORDS = {
    "turn": "turn ended",
    "base": "state kept whole",
    "redone": "turn run anew on a new branch",
    "degraded": "goes on without section",
    "exposed": "was stored in clear before it was declared:",
}


def _what(event: Event) -> str:
    match event.kind:
        case "question" | "taking back" | "taken back":
            return short(_about(event))
        case "step" | "effect" | "note" | "retry" | "stream" | "child":
            inside = "· " if event.is_inside else ""
            child = f" {event.key}:" if event.kind == "child" else ""
            return short(f"{inside}{event.kind}{child} {event.name}({event.asked})")
        case "turn" | "base" | "redone":
            return _WORDS[event.kind]
        case "failed" if event.outcome == Status.WAITING:
            return "waits for a person"
        case "decision":
            return f"decision by {event.how}"
        case kind:
            word = _WORDS.get(kind, kind)
            return f"{word} {event.name}" if event.name else word


def _about(event: Event) -> str:
    """What a person is asked, or which effect is taken back, and in which way."""
    if event.kind == "question":
        return f"{event.name}: {event.asked}"
    way = f": {event.name}" if event.name else ""
    return f"{event.kind} {event.asked or 'an effect'}{way}"


def _outcome(event: Event) -> str:
    if event.kind == "failed" and event.outcome == Status.WAITING:
        return ""
    if event.decision is not None and event.failure is not None:
        return f"{event.failure.kind}: {event.failure.what} → {decided(event.decision)}"
    said = [event.outcome or ""] if event.kind != "step" or event.error else []
    if event.kind in ("question", "checkpoint", "snapshot") and event.how:
        said.append(f"by {event.how}")
    elif event.how and event.how != "call":
        said.append(f"(known by {event.how})")
    if event.count is not None:
        said.append(f"{plural(event.count, 'item')}")
    if event.attempts and event.attempts > 1:
        said.append(f"(attempt {event.attempts})")
    return " ".join([*said, event.error or event.value or ""]).strip()


def decided(decision: Decision) -> str:
    """A decision in one line: the action, its numbers, its reason."""
    said = [
        f"in {duration(decision.wait_s)}" if decision.wait_s else "",
        f"to {decision.to}" if decision.to else "",
        f"loses {plural(decision.turns_lost, 'turn')}" if decision.turns_lost else "",
        "" if decision.p_success is None else f"{decision.p_success:.0%} likely to help",
        "" if decision.time_s is None else f"takes {duration(decision.time_s)}",
        "" if decision.cost_usd is None else f"costs ${decision.cost_usd:.2f}",
        "" if decision.stake_usd is None else f"stake ${decision.stake_usd:.2f}",
        "" if decision.down_left_s is None else _downtime(decision.down_left_s),
    ]
    numbers = ", ".join(each for each in said if each)
    return f"{decision.action}{f' ({numbers})' if numbers else ''}: {decision.reason}"


def _downtime(left_s: float) -> str:
    if left_s < 0:
        return f"{duration(-left_s)} beyond the promised availability"
    return f"leaves {duration(left_s)} of downtime"


def _tokens(tokens_in: int | None, tokens_out: int | None) -> str:
    if tokens_in is None and tokens_out is None:
        return ""
    return f"{_known(tokens_in)} in, {_known(tokens_out)} out"


def _known(count: int | None) -> str:
    return "?" if count is None else str(count)
