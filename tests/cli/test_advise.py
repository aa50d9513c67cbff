"""`holdfast advise`: the ranking, what decides it, and what is impossible."""

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.cli.advice import Told, curve, document, grids, worth_text
from holdfast.cli.cases import case_of, promise_said, read_case
from holdfast.cli.commands.advise import EXAMPLE, tell_all
from holdfast.cli.main import main
from holdfast.drill.scenario import read as read_scenario
from holdfast.errors import BadCase
from holdfast.model.case import Case, Promise
from holdfast.policy.advise.worth import Worth
from tests.cli.kit import Shop

CASES = Path(__file__).parents[2] / "examples" / "cases"
SAVED = "local journal + remote checkpoint every step"


def told_of(
    name: str, *, simulate: int = 0, is_explained: bool = False
) -> tuple[Told, dict[str, Any]]:
    case = read_case(CASES / f"{name}.toml")
    told = tell_all(case, simulate=simulate, is_explained=is_explained)
    rows = {row["name"]: row for row in document(told)["options"]}
    return told, rows


def support() -> dict[str, Any]:
    return tomllib.loads((CASES / "support.toml").read_text(encoding="utf-8"))


def text_of(told: Told) -> str:
    return "\n".join(part if isinstance(part, str) else repr(part.rows) for part in grids(told))


def test_the_support_case_saves_every_step_and_says_what_no_interval_can_help() -> None:
    told, rows = told_of("support")
    advice = told.advice

    assert SAVED == advice.best.strategy.name
    assert (23.2, 0.0035, 0.0022, 0.99794, 242_000) == (
        round(rows[SAVED]["catch_up_s"][1], 1),
        round(rows[SAVED]["breach"], 4),
        round(rows[SAVED]["overhead"], 4),
        round(rows[SAVED]["availability"], 5),
        rows[SAVED]["bytes"],
    )
    assert (52.8, 0.012) == (
        round(rows["local journal + remote checkpoint every 5 steps"]["catch_up_s"][1], 1),
        round(rows["local journal + remote checkpoint every 5 steps"]["breach"], 3),
    )
    assert (166.9, 0.0336) == (
        round(rows["nothing saved"]["catch_up_s"][1], 1),
        round(rows["nothing saved"]["breach"], 4),
    )
    assert 4.8 == pytest.approx(advice.best_interval_s, abs=0.05)
    assert "less than one step (10 s)" in advice.why
    assert "50 s between checkpoints would pass the 12 s that a host failure leaves" in advice.why
    assert {"process": 26, "host": 12, "rollback": 24} == {
        bound.cause: bound.high_s for bound in advice.bounds
    }
    assert "its floor is 0.349%" in advice.binding
    assert "failures that nothing recovers from bind, not the interval" in advice.binding
    assert ["breach rate", "bytes per task", "availability"] == rows[SAVED]["misses"]
    assert "poison" in next(c.would for c in told.changes if c.limit.startswith("breach"))


def test_the_mended_support_case_keeps_all_but_storage_and_availability() -> None:
    told, rows = told_of("support-mended")
    best = told.advice.best

    assert SAVED == best.strategy.name
    assert ["bytes per task", "availability"] == rows[SAVED]["misses"]
    assert (14.8, 0.000095) == (
        round(rows[SAVED]["catch_up_s"][1], 1),
        round(rows[SAVED]["breach"], 6),
    )
    down_s = best.time_s * (1 - best.availability)
    assert (0.196, 0.18) == (round(down_s, 3), round(best.time_s * 0.001, 2))


