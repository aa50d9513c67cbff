"""Model and parameters of a model call, as its record names them."""

from ast import literal_eval

from holdfast.model.journal import Call, Mark, Scalar, Streamed, Usage
from holdfast.model.parts import INTEGERS

ModelCall = tuple[Call, Usage] | Mark
"""The last model call of a run, or the checkpoint after it that tells of it."""

NAMES = frozenset(
    {
        "frequency_penalty",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "model",
        "model_id",
        "model_name",
        "presence_penalty",
        "reasoning_effort",
        "seed",
        "temperature",
        "top_k",
        "top_p",
    }
)
"""Arguments that say how a model was asked."""

MODELS = ("model", "model_id", "model_name")


def asked_of(last: ModelCall | None) -> tuple[str | None, dict[str, Scalar]]:
    """Model and parameters of the last model call; None and nothing where they are not known."""
    if last is None:
        return None, {}
    if isinstance(last, Mark):
        return last.model, last.parameters
    call, usage = last
    parameters = _parameters(call)
    asked = (parameters.get(name) for name in MODELS)
    return usage.model or next((name for name in asked if isinstance(name, str)), None), parameters


def used_by(part: Streamed) -> Usage:
    """What a record of a stream used, of the model that the call of it asked for."""
    return Usage(model=asked_of((part.call, Usage()))[0], tokens_out=part.tokens)


def _parameters(call: Call) -> dict[str, Scalar]:
    """The arguments of a model call that say how it was asked, where they are plain scalars.

    Read from the short forms in the record, so that they are known after a restart too.
    """
    found: dict[str, Scalar] = {}
    for asked in call.asked:
        if asked.name in NAMES:
            try:
                value = literal_eval(asked.brief)
            except (ValueError, SyntaxError):
                continue  # Shortened, or no scalar.
            if isinstance(value, int) and value not in INTEGERS:
                found[asked.name] = str(value)  # A seed of 128 bits, say.
            elif value is None or isinstance(value, bool | int | float | str):
                found[asked.name] = value
    return found
