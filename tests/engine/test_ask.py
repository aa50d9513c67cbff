"""`run.ask` waits for a person without a process; the answer is recorded and never asked again."""

import asyncio
import threading
from typing import Any

import pytest

import holdfast
from holdfast.model.ids import row_id
from holdfast.model.journal import Answered, Questioned
from holdfast.model.ledger import Said
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, World, moments


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timed(stage: Stage, clock: ManualClock) -> Stage:
    return Stage(stage.path, clock)


@holdfast.agent
def shipper(run: holdfast.Run) -> str:
    return f"ship: {run.ask('Ship it?', ['yes', 'no'])}"


def waits(stage: Stage, agent: holdfast.Agent[..., Any], *args: object) -> str:
    """Live until the run waits; gives the id of its question."""
    error = stage.fault(agent, *args)
    assert isinstance(error, holdfast.Waiting), error
    return error.question


def answer(stage: Stage, id_: str, value: object, by: str = "ann") -> None:
    with stage.open() as store:
        store.answer(id_, value, by=by)


def test_a_run_that_asks_waits_and_says_what_to_type(stage: Stage) -> None:
    error = stage.fault(shipper)

    assert isinstance(error, holdfast.Waiting)
    assert (RUN, "question", "Ship it?") == (error.run, error.kind, error.text)
    assert f"`holdfast inbox answer {error.question} ANSWER`" in str(error)
    assert holdfast.Status.WAITING is stage.info().status
    assert ["Started", "Questioned", "Failed"] == stage.kinds()


def test_an_answered_run_goes_on_with_the_answer_and_keeps_it(stage: Stage) -> None:
    answer(stage, waits(stage, shipper), "yes")

    assert "ship: yes" == stage.live(shipper)
    assert "ship: yes" == stage.live(shipper)
    [answered] = [entry for entry in stage.journal() if isinstance(entry, Answered)]
    assert ("answered", "ann") == (answered.how, answered.by)


def test_a_run_whose_question_is_open_raises_again_and_does_nothing(stage: Stage) -> None:
    first = waits(stage, shipper)
    before = stage.kinds()

    with pytest.raises(holdfast.Waiting) as again:
        stage.restart(shipper)

    assert first == again.value.question == waits(stage, shipper)
    assert before == stage.kinds()
    assert 1 == stage.info().epoch


def test_any_value_that_can_be_stored_is_an_answer(stage: Stage) -> None:
    @holdfast.agent
    def keeper(run: holdfast.Run) -> object:
        run.state["told"] = run.ask("What do you know?")
        for _ in run.turns():
            return holdfast.plain(run.state["told"])
        return None

    answer(stage, waits(stage, keeper), {"price": [1, 2.5], "ok": None})

    assert {"price": [1, 2.5], "ok": None} == stage.live(keeper)


def test_questions_of_one_turn_are_asked_one_after_the_other(stage: Stage, world: World) -> None:
    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def curious(run: holdfast.Run) -> list[list[str]]:
        for turn in run.turns():
            told = [think(f"a{turn}"), run.ask("one?"), think(f"b{turn}"), run.ask("two?")]
            run.state.setdefault("told", []).append([*told, run.ask("two?")])
            if turn == 1:
                return list(holdfast.plain(run.state["told"]))
        return []

    for n in range(6):
        answer(stage, waits(stage, curious), f"answer {n}")
    told = stage.live(curious)

    assert [
        ["a0#1", "answer 0", "b0#1", "answer 1", "answer 2"],
        ["a1#1", "answer 3", "b1#1", "answer 4", "answer 5"],
    ] == told
    assert [] == world.repeated


def test_an_async_agent_asks_the_same_way(stage: Stage) -> None:
    @holdfast.agent
    async def asker(run: holdfast.Run) -> str:
        async for _ in run.turns():
            await asyncio.sleep(0)
            return f"told {run.ask('Well?')}"
        return ""

    answer(stage, waits(stage, asker), "yes")

    assert "told yes" == stage.live(asker)


def test_a_swallowed_wait_does_not_let_the_run_go_on(stage: Stage, world: World) -> None:
    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def stubborn(run: holdfast.Run) -> str:
        try:
            return str(run.ask("Well?"))
        except holdfast.Waiting:
            return think("on my own")

    answer(stage, waits(stage, stubborn), "no")

    assert "no" == stage.live(stubborn)
    assert [] == world.asked


