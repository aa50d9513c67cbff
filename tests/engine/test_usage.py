"""Tokens and models: read from answers, added up, never made up."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import dataclasses
import math
from typing import Any

import pydantic
import pytest

import holdfast
from holdfast import Usage
from tests.engine.kit import Crash, Stage, World


class OpenAIUsage(pydantic.BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class OpenAIReply(pydantic.BaseModel):
    model: str
    usage: OpenAIUsage | None


@dataclasses.dataclass
class AnthropicUsage:
    input_tokens: int
    output_tokens: int


@dataclasses.dataclass
class AnthropicReply:
    model: str
    usage: AnthropicUsage


def used(stage: Stage, answer: Any) -> Usage:  # noqa: ANN401 answers of all shapes
    @holdfast.step
    def chat() -> OpenAIReply | AnthropicReply | Any:  # noqa: ANN401
        return answer

    @holdfast.agent
    def agent(run: holdfast.Run) -> Usage:
        chat()
        totals.append(run.usage())
        return run.usage()

    totals: list[Usage] = []
    holdfast.register(Usage)
    stage.live(agent)
    return totals[0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            OpenAIReply(
                model="gpt",
                usage=OpenAIUsage(prompt_tokens=7, completion_tokens=5, total_tokens=12),
            ),
            Usage("gpt", 7, 5),
        ),
        (AnthropicReply("claude", AnthropicUsage(3, 4)), Usage("claude", 3, 4)),
        ({"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}, Usage("m", 1, 2)),
        ({"usage": {"input_tokens": 0, "output_tokens": 2}}, Usage(None, 0, 2)),
        ({"model": "m", "usage": {"input_tokens": 9}}, Usage("m", 9, None)),
        (OpenAIReply(model="gpt", usage=None), Usage()),
        ({"model": "m", "usage": {}}, Usage("m", None, None)),
        ({"usage": {"input_tokens": "many", "output_tokens": True}}, Usage()),
        ({"usage": {"input_tokens": -1}}, Usage()),
        ({"usage": {"input_tokens": 10**30, "output_tokens": 1.5}}, Usage()),
        ({"usage": None}, Usage()),
        ("text", Usage()),
        (None, Usage()),
        (["usage"], Usage()),
    ],
)
def test_usage_is_read_from_known_shapes_and_else_unknown(
    stage: Stage, answer: object, expected: Usage
) -> None:
    found = used(stage, answer)

    assert (expected.tokens_in, expected.tokens_out) == (found.tokens_in, found.tokens_out)
    if expected.tokens_in is not None:
        assert expected.model == found.model


def test_usage_can_be_told_by_a_function(stage: Stage) -> None:
    @holdfast.step(usage=lambda answer: {"model": "own", "input_tokens": len(answer)})
    def by_mapping() -> str:
        return "four"

    @holdfast.step(usage=lambda _: Usage(model="own", tokens_in=1, tokens_out=2))
    def by_value() -> str:
        return "x"

    @holdfast.step(usage=lambda _: None)
    def unknown() -> dict[str, Any]:
        return {"usage": {"input_tokens": 100}}

    totals: list[Usage] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        totals.append(run.usage())
        for ask in (by_mapping, by_value, unknown):
            ask()
            totals.append(run.usage())

    stage.live(agent)

    expected = [(None, None), (4, None), (5, 2), (5, 2)]
    assert expected == [(usage.tokens_in, usage.tokens_out) for usage in totals]
    assert "own" == totals[-1].model


def test_what_a_run_used_can_stand_in_its_state_and_be_its_result(
    stage: Stage, world: World
) -> None:
    @holdfast.step(usage=lambda _: Usage("m", 3, 4, 0.5))
    def chat(n: int) -> str:
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> Usage:
        for turn in run.turns():
            before = run.state.get("used")
            chat(turn)
            run.state["used"] = run.usage()
            if turn == 1:
                assert Usage("m", 3, 4, 0.5) == before
                break
        return run.usage()

    world.dies_at = "chat 1"
    stage.die(agent)
    world.dies_at = None

    assert Usage("m", 6, 8, 1.0) == stage.live(agent)
    assert Usage("m", 6, 8, 1.0) == stage.live(agent)


def test_a_usage_function_that_returns_something_else_is_refused(stage: Stage) -> None:
    @holdfast.step(usage=lambda _: 3)  # type: ignore[arg-type,return-value]  # what is tested
    def chat() -> str:
        return "x"

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        chat()

    assert "usage= of" in str(stage.fault(agent))


def test_a_usage_function_that_raises_loses_no_answer_and_none_is_asked_for_again(
    stage: Stage,
) -> None:
    asked: list[str] = []

    @holdfast.step(usage=lambda answer: {"input_tokens": answer["usage"]["missing"]})
    def chat(text: str) -> dict[str, Any]:
        asked.append(text)
        return {"text": text, "usage": {}}

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [chat(text)["text"] for text in ("one", "two")]

    assert "usage= of" in str(stage.fault(agent))
    with pytest.raises(holdfast.UsageError, match="raised KeyError: 'missing'; the answer is"):
        stage.restart(agent)

    assert ["one", "two"] == stage.restart(agent) == asked


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (Usage(tokens_in=1.5), "tokens_in is a whole number from 0, not 1.5"),  # type: ignore[arg-type]
        (Usage(tokens_out=-5), "tokens_out is a whole number from 0, not -5"),
        (Usage(tokens_in=10**30), "tokens_in is a whole number from 0"),
        (Usage(tokens_in="7"), "tokens_in is a whole number from 0, not '7'"),  # type: ignore[arg-type]
        (Usage(usd=math.nan), "usd is a finite number from 0, not nan"),
        (Usage(usd=-1), "usd is a finite number from 0, not -1"),
        (Usage(model=5), "model is a text, not 5"),  # type: ignore[arg-type]
    ],
)
def test_a_usage_that_cannot_be_meant_is_refused_before_it_is_recorded(
    stage: Stage, told: Usage, said: str
) -> None:
    @holdfast.step(usage=lambda _: told)
    def chat() -> str:
        return "x"

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        chat()

    assert said in str(stage.fault(agent))


@pytest.mark.parametrize("turns", [5, 120])
def test_totals_survive_restarts_and_count_each_answer_once(stage: Stage, turns: int) -> None:
    crashes = {0, 1, turns // 2, turns - 1}

    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        text = f"{turn:04d}" * 400
        return {"text": text, "model": "m", "usage": {"input_tokens": turn, "output_tokens": 1}}

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        run.state["m"] = []
        chat(1000)
        for turn in run.turns():
            run.state["m"].append(chat(turn))
            if turn in crashes:
                crashes.remove(turn)
                raise Crash
            if turn == turns - 1:
                usage = run.usage()
                return [usage.model, usage.tokens_in, usage.tokens_out]
        raise AssertionError

    for _ in range(4):
        stage.die(agent)

    assert ["m", 1000 + sum(range(turns)), turns + 1] == stage.live(agent)
