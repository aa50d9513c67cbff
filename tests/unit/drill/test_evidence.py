"""The journal beside the outside ledger: what was asked again although its answer was recorded."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.drill.evidence import asked_twice, episodes_of, excess, family, shortfall
from holdfast.drill.ledger import Line
from holdfast.engine.reading import key_of
from holdfast.model.journal import Answer
from holdfast.report.episodes import lines_of
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Run


@holdfast.step
def think(n: int) -> int:
    if n == 2 and not done:
        raise Dead
    return n


class Dead(BaseException):
    """The process dies here, as far as the run can tell."""


done: list[int] = []


@holdfast.agent
def thinker(run: holdfast.Run) -> int:
    for turn in run.turns():
        think(turn)
        if turn == 3:
            break
    return turn


@pytest.fixture
def left(tmp_path: Path) -> Iterator[tuple[Opened, Run]]:
    """A run that died before its third answer and went on under epoch 2."""
    done.clear()
    with holdfast.open(tmp_path / "store") as store:
        with pytest.raises(Dead):
            store.run(thinker, id="r")
        done.append(1)
        store.run(thinker, id="r")
    opened = open_store(tmp_path / "store", SystemClock())
    try:
        run = opened.reader.find("r")
        assert run is not None
        yield opened, run
    finally:
        opened.close()


def asked(opened: Opened, run: Run, nth: int, epoch: int) -> Line:
    """A line that says that the nth answer was asked for in a life."""
    (line,) = lines_of(opened.reader, run)
    entries = [entry for placed in line.rows for entry in placed.row.entries]
    call = [entry.call for entry in entries if isinstance(entry, Answer)][nth]
    place = hashlib.sha256(repr(key_of(call)).encode()).digest()[:16].hex()
    return Line(what="asked", run=run.body.id, call=place, epoch=epoch)


def test_what_was_asked_once_or_cut_off_before_is_no_repetition(left: tuple[Opened, Run]) -> None:
    opened, run = left
    lines = [asked(*left, nth, 1) for nth in (0, 1, 2)]  # The third died without an answer.
    lines += [asked(*left, nth, 2) for nth in (2, 3)]

    assert 0 == asked_twice(opened.reader, [run], lines)


def test_a_recorded_answer_that_is_asked_for_again_is_one(left: tuple[Opened, Run]) -> None:
    opened, run = left
    later, at_once = asked(*left, 0, 2), asked(*left, 3, 2)

    assert 1 == asked_twice(opened.reader, [run], [asked(*left, 0, 1), later])
    assert 1 == asked_twice(opened.reader, [run], [at_once, at_once])


def test_an_episode_begins_at_the_strike_and_catches_up_with_what_damage_took(
    left: tuple[Opened, Run],
) -> None:
    opened, run = left
    (plain,) = episodes_of(opened.reader, [run], None, [])
    struck_at = plain.failed_at + 0.0001
    lost = Line(what="damaged", counts={"had": 5.0})

    (known,) = episodes_of(opened.reader, [run], struck_at, [])
    (further,) = episodes_of(opened.reader, [run], struck_at, [lost])

    assert plain.failed_at <= known.failed_at <= struck_at
    assert plain.caught_up_at is not None
    assert further.caught_up_at is not None
    assert plain.caught_up_at < further.caught_up_at


@holdfast.step(retry=holdfast.Retry(attempts=2, base=0))
def stumble(n: int) -> int:
    if n == 1 and not done:
        done.append(n)
        raise ConnectionError("the line is down")
    return n


@holdfast.agent
def kid(run: holdfast.Run, *, is_firm: bool) -> int:
    for turn in run.turns():
        (think if is_firm else stumble)(turn)
        if turn == 2:
            break
    return turn


@holdfast.agent
def mother(run: holdfast.Run, *, is_firm: bool) -> int:
    for turn in run.turns():
        (think if is_firm else stumble)(turn)
        return run.child(kid, is_firm=is_firm)
    return 0


@pytest.mark.parametrize("is_firm", [True, False])
def test_a_failure_of_a_child_is_one_of_its_task_and_counted_once(
    tmp_path: Path, *, is_firm: bool
) -> None:
    done.clear()
    with holdfast.open(tmp_path / "store") as store:
        if is_firm:  # The process dies in the child, and both runs are taken up again.
            with pytest.raises(Dead):
                store.run(mother, id="r", is_firm=True)
            done.append(1)
        store.run(mother, id="r", is_firm=is_firm)
    opened = open_store(tmp_path / "store", SystemClock())
    try:
        run = opened.reader.find("r")
        assert run is not None
        kin = family(opened.reader, run)
        (found,) = episodes_of(opened.reader, kin, None, [])
        lines = [asked(opened, each, 0, 1) for each in kin]
        again = asked_twice(opened.reader, kin, lines)
    finally:
        opened.close()

    assert ["mother", "kid"] == [each.body.agent for each in kin]
    assert "recovered" == found.ending
    assert lines[0].call == lines[1].call  # At the same place of two runs: not the same call.
    assert 0 == again


def test_effects_are_compared_with_those_of_the_reference() -> None:
    assert 1 == excess({"pay": 2, "mail": 1}, {"pay": 1, "mail": 1})
    assert 1 == excess({"other": 1}, {"pay": 1})
    assert 1 == shortfall({"pay": 1}, {"pay": 1, "mail": 1})