def test_the_trading_case_needs_a_journal_around_orders_and_sooner_detection() -> None:
    told, rows = told_of("trading")
    per_turn = "remote journal + remote checkpoint every 5 steps"

    assert "remote journal" in told.advice.best.strategy.name
    assert 1.83 == round(rows["nothing saved"]["effects_repeated"], 2)
    assert "effects repeated" in rows["nothing saved"]["misses"]
    assert 0 == rows[per_turn]["effects_repeated"]
    assert 0.0031 == round(told.advice.floor, 4)
    assert (8.1, 0.0129, 0.01, 0.0032) == (
        round(told.advice.current.catch_up_s[1] or 0, 1),  # type: ignore[union-attr]
        round(told.advice.current.breach or 0, 4),  # type: ignore[union-attr]
        round(told.advice.current.overhead, 3),  # type: ignore[union-attr]
        round(told.advice.current.effects_passed_over, 4),  # type: ignore[union-attr]
    )
    assert any("after a host failure, detection and restore alone" in note for note in told.notes)
    would = {change.limit: change.would for change in told.changes}
    assert "noticed" in would["recovery within 5 s at P95"]


def test_what_it_is_worth_lists_every_input() -> None:
    _, rows = told_of("support")

    worth = rows[SAVED]["against_none"]
    inputs = worth["inputs"]

    assert worth["benefit_usd"] == pytest.approx(
        inputs["cost of failures before, USD/task"] - inputs["cost of failures after, USD/task"]
    )
    assert worth["net_roi"] == pytest.approx(worth["benefit_cost_ratio"] - 1)
    assert rows[SAVED]["against_current"]["benefit_usd"] > 0
    assert rows["nothing saved"]["against_none"] is None


def test_a_promise_on_the_command_line_counts_for_more_than_the_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(CASES / "support.toml")
    missed = main(["advise", file, "-o", "json"])
    hard = json.loads(capsys.readouterr().out)["advice"]

    mild = "availability=0.99,breach_rate=0.05,bytes_per_task=1e6"
    kept = main(["advise", file, "--sla", mild, "-o", "json"])
    soft = json.loads(capsys.readouterr().out)["advice"]

    assert (6, 0) == (missed, kept)
    assert (False, True) == (hard["is_kept"], soft["is_kept"])
    assert [] == soft["changes"]


def test_saves_too_slow_for_the_promise_are_told_with_what_would_help() -> None:
    data = support()
    data["saving"] = {"checkpoint_remote": "5s", "restore_remote": "1s", "restore_local": "1s"}
    data["sla"] = {"max_recovery": "20s", "overhead_cap": 0.15}

    told = tell_all(case_of(data, "slow"))

    [note] = [note for note in told.notes if "process" in note]
    assert "16 s of work may be lost" in note
    assert "need 33.3 s between them" in note
    assert "journal or a faster store" in note


def test_a_breach_rate_without_a_recovery_time_counts_tasks_that_are_not_recovered() -> None:
    data = support()
    data["sla"] = {"breach_rate": 0.001, "breach_usd_per_hour": 3600}

    told = tell_all(case_of(data, "no time"), simulate=2000)

    best = told.advice.best
    assert best.breach is not None
    assert 1 - best.success == pytest.approx(best.breach)
    assert ["breach rate"] == [check.name for check in best.misses]
    assert 180 * best.breach == pytest.approx(best.usd["breach"])
    assert told.simulated is not None
    assert told.simulated.breach is not None


def test_on_the_clock_of_going_on_no_work_is_lost_between_saves() -> None:
    data = support()
    data["sla"] = {"max_recovery": "8s", "clock": "resume"}
    data["failures"]["cause"] = [{"scope": "process", "detect": "3s"}]

    told = tell_all(case_of(data, "resume"))
    data["sla"]["max_recovery"] = "2s"
    late = tell_all(case_of(data, "late"))

    assert ([], []) == (told.notes, told.advice.best.misses)
    assert "at least 133 ms between checkpoints" in text_of(told)
    assert ["detection and restore alone" in note for note in late.notes] == [True]


def test_a_cap_of_nothing_and_a_budget_too_small_are_told() -> None:
    data = support()
    data["sla"] = {"overhead_cap": 0, "recovery_budget": 0.0001}

    told = tell_all(case_of(data, "strict"))

    assert ["an overhead cap of 0 forbids every save: allow a share, such as 0.01"] == told.notes
    assert "recovery budget" in [check.name for check in told.advice.best.misses]


