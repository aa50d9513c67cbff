"""A run as OpenTelemetry spans, collected by the real SDK."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import holdfast
from holdfast.clock import SystemClock
from holdfast.report.spans import Trace
from holdfast.store.open import open_store
from tests.engine.kit import RUN, Stage, World


def collected(stage: Stage) -> Sequence[ReadableSpan]:
    provider, memory = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    opened = open_store(stage.path, SystemClock(), must_exist=True)
    try:
        told = Trace(opened.reader, provider.get_tracer("test")).whole(opened.reader.runs())
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


def test_a_life_after_a_persons_answer_or_of_a_fork_recovers_from_nothing(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return str(run.ask("go on?"))

    assert isinstance(stage.fault(agent), holdfast.Waiting)
    with stage.open() as store:
        fork = store.fork(RUN)
        store.answer(store.inbox()[0].id, "yes")
        store.run(agent, id=RUN)
        with pytest.raises(holdfast.Waiting):
            store.run(agent, id=fork.id)

    lives = [span for span in collected(stage) if span.name.startswith("invoke_agent")]

    assert 3 == len(lives)
    assert [] == [key for life in lives for key in attributes(life) if "recovery" in key]


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


def named(spans: Sequence[ReadableSpan], begins: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name.startswith(begins)]


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_calls_of_a_model_name_its_provider_and_are_made_as_a_client(
    stage: Stage,
) -> None:
    @holdfast.step
    def ask(model: str, provider: str | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = {"model": model, "usage": {"input_tokens": 1}}
        return answer if provider is None else {**answer, "provider": provider}

    @holdfast.agent(version="7")
    def agent(_run: holdfast.Run) -> None:
        ask("claude-sonnet-4-5")
        ask("openai/gpt-5")
        ask("house-1", "mistral")
        ask("house-2")

    stage.live(agent)

    spans = collected(stage)
    chats = named(spans, "chat ")
    told = [attributes(span)["gen_ai.provider.name"] for span in chats]
    assert ["anthropic", "openai", "mistral_ai", "_OTHER"] == told
    assert {SpanKind.CLIENT} == {span.kind for span in chats}
    [life] = named(spans, "invoke_agent")
    assert "7" == attributes(life)["gen_ai.agent.version"]
    assert SpanKind.INTERNAL is life.kind


def test_events_name_each_checkpoint_as_the_store_does_with_its_bytes(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def look(n: int) -> str:
        return world.ask(f"look {n}")

    @holdfast.agent(checkpoint=holdfast.every(turns=2), snapshot={"m": holdfast.every(turns=1)})
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            run.state["m"] = [look(turn)]
            if turn == 2:
                run.checkpoint(label="by hand")
            if turn == 4:
                break

    world.dies_at = "look 3"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)
    with stage.open() as store:
        store.plan_rollback(RUN, to=f"{RUN}@1").apply()
        store.run(agent, id=RUN)
        points = store.checkpoints(RUN)

    told = [
        dict(event.attributes or {})
        for span in collected(stage)
        for event in span.events
        if event.name == "holdfast.checkpoint"
    ]
    expected = [(p.id, p.kind, p.bytes, p.parent, p.label) for p in points]
    assert expected == [
        (
            each["holdfast.checkpoint.id"],
            each["holdfast.checkpoint.kind"],
            each["holdfast.checkpoint.bytes"],
            each.get("holdfast.checkpoint.parent.id"),
            each.get("holdfast.checkpoint.label"),
        )
        for each in told
    ]
    assert any(p.label for p in points)


def writer(world: World, *, goes_on: bool) -> holdfast.Agent[..., Any]:
    def fresh(n: int) -> Iterator[str]:
        yield from (world.ask(f"{at}") for at in range(n))

    def continued(n: int, prefix: Sequence[str] = ()) -> Iterator[str]:
        yield from (world.ask(f"{at}") for at in range(len(prefix), n))

    @holdfast.step
    def look() -> str:
        return world.ask("look")

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        found = 0
        for _ in run.turns():
            fn = continued if goes_on else fresh
            found = len(list(run.stream(fn, 6, every=2, name="draft")))
            look()
            break
        return found

    return agent


@pytest.mark.parametrize(
    ("goes_on", "expected"),
    [
        (True, [(4, 0, "cut off"), (2, 4, "ended")]),
        (False, [(4, 0, "cut off"), (6, 0, "ended")]),
    ],
)
def test_a_stream_is_a_span_in_each_life_and_only_new_tokens_are_usage(
    stage: Stage, world: World, *, goes_on: bool, expected: list[tuple[int, int, str]]
) -> None:
    agent = writer(world, goes_on=goes_on)
    world.dies_at = "4"
    stage.die(agent)
    world.dies_at = "look"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    streams = [attributes(span) for span in named(collected(stage), "chat draft")]

    new = [each for each in streams if not each["holdfast.replayed"]]
    assert expected == [
        (
            each["gen_ai.usage.output_tokens"],
            each["holdfast.stream.continued_after"],
            each["holdfast.stream.outcome"],
        )
        for each in new
    ]
    [replayed] = [each for each in streams if each["holdfast.replayed"]]
    assert 1 == replayed["holdfast.step.index"]
    assert not [key for key in replayed if "usage" in key]


def test_a_child_is_told_once_and_inside_the_call_of_its_parent(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(n: int) -> dict[str, Any]:
        world.ask(f"chat {n}")
        return {"model": "gpt-5", "usage": {"input_tokens": 5, "output_tokens": 1}}

    @holdfast.agent
    def helper(_run: holdfast.Run) -> int:
        chat(1)
        chat(2)
        return 2

    @holdfast.agent
    def lead(run: holdfast.Run) -> str:
        run.child(helper, id="kid")
        return world.ask("after")

    world.dies_at = "chat 2"
    stage.die(lead)
    world.dies_at = "after"
    stage.die(lead)
    world.dies_at = None
    stage.live(lead)

    spans = collected(stage)

    [root] = [s for s in named(spans, "invoke_workflow") if attributes(s)["holdfast.run.id"] == RUN]
    [kid] = [
        s for s in named(spans, "invoke_workflow") if attributes(s)["holdfast.run.id"] == "kid"
    ]
    calls = [s for s in spans if attributes(s).get("holdfast.child.id") == "kid"]
    assert [False, True] == [attributes(call)["holdfast.replayed"] for call in calls]
    assert kid.parent is not None
    assert span_id(calls[0]) == kid.parent.span_id
    assert [span_id(calls[0])] == [link.context.span_id for link in kid.links]
    assert RUN == attributes(kid)["holdfast.run.parent.id"]
    assert "holdfast.fork.parent" not in attributes(kid)
    assert root.context is not None
    assert {root.context.trace_id} == {s.context.trace_id for s in spans if s.context}
    used = [attributes(s).get("gen_ai.usage.input_tokens", 0) for s in named(spans, "chat")]
    assert 10 == sum(used)


def test_a_fork_links_to_the_run_it_comes_from(stage: Stage, world: World) -> None:
    agent = teller(world)
    stage.live(agent)
    with stage.open() as store:
        store.fork(RUN, at=f"{RUN}@0", new_id="other")
        store.run(agent, id="other")

    roots = named(collected(stage), "invoke_workflow")

    assert [RUN] == [attributes(s)["holdfast.fork.parent"] for s in roots if s.links]
    assert [span_id(roots[0])] == [link.context.span_id for s in roots for link in s.links]


def test_a_turn_run_anew_counts_no_effect_twice_and_replays_no_step(
    stage: Stage, world: World
) -> None:
    agent = teller(world)
    world.dies_at = "look 1"
    stage.die(agent)
    world.dies_at = None
    stage.restart(agent, redo_turn=True)

    spans = collected(stage)

    replayed = [s.name for s in spans if attributes(s).get("holdfast.replayed")]
    asked = [s for s in named(spans, "chat") if not attributes(s)["holdfast.replayed"]]
    paid = [s for s in named(spans, "execute_tool pay") if not attributes(s)["holdfast.replayed"]]
    assert [] == replayed
    assert (3, 2) == (len(asked), len(paid))


def test_an_effect_that_nobody_knows_of_is_told_as_in_doubt(stage: Stage, world: World) -> None:
    @holdfast.effect(key="order", probe=lambda _order: True)
    def send(order: str) -> None:
        world.ask(f"send {order}")

    @holdfast.agent
    def agent(_run: holdfast.Run) -> None:
        send("o-1")

    world.dies_at = "send o-1"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    states = [attributes(s)["holdfast.effect.state"] for s in named(collected(stage), "execute")]
    assert ["in doubt", "happened"] == states


def test_a_call_made_again_in_place_is_an_event_with_the_error_it_was_made_again_for(
    stage: Stage,
) -> None:
    asked: list[int] = []

    @holdfast.step(retry=holdfast.Retry(attempts=3, base="1ms"))
    def flaky() -> int:
        asked.append(1)
        if len(asked) < 3:
            raise ConnectionResetError
        return len(asked)

    @holdfast.agent
    def agent(_run: holdfast.Run) -> int:
        return flaky()

    stage.live(agent)

    events = [event for span in collected(stage) for event in span.events]
    assert ["holdfast.retry"] * 2 == [event.name for event in events]
    assert ["ConnectionResetError"] * 2 == [
        (event.attributes or {})["error.type"] for event in events
    ]
