"""The story of a run, read from its journal without any of the user's classes."""

import contextlib
import dataclasses
import datetime as dt
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.errors import Damaged
from holdfast.model.journal import Call, Happened
from holdfast.report.event import Event, when
from holdfast.report.shown import SHOWN_BYTES_MAX, shown
from holdfast.report.timeline import (
    Timeline,
    timeline,
)
from holdfast.store.codec import values
from holdfast.store.open import Opened, open_store
from holdfast.store.reference import WHOLE, length
from holdfast.store.writer import RunWriter


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Opened]:
    found = open_store(path, SystemClock(), must_exist=True)
    try:
        yield found
    finally:
        found.close()


def told(path: Path, run: str = "r") -> Timeline:
    with opened(path) as found:
        known = found.reader.find(run)
        assert known is not None
        return timeline(found.reader, known)


def called(event: Event) -> str | None:
    """The function's own name, without that of the test it stands in."""
    return None if event.name is None else event.name.rpartition("<locals>.")[2]


@holdfast.step
def inner(n: int) -> int:
    return n


@holdfast.step
def outer(n: int) -> int:
    return inner(n) + 1


@holdfast.step(raises=(LookupError,))
def fails(n: int) -> int:
    raise LookupError(n)


def test_everything_that_happened_is_told_in_order(tmp_path: Path) -> None:
    @holdfast.step
    def chat(n: int) -> dict[str, object]:
        return {"model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": n}}

    @holdfast.effect(not_done=LookupError)
    def pay(n: int) -> str:
        if n == 1:
            raise LookupError("declined")
        return "paid"

    @holdfast.agent(checkpoint=holdfast.every(turns=2), version="7")
    def agent(run: holdfast.Run, name: str) -> str:
        run.now()
        outer(1)
        for turn in run.turns():
            run.state["turn"] = turn
            chat(turn)
            if turn == 2:
                run.checkpoint("nearly")
                break
            with contextlib.suppress(LookupError):
                pay(turn)
        with contextlib.suppress(LookupError):
            fails(0)
        return name

    with holdfast.open(tmp_path) as store:
        store.run(agent, "kelp", id="r")
    story = told(tmp_path)

    assert [
        ("started", None, None),
        ("note", "run.now", None),
        ("step", "inner", "answered"),
        ("step", "outer", "answered"),
        ("step", "chat", "answered"),
        ("effect", "pay", "happened"),
        ("turn", None, "ended"),
        ("step", "chat", "answered"),
        ("effect", "pay", "not done"),
        ("turn", None, "checkpoint"),
        ("step", "chat", "answered"),
        ("checkpoint", "nearly", None),
        ("step", "fails", "raised"),
        ("finished", None, None),
    ] == [(e.kind, None if e.kind == "started" else called(e), e.outcome) for e in story.events]
    assert ("r", "name='kelp'", "7") == (story.id, story.asked, story.version)
    assert (3, 6, 2, 2, 0, 1) == (
        story.turns,
        story.steps,
        story.effects,
        story.checkpoints,
        story.restarts,
        story.branches,
    )
    assert ("m", 15, 3) == (story.model, story.tokens_in, story.tokens_out)
    assert (None, [], None) == (story.error, story.doubts, story.trace)
    by_name = {event.name: event for event in story.events}
    assert by_name["inner"].is_inside
    assert not by_name["outer"].is_inside
    assert "LookupError: declined" == story.events[8].error
    assert "'kelp'" == story.events[-1].value
    assert story.rows > 8
    assert story.bytes > 0


def test_times_rise_and_durations_are_known(tmp_path: Path) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            outer(turn)
            if turn == 2:
                return

    with holdfast.open(tmp_path) as store:
        store.run(agent, id="r")
    story = told(tmp_path)

    times = [event.at for event in story.events if event.at is not None]
    assert sorted(times) == times
    assert all(event.took_s is not None for event in story.events if event.kind in {"step", "turn"})
    assert story.created is not None
    assert story.ended is not None
    assert dt.timedelta(0) <= story.ended - story.created


def test_an_effect_is_one_event_however_often_it_was_tried(tmp_path: Path) -> None:
    tries: list[int] = []

    @holdfast.effect(idempotent=True)
    def send(n: int) -> str:
        tries.append(n)
        if len(tries) == 1:
            raise ConnectionError
        return "sent"

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:  # noqa: ARG001 an agent takes its run
        return send(1)

    with holdfast.open(tmp_path) as store:
        store.run(agent, id="r")

    [effect] = [event for event in told(tmp_path).events if event.kind == "effect"]
    assert ("happened", "repeat", 2) == (effect.outcome, effect.how, effect.attempts)
    assert effect.key is not None
    assert 32 == len(effect.key)