def test_saves_that_are_too_slow_are_told_how_quick_they_must_be_of_those_that_are_made() -> None:
    data = changed("saving.journal_local", None)
    data["saving"] |= {"journal_remote": "20s", "checkpoint_remote": "500s"}

    told = tell_all(case_of(data, "tape"))
    text = text_of(told)
    would = next(each.would for each in told.changes if each.limit.startswith("overhead"))

    assert "remote journal" == told.advice.best.strategy.name
    assert "would be kept with saves that block 1.5 s in all, not 20 s" in would
    assert 3 == text.count("no interval keeps both the overhead cap and the recovery time")


@pytest.mark.parametrize(
    ("path", "value", "save"),
    [("journal", "remote", "journal_remote"), ("local_every", 2, "checkpoint_local")],
)
def test_a_current_way_whose_saves_nobody_timed_is_not_taken_for_free(
    path: str, value: object, save: str
) -> None:
    told = tell_all(case_of(changed(f"current.{path}", value), "case"))

    assert told.advice.current is None
    assert f"how long a {save} of the current way blocks" in text_of(told)
    assert "against current" not in text_of(told)


def test_work_that_never_fails_is_not_saved() -> None:
    data = support()
    data["failures"]["per_task"] = 0

    told = tell_all(case_of(data, "calm"), simulate=20, is_explained=True)

    assert "nothing saved" == told.advice.best.strategy.name
    assert "none / none / none" in text_of(told)
    assert "cost against interval (with a local journal)" in text_of(told)
    assert [10, 20, 50] == [point["interval_s"] for point in curve(told)]


def test_a_step_longer_than_a_failure_leaves_is_told_to_record_its_tokens() -> None:
    data = support()
    data["work"]["unit"][0]["seconds"] = 80

    assert any("run.stream" in note for note in tell_all(case_of(data, "long")).notes)

    data["work"]["unit"][0]["tokens"] = 8_000
    data["saving"] |= {"continues": True, "journal_remote": "3ms"}
    often = tell_all(case_of(data, "long"))
    assert "remote journal + token records" == often.advice.best.strategy.name
    assert "a call goes on from the tokens" in often.advice.why
    assert [] == often.notes

    data["saving"]["tokens_every"] = 4_000
    assert any("record them more often" in note for note in tell_all(case_of(data, "long")).notes)


def test_prices_that_are_not_known_are_named_and_not_made_up() -> None:
    data = support()
    del data["prices"]

    told = tell_all(case_of(data, "unpriced"))

    assert {"work", "breach"} == set(told.advice.best.usd)
    assert 3 == len(told.advice.missing)
    assert "GB-month" in text_of(told)


def test_work_that_never_ends_without_saves_is_told_so() -> None:
    data = support()
    data["failures"]["per_task"] = None
    data["failures"] = {"mtbf": "10s", "cause": [{"scope": "process", "recovered": 1}]}
    data["work"]["repeat"] = 1000

    told = tell_all(case_of(data, "storm"))

    assert told.advice.none is None
    assert ["nothing saved"] == told.advice.hopeless
    assert any("never ends with: nothing saved" in note for note in told.notes)


def test_a_way_whose_price_is_beyond_all_numbers_is_told_as_one_that_never_ends() -> None:
    data = support()
    data["work"] = {"repeat": 3, "unit": [{"seconds": 10, "usd": 0.01}]}
    data["failures"] = {"mtbf": "3630s", "cause": [{"scope": "process", "recovered": 0.95}]}
    data["saving"] = {"journal_local": "1000000s"}

    told = tell_all(case_of(data, "sleepy"))

    assert ["nothing saved"] == [option.strategy.name for option in told.advice.options]
    assert ["local journal"] == told.advice.hopeless
    assert "inf" not in text_of(told)


def test_work_that_never_ends_at_all_is_refused() -> None:
    data = support()
    data["failures"] = {"mtbf": "1s", "cause": [{"scope": "process"}]}
    data["work"]["unit"][0]["seconds"] = 3600

    with pytest.raises(BadCase, match="no task ever ends"):
        tell_all(case_of(data, "hurricane"))


