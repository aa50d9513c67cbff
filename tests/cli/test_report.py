"""`holdfast report`: what a store really saw, on the command line."""

import datetime as dt
import json
import re

import pytest

from holdfast.cli.reports import amount
from holdfast.cli.windows import window_said
from holdfast.report.facts import Window
from tests.cli.kit import Shop, on_terminal


def test_the_promises_are_judged_over_the_runs_of_a_store(history: Shop) -> None:
    done = history("report", "sla", "--json")

    told = done.data["sla"]
    names = [each["name"] for each in told["measured"]]
    assert [
        "recovery success",
        "recovery time P95",
        "storage per run",
        "latency overhead",
        "SLA breach",
    ] == names
    assert 5 == told["runs"]
    assert {"doubtful", "failed"} == {breach["run"] for breach in told["breaches"]} - {"killed"}
    assert 6 == done.status


def test_a_bare_report_is_that_of_the_promises(history: Shop) -> None:
    bare, named = history("report").out, history("report", "sla").out

    assert bare.splitlines()[0].split() == named.splitlines()[0].split()
    assert "recovery success" in bare
    assert "not shown" in bare


def test_a_share_is_told_in_digits_however_large() -> None:
    assert ["99.8 %", "950 %", "11,370 %"] == [amount(n, "share") for n in (0.998, 9.5, 113.7)]


def test_one_run_or_the_newest_runs_alone_can_be_asked_for(history: Shop) -> None:
    one = history("report", "sla", "--run", "run-42", "--json").data["sla"]
    none = history("report", "sla", "--since", "0s", "--json").data["sla"]

    assert (1, 0) == (one["runs"], none["runs"])
    assert 3 == history("report", "sla", "--run", "nobody").status


@pytest.mark.parametrize("kind", ["sla", "cost", "roi", "storage", "metrics"])
def test_every_report_takes_a_window_with_two_ends(history: Shop, kind: str) -> None:
    def told(*window: str) -> list[str]:
        return history("report", kind, *window).out.splitlines()

    def shape(lines: list[str]) -> list[str]:
        """Without numbers, of which some grow while an outage lasts."""
        room = ("GB stored", "the store now")  # With the log of whoever has it open.
        return [re.sub(r"[\d.,]+", "0", line) for line in lines if not line.startswith(room)]

    assert shape(told()) == shape(told("--since", "1h", "--until", "0s"))
    assert told() != told("--until", "1h")


def test_a_window_holds_the_runs_that_were_heard_of_in_it(history: Shop) -> None:
    windows = [(), ("--since", "1h", "--until", "0s"), ("--until", "1h"), ("--since", "0s")]

    found = [history("report", "sla", *window, "--json").data["sla"]["runs"] for window in windows]

    assert found[0] > 0
    assert [found[0], found[0], 0, 0] == found


def test_a_window_may_be_said_in_dates(history: Shop) -> None:
    windows = [("--since", "2026-01-01", "--until", "2126-01-01T12:00Z"), ("--until", "2026-01-01")]

    found = [history("report", "sla", *window, "--json").data["sla"]["runs"] for window in windows]

    assert [history("report", "sla", "--json").data["sla"]["runs"], 0] == found


def test_a_date_without_a_zone_is_one_of_this_machine() -> None:
    said = window_said("2026-11-01", "1d", now=1_900_000_000.0)
    midnight = dt.datetime.fromisoformat("2026-11-01").astimezone()

    assert Window(since=midnight.timestamp(), until=1_900_000_000.0 - 86_400) == said.before(1.9e9)


def test_tokens_without_a_price_are_named(history: Shop) -> None:
    done = history("report", "cost", "--json")

    cost = done.data["cost"]
    assert 0 == done.status
    assert ["scripted"] == cost["missing"]
    assert cost["spent"]["tokens_in"] >= 30
    assert "no price is known of scripted" in history("report", "cost").out


def test_prices_of_ones_own_stand_in_the_configuration(history: Shop) -> None:
    unpriced = history("report", "cost", "--json").data["cost"]
    history.put("holdfast.toml", '[prices]\n"scripted" = "2 / 6"\n')

    cost = history("report", "cost", "--json").data["cost"]
    roi = history("report", "roi", "--json").data["roi"]
    bad = history("report", "cost", HOLDFAST_PRICES="scripted")

    tokens = (cost["spent"]["tokens_in"], cost["spent"]["tokens_out"])
    assert tokens == (unpriced["spent"]["tokens_in"], unpriced["spent"]["tokens_out"])
    assert (2 * tokens[0] + 6 * tokens[1]) / 1e6 == pytest.approx(cost["spent"]["usd"])
    assert [] == cost["missing"]
    assert not [each for each in roi["missing"] if "scripted" in each]
    assert "yours or today's" in history("report", "cost").out
    assert 2 == bad.status
    assert "$HOLDFAST_PRICES" in bad.err
    assert "is no price" in bad.err


