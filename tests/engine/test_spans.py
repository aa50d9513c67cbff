"""A run as OpenTelemetry spans, collected by the real SDK."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import holdfast
from holdfast.clock import SystemClock
from holdfast.report.episodes import lines_of
from holdfast.report.spans import emit
from holdfast.store.open import open_store
from tests.engine.kit import RUN, Stage, World


def collected(stage: Stage) -> Sequence[ReadableSpan]:
    provider, memory = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    opened = open_store(stage.path, SystemClock(), must_exist=True)
    try:
        run = opened.reader.find(RUN)
        assert run is not None
        told = emit(run.body, lines_of(opened.reader, run), provider.get_tracer("test"))
    finally:
        opened.close()
    found = memory.get_finished_spans()
    assert told == len(found)
    return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@holdfast.effect(key="order")
def pay(order: str) -> str:
    return order


def teller(world: World) -> holdfast.Agent[..., Any]:
    @holdfast.step
    def chat(n: int) -> dict[str, Any]:
        world.ask(f"chat {n}")
        return {
            "text": "private words",
            "model": "m-1",
            "usage": {"input_tokens": 7, "output_tokens": n},
        }

    @holdfast.step
    def look(n: int) -> int:
        world.ask(f"look {n}")
        return n

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> str:
        for turn in run.turns():
            chat(turn)
            look(turn)
            pay(f"o-{turn}")
            if turn == 1:
                break
        return "done"

    return agent


def test_a_killed_run_is_one_trace_with_a_span_for_each_life(stage: Stage, world: World) -> None:
    agent = teller(world)
    world.dies_at = "look 1"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    spans = collected(stage)

    by_name: dict[str, list[ReadableSpan]] = {}
    for span in spans:
        by_name.setdefault(span.name.split()[0], []).append(span)
    [root] = by_name["invoke_workflow"]
    first, second = by_name["invoke_agent"]
    assert 1 == len({span.context.trace_id for span in spans if span.context})
    assert [root.context.span_id] * 2 == [
        life.parent.span_id for life in (first, second) if life.parent
    ]
    assert [first.context.span_id] == [link.context.span_id for link in second.links]
    assert 1 == attributes(second)["holdfast.recovery.attempt"]
    assert RUN == attributes(root)["gen_ai.conversation.id"]


def test_replayed_calls_are_marked_and_never_counted_as_usage(stage: Stage, world: World) -> None:
    agent = teller(world)
    world.dies_at = "look 1"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    chats = [span for span in collected(stage) if span.name == "chat m-1"]

    replayed = [span for span in chats if attributes(span)["holdfast.replayed"]]
    asked = [span for span in chats if not attributes(span)["holdfast.replayed"]]
    assert (1, 2) == (len(replayed), len(asked))
    assert not [key for span in replayed for key in attributes(span) if "usage" in key]
    assert [7, 7] == [attributes(span)["gen_ai.usage.input_tokens"] for span in asked]
    assert [0, 1] == [attributes(span)["holdfast.turn.index"] for span in asked]


def test_tools_effects_checkpoints_and_errors_are_told_without_any_content(
    stage: Stage, world: World
) -> None:
    agent = teller(world)
    stage.live(agent)

    spans = collected(stage)

    tools = [attributes(span) for span in spans if span.name.startswith("execute_tool")]
    paid = [each for each in tools if each["gen_ai.tool.name"] == "pay"]
    events = [event.name for span in spans for event in span.events]
    assert ["happened", "happened"] == [each["holdfast.effect.state"] for each in paid]
    assert all(each["gen_ai.tool.call.id"] for each in paid)
    assert "holdfast.checkpoint" in events
    assert "private words" not in json.dumps([attributes(span) for span in spans])


def test_a_step_that_raised_is_an_error_with_its_type(stage: Stage) -> None:
    @holdfast.step
    def fail() -> None:
        raise ZeroDivisionError

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for _ in run.turns():
            fail()

    stage.fault(agent)

    [step] = [span for span in collected(stage) if span.name.endswith("fail")]
    assert StatusCode.ERROR is step.status.status_code
    assert "ZeroDivisionError" == attributes(step)["error.type"]


def test_times_are_those_at_which_things_happened(stage: Stage, world: World) -> None:
    stage.live(teller(world))

    spans = collected(stage)
    [root] = [span for span in spans if span.name.startswith("invoke_workflow")]

    for span in spans:
        assert root.start_time is not None
        assert root.end_time is not None
        assert span.start_time is not None
        assert span.end_time is not None
        assert root.start_time <= span.start_time + 10**7
        assert span.start_time <= span.end_time <= root.end_time + 10**7


def test_where_no_sdk_is_set_up_that_is_told(
    stage: Stage, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    from holdfast.cli.main import main  # noqa: PLC0415 the command line is slow to load

    stage.live(teller(world))

    assert 2 == main(["report", "spans", "--store", str(stage.path)])
    assert "opentelemetry-instrument" in capsys.readouterr().err