def test_doubts_are_listed_until_a_person_has_said_what_happened(tmp_path: Path) -> None:
    @holdfast.effect
    def send(text: str) -> str:  # noqa: ARG001 shown in the list of doubts
        raise ConnectionError("no line")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            return send("hello")
        return ""

    with holdfast.open(tmp_path) as store:
        with pytest.raises(holdfast.InDoubt):
            store.run(agent, id="r")
        doubtful = told(tmp_path)
        store.resolve("r", doubtful.doubts[0].key, happened=True, outcome="so")
        resolved = told(tmp_path)
        store.restart("r", agent=agent)

    [doubt] = doubtful.doubts
    assert ("send", "text='hello'", 0) == (
        doubt.effect.rpartition(".")[2],
        doubt.asked,
        doubt.turn,
    )
    assert "in doubt" == doubtful.status
    assert "ConnectionError" in str(doubtful.trace)
    assert [] == resolved.doubts
    [effect] = [event for event in resolved.events if event.kind == "effect"]
    assert ("happened", "person", "'so'") == (effect.outcome, effect.how, effect.value)
    assert 2 == told(tmp_path).restarts


def test_a_turn_run_anew_is_told_along_the_new_branch(tmp_path: Path) -> None:
    fixed: list[bool] = []

    @holdfast.effect
    def pay(n: int) -> str:  # noqa: ARG001 shown in the timeline
        return "paid"

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            outer(len(fixed))
            pay(1)
            if not fixed:
                raise ValueError("not yet")
            return "done"
        return ""

    with holdfast.open(tmp_path) as store:
        with pytest.raises(holdfast.RunFailed):
            store.run(agent, id="r")
        fixed.append(True)
        store.restart("r", agent=agent, redo_turn=True, reason="new code")
    story = told(tmp_path)

    kinds = [(event.kind, called(event)) for event in story.events if event.kind != "resumed"][1:]
    assert [
        ("redone", "new code"),
        ("effect", "pay"),
        ("step", "inner"),
        ("step", "outer"),
        ("finished", None),
    ] == kinds
    assert (2, 1) == (story.branches, story.restarts)


def test_a_base_of_the_state_is_told_with_its_size(tmp_path: Path) -> None:
    @holdfast.step
    def text(n: int) -> str:  # noqa: ARG001 tells the calls apart
        return secrets.token_hex(15_000)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            run.state["seen"] = len(text(turn))
            if turn == 12:
                return

    with holdfast.open(tmp_path) as store:
        store.run(agent, id="r")

    bases = [event for event in told(tmp_path).events if event.kind == "base"]
    assert bases
    assert all((event.bytes or 0) > 0 for event in bases)


@dataclasses.dataclass
class Stranger:
    """A class that the reader of a store need not know."""

    n: int


def test_values_are_shown_short_and_unknown_classes_by_name() -> None:
    holdfast.register(Stranger, name="shop:Stranger")
    known = values.encode(Stranger(7))
    unknown = known.replace(b"shop:Stranger", b"shop:Nobodyxx")

    assert "Stranger(n=7)" == shown(known)
    assert f"<shop:Nobodyxx, {len(unknown)} bytes>" == shown(unknown)
    both = values.encode(Stranger(Stranger(7)))  # type: ignore[arg-type]
    outer = both.replace(b"shop:Stranger", b"shop:Nobodyyy", 1).replace(b"shop:Str", b"shop:Xtr")
    assert f"<shop:Nobodyyy, {len(outer)} bytes>" == shown(outer)
    assert "{'a': [1, 2]}" == shown(values.encode({"a": [1, 2]}))
    assert 80 > len(shown(values.encode("x" * 5000)))
    assert "<3 bytes that no value can be read from>" == shown(b"\x09ab")
    assert shown(values.encode(10**6000)).startswith("<")
    large = values.encode("x" * SHOWN_BYTES_MAX)
    assert f"<{len(large)} bytes>" == shown(large)


def test_a_value_that_lies_beside_the_journal_has_its_real_size() -> None:
    reference = bytes([WHOLE]) + bytes(32) + (123_456).to_bytes(8, "big")

    assert 123_456 == length(reference)
    assert "<123456 bytes>" == shown(reference)
    assert 3 == length(b"\x00ab")


@pytest.mark.parametrize("at", [float("nan"), float("inf"), 1e300, -1e300])
def test_a_time_that_no_calendar_has_is_none(at: float) -> None:
    assert when(at) is None
    assert when(0.0) == dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def test_an_outcome_without_an_intent_is_damage(tmp_path: Path) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:  # noqa: ARG001 an agent takes its run
        raise ValueError

    with holdfast.open(tmp_path) as store, pytest.raises(holdfast.RunFailed):
        store.run(agent, id="r")
    with opened(tmp_path) as found:
        known = found.reader.find("r")
        assert known is not None
        last = found.reader.history(known).last
        writer = RunWriter(found.committer, found.reader.seals.of(known.row.no), known)
        writer.stand_at(-1, last.id, last.mac)
        call = Call(0, "pay", b"", 0, 0, False, [])
        _, ticket = writer.submit([Happened(call, "k", b"\x00\xc0", 0.0, 0.0, "call", None)])
        writer.finish(ticket)

    with pytest.raises(Damaged, match="key k has no intent before it"):
        told(tmp_path)