def changed(path: str, value: object) -> dict[str, Any]:
    data = copy.deepcopy(support())
    *steps, last = path.split(".")
    place: Any = data
    for step in steps:
        place = place[int(step)] if step.isdigit() else place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("work.unit.0.seconds", -1, "finite number of seconds"),
        ("work.unit.0.seconds", 0, "longer than nothing"),
        ("work.unit.0.seconds", "a while", "not a duration"),
        ("work.unit.0.seconds", float("nan"), "finite number"),
        ("work.unit.0.seconds", "9000h", "more than a year"),
        ("work.unit.0.seconds", 10**400, "a number of so many digits"),
        ("work.unit.0.bytes", 10**400, "a number of so many digits"),
        ("work.unit.0.usd", -0.1, "finite number of US dollars"),
        ("work.unit.0.upfront", 2, "between 0 and 1"),
        ("work.unit.0.bytes", -5, "finite number from 0"),
        ("work.unit.0.effect", "yes", "true or false"),
        ("work.unit.0.secnods", 3, "no such key here"),
        ("work.unit", [], "list of tables"),
        ("work.repeat", 10**9, "more than 20,000 units"),
        ("work.repeat", 1.5, "whole number"),
        ("work", None, "it is missing"),
        ("failures.per_task", 1.0, "not every task can fail"),
        ("failures.per_task", None, "say how often work fails"),
        ("failures.mtbf", "2h", "either per_task"),
        ("failures.cause.0.share", 0.9, "1 together, not 1.3"),
        ("failures.cause.0.scope", "meteor", "not one of in_place"),
        ("failures.cause.4.recovered", 0.5, "nothing here recovers"),
        ("saving", {}, "how long one save blocks"),
        ("saving.stored", 7, "between 0 and 1"),
        ("sla.clock", "sundial", "resume or catch_up"),
        ("sla.availability", 99.9, "between 0 and 1"),
        ("current.journal", "diary", "none, local, remote"),
        ("name", "", "text that is not empty"),
        ("prices", 3, "no table"),
    ],
)
def test_what_cannot_be_meant_is_named_with_its_place(path: str, value: object, said: str) -> None:
    with pytest.raises(BadCase, match=said) as raised:
        case_of(changed(path, value), "case.toml")

    assert raised.value.what.startswith("case.toml")
    assert "--example" in str(raised.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [("max_recovery", "key=value"), ("speed=3", "no such key"), ("clock=x", "resume")],
)
def test_a_promise_that_says_nothing_is_refused(said: str, why: str) -> None:
    with pytest.raises(BadCase, match=why):
        promise_said(Promise(), [said])


