"""Tokens and model of an answer: read where they are said, never made up."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from holdfast.model.journal import Usage
from holdfast.policy.usage import Cached, cached_of, total, usage_of


class Touchy:
    """Raises whatever it is asked for."""

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name) if name.startswith("_") else KeyError(name)


@dataclass
class Tokens:
    input_tokens: int | None = None
    output_tokens: int | None = None


@pytest.mark.parametrize(
    ("answer", "usage"),
    [
        (
            {"model": "gpt", "usage": {"prompt_tokens": 3, "completion_tokens": 5}},
            Usage("gpt", 3, 5),
        ),
        (
            SimpleNamespace(model="claude", usage=Tokens(input_tokens=0, output_tokens=7)),
            Usage("claude", 0, 7),
        ),
        ({"usage": {"tokens_in": 1, "tokens_out": 2}}, Usage(None, 1, 2)),
        ({"usage": {"input_tokens": 4}}, Usage(None, 4, None)),
        ({"model": 5, "usage": {"output_tokens": 4}}, Usage(None, None, 4)),
        ({"model": "gpt", "usage": {}}, Usage("gpt", None, None)),
        (
            {"usage": {"input_tokens": True, "prompt_tokens": -1, "tokens_in": 6}},
            Usage(None, 6, None),
        ),
    ],
)
def test_usage_is_read_from_the_shapes_that_providers_use(answer: object, usage: Usage) -> None:
    assert usage == usage_of(answer)


CHAT = {
    "prompt_tokens": 100,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 80},
}
RESPONSE = {
    "input_tokens": 100,
    "output_tokens": 5,
    "input_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 7},
}
MESSAGE = {
    "input_tokens": 13,
    "output_tokens": 5,
    "cache_read_input_tokens": 80,
    "cache_creation_input_tokens": 7,
}
CONVERSE = {
    "inputTokens": 13,
    "outputTokens": 5,
    "cacheReadInputTokens": 80,
    "cacheWriteInputTokens": 7,
}
GEMINI = SimpleNamespace(
    prompt_token_count=100,
    candidates_token_count=3,
    thoughts_token_count=2,
    cached_content_token_count=80,
)
GEMINI_REST = {"promptTokenCount": 100, "candidatesTokenCount": 5, "cachedContentTokenCount": 80}
LANGCHAIN = SimpleNamespace(
    usage_metadata={
        "input_tokens": 100,
        "output_tokens": 5,
        "input_token_details": {"cache_read": 80, "cache_creation": 7},
    },
    response_metadata={"model_name": "m"},
)
ROUTER = {**CHAT, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 0}


@pytest.mark.parametrize(
    ("answer", "cached"),
    [
        ({"model": "m", "usage": CHAT}, Cached(80, 0)),
        ({"model": "m", "usage": RESPONSE}, Cached(80, 7)),
        ({"model": "m", "usage": MESSAGE}, Cached(80, 7)),
        ({"model": "m", "usage": CONVERSE}, Cached(80, 7)),
        (SimpleNamespace(model_version="m", usage_metadata=GEMINI), Cached(80, 0)),
        ({"modelVersion": "m", "usageMetadata": GEMINI_REST}, Cached(80, 0)),
        (LANGCHAIN, Cached(80, 7)),
        ({"model": "m", "usage": ROUTER}, Cached(80, 0)),
        ({"model": "m", "usage": {"input_tokens": 100, "output_tokens": 5}}, Cached(0, 0)),
    ],
    ids=[
        "chat",
        "response",
        "message",
        "converse",
        "gemini",
        "rest",
        "langchain",
        "router",
        "bare",
    ],
)
def test_what_went_through_a_cache_went_in_whoever_tells_it(answer: object, cached: Cached) -> None:
    assert Usage("m", 100, 5) == usage_of(answer)
    assert cached == cached_of(answer)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "usage",
        b"usage as bytes",
        3,
        0.5,
        [{"usage": {"input_tokens": 1}}],
        ("usage",),
        {},
        {"usage": None},
        {"usage": 12},
        {"usage": "12 tokens"},
        {"usage": {"input_tokens": "3", "output_tokens": 1.5}},
        SimpleNamespace(model="m"),
        Touchy(),
        {"usage": Touchy()},
    ],
)
def test_an_answer_that_does_not_say_has_no_usage(answer: object) -> None:
    assert usage_of(answer) is None


@pytest.mark.parametrize(
    ("usages", "sum_"),
    [
        ([], Usage()),
        ([Usage("m", 1, 2), Usage("m", 3, None)], Usage("m", 4, 2)),
        ([Usage("n", 1, 0), Usage("m", None, 0)], Usage("m, n", 1, 0)),
        ([total([Usage("n"), Usage("m")]), Usage("a"), Usage("m")], Usage("a, m, n")),
        ([Usage(None, None, None), Usage("m", None, None)], Usage("m", None, None)),
    ],
)
def test_a_sum_counts_what_is_known_and_what_nobody_said_stays_unknown(
    usages: list[Usage], sum_: Usage
) -> None:
    assert sum_ == total(usages)
