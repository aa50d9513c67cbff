"""Every schedule of two writers and a collector, with crashes: no row is left without its value.

A model of the steps that the code takes, searched to the end. With a step of the protocol left
out the same search must find a loss; so the model has teeth.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

WRITERS = 2


@dataclass(frozen=True)
class State:
    """Where each stands, and what is on the disk. The value is the same for both writers."""

    is_file: bool = False
    is_named: bool = False
    at: tuple[str, ...] = ("start",) * WRITERS
    collector: str = "start"
    is_garbage: bool = False


@dataclass(frozen=True)
class Protocol:
    """Which steps are taken."""

    upholds: bool = True
    marks_again: bool = True
    removes_alone: bool = True


def moves(state: State, protocol: Protocol) -> Iterator[State]:
    """Every state that one step of anybody leads to."""
    for writer, at in enumerate(state.at):

        def go(to: str, before: State = state, who: int = writer) -> State:
            return replace(before, at=(*before.at[:who], to, *before.at[who + 1 :]))

        if at in ("start", "kept"):
            yield go("dead")  # A kill: what was kept is left behind.
        if at == "start":
            yield replace(go("kept"), is_file=True)  # Written, or found there already.
        elif at == "kept" and not (protocol.removes_alone and state.collector == "removing"):
            is_file = state.is_file or protocol.upholds
            yield replace(go("done"), is_named=True, is_file=is_file)
    if state.collector == "start":
        yield replace(state, collector="marked", is_garbage=state.is_file and not state.is_named)
    elif state.collector == "marked":
        is_garbage = state.is_garbage and not (protocol.marks_again and state.is_named)
        yield replace(state, collector="removing", is_garbage=is_garbage)
        yield replace(state, collector="dead")
    elif state.collector == "removing":
        yield replace(state, collector="done", is_file=state.is_file and not state.is_garbage)
        yield replace(state, collector="dead")


def search(protocol: Protocol) -> tuple[int, list[State]]:
    """How many states can be reached, and those in which a row names what is not there."""
    seen: set[State] = set()
    stack = [State(is_file=is_file) for is_file in (False, True)]
    while stack:
        state = stack.pop()
        if state not in seen:
            seen.add(state)
            stack.extend(moves(state, protocol))
    return len(seen), [state for state in seen if state.is_named and not state.is_file]


def test_no_schedule_loses_a_value_that_a_row_names() -> None:
    count, lost = search(Protocol())
    assert [] == lost
    assert count > 100


@pytest.mark.parametrize(
    "broken",
    [
        Protocol(upholds=False),
        Protocol(marks_again=False),
        Protocol(removes_alone=False),
    ],
    ids=["commit does not uphold", "no second mark", "removal beside commits"],
)
def test_a_protocol_with_a_step_left_out_loses_one(broken: Protocol) -> None:
    _, lost = search(broken)
    assert lost