def test_restarts_spare_what_was_recorded(history: Shop) -> None:
    history("restart", "killed", "--app", "shop")

    cost = history("report", "cost", "--run", "killed", "--json").data["cost"]

    assert 1 == cost["restarts"]
    assert (10, 7) == (cost["saved"]["tokens_in"], cost["saved"]["tokens_out"])


def test_room_is_told_for_a_million_runs(history: Shop) -> None:
    done = history("report", "storage", "--gb-month-usd", "0.1", "--json").data["storage"]

    assert done["ended"] >= 3
    assert done["gb_per_million"] == pytest.approx(done["bytes_per_run"] / 1000)
    assert done["usd_per_month"] > 0


def test_the_return_names_what_nobody_priced(history: Shop) -> None:
    bare = history("report", "roi", "--json").data["roi"]
    priced = history("report", "roi", "--usd-per-hour", "$500", "--gb-month-usd", "1", "--json")

    assert any("--usd-per-hour" in each for each in bare["missing"])
    assert ["the price of scripted"] == priced.data["roi"]["missing"]
    assert 500 == priced.data["roi"]["inputs"]["USD per outage hour"]


def test_the_return_of_some_runs_is_charged_for_their_bytes_alone(history: Shop) -> None:
    def gb(*only: str) -> float:
        inputs = history("report", "roi", *only, "--json").data["roi"]["inputs"]
        return float(inputs["GB stored"])

    runs = history("report", "storage", "--json").data["storage"]["largest"]

    assert dict(runs)["run-42"] / 1e9 == pytest.approx(gb("--run", "run-42"))
    assert 0.0 == gb("--until", "1h") < gb("--since", "1h") < gb()


def test_metrics_are_printed_for_prometheus(history: Shop) -> None:
    done = history("report", "metrics")

    assert 0 == done.status
    assert 'holdfast_runs_total{outcome="finished"} 2.0' in done.out.splitlines()


def test_metrics_count_what_a_restart_replays_and_what_waits_for_a_person(history: Shop) -> None:
    before = history("report", "metrics").out
    waiting = len(history("inbox", "list", "--json").data["inbox"])
    history("restart", "killed", "--app", "shop")
    after = history("report", "metrics").out

    assert "holdfast_replayed_calls_total{" not in before
    assert 'holdfast_replayed_calls_total{kind="step"} 1.0' in after.splitlines()
    assert f"holdfast_escalations_open {float(waiting)}" in before.splitlines()
    assert waiting > 0
    assert 'holdfast_checkpoint_write_seconds_count{mode="checkpoint",granularity="turns"' in before
    assert 'holdfast_checkpoint_bytes_total{kind="change"}' in before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sla", "--since", "yesterday"), "--since: 'yesterday' is no age"),
        (("sla", "--until", "yesterday"), "--until: 'yesterday' is no age"),
        (("cost", "--since", "1d", "--until", "24h"), "leaves no time between them"),
        (("cost", "--since", "1d", "--until", "2026-01-01"), "leaves no time between them"),
        (("metrics", "--since", "1d", "--until", "2d"), "--since is the longer ago"),
        (("roi", "--usd-per-hour", "-3"), "not a sum"),
        (("roi", "--gb-month-usd", "cheap"), "not a sum"),
        (("sla", "--watch"), "on a terminal"),
    ],
)
def test_what_cannot_be_meant_is_refused(history: Shop, args: tuple[str, ...], said: str) -> None:
    done = history("report", *args)

    assert 2 == done.status
    assert said in done.err


def test_a_store_that_is_not_there_is_told(shop: Shop) -> None:
    assert 3 == shop("report", "sla").status


def test_lines_are_one_promise_or_breach_each(history: Shop) -> None:
    lines = [json.loads(each) for each in history("report", "-o", "jsonl").out.splitlines()]

    assert 5 == sum(line["kind"] == "promise" for line in lines)
    assert sum(line["kind"] == "breach" for line in lines) >= 2


@pytest.mark.parametrize(("end", "status"), [(2, 130), (15, 143)])
def test_it_is_shown_again_and_again_on_a_terminal(history: Shop, end: int, status: int) -> None:
    done = on_terminal(history, "report", "sla", "--watch", until="SLA breach", end=end)

    assert status == done.status
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert done.out.rindex(hidden) < done.out.rindex(shown)
