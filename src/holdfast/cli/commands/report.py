"""`holdfast report sla|cost|roi|storage|metrics`: what really happened, in numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import typer

from holdfast.cli import reports
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.noun import Noun
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, is_terminal, put
from holdfast.cli.stores import find_run, opened
from holdfast.cli.text import plural
from holdfast.cli.windows import Said, window_said
from holdfast.clock import SystemClock
from holdfast.engine.inbox import Inbox
from holdfast.errors import UsageError
from holdfast.model.limits import dollars
from holdfast.model.prices import Prices
from holdfast.report.cost import cost_of, growth_of
from holdfast.report.facts import Facts, facts_of, kin_of
from holdfast.report.metrics import Verdict
from holdfast.report.prometheus import exposition
from holdfast.report.roi import Assumed, promised_usd_per_hour, returned
from holdfast.report.sizes import sizes
from holdfast.report.sla import keep
from holdfast.report.smells import smells
from holdfast.version import VERSION

EXIT_MISSED = 6
report = typer.Typer(
    cls=Noun,
    epilog=closing(
        (
            "holdfast report sla --since 30d",
            "holdfast report sla --since 60d --until 30d",
            "holdfast report sla --since 2026-11-01 --until 2026-12-01",
            "holdfast report cost --run run-42",
            "holdfast report roi -o json",
            "holdfast report metrics",
        ),
        (0, 1, 2, 3, 6, 7),
    ),
    add_completion=False,
    rich_markup_mode=None,
    help="What really happened, in numbers: promises, money, room.",
)

RunId = Annotated[str | None, typer.Option("--run", metavar="ID", help="One run only.")]
Since = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Runs of the last 30d, 12h, 5m only, or since a date."),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Only those that ended 30d ago or before, or by a date."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Show it again and again until Ctrl-C.")]
Hourly = Annotated[
    str | None, typer.Option(metavar="USD", help="What an hour of outage costs; else the SLA's.")
]
GbMonth = Annotated[str | None, typer.Option(metavar="USD", help="What a GB-month costs.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """A report: data, lines of it, tables, and how the command ends."""

    document: dict[str, Any]
    lines: list[dict[str, Any]]
    grids: list[Grid | str]
    status: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a report is made of; `kin` are children of the runs that are not reported themselves."""

    facts: list[Facts]
    kin: list[Facts]
    store_bytes: int
    now: float
    prices: Prices


