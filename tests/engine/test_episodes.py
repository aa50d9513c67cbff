"""What failed in a run and how it was mended, read from journals that real runs wrote."""

from pathlib import Path

import pytest

import holdfast
from holdfast.clock import Clock
from holdfast.model.decision import Action
from holdfast.model.failure import FailureKind
from holdfast.model.journal import Intended
from holdfast.report.episodes import Ending, Episode, episodes, lines_of
from holdfast.store.open import open_store
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage

clock = ManualClock()


class Trouble:
    """What happens at the next asking of a number."""

    def __init__(self) -> None:
        self.at: dict[int, BaseException] = {}


trouble = Trouble()


@holdfast.step(retry=holdfast.Retry(attempts=3, base=1, cap=1))
def think(n: int) -> int:
    clock.advance(10.0)
    error = trouble.at.pop(n, None)
    if error is not None:
        raise error
    return n


@holdfast.effect(key="n")
def pay(n: int) -> str:
    error = trouble.at.pop(100 + n, None)
    if error is not None:
        raise error
    return "paid"


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def worker(run: holdfast.Run) -> int:
    for turn in run.turns():
        think(turn)
        if turn == 1:
            pay(turn)
        if turn == 3:
            break
    return turn


@holdfast.agent
def asker(run: holdfast.Run) -> object:
    think(0)
    error = trouble.at.pop(200, None)
    if error is not None:
        raise error
    answer = run.ask("go on?")
    think(1)
    return answer


@pytest.fixture
def place(tmp_path: Path) -> Stage:
    trouble.at.clear()
    return Stage(tmp_path / "store", clock)


def found(stage: Stage, at: Clock = clock, **more: object) -> list[Episode]:
    opened = open_store(stage.path, at)
    try:
        run = opened.reader.find(RUN)
        assert run is not None
        return episodes(lines_of(opened.reader, run), **more)  # type: ignore[arg-type]
    finally:
        opened.close()


def test_a_run_that_nothing_happened_to_has_none(place: Stage) -> None:
    place.live(worker)

    assert [] == found(place)


def test_a_dead_process_failed_at_its_last_record_and_caught_up_with_a_new_one(
    place: Stage,
) -> None:
    began = clock.now()
    trouble.at[2] = Crash()
    place.die(worker)
    clock.advance(5.0)
    place.live(worker)

    (episode,) = found(place)

    assert (FailureKind.CRASH, Ending.RECOVERED) == (episode.kind, episode.ending)
    assert began + 20.0 == episode.failed_at  # Two answers were recorded by then.
    assert 15.0 == episode.took_s("resume")
    assert 25.0 == episode.took_s("catch_up")
    assert 10.0 == episode.parts["redo"]
    assert 25.0 == sum(episode.parts.values())


def test_a_death_that_is_known_counts_instead(place: Stage) -> None:
    trouble.at[2] = Crash()
    place.die(worker)
    died = clock.now()
    place.live(worker)

    (episode,) = found(place, deaths={1: died})

    assert died == episode.failed_at
    assert 0.0 == episode.took_s("resume")


def test_a_call_asked_again_in_place_is_an_episode_of_its_own(place: Stage) -> None:
    trouble.at[2] = ConnectionResetError("the line is down")
    place.live(worker)

    (episode,) = found(place)

    assert (FailureKind.TRANSIENT, Action.RETRY) == (episode.kind, episode.action)
    assert Ending.RECOVERED is episode.ending
    assert 10.0 <= (episode.took_s() or 0) <= 11.0
    assert episode.took_s() == pytest.approx(10.0 + episode.parts["wait"])
    assert 0.0 < episode.parts["wait"] == pytest.approx(episode.wait_s, abs=1e-6)


def test_failures_on_the_way_belong_to_the_episode(place: Stage) -> None:
    trouble.at[2] = Crash()
    place.die(worker)
    trouble.at[2] = Crash()
    place.die(worker)
    place.live(worker)

    (episode,) = found(place)

    assert 2 == episode.failures
    assert Ending.RECOVERED is episode.ending


