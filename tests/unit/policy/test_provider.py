"""Which provider a model is of."""

import pytest

from holdfast.policy.provider import OTHER, provider_of


@pytest.mark.parametrize(
    ("expected", "model"),
    [
        ("openai", "gpt-5-mini"),
        ("openai", "o3"),
        ("anthropic", "claude-haiku-4-5"),
        ("aws.bedrock", "us.anthropic.claude-sonnet-4"),
        ("gcp.gemini", "gemini-2.5-pro"),
        ("mistral_ai", "codestral-latest"),
        ("cohere", "command-r"),
        ("x_ai", "grok-4"),
        ("anthropic", "anthropic/claude-3"),
        ("mistral_ai", "mistralai/mixtral"),
        (OTHER, "octopus-7b"),
        (OTHER, "o-3"),
        (OTHER, ""),
        (OTHER, None),
    ],
)
def test_a_model_tells_its_provider_or_nothing_is_guessed(expected: str, model: str | None) -> None:
    assert expected == provider_of(model)


def test_a_provider_that_was_told_is_believed_and_spelt_as_the_conventions_do() -> None:
    assert "azure.ai.openai" == provider_of("gpt-5", "Azure")
    assert "my-own" == provider_of("gpt-5", "my-own")
