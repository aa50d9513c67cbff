"""A call as it was recorded before the secrets in its arguments were declared.

Arguments are hashed with references in the place of secrets. Whoever declares a secret later would
not find again what was recorded, and an effect would be another one; so it is asked both ways.
"""

from typing import Any

from msgspec.structs import replace

from holdfast.capture.tracked import plain
from holdfast.engine.intent import Meaning, meaning
from holdfast.engine.question import Question, whole_digest
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.vault import Guard, guarded, vault


def bare(question: Question) -> Question | None:
    """The same question with its secrets in clear; None if there are none in it."""
    if vault.is_empty:
        return None
    bound = {name: _revealed(plain(value)) for name, value in question.bound.items()}
    with guarded(Guard(cuts=False)):
        digest = whole_digest(question.name, bound)
    return None if digest == question.digest else replace(question, digest=digest, bound=bound)


def bare_meaning(module: str, key: tuple[str, ...], question: Question) -> Meaning:
    """What a bare question means."""
    with guarded(Guard(cuts=False)):
        return meaning(module, key, question)


def _revealed(value: Any) -> Any:  # noqa: ANN401 any argument
    """A plain value with the secrets in its containers as text."""
    if type(value) is Secret:
        return value.reveal()
    if type(value) is dict:
        return {_revealed(key): _revealed(item) for key, item in value.items()}
    return [_revealed(item) for item in value] if type(value) is list else value