def test_a_file_that_is_no_case_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[[[", encoding="utf-8")

    for name, why in {"x.toml": "as TOML", "none.toml": r"\(No such file"}.items():
        with pytest.raises(BadCase, match=f"cannot be read {why}") as raised:
            read_case(tmp_path / name)
        assert name in raised.value.what


def test_files_of_an_editor_on_windows_are_read_like_others(tmp_path: Path) -> None:
    scenario = CASES.parent / "support.toml"
    for file in (EXAMPLE, scenario):
        text = file.read_bytes().replace(b"\n", b"\r\n")
        (tmp_path / file.name).write_bytes(b"\xef\xbb\xbf" + text)

    assert read_case(EXAMPLE) == read_case(tmp_path / EXAMPLE.name)
    assert read_scenario(scenario) == read_scenario(tmp_path / scenario.name)


def test_the_example_is_a_case_with_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["advise", "--example"])

    data = tomllib.loads(capsys.readouterr().out)
    case = case_of(data, "example")
    assert read_case(EXAMPLE) == case
    assert case.saving.journal_remote_s is not None
    assert all(getattr(case.prices, name) is not None for name in case.prices.__struct_fields__)
    assert all(getattr(case.promise, name) is not None for name in case.promise.__struct_fields__)


def test_neither_or_both_sources_are_refused(shop: Shop) -> None:
    neither, both = shop("advise"), shop("advise", "case.toml", "--from-store")

    assert (2, 2) == (neither.status, both.status)
    assert "--example" in neither.err


def test_the_rules_of_thumb_are_answered_with_the_cases_numbers() -> None:
    told, _ = told_of("support", is_explained=True)

    groups = {rule.group for rule in told.rules}
    by_rule = {rule.rule: rule for rule in told.rules}
    assert {
        "decision matrix",
        "decision framework",
        "must use",
        "with caution",
        "avoid",
        "principle",
    } == groups
    must = by_rule["availability of 99.95 % or more, or interruptions above $10,000 an hour"]
    cheap = by_rule["cost decides: a task below $100 needs no checkpoint"]
    assert ("yes", "yes") == (must.applies, cheap.applies)
    assert ("yes", "no") == (must.follow, cheap.follow)
    assert {""} == {rule.follow for rule in told.rules if rule.applies != "yes"}
    assert "does not decide" in cheap.answer
    assert "43.2 min a month" in text_of(told)


def test_what_is_played_by_chance_stands_beside_what_is_exact() -> None:
    told, _ = told_of("support", simulate=3000)
    seen, best = told.simulated, told.advice.best

    assert seen is not None
    assert abs(seen.time_s.value - best.time_s) < 4 * seen.time_s.error
    assert "3,000 tasks played by chance" in text_of(told)


def test_the_page_needs_no_other_file_and_shows_both_charts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "advice.html"

    main(["advise", str(CASES / "support.toml"), "--html", str(file)])

    page = file.read_text(encoding="utf-8")
    assert 2 == page.count("<svg")
    assert "prefers-color-scheme: dark" in page
    assert not [word for word in ("http:", "https:", "<script", "@import", "src=") if word in page]
    assert str(file) in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["advise", str(CASES / "support.toml"), "--html", "no/such/dir/x.html"])
    assert "cannot be written" in capsys.readouterr().err


def test_advice_from_a_store_is_made_of_what_it_has_seen(history: Shop) -> None:
    done = history("advise", "--from-store", "--json")

    advice = done.data["advice"]
    assert advice["best"]["name"].startswith("local journal")
    assert "effects repeated" in next(
        row["misses"] for row in advice["options"] if row["name"] == "nothing saved"
    )
    assert "every" in (advice["current"] or {})["name"]
    told = history("advise", "--from-store").out
    assert "5 runs" in told
    assert "a record blocks" in told
    assert "measured themselves" in told


def test_a_store_that_has_seen_nothing_says_what_is_missing(shop: Shop) -> None:
    absent = shop("advise", "--from-store")
    shop("run", "shop:broken", "--id", "failed")
    empty = shop("advise", "--from-store")
    idle = "import holdfast\n@holdfast.agent\ndef idle(run): return 1\n"
    (shop.folder / "idle.py").write_text(idle)
    shop("run", "idle:idle", "--id", "idle")
    called = shop("advise", "--from-store")

    assert 3 == absent.status
    assert (2, 2) == (empty.status, called.status)
    assert "no run in it has finished yet" in empty.err
    assert "the runs that finished in it made no call" in called.err


def test_json_lines_are_one_strategy_each(capsys: pytest.CaptureFixture[str]) -> None:
    main(["advise", str(CASES / "support.toml"), "-o", "jsonl"])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert SAVED == lines[0]["name"]
    assert {1} == {line["schema_version"] for line in lines}


@pytest.mark.parametrize("name", ["support", "support-drill", "support-mended", "trading"])
def test_every_committed_case_can_be_read(name: str) -> None:
    case: Case = read_case(CASES / f"{name}.toml")

    assert case.current is not None
    assert sorted(file.stem for file in CASES.glob("*.toml")) == [
        "support",
        "support-drill",
        "support-mended",
        "trading",
    ]


def test_what_does_worse_for_nothing_is_told_as_a_loss() -> None:
    assert "loses $0.5 a task, and saving costs no more" == worth_text(
        Worth(benefit_usd=-0.5, cost_usd=0, inputs={})
    )
    assert "saves $0.5 a task and costs nothing more" == worth_text(
        Worth(benefit_usd=0.5, cost_usd=0, inputs={})
    )


def test_the_page_shows_what_is_predicted_of_the_drill() -> None:
    case = read_case(CASES / "support-drill.toml")
    rare = [replace(cause, per_second=cause.per_second / 1000) for cause in case.causes]
    page = (CASES.parents[1] / "docs" / "guides" / "advise.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]

    for name, causes in [*((each.name, [each]) for each in rare), ("all", rare)]:
        told = tell_all(replace(case, causes=causes)).advice.current
        assert told is not None
        p50_s, p95_s, _ = told.catch_up_s
        for fault in name.split(", "):
            row = next(line for line in rows if line.startswith(f"| {fault} |"))
            assert f"| {p50_s:.2f} s, {p95_s:.2f} s |" in row
        assert "0.045%" == f"{told.overhead:.3%}"


def test_snapshots_and_token_records_are_ranked_where_the_case_gives_what_they_cost() -> None:
    data = support()
    data["work"]["unit"][0]["tokens"] = 4_000
    data["saving"] |= {"continues": True, "snapshot_remote": "1ms", "snapshot_bytes": 1_000}
    rows = {row["name"]: row for row in document(tell_all(case_of(data, "support")))["options"]}
    bare, streamed = rows["local journal"], rows["local journal + token records"]
    whole, some = rows[SAVED], rows["local journal + remote snapshot every step"]

    assert streamed["catch_up_s"][0] < bare["catch_up_s"][0]
    assert streamed["overhead"] == pytest.approx(4 * bare["overhead"])
    assert streamed["usd"]["work"] == pytest.approx(bare["usd"]["work"], rel=1e-4)
    assert "recovery point + snapshot" == some["mode"]
    assert some["bytes"] < whole["bytes"]
    assert some["overhead"] < whole["overhead"]
    assert [] == document(tell_all(case_of(data, "support")))["not_ranked"]


def test_what_is_not_ranked_is_told_with_the_input_that_is_missing() -> None:
    data = support()
    text = text_of(tell_all(case_of(data, "support")))
    data["work"]["unit"][0]["tokens"] = 4_000
    alone = document(tell_all(case_of(data, "support")))["not_ranked"]
    data["work"]["unit"][0]["tokens"] = 10
    data["saving"]["continues"] = True
    few = document(tell_all(case_of(data, "support")))["not_ranked"]

    assert "not ranked: snapshots: give saving.snapshot_local" in text
    assert "token records: give tokens of a work.unit" in text
    assert "continues a prefix" in alone[1]
    assert "no step has more than" in few[1]


@pytest.mark.parametrize("promise", ["max_recovery=1ms", "overhead_cap=0", "bytes_per_task=0"])
def test_a_promise_that_cannot_be_kept_is_no_reason_to_save_nothing(promise: str) -> None:
    case = case_of(support(), "support")

    told = tell_all(replace(case, promise=promise_said(case.promise, [promise])))

    assert SAVED == told.advice.best.strategy.name
    assert "nothing saved" == told.advice.options[-1].strategy.name
    assert "so what a task costs decides" in text_of(told)
    assert "bytes per task" in told.advice.binding
    assert "is kept by nothing saved ($" in told.advice.binding


def test_without_prices_what_comes_nearest_to_the_promise_is_advised() -> None:
    data = support()
    del data["prices"]
    data["sla"] = {"max_recovery": "2s"}
    data["failures"]["per_task"] = 0.0001
    for unit in data["work"]["unit"]:
        unit["usd"] = 0
    told = tell_all(case_of(data, "unpriced"))

    best, none = told.advice.best, told.advice.none
    assert none is not None
    assert 0 == best.total_usd == none.total_usd
    assert ["recovery P95"] == [check.name for check in best.misses]
    # To save nothing takes the least time, and is furthest from what is promised.
    assert none.time_s == min(each.time_s for each in told.advice.options)
    assert "nothing saved" != best.strategy.name
    times_s = [each.catch_up_s[1] or 0.0 for each in told.advice.options]
    assert min(times_s) == pytest.approx(best.catch_up_s[1], rel=0.01)
    assert "so what comes nearest to the promise decides" in text_of(told)


def test_without_prices_and_failures_the_reason_says_so() -> None:
    data = support()
    data["failures"]["per_task"] = 0
    never = tell_all(case_of(data, "support")).advice
    data = support()
    del data["prices"], data["sla"]
    data["work"]["unit"][0]["usd"] = 0
    unpriced = tell_all(case_of(data, "support")).advice

    assert "nothing fails here" in never.why
    assert 0 == unpriced.best.total_usd
    assert unpriced.best.time_s == min(each.time_s for each in unpriced.options)


def test_a_share_written_in_per_cent_is_told_how_to_write_it() -> None:
    with pytest.raises(BadCase, match=r"not 99\.9 \(write 99\.9 % as 0\.999\)"):
        promise_said(Promise(), ["availability=99.9"])
    with pytest.raises(BadCase, match=r"between 0 and 1, not 1\.5;"):
        promise_said(Promise(), ["availability=150 %"])


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("availability=99.9%", "availability", 0.999),
        ("breach_rate=0.1 %", "breach_rate", 0.001),
        ("bytes_per_task=50kB", "bytes_per_task", 50_000),
        ("bytes_per_task=50000", "bytes_per_task", 50_000),
    ],
)
def test_a_promise_is_read_as_people_write_it(said: str, field: str, value: float) -> None:
    assert value == pytest.approx(getattr(promise_said(Promise(), [said]), field))


