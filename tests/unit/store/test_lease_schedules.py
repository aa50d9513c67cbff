"""Every schedule of holders that stall, wake, die and take over: no row of one that lost its run.

A model of the steps that the code takes, searched to the end. With a step of the protocol left
out the same search must find a row that another holder did not know of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

HOLDERS = 3
ROWS_MAX = 2


@dataclass(frozen=True)
class Holder:
    """A process: what it believes of the run."""

    at: str = "away"
    epoch: int = 0
    known: int = 0
    """How many rows it knows; the next one it writes stands behind them."""


@dataclass(frozen=True)
class State:
    """The store: its epoch, who holds the lock, and for each row who wrote it, knowing how many."""

    epoch: int = 0
    lock: int = -1
    rows: tuple[int, ...] = ()
    holders: tuple[Holder, ...] = (Holder(),) * HOLDERS


@dataclass(frozen=True)
class Protocol:
    """Which steps are taken."""

    checks_epoch: bool = True
    place_is_unique: bool = True
    reads_after_raising: bool = True


def moves(state: State, protocol: Protocol) -> Iterator[State]:
    """Every state that one step of anybody leads to. A stall is a holder that takes no step."""
    for number, holder in enumerate(state.holders):
        match holder.at:
            case "away":
                # The lock is free, or its holder has shown no sign of life for long enough.
                taken = holder if protocol.reads_after_raising else _read(holder, state)
                yield replace(_with(state, number, replace(taken, at="taken")), lock=number)
            case "taken":
                raised = replace(holder, at="raised", epoch=state.epoch + 1)
                yield replace(_with(state, number, raised), epoch=state.epoch + 1)
            case "raised":
                read = _read(holder, state) if protocol.reads_after_raising else holder
                yield _with(state, number, replace(read, at="writing"))
            case "writing" if len(state.rows) < ROWS_MAX:
                yield from _append(state, number, holder, protocol)
        if holder.at not in ("away", "dead"):
            lock = -1 if state.lock == number else state.lock
            yield replace(_with(state, number, replace(holder, at="dead")), lock=lock)


def _append(state: State, number: int, holder: Holder, protocol: Protocol) -> Iterator[State]:
    is_fenced = protocol.checks_epoch and holder.epoch != state.epoch
    is_taken = protocol.place_is_unique and holder.known != len(state.rows)
    if is_fenced or is_taken:
        yield _with(state, number, replace(holder, at="dead"))
        return
    written = replace(holder, known=holder.known + 1)
    yield replace(_with(state, number, written), rows=(*state.rows, holder.known))


def _read(holder: Holder, state: State) -> Holder:
    return replace(holder, known=len(state.rows))


def _with(state: State, number: int, holder: Holder) -> State:
    return replace(state, holders=(*state.holders[:number], holder, *state.holders[number + 1 :]))


def search(protocol: Protocol) -> tuple[int, list[State]]:
    """How many states can be reached, and those with a row whose writer did not know all before."""
    seen: set[State] = set()
    stack = [State()]
    while stack:
        state = stack.pop()
        if state not in seen:
            seen.add(state)
            stack.extend(moves(state, protocol))
    return len(seen), [state for state in seen if state.rows != tuple(range(len(state.rows)))]


def late(protocol: Protocol) -> list[State]:
    """States in which somebody may still write whose run was taken by another."""
    seen: set[State] = set()
    stack, found = [State()], []
    while stack:
        state = stack.pop()
        if state in seen:
            continue
        seen.add(state)
        for after in moves(state, protocol):
            wrote = len(after.rows) > len(state.rows)
            if wrote and any(
                before.at == "writing" and before.epoch != state.epoch
                for before, now in zip(state.holders, after.holders, strict=True)
                if before.known != now.known
            ):
                found.append(after)
            stack.append(after)
    return found


def test_no_schedule_lets_a_holder_write_that_lost_its_run() -> None:
    count, blind = search(Protocol())

    assert [] == blind
    assert [] == late(Protocol())
    assert count > 1000


@pytest.mark.parametrize(
    "broken",
    [
        Protocol(checks_epoch=False, place_is_unique=False),
        Protocol(reads_after_raising=False, place_is_unique=False),
    ],
    ids=["the lease alone", "read before the epoch was raised"],
)
def test_a_protocol_with_a_step_left_out_writes_over_what_it_does_not_know(
    broken: Protocol,
) -> None:
    _, blind = search(broken)

    assert blind


def test_a_unique_place_alone_lets_a_late_holder_write() -> None:
    assert late(Protocol(checks_epoch=False))