def test_a_question_inside_a_step_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def nested(run: holdfast.Run) -> object:
        @holdfast.step
        def think() -> object:
            return run.ask("Well?")

        return think()

    error = stage.fault(nested)

    assert isinstance(error, holdfast.NestedCall)
    assert "run.ask was called inside" in str(error)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"question": ""}, "a question"),
        ({"question": 7}, "a question"),
        ({"question": "x" * 10_001}, "10,000 characters"),
        ({"options": "yes"}, "different texts"),
        ({"options": ["a", "a"]}, "different texts"),
        ({"options": ["a", 1]}, "different texts"),
        ({"expires": "soon"}, "not a duration"),
        ({"default": "yes"}, "expires="),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(
    stage: Stage, arguments: dict[str, Any], why: str
) -> None:
    @holdfast.agent
    def asker(run: holdfast.Run) -> object:
        return run.ask(**{"question": "Well?", **arguments})

    error = stage.fault(asker)

    assert isinstance(error, holdfast.UsageError)
    assert why in str(error)


def test_an_answer_that_is_no_option_is_refused_and_the_question_stays_open(stage: Stage) -> None:
    id_ = waits(stage, shipper)

    with pytest.raises(holdfast.UsageError, match="it takes 'yes' or 'no'"):
        answer(stage, id_, "perhaps")

    answer(stage, id_, "no")
    assert "ship: no" == stage.live(shipper)


def test_of_two_answers_the_first_stands_and_the_second_is_told_whose(timed: Stage) -> None:
    id_ = waits(timed, shipper)
    answer(timed, id_, "yes", by="ann")

    with pytest.raises(holdfast.AlreadyAnswered) as second:
        answer(timed, id_, "no", by="bob")

    assert ("ann", "2025-06-15 15:06:40 UTC") == (second.value.by, second.value.at)
    assert "ship: yes" == timed.live(shipper)
    with pytest.raises(holdfast.AlreadyAnswered, match="by ann"):
        answer(timed, id_, "no", by="bob")


def test_of_many_people_who_answer_at_once_one_is_heard(stage: Stage) -> None:
    @holdfast.agent
    def asker(run: holdfast.Run) -> object:
        return run.ask("Who?")

    id_ = waits(stage, asker)
    heard, refused = [], []
    gate = threading.Barrier(8)

    def say(name: str) -> None:
        with stage.open() as store:
            gate.wait()
            try:
                store.answer(id_, name, by=name)
                heard.append(name)
            except holdfast.AlreadyAnswered as error:
                refused.append(error.by)

    people = [threading.Thread(target=say, args=(f"person {n}",)) for n in range(8)]
    for each in people:
        each.start()
    for each in people:
        each.join()

    assert 1 == len(heard)
    assert heard * 7 == refused
    assert heard[0] == stage.live(asker)


@holdfast.agent
def hasty(run: holdfast.Run) -> str:
    try:
        return str(run.ask("Quick?", expires="1h"))
    except holdfast.Expired as error:
        return f"too late: {error.text}"


@holdfast.agent
def patient(run: holdfast.Run) -> object:
    return run.ask("Quick?", expires="1h", default=None)


def test_a_question_expires_and_the_agent_may_go_on(timed: Stage, clock: ManualClock) -> None:
    waits(timed, hasty)
    clock.advance(3600)

    assert "too late: Quick?" == timed.live(hasty)
    [answered] = [entry for entry in timed.journal() if isinstance(entry, Answered)]
    assert ("expired", None) == (answered.how, answered.by)


def test_a_default_answers_when_the_time_has_run_out(timed: Stage, clock: ManualClock) -> None:
    waits(timed, patient)
    clock.advance(3601)

    assert timed.live(patient) is None
    assert holdfast.Status.FINISHED is timed.info().status


def test_an_expired_question_takes_no_answer(timed: Stage, clock: ManualClock) -> None:
    id_ = waits(timed, hasty)
    clock.advance(3600)

    with pytest.raises(holdfast.AlreadyAnswered, match=" expired at 2025-06-15 16:06:40"):
        answer(timed, id_, "still here")


def test_an_answer_in_time_counts_however_late_the_run_goes_on(
    timed: Stage, clock: ManualClock
) -> None:
    id_ = waits(timed, hasty)
    clock.advance(3599)
    answer(timed, id_, "in time")
    clock.advance(10_000)

    assert "in time" == timed.live(hasty)


def test_an_expiry_that_nobody_caught_ends_the_run_and_stays(
    timed: Stage, clock: ManualClock
) -> None:
    @holdfast.agent
    def strict(run: holdfast.Run) -> object:
        for _ in run.turns():
            return run.ask("Quick?", expires=60)
        return None

    first = waits(timed, strict)
    clock.advance(60)
    error = timed.fault(strict)

    assert isinstance(error.__cause__, holdfast.Expired)
    with pytest.raises(holdfast.RunFailed, match="nobody answered in time"):
        timed.restart(strict)
    with pytest.raises(holdfast.Waiting) as anew:
        timed.restart(strict, redo_turn=True)
    assert first != anew.value.question