def test_a_doubt_ends_with_a_persons_word(place: Stage) -> None:
    trouble.at[101] = ConnectionResetError("cut")
    place.fault(worker)
    (waiting,) = found(place)
    with place.open() as store:
        key = next(each.key for each in place.journal() if isinstance(each, Intended))
        store.resolve(RUN, key, happened=True, outcome="paid")
    place.live(worker)

    (episode,) = found(place)

    assert (FailureKind.IN_DOUBT, Ending.FAILED) == (waiting.kind, waiting.ending)
    assert Ending.PERSON is episode.ending


def test_a_bug_waits_for_a_person(place: Stage) -> None:
    trouble.at[2] = TypeError("wrong")
    place.fault(worker)
    (failed,) = found(place)
    place.restart(worker)

    (episode,) = found(place)

    assert (FailureKind.BUG, Ending.FAILED, 1) == (failed.kind, failed.ending, failed.failures)
    assert Ending.PERSON is episode.ending


def test_a_life_that_goes_on_has_not_failed(place: Stage) -> None:
    trouble.at[2] = Crash()
    place.die(worker)

    assert [] == found(place, is_held=True)
    assert [Ending.OPEN] == [each.ending for each in found(place)]


def test_a_run_told_to_stop_has_not_failed(place: Stage) -> None:
    trouble.at[2] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        place.live(worker)
    place.live(worker)

    assert [] == found(place)


def test_turns_that_a_rollback_drops_are_to_be_caught_up_with(place: Stage) -> None:
    trouble.at[3] = TypeError("wrong")
    place.fault(worker)
    with place.open() as store:
        store.plan_rollback(RUN, to=f"{RUN}@1").apply()
    place.restart(worker)

    (episode,) = found(place)

    assert Ending.PERSON is episode.ending
    assert 20.0 == episode.redo_s  # Turns 2 and 3.


def test_a_run_that_is_down_again_has_not_resumed(place: Stage) -> None:
    for _ in range(2):
        trouble.at[2] = Crash()
        place.die(worker)
        clock.advance(5.0)

    (episode,) = found(place)

    assert (2, Ending.OPEN) == (episode.failures, episode.ending)
    assert episode.took_s("resume") is None


def test_a_run_that_came_to_its_question_has_caught_up_however_long_people_think(
    place: Stage,
) -> None:
    trouble.at[200] = Crash()
    place.die(asker)
    clock.advance(5.0)
    place.fault(asker)
    (asking,) = found(place)
    clock.advance(86_400.0)
    with place.open() as store:
        (item,) = store.inbox()
        store.answer(item.id, "yes")
    place.live(asker)

    assert [asking] == found(place)
    assert (Ending.RECOVERED, 5.0) == (asking.ending, asking.took_s())


def test_a_failure_ends_when_its_run_is_cancelled(place: Stage) -> None:
    trouble.at[2] = Crash()
    place.die(worker)
    clock.advance(5.0)
    with place.open() as store:
        store.cancel(RUN)

    (episode,) = found(place)

    assert Ending.PERSON is episode.ending
    assert (15.0, 15.0) == (episode.took_s("resume"), episode.took_s("catch_up"))


def test_cancelling_a_run_that_was_given_up_makes_no_outage_of_it(place: Stage) -> None:
    trouble.at[2] = TypeError("wrong")
    place.fault(worker)
    clock.advance(5.0)
    with place.open() as store:
        store.cancel(RUN)

    (episode,) = found(place)

    assert Ending.FAILED is episode.ending
    assert episode.took_s("resume") is None


def test_what_a_turn_run_anew_takes_along_is_not_caught_up_with(place: Stage) -> None:
    numbers = [1]

    @holdfast.agent(checkpoint=holdfast.every(steps=1))
    def fickle(run: holdfast.Run) -> None:
        for turn in run.turns():
            think(turn and numbers[-1])
            if turn:
                think(3)
                break

    place.live(fickle)
    with place.open() as store:
        fork = store.fork(RUN, at=store.checkpoints(RUN)[1]).id
        numbers.append(2)
        with pytest.raises(holdfast.Diverged):
            store.run(fickle, id=fork)
        clock.advance(1000.0)
        store.restart(fork, agent=fickle, redo_turn=True)
        run = store.opened.reader.find(fork)
        assert run is not None
        [episode] = episodes(lines_of(store.opened.reader, run))

    assert 1010.0 == pytest.approx(episode.took_s())
    assert 1000.0 == pytest.approx(episode.took_s("resume"))
    assert 1010.0 == pytest.approx(sum(episode.parts.values()))