@report.command(
    "sla",
    epilog=closing(
        ("holdfast report sla", "holdfast report sla --since 30d --json"), (0, 1, 2, 3, 6, 7)
    ),
)
def sla(
    *,
    run: RunId = None,
    since: Since = None,
    until: Until = None,
    watch: Watch = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Judge the five promises of operation, each with the bound that shows it.

    A promise is met only if its 95 % bound says so; with too few samples it is `not shown`, and how
    many would do is told. Breaches are listed one by one.
    """

    def made(asked: Asked) -> Told:
        kept = keep(asked.facts, asked.now)
        found = smells(asked.facts, kept)
        missed = any(each.verdict is Verdict.MISSED for each in kept.measured)
        return Told(
            document={"sla": kept, "smells": found},
            lines=[
                *({"kind": "promise", **msgspec.structs.asdict(each)} for each in kept.measured),
                *(
                    {**msgspec.structs.asdict(each), "kind": "breach", "failure": each.kind}
                    for each in kept.breaches
                ),
            ],
            grids=reports.sla(kept, found),
            status=EXIT_MISSED if missed else 0,
        )

    return _report(made, run, (since, until), watch=watch, with_=(store, output, as_json))


@report.command(
    "cost",
    epilog=closing(("holdfast report cost", "holdfast report cost --run run-42"), (0, 1, 2, 3, 7)),
)
def cost(
    *,
    run: RunId = None,
    since: Since = None,
    until: Until = None,
    watch: Watch = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Add up tokens and dollars: spent, not spent again because of replay, and lost.

    Prices are those recorded with the answers; where none was, yours (`[prices]` in holdfast.toml)
    or today's of `genai-prices` if that is installed. What has no price is named.
    """

    def made(asked: Asked) -> Told:
        found = cost_of(asked.facts, asked.prices, asked.kin)
        return Told(
            document={"cost": found},
            lines=[msgspec.structs.asdict(each) for each in found.models],
            grids=reports.cost(found),
        )

    return _report(made, run, (since, until), watch=watch, with_=(store, output, as_json))


@report.command(
    "storage",
    epilog=closing(("holdfast report storage", "holdfast report storage --json"), (0, 1, 2, 3, 7)),
)
def storage(
    *,
    run: RunId = None,
    since: Since = None,
    until: Until = None,
    gb_month_usd: GbMonth = None,
    watch: Watch = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Say what a run adds to the store, and what a million of them would."""
    price = _dollars("--gb-month-usd", gb_month_usd)

    def made(asked: Asked) -> Told:
        found = growth_of(asked.facts, asked.store_bytes, price)
        return Told(
            document={"storage": found},
            lines=[msgspec.structs.asdict(found)],
            grids=reports.storage(found),
        )

    return _report(made, run, (since, until), watch=watch, with_=(store, output, as_json))


@report.command(
    "roi",
    epilog=closing(
        ("holdfast report roi --usd-per-hour 500 --gb-month-usd 0.10",),
        (0, 1, 2, 3, 7),
    ),
)
def roi(
    *,
    run: RunId = None,
    since: Since = None,
    until: Until = None,
    usd_per_hour: Hourly = None,
    gb_month_usd: GbMonth = None,
    watch: Watch = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Set what restarts spared against what saving cost, with every input listed."""
    hourly = _dollars("--usd-per-hour", usd_per_hour)
    price = _dollars("--gb-month-usd", gb_month_usd)

    def made(asked: Asked) -> Told:
        said = promised_usd_per_hour(asked.facts) if hourly is None else hourly
        assumed = Assumed(usd_per_hour=said, gb_month_usd=price)
        kept, used = keep(asked.facts, asked.now), cost_of(asked.facts, asked.prices, asked.kin)
        is_all = run is since is until is None
        size = asked.store_bytes if is_all else sum(each.bytes for each in asked.facts)
        found = returned(asked.facts, kept, used, size, assumed)
        worth = {
            **msgspec.structs.asdict(found.worth),
            "benefit_cost_ratio": found.worth.benefit_cost_ratio,
            "net_roi": found.worth.net_roi,
            "missing": found.missing,
        }
        return Told(document={"roi": worth}, lines=[worth], grids=reports.roi(found))

    return _report(made, run, (since, until), watch=watch, with_=(store, output, as_json))


@report.command(
    "metrics",
    epilog=closing(
        ("holdfast report metrics > /var/lib/node_exporter/holdfast.prom",), (0, 1, 2, 3, 7)
    ),
)
def metrics(*, since: Since = None, until: Until = None, store: StorePath = None) -> None:
    """Print the metrics of the store in Prometheus' text format."""
    config = settings(store)
    asked = _asked(config, None, _window(since, until))
    kept, used = keep(asked.facts, asked.now), cost_of(asked.facts, asked.prices, asked.kin)
    with opened(config.store) as found:
        waiting = sum(item.state == "open" for item in Inbox(found, SystemClock()).items())
    put(exposition(asked.facts, kept, used, asked.store_bytes, waiting).rstrip())


@report.command(
    "spans",
    epilog=closing(
        ("opentelemetry-instrument holdfast report spans --run run-42",), (0, 1, 2, 3, 7)
    ),
)
def spans(
    *, run: RunId = None, since: Since = None, until: Until = None, store: StorePath = None
) -> None:
    """Send runs as OpenTelemetry spans, with the times at which things happened.

    Where they go is set up by OpenTelemetry itself: `opentelemetry-instrument` and its variables.
    Replayed calls are marked, and carry no usage. Children are sent with the run they are of.
    """
    from opentelemetry import trace  # noqa: PLC0415 few ask for it

    from holdfast.report.spans import Trace  # noqa: PLC0415 as above

    config, said = settings(store), _window(since, until)
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        msg = (
            "no OpenTelemetry SDK is set up in this process, so spans would go nowhere; start it "
            "as `opentelemetry-instrument holdfast report spans`"
        )
        raise UsageError(msg)
    tracer = trace.get_tracer("holdfast", VERSION)
    window = said.before(SystemClock().now())
    with opened(config.store) as found:
        only = None if run is None else find_run(found.reader, run, config.store).body.id
        chosen = [
            each
            for each in found.reader.runs()
            if only in (None, each.body.id) and window.holds(each, found.reader)
        ]
        count = Trace(found.reader, tracer).whole(chosen)
    put(plural(count, "span"))


def _report(
    made: Callable[[Asked], Told],
    run: str | None,
    said: tuple[str | None, str | None],
    *,
    watch: bool,
    with_: tuple[Any, Any, bool],
) -> int:
    store, output, as_json = with_
    config = settings(store, output, as_json=as_json)
    window = _window(*said)
    if watch:
        if not is_terminal() or config.output != "table":
            raise UsageError("--watch shows tables on a terminal; leave out -o, or --watch")
        from holdfast.cli import terminal  # noqa: PLC0415 rich is slow to load

        terminal.watch(lambda: made(_asked(config, run, window)).grids, SystemClock())
    told = made(_asked(config, run, window))
    emit(config.output, document=told.document, lines=told.lines, grids=told.grids)
    return told.status


def _asked(config: Config, run: str | None, said: Said) -> Asked:
    now, path = SystemClock().now(), config.store
    with opened(path) as found:
        only = None if run is None else find_run(found.reader, run, path).body.id
        facts = list(facts_of(found, window=said.before(now), only=only))
        kin, size = list(kin_of(found, facts)), sizes(found).bytes
    return Asked(facts=facts, kin=kin, store_bytes=size, now=now, prices=config.prices)


def _window(since: str | None, until: str | None) -> Said:
    return window_said(since, until, SystemClock().now())


def _dollars(name: str, text: str | None) -> float | None:
    try:
        return None if text is None else dollars(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