def test_a_turn_run_anew_asks_anew_and_the_old_answer_does_not_count(stage: Stage) -> None:
    @holdfast.agent
    def asker(run: holdfast.Run) -> object:
        for _ in run.turns():
            return run.ask("Well?")
        return None

    first = waits(stage, asker)
    answer(stage, first, "old")

    with pytest.raises(holdfast.Waiting) as anew:
        stage.restart(asker, redo_turn=True)
    with pytest.raises(holdfast.AlreadyAnswered):
        answer(stage, first, "again")
    answer(stage, anew.value.question, "new")

    assert "new" == stage.live(asker)


def test_changed_words_are_another_question_and_diverge(stage: Stage) -> None:
    words = ["Ship it?"]

    @holdfast.agent
    def asker(run: holdfast.Run) -> object:
        return run.ask(words[0])

    answer(stage, waits(stage, asker), "yes")
    words[0] = "Sink it?"

    assert isinstance(stage.fault(asker), holdfast.Diverged)


def test_an_answer_given_while_the_run_is_held_reaches_it(stage: Stage, world: World) -> None:
    @holdfast.agent
    def asker(run: holdfast.Run) -> object:
        return run.ask("Well?")

    id_ = waits(stage, asker)
    with stage.open() as other:
        other._opened.leases.take(1)  # noqa: SLF001 another process works on the run
        answer(stage, id_, "yes")

    assert "yes" == stage.live(asker)
    assert [] == world.asked


def test_a_crash_at_any_moment_of_asking_and_answering_loses_nothing(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def think(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def asker(run: holdfast.Run) -> list[object]:
        for _ in run.turns():
            return [think("before"), run.ask("Well?"), think("after")]
        return []

    id_ = waits(stage, asker)
    answer(stage, id_, "yes")
    for _, copy, _ in moments(stage, asker, outside=lambda: None):
        assert ["before#1", "yes"] == copy.live(asker)[:2]

    assert ["yes"] == [
        entry.value and "yes" for entry in stage.journal() if isinstance(entry, Answered)
    ]


def test_a_crash_before_the_end_was_recorded_leaves_the_question_in_the_inbox(
    stage: Stage,
) -> None:
    @holdfast.agent
    def asker(run: holdfast.Run) -> object:
        try:
            return run.ask("Well?")
        except holdfast.Waiting:
            run._session.flush()  # noqa: SLF001 as the housekeeper does a moment later
            raise Crash from None

    stage.die(asker)

    assert ["Started", "Questioned"] == stage.kinds()
    with stage.open() as store:
        [item] = store.inbox()
        store.answer(item.id, "yes")
    assert "yes" == stage.live(asker)


def test_the_journal_and_the_ledger_say_who_asked_what(timed: Stage) -> None:
    id_ = waits(timed, shipper)
    answer(timed, id_, "yes")

    [asked] = [entry for entry in timed.journal() if isinstance(entry, Questioned)]
    with timed.open() as store:
        opened = store._opened  # noqa: SLF001 the ledger is not on the run's line of history
        run = opened.reader.find(RUN)
        assert run is not None
        ledger = opened.reader.ledger(run)
        assert ledger is not None
        rows = opened.reader.rows(ledger.no, row_id(ledger.no, 1), opened.reader.end(ledger.no))
        said = [entry for placed in rows for entry in placed.row.entries][-1]
    assert (id_, "question", ["yes", "no"]) == (asked.id, asked.kind, asked.options)
    assert isinstance(said, Said)
    assert (id_, RUN, "answered", "ann") == (said.id, said.run, said.word, said.by)


def test_a_rollback_asks_anew_what_comes_after_its_target(stage: Stage) -> None:
    @holdfast.agent
    def asker(run: holdfast.Run) -> list[str]:
        for turn in run.turns():
            run.state.setdefault("told", []).append(run.ask("Well?"))
            if turn == 1:
                return list(holdfast.plain(run.state["told"]))
        return []

    answer(stage, waits(stage, asker), "one")
    second = waits(stage, asker)
    answer(stage, second, "two")
    with stage.open() as store:
        store.plan_rollback(RUN, to=f"{RUN}@0").apply()

    anew = waits(stage, asker)
    answer(stage, anew, "other")

    assert second != anew
    assert ["one", "other"] == stage.live(asker)
