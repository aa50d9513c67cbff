"""What `store.decide` answers, read from the journal; nothing is done by asking."""

from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Interrupted
from tests.engine.kit import RUN, Crash, Stage, World


def looping(fails_at: int, error: BaseException) -> holdfast.Agent[..., Any]:
    @holdfast.step
    def ask(turn: int) -> int:
        return turn

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> str:
        for turn in run.turns():
            ask(turn)
            if turn == fails_at:
                raise error
            if turn == 5:
                return "done"
        return ""

    return agent


def decide(stage: Stage, failure: Any = None) -> holdfast.Decision:  # noqa: ANN401 whatever may be asked
    with stage.open() as store:
        return store.decide(RUN, failure)


def test_a_run_whose_process_is_gone_would_be_restarted(stage: Stage) -> None:
    stage.die(looping(2, Crash()))
    before = stage.journal()

    decision = decide(stage)

    assert (holdfast.Action.RESTART, 0.0) == (decision.action, decision.wait_s)
    assert before == stage.journal()


def test_a_crash_that_comes_again_from_the_same_point_is_poison(stage: Stage) -> None:
    agent = looping(2, Crash())
    stage.die(agent)
    stage.die(agent)

    decision = decide(stage)

    assert holdfast.Action.ROLLBACK is decision.action
    assert 0 == decision.turns_lost
    assert decision.to is not None
    with stage.open() as store:
        assert 1 == store.restore(decision.to)[0].turn


def test_a_crash_from_another_point_is_no_poison(stage: Stage) -> None:
    stage.die(looping(1, Crash()))
    stage.die(looping(3, Crash()))

    assert holdfast.Action.RESTART is decide(stage).action


@pytest.mark.parametrize("can_undo", [True, False])
def test_only_effects_that_cannot_be_undone_stand_in_the_way_of_a_rollback(
    stage: Stage, world: World, can_undo: bool
) -> None:
    @holdfast.effect(undo=(lambda outcome, turn: None) if can_undo else None)  # noqa: ARG005 as an undo is called
    def pay(turn: int) -> str:
        return world.ask(f"pay {turn}")

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            pay(turn)
            if turn == 3:
                raise Crash

    stage.die(agent)
    stage.die(agent)

    decision = decide(stage)

    if can_undo:
        assert holdfast.Action.ROLLBACK is decision.action
    else:
        assert holdfast.Action.ESCALATE is decision.action
        assert "1 effect after the checkpoint cannot be undone" in decision.reason


def test_an_error_that_comes_again_from_the_same_point_is_poison(stage: Stage) -> None:
    agent = looping(2, RuntimeError("again"))
    stage.fault(agent)
    with stage.open() as store, pytest.raises(holdfast.RunFailed):
        store.restart(RUN, agent=agent)

    assert holdfast.Action.ROLLBACK is decide(stage).action


def test_what_a_person_called_off_is_no_poison(stage: Stage) -> None:
    agent = looping(2, KeyboardInterrupt())
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            stage.live(agent)

    assert Interrupted is type(stage.journal()[-1])
    assert holdfast.Action.RESTART is decide(stage).action


def test_a_settled_doubt_is_progress(stage: Stage) -> None:
    @holdfast.effect
    def pay() -> str:
        raise ConnectionError("cut")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:  # noqa: ARG001 an agent takes a run
        return pay()

    error = stage.fault(agent)
    assert isinstance(error, holdfast.InDoubt)
    assert holdfast.Action.ESCALATE is decide(stage).action
    with stage.open() as store:
        store.resolve(RUN, error.key, happened=False)

    assert holdfast.Action.RESTART is decide(stage).action


@pytest.mark.parametrize(
    ("expected", "failure"),
    [
        ("rollback", "corruption"),
        ("rollback", holdfast.FailureKind.INVALID),
        ("escalate", "unknown"),
        ("restart", TimeoutError("slow")),
        ("restart", holdfast.Ended(signal=9)),
        ("escalate", holdfast.Ended(status=42)),
    ],
    ids=range(6),
)
def test_what_if_is_answered_too(stage: Stage, expected: str, failure: Any) -> None:  # noqa: ANN401 whatever may be asked
    stage.die(looping(2, Crash()))

    assert expected == decide(stage, failure).action


def test_what_cannot_be_decided_is_said(stage: Stage) -> None:
    stage.live(looping(9, Crash()))

    with pytest.raises(holdfast.UsageError, match="is finished; there is nothing to decide"):
        decide(stage)


def test_a_run_that_a_person_cancelled_is_not_decided_about(stage: Stage) -> None:
    stage.die(looping(2, Crash()))
    with stage.open() as store:
        store.cancel(RUN)

    with pytest.raises(holdfast.UsageError, match="is cancelled; there is nothing to decide"):
        decide(stage)


def test_a_word_that_is_no_kind_is_refused_with_those_that_are(stage: Stage) -> None:
    stage.die(looping(2, Crash()))

    with pytest.raises(holdfast.UsageError, match="no kind of failure; those are transient, "):
        decide(stage, "bad")


def test_the_promise_of_the_agent_is_judged_by(stage: Stage) -> None:
    @holdfast.agent(sla=holdfast.SLA(turn_usd=5, task_usd=2))
    def agent(run: holdfast.Run) -> None:  # noqa: ARG001 an agent takes a run
        raise Crash

    stage.die(agent)

    decision = decide(stage)

    assert holdfast.Action.ESCALATE is decision.action
    assert "it costs $5.00 and is worth 67% of $2.00" in decision.reason


def test_restarts_that_helped_in_other_runs_raise_the_odds(stage: Stage) -> None:
    first = looping(2, Crash())
    for nth in range(3):
        stage.die(first, id=f"other-{nth}")
        stage.live(looping(9, Crash()), id=f"other-{nth}")

    @holdfast.agent(sla=holdfast.SLA(max_recovery="30s"))
    def agent(run: holdfast.Run) -> None:  # noqa: ARG001 an agent takes a run
        raise Crash

    stage.die(agent)
    decision = decide(stage)

    assert 5 / 6 == decision.p_success  # Three restarts that helped, and two thirds believed.
    assert decision.time_s is not None
    assert decision.time_s < 2


@pytest.mark.parametrize("odd", [5, TimeoutError, ["crash"]])
def test_what_is_no_failure_is_refused_in_words(stage: Stage, odd: Any) -> None:  # noqa: ANN401 what is tested
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        raise ConnectionResetError(run.id)

    stage.fault(agent)

    with stage.open() as store, pytest.raises(holdfast.UsageError, match="a failure is an excep"):
        store.decide(RUN, odd)