def test_a_number_without_end_is_no_reason_for_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "endless.toml"
    file.write_text(f"[work]\nrepeat = {'9' * 5000}\n", encoding="utf-8")

    with pytest.raises(BadCase, match="cannot be read as TOML"):
        read_case(file)


@pytest.mark.parametrize("seconds", [1e-300, 1e-18, "1ms"])
def test_units_that_are_nothing_beside_their_recovery_are_ranked(seconds: object) -> None:
    case = case_of(changed("work.unit", [{"seconds": seconds}]), "case.toml")
    [bare] = [
        each for each in document(tell_all(case))["options"] if each["name"] == "nothing saved"
    ]

    assert 35.0 == pytest.approx(bare["catch_up_s"][1], abs=0.1)


def test_two_levels_name_both_their_intervals_and_are_no_points_of_the_curve() -> None:
    data = support()
    data["work"]["repeat"] = 40
    data["current"] = {"journal": "local", "local_every": 1, "remote_every": 10}
    data["saving"]["checkpoint_local"] = "1ms"
    case = case_of(data, "two levels")
    told = tell_all(case)
    two = told.advice.current

    assert two is not None
    assert two in told.advice.options
    best_is_two = replace(told.advice, options=[two, *told.advice.options])
    text = text_of(replace(told, advice=best_is_two))
    assert "every step here, every 10 steps elsewhere (1 min 40 s of work)" in text
    intervals = [point["interval_s"] for point in curve(told)]
    assert sorted(set(intervals)) == intervals


def test_sizes_of_the_work_and_its_saves_are_read_as_people_write_them() -> None:
    data = changed("work.unit.0.bytes", "4kB")
    data["saving"] |= {"checkpoint_bytes": "40 kB", "snapshot_bytes": "2MB"}

    case = case_of(data, "case.toml")

    assert (4_000, 40_000, 2_000_000) == (
        case.units[0].bytes,
        case.saving.checkpoint_bytes,
        case.saving.snapshot_bytes,
    )


def test_more_token_records_than_can_be_reckoned_with_are_refused_at_once() -> None:
    data = changed("work.unit.0.tokens", 4_000_000)
    data["saving"] |= {"continues": True, "tokens_every": 20}

    with pytest.raises(BadCase, match="a record every 20 tokens makes 3,600,000 records"):
        case_of(data, "case.toml")


def test_work_of_one_unit_is_told_as_one() -> None:
    assert "customer support: 1 step, 10.0 s of work" in text_of(
        tell_all(case_of(changed("work.repeat", 1), "case.toml"))
    )


def test_a_breach_that_nobody_promised_against_is_told_so() -> None:
    data = support()
    del data["sla"]

    assert "not promised, 0.3488%" in text_of(tell_all(case_of(data, "case.toml")))
