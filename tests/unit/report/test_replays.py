"""Which calls a restart finds recorded, over made-up journals."""

from holdfast.model.journal import (
    Answer,
    Call,
    Entry,
    Facts,
    Happened,
    Redone,
    Resumed,
    TurnEnded,
    Usage,
)
from holdfast.model.run import Holder
from holdfast.report.replays import replayed

HOLDER = Holder(pid=1, host="here", since=0.0)
FACTS = Facts("0", "3.11", "linux")


def step(scope: int | bytes, name: str = "look") -> Answer:
    return Answer(_call(scope, name), b"", 1.0, 0.1, None)


def effect(scope: int) -> Happened:
    return Happened(_call(scope, "pay"), "key", b"", 1.0, 0.1, "call", None)


def _call(scope: int | bytes, name: str) -> Call:
    return Call(scope, name, b"", 0, 0, is_side=False, asked=[])


def end(turn: int) -> TurnEnded:
    return TurnEnded(turn, 0, 1.0, None, None, False, Usage(), 1)


def resumed(facts: Facts | None = FACTS) -> Resumed:
    return Resumed(2.0, 2, HOLDER, None, facts)


def test_a_restart_replays_the_open_turn_and_what_stands_outside_turns() -> None:
    entries: list[Entry] = [step(-1), step(0), end(0), step(1), effect(1), resumed(), step(1)]

    assert {"step": 2, "effect": 1} == replayed(entries)
    assert {"step": 5, "effect": 2} == replayed([*entries, resumed()])


def test_a_persons_word_and_calls_inside_calls_are_no_replay() -> None:
    assert {} == replayed([step(0), resumed(facts=None)])
    assert {} == replayed([step(b"inside"), resumed()])


def test_a_turn_that_is_run_anew_replays_its_effects_and_not_its_steps() -> None:
    redone: list[Entry] = [step(0), effect(0), resumed(), Redone(3.0, 1, None), effect(0)]

    assert {"effect": 1} == replayed(redone)
    assert {"step": 1, "effect": 2} == replayed([*redone, step(0), resumed()])


def test_the_end_of_the_turn_before_may_stand_with_the_turn_that_is_run_anew() -> None:
    before: list[Entry] = [step(0), end(0), step(1), resumed()]

    assert {} == replayed([*before, end(0), Redone(3.0, 1, None), step(1)])
