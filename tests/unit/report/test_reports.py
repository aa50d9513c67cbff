"""Reports over made-up runs: what counts as what."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from holdfast.model.decision import Action
from holdfast.model.failure import FailureKind
from holdfast.model.journal import Usage
from holdfast.model.limits import SLA
from holdfast.model.run import Status
from holdfast.report import prices
from holdfast.report.cost import cost_of, growth_of
from holdfast.report.episodes import Ending, Episode
from holdfast.report.facts import Facts
from holdfast.report.held import Held
from holdfast.report.metrics import Verdict
from holdfast.report.prices import priced, with_price
from holdfast.report.prometheus import exposition
from holdfast.report.roi import Assumed, promised_usd_per_hour, returned
from holdfast.report.sla import keep
from holdfast.report.smells import smells

NOW = 10_000.0
ALERTS = Path(__file__).parents[3] / "docs" / "reference" / "alerts.yml"


def failure(took_s: float | None, ending: Ending = Ending.RECOVERED, at: float = 100.0) -> Episode:
    end = None if took_s is None else at + took_s
    return Episode(
        kind=FailureKind.CRASH,
        failed_at=at,
        action=Action.RESTART,
        decided_at=at + 0.5,
        resumed_at=None if took_s is None else at + took_s / 2,
        caught_up_at=end,
        ending=ending,
    )


def run(name: str, *episodes: Episode, **facts: object) -> Facts:
    known: dict[str, object] = {
        "id": name,
        "agent": "a",
        "status": Status.FINISHED,
        "is_ended": True,
        "began": 0.0,
        "ended": 1000.0,
        "last_at": 1000.0,
        "worked_s": 900.0,
        "between_s": 9.0,
        "bytes": 3_000,
        "episodes": list(episodes),
        "sla": None,
        "is_watched": False,
        "spent": [],
        "saved": [],
        "lost": [],
        "at_risk_s": [],
        "lives": 1,
        "saves": [],
        "state_bytes": {},
        "replayed": {},
        "effects": 0,
        "not_done": 0,
        "in_doubt": 0,
    }
    return Facts(**{**known, **facts})  # type: ignore[arg-type]


def test_the_five_promises_are_not_met_by_a_few_samples() -> None:
    kept = keep([run("a", failure(4.0)), run("b")], NOW)

    assert [Verdict.NOT_SHOWN] * 5 == [each.verdict for each in kept.measured]
    assert [1497, 59, 20, 20, 2995] == [each.needed for each in kept.measured]
    assert 2.0 == kept.down_s


def test_many_good_runs_meet_all_five() -> None:
    facts = [run(f"r{n}", failure(4.0)) for n in range(3000)]

    kept = keep(facts, NOW)

    assert [Verdict.MET] * 5 == [each.verdict for each in kept.measured]
    assert [] == kept.breaches
    assert 1.0 == kept.success
    assert 0.998 == pytest.approx(kept.availability)


def test_breaches_are_listed_one_by_one_with_their_reason() -> None:
    sla = SLA(max_recovery="30s", availability=0.99)
    kept = keep(
        [
            run("slow", failure(45.0), sla=sla),
            run("helped", failure(5.0, Ending.PERSON), sla=sla),
            run("lost", failure(None, Ending.FAILED), sla=sla, status=Status.FAILED),
            run("young", failure(None, Ending.OPEN, at=NOW - 5), sla=sla, is_ended=False),
            run("fine", failure(5.0), sla=sla),
        ],
        NOW,
    )

    assert [
        ("slow", "it took too long"),
        ("helped", "a person had to help"),
        ("lost", "it was not recovered"),
    ] == [(each.run, each.why) for each in kept.breaches]
    assert 15.0 == kept.breach_s
    assert Verdict.MISSED is kept.measured[4].verdict
    assert (3, 4) == (kept.measured[4].failures, kept.measured[4].samples)
    assert kept.budget_left is not None
    assert 1 - kept.down_s / (0.01 * 5000) == pytest.approx(kept.budget_left)


def test_an_outage_that_lasts_counts_up_to_now() -> None:
    kept = keep(
        [
            run("fine"),
            run(
                "dead",
                failure(None, Ending.OPEN, at=400.0),
                is_ended=False,
                ended=None,
                last_at=400.0,
            ),
        ],
        NOW,
    )

    assert NOW - 400 == kept.down_s
    assert NOW - 400 - kept.targets.max_recovery_s == kept.breach_s
    assert 1 - (NOW - 400) / (1000 + NOW) == pytest.approx(kept.availability)


def test_a_wait_before_the_next_try_counts_up_to_now_and_as_time_of_the_run() -> None:
    waits = Episode(
        kind=FailureKind.TRANSIENT, failed_at=400.0, action=Action.RETRY, resumed_at=NOW + 500
    )
    kept = keep([run("waits", waits, is_ended=False, ended=None, last_at=400.0)], NOW)

    assert NOW - 400 == kept.down_s
    assert 400 / NOW == pytest.approx(kept.availability)


def test_a_run_under_way_counts_as_long_as_it_was_heard_of() -> None:
    kept = keep([run("going", failure(50.0), is_ended=False, ended=None, last_at=500.0)], NOW)

    assert 0.95 == pytest.approx(kept.availability)


def test_runs_that_nobody_watches_stand_apart_from_those_that_are() -> None:
    watched, alone = run("watched", failure(4.0), is_watched=True), run("alone", failure(900.0))
    sound = [run(f"sound-{n}") for n in range(3)]

    kept = keep([watched, alone, *sound], NOW)

    assert (5, 1, 1, []) == (kept.runs, kept.apart, kept.episodes, kept.breaches)
    assert 4 == kept.measured[4].samples


def test_each_run_is_held_to_its_own_promise() -> None:
    swift = SLA(max_recovery="5s", clock="resume", availability=0.9)
    patient = SLA(max_recovery="1h", availability=0.5)
    runs = [
        *(run(f"swift {n}", failure(20.0), sla=swift) for n in range(3)),
        *(run(f"patient {n}", failure(50.0), sla=patient) for n in range(3)),
        run("silent", failure(8.0)),
    ]

    kept = keep(runs, NOW)

    assert kept.is_mixed
    assert {("swift 0", 5.0), ("swift 1", 5.0), ("swift 2", 5.0)} == {
        (breach.run, breach.limit_s) for breach in kept.breaches
    }
    assert 3 * (10.0 - 5.0) == pytest.approx(kept.breach_s)
    allowed_s, down_s = 3 * 100.0 + 3 * 500.0 + 100.0, 3 * 10.0 + 3 * 25.0 + 4.0
    assert 1 - down_s / allowed_s == pytest.approx(kept.budget_left)
    assert ["P95 of recoveries is 10 s, 5 s are promised"] == [
        smell.found.split(";")[0] for smell in smells(runs, kept) if smell.name == "slow recovery"
    ]
    assert kept.breaches == keep([*reversed(runs[3:]), *runs[:3]], NOW).breaches
    assert not keep(runs[:3], NOW).is_mixed


def test_the_agents_own_code_never_makes_the_overhead_a_missed_promise() -> None:
    kept = keep([run(f"r{n}", between_s=500.0) for n in range(30)], NOW)

    assert Verdict.NOT_SHOWN is kept.measured[3].verdict
    assert "at most" in kept.measured[3].note


def test_checkpoints_that_alone_take_too_long_make_it_one() -> None:
    def held(blocked_s: float) -> list[Held]:
        return [Held(mode="checkpoint", granularity="turns", blocked_s=blocked_s)]

    fits = keep([run(f"r{n}", between_s=500.0, saves=held(120.0)) for n in range(30)], NOW)
    over = keep([run(f"r{n}", between_s=500.0, saves=held(140.0)) for n in range(30)], NOW)

    assert (Verdict.NOT_SHOWN, Verdict.MISSED) == (
        fits.measured[3].verdict,
        over.measured[3].verdict,
    )
    assert "checkpoints alone 16.28%" in over.measured[3].note


def test_tokens_that_were_not_spent_again_are_counted_with_their_recorded_price() -> None:
    answer = Usage(model="m", tokens_in=100, tokens_out=10, usd=0.5)
    facts = [run("a", spent=[answer] * 4, saved=[answer] * 3, lost=[answer], lives=3)]

    cost = cost_of(facts)

    assert (2, 2.0, 1.5, 0.5) == (cost.restarts, cost.spent.usd, cost.saved.usd, cost.lost.usd)
    assert (300, 30) == (cost.saved.tokens_in, cost.saved.tokens_out)
    assert [] == cost.missing


def test_a_model_without_a_price_is_named_and_not_guessed() -> None:
    cost = cost_of([run("a", spent=[Usage(model="home-made-7", tokens_in=5)])])

    assert ["home-made-7"] == cost.missing
    assert cost.spent.usd is None


def test_a_known_model_without_a_recorded_price_gets_todays() -> None:
    cost = cost_of([run("a", spent=[Usage(model="gpt-4o", tokens_in=10**6, tokens_out=0)])])

    assert [] == cost.missing
    assert cost.models[0].priced_today
    assert (cost.spent.usd or 0) > 0


def test_a_price_is_read_from_the_answer_or_from_the_table() -> None:
    told = {"model": "gpt-4o", "usage": {"input_tokens": 10, "output_tokens": 1, "usd": 7.0}}
    known = {"model": "gpt-4o", "usage": {"input_tokens": 20_000, "output_tokens": 4_000}}
    odd = {"model": "home-made-7", "usage": {"input_tokens": 1, "output_tokens": 1}}

    assert 7.0 == (priced(told) or Usage()).usd
    assert 0.0 < ((priced(known) or Usage()).usd or 0.0) < 1.0
    assert (priced(odd) or Usage(usd=1.0)).usd is None
    assert priced("no usage") is None
    assert Usage(model="gpt-4o") == with_price(Usage(model="gpt-4o"))


def test_tokens_that_went_through_a_cache_have_their_own_price() -> None:
    def usd(**usage: int) -> float:
        found = priced({"model": "claude-sonnet-4-5", "usage": {"output_tokens": 0, **usage}})
        assert found is not None
        assert found.tokens_in == 100_000
        return found.usd or 0.0

    plain = usd(input_tokens=100_000)
    read = usd(input_tokens=10_000, cache_read_input_tokens=90_000)
    written = usd(input_tokens=10_000, cache_creation_input_tokens=90_000)

    assert 0 < read < plain < written
    odd = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 5}}
    assert Usage("gpt-4o", 1) == priced({"model": "gpt-4o", "usage": odd})


def test_without_the_table_an_answer_that_was_paid_for_is_recorded_unpriced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prices, "TABLE", "genai_prices_that_nobody_installed")
    answer = {"model": "gpt-4o", "usage": {"input_tokens": 10, "output_tokens": 1}}

    assert Usage("gpt-4o", 10, 1) == priced(answer)


def test_nothing_used_of_a_model_needs_no_price() -> None:
    cost = cost_of([run("a", spent=[Usage("home-made-7", 0, 0), Usage("other", None, 0)])])

    assert [] == cost.missing
    assert ["unsaid"] == cost_of([run("a", spent=[Usage("unsaid")])]).missing


def test_growth_is_counted_over_runs_that_ended() -> None:
    growth = growth_of([run("a"), run("b", bytes=5_000), run("c", is_ended=False)], 10**9, 0.1)

    assert (2, 8_000, 4_000.0, 4.0, 0.1) == (
        growth.ended,
        growth.bytes,
        growth.bytes_per_run,
        growth.gb_per_million,
        growth.usd_per_month,
    )
    assert "b" == growth.largest[0][0]
    assert growth_of([], 0, None).gb_per_million is None


def test_the_return_lists_every_input_and_what_nobody_priced() -> None:
    answer = Usage(model="m", tokens_in=1, usd=2.0)
    facts = [run("a", failure(36.0), saved=[answer], at_risk_s=[3600.0], lives=2, between_s=36.0)]
    kept, cost = keep(facts, NOW), cost_of(facts)

    known = returned(facts, kept, cost, 10**9, Assumed(usd_per_hour=100, gb_month_usd=0.5))
    unknown = returned(facts, kept, cost, 10**9, Assumed())

    assert (102.0, 1.5) == (known.worth.benefit_usd, known.worth.cost_usd)
    assert (68.0, 67.0) == (known.worth.benefit_cost_ratio, known.worth.net_roi)
    assert [] == known.missing
    assert 1.005 == pytest.approx(known.worth.inputs["outage hours without records"])
    assert 2 == len(unknown.missing)


def test_an_hour_costs_what_the_newest_run_says_whose_promise_names_it() -> None:
    silent = run("silent", sla=SLA(max_recovery="30s"))
    said = [run(f"of {usd}", sla=SLA(breach_usd_per_hour=usd)) for usd in (500, 900)]

    assert 500 == promised_usd_per_hour([run("none"), silent, *said])
    assert promised_usd_per_hour([silent]) is None


def test_metrics_are_read_by_prometheus_own_parser_and_carry_no_ids() -> None:
    facts = [
        run("secret-id", failure(4.0), failure(45.0), sla=SLA(availability=0.999), in_doubt=1),
        run("other", status=Status.FAILED),
    ]
    text = exposition(facts, keep(facts, NOW), cost_of(facts), 123)

    families = {each.name: each for each in text_string_to_metric_families(text)}
    recovery = families["holdfast_recovery_seconds"].samples
    below = {
        (each.labels.get("clock"), each.labels.get("le")): each.value
        for each in recovery
        if each.name.endswith("_bucket")
    }
    assert "secret-id" not in text
    assert (1.0, 1.0, 2.0) == (
        below["catch_up", "5"],
        below["catch_up", "30"],
        below["catch_up", "60"],
    )
    assert {"finished": 1.0, "failed": 1.0} == {
        each.labels["outcome"]: each.value for each in families["holdfast_runs"].samples
    }
    assert [1.0] == [each.value for each in families["holdfast_effects_in_doubt"].samples]


def test_saves_replays_and_what_waits_are_counted_by_kind() -> None:
    saves = [
        Held(mode="checkpoint", granularity="turns", blocked_s=0.0004),
        Held(mode="checkpoint", granularity="turns", blocked_s=0.02),
        Held(mode="snapshot", granularity="steps", blocked_s=0.002),
    ]
    facts = [
        run("a", saves=saves, state_bytes={"change": 70, "whole": 30}, replayed={"step": 2}),
        run("b", state_bytes={"change": 5}, replayed={"step": 1, "effect": 4}, not_done=2),
    ]
    text = exposition(facts, keep(facts, NOW), cost_of(facts), 1, escalations=3)

    value = {
        (each.name, *sorted(each.labels.values())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }
    write, labels = "holdfast_checkpoint_write_seconds", ("checkpoint", "sqlite", "turns")
    assert (1.0, 2.0) == (
        value[f"{write}_bucket", "0.01", *labels],
        value[f"{write}_bucket", "0.05", *labels],
    )
    assert 0.0204 == pytest.approx(value[f"{write}_sum", *labels])
    assert 1.0 == value[f"{write}_count", *sorted(("snapshot", "sqlite", "steps"))]
    assert (75.0, 30.0) == (
        value["holdfast_checkpoint_bytes_total", "change"],
        value["holdfast_checkpoint_bytes_total", "whole"],
    )
    assert (3.0, 4.0) == (
        value["holdfast_replayed_calls_total", "step"],
        value["holdfast_replayed_calls_total", "effect"],
    )
    assert 2000.0 == value["holdfast_run_seconds_sum", "finished"]
    assert 2.0 == value["holdfast_effects_total", "not done"]
    assert 3.0 == value["holdfast_escalations_open",]


def test_breaches_are_counted_from_nothing_so_that_the_first_is_an_increase() -> None:
    def counted(*episodes: Episode) -> list[float]:
        facts = [run("a", *episodes, sla=SLA(max_recovery="30s"))]
        text = exposition(facts, keep(facts, NOW), cost_of(facts), 1)
        families = text_string_to_metric_families(text)
        [breaches] = [each for each in families if each.name == "holdfast_sla_breaches"]
        return [each.value for each in sorted(breaches.samples, key=lambda s: s.labels["reason"])]

    assert [0, 0, 0, 0] == counted()
    assert [0, 0, 1, 0] == counted(failure(45.0))


def test_every_alert_uses_metrics_that_are_printed() -> None:
    facts = [run("a", failure(45.0), sla=SLA(availability=0.999))]
    text = exposition(facts, keep(facts, NOW), cost_of(facts), 1)
    printed = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))

    rules = ALERTS.read_text(encoding="utf-8")
    used = {re.sub(r"_bucket$", "", name) for name in re.findall(r"holdfast_\w+", rules)}
    recorded = set(re.findall(r"record: (\S+)", rules))

    assert set() == used - printed
    assert set(re.findall(r"holdfast:[\w:]+", rules)) == recorded
    assert 6 == rules.count("alert:")


def test_bloat_slow_recoveries_and_runs_left_alone_are_named() -> None:
    facts = [
        run(f"r{n}", failure(45.0), bytes=900_000, sla=SLA(max_recovery="30s")) for n in range(4)
    ]
    facts.append(run("down", failure(None, Ending.FAILED), status=Status.FAILED))
    found = {each.name: each for each in smells(facts, keep(facts, NOW))}

    assert {"bloat", "slow recovery", "nobody watches"} == set(found)
    assert "holdfast du r0" in found["bloat"].instead
    assert "30 s are promised" in found["slow recovery"].found
    assert "1 run failed with nobody to restart it" == found["nobody watches"].found


def test_runs_that_were_restarted_by_hand_or_given_up_are_not_said_to_be_left() -> None:
    facts = [
        run("restarted", failure(4.0)),
        run("under way", failure(4.0), replace(failure(None), resumed_at=110.0), is_ended=False),
        run("given up", failure(None, Ending.FAILED), status=Status.CANCELLED),
    ]

    assert [] == smells(facts, keep(facts, NOW))


def test_a_slow_recovery_is_named_from_the_first_on_with_what_would_fit() -> None:
    def told(max_recovery: str, clock: str = "catch_up") -> str:
        sla = SLA(max_recovery=max_recovery, clock=clock)
        facts = [run("a", failure(45.0), is_watched=True, sla=sla)]
        [smell] = smells(facts, keep(facts, NOW))
        return smell.found

    # Half a second to detect it, 22 s to restore, 22.5 s to replay.
    slow = "P95 of recoveries (1 so far) is 45 s, 30 s are promised; most of it is replay"
    assert f"{slow}, of which 7.5 s would fit" == told("30s")
    assert told("20s").endswith("most of it is replay, and the rest alone does not fit")
    assert told("20s", "resume").endswith("most of it is restore, of which 19.5 s would fit")


def test_recoveries_that_waited_for_a_person_are_no_slow_restores() -> None:
    helped = [run(f"r{n}", failure(7200.0, Ending.PERSON), is_watched=True) for n in range(4)]
    kept = keep(helped, NOW)

    assert [] == smells(helped, kept)
    assert 4 == len(kept.breaches)


def test_a_healthy_store_smells_of_nothing() -> None:
    facts = [run("a", failure(4.0), is_watched=True), run("b")]

    assert [] == smells(facts, keep(facts, NOW))
