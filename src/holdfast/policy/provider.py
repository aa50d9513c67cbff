"""Which provider a model is of, as the conventions for generative AI name it."""

import re

OTHER = "_OTHER"
"""A provider that nobody named and the model does not tell."""

_NAMES = {
    "amazon-bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "moonshot": "moonshot_ai",
    "moonshotai": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "x-ai": "x_ai",
    "xai": "x_ai",
}
"""Names in use that the conventions spell otherwise."""
_MODELS = (
    (r"(chat)?gpt-|o[1-9](-|$)|text-embedding-|davinci", "openai"),
    (r"claude-", "anthropic"),
    (r"(us\.|eu\.|apac\.)?(anthropic|amazon|meta|cohere)\.", "aws.bedrock"),
    (r"gemini-", "gcp.gemini"),
    (r"(open-)?(mistral|mixtral|codestral|ministral|magistral|pixtral)", "mistral_ai"),
    (r"command(-|$)", "cohere"),
    (r"deepseek-", "deepseek"),
    (r"grok-", "x_ai"),
    (r"sonar(-|$)", "perplexity"),
    (r"kimi-|moonshot-", "moonshot_ai"),
)
"""How the names of a provider's models begin."""


def provider_of(model: str | None, told: str | None = None) -> str:
    """The provider that was told, else the one whose models are called so; never a guess."""
    if told:
        return _NAMES.get(told.lower(), told.lower())
    name = (model or "").lower()
    before, slash, _ = name.partition("/")
    if slash and before:  # As routers write it: `openai/gpt-4o`.
        return _NAMES.get(before, before)
    return next((given for begin, given in _MODELS if re.match(begin, name)), OTHER)
