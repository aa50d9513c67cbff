"""A scorecard counts what results say, and a single lapse turns its verdict."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.drill import words
from holdfast.drill.ledger import Ledger, Line
from holdfast.drill.markdown import markdown
from holdfast.drill.page import page
from holdfast.drill.reference import Reference, done
from holdfast.drill.result import Head, Log, Result, Results, Shared, read
from holdfast.drill.scorecard import Scorecard, scorecard
from holdfast.errors import UsageError
from holdfast.model.failure import FailureKind
from holdfast.report.episodes import Ending, Episode
from holdfast.report.metrics import Targets, Verdict

HEAD = Head(
    agent="shop:trader",
    seed=7,
    runs=3000,
    faults=("kill",),
    share=0.5,
    scale=0.1,
    unscaled=24,
    cases=1,
    stubs=("pay",),
    promises=Targets(),
    version="1",
    machine="a machine",
    command="holdfast drill run shop:trader --seed 7",
)


def episode(redo_s: float = 0.3) -> Episode:
    return Episode(
        kind=FailureKind.CRASH,
        failed_at=100.0,
        decided_at=100.5,
        resumed_at=101.0,
        caught_up_at=102.0 + redo_s,
        redo_s=redo_s,
        ending=Ending.RECOVERED,
    )


@dataclass
class Drill:
    """Results as a whole drill would leave them, to be spoiled by a test."""

    runs: dict[int, Result] = field(default_factory=dict)

    def card(self) -> Scorecard:
        full = [
            Result(no=-n, case=0, is_unscaled=True, held_s=0.1, calls_s=10.0) for n in range(24)
        ]
        shared = [Shared(runs=3000, bytes_per_run=1000.0)]
        return scorecard(Results(head=HEAD, runs=self.runs, unscaled=full, shared=shared))


@pytest.fixture
def drill() -> Drill:
    # Bytes of a part are enough, and quicker to resample.
    calm = [Result(no=no, case=0, bytes=4000) for no in range(0, 200, 2)]
    calm += [Result(no=no, case=0) for no in range(200, 3000, 2)]
    struck = [
        Result(no=no, case=0, fault="kill", has_struck=True, episodes=[episode()])
        for no in range(1, 3000, 2)
    ]
    return Drill({each.no: each for each in (*calm, *struck)})


def verdicts(card: Scorecard) -> dict[str, Verdict]:
    shown = {each.name: each.verdict for each in card.measured}
    return shown | {each.name: each.verdict for each in card.nevers}


def test_a_clean_drill_of_three_thousand_shows_all_five_promises(drill: Drill) -> None:
    card = drill.card()

    assert [Verdict.MET] * 5 == [each.verdict for each in card.measured]
    assert not card.is_missed
    assert 1500 == card.struck
    assert "every promise was met, and nothing happened that must not" == words.closing(card)


def test_what_was_redone_is_scaled_back(drill: Drill) -> None:
    card = drill.card()

    assert 5.0 == pytest.approx(card.times_s[0])  # 2 s of its own, 0.3 s redone at a tenth.
    assert 3.0 == pytest.approx(card.parts["redo"])


@pytest.mark.parametrize(
    ("lapse", "name"),
    [
        ({"doubled": 1}, "effects doubled"),
        ({"missing": 1}, "effects missing"),
        ({"asked_twice": 1}, "answers asked twice"),
        ({"wrong": ["total"]}, "states wrong"),
        ({"outcome": "InDoubt", "error": "in doubt"}, "runs not finished"),
    ],
)
def test_one_lapse_in_three_thousand_runs_is_a_promise_missed(
    drill: Drill, lapse: dict[str, object], name: str
) -> None:
    drill.runs[77] = Result(no=77, case=0, fault="kill", **lapse)  # type: ignore[arg-type]

    card = drill.card()

    assert card.is_missed
    assert Verdict.MISSED is verdicts(card)[name]
    assert ["holdfast drill run shop:trader --seed 7 --only 77"] == [
        each.repeat for each in card.broken
    ]


def test_a_recovery_that_doubled_an_effect_is_none(drill: Drill) -> None:
    clean = drill.card().measured[0].failures
    drill.runs[77] = Result(no=77, case=0, fault="kill", episodes=[episode()], doubled=1)

    assert (0, 1) == (clean, drill.card().measured[0].failures)


def test_pages_escape_what_agents_say(drill: Drill) -> None:
    drill.runs[77] = Result(no=77, case=0, outcome="Bad", error="<script>alert(1)</script>|x")

    card = drill.card()

    assert "<script>" not in page(card)
    assert "\\|x" in markdown(card)


def test_stand_ins_that_take_no_time_show_no_overhead(drill: Drill) -> None:
    full = [Result(no=-1, case=0, is_unscaled=True, held_s=0.1, calls_s=0.0)] * 30
    card = scorecard(Results(head=HEAD, runs=drill.runs, unscaled=full, shared=[]))

    assert Verdict.NOT_SHOWN is verdicts(card)["latency overhead"]


def test_results_come_back_and_a_line_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "results"
    log = Log(file)
    log.add(HEAD)
    log.add(Result(no=3, case=0, episodes=[episode()]))
    with file.open("ab") as end:
        end.write(b'{"type":"run","no":4')

    found = read(file)

    assert HEAD == found.head
    assert {3: Result(no=3, case=0, episodes=[episode()])} == found.runs
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none")


def test_a_ledger_counts_effects_by_what_they_are_about(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    for key, name, is_idempotent in [
        ("k1", "pay", False),
        ("k1", "pay", False),
        ("k2", "mail", True),
        ("k2", "mail", True),
        ("k3", "hold", False),
    ]:
        line = Line(what="did", key=key, name=name, about="o-1", is_idempotent=is_idempotent)
        ledger.add(line, is_durable=True)

    assert {"pay o-1": 2, "mail o-1": 1} == done(ledger.read(), undone=["k3"])


def test_a_reference_names_the_places_that_differ() -> None:
    reference = Reference(result=1, state={"a": 1, "b": {"c": [1, 2]}}, did={}, counts={})

    assert [] == reference.wrong(1, {"a": 1, "b": {"c": [1, 2]}}, ())
    assert ["result", "b.c[1]"] == reference.wrong(2, {"a": 1, "b": {"c": [1, 3]}}, ())
    assert [] == reference.wrong(1, {"a": 5, "b": {"c": [1, 2]}}, ["a"])
    told = {"a": 1, "b": {"c": [1, 2]}, "runtime": {"rollbacks": [{"to": "x"}]}}
    assert [] == reference.wrong(1, told, ())
