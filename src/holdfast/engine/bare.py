"""A call as it was recorded under other words: before its secrets were declared, or by a script.

Arguments are hashed with references in the place of secrets. Whoever declares a secret later would
not find again what was recorded, and an effect would be another one; so it is asked both ways. So
it is where a script's classes are among them, which older versions called by the name `__main__`.
What an effect was recorded with is read again where a class has been migrated since: no hash of
today's fields is the one of then.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.capture.digest import digest
from holdfast.capture.tracked import plain
from holdfast.engine.intent import Meaning, meaning
from holdfast.engine.question import Question, whole_digest
from holdfast.errors import NotStorable
from holdfast.model.journal import Intended
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.values import registry
from holdfast.store.codec.vault import Guard, guarded, vault

Read = Callable[[bytes], object]
"""What a recorded value is, as today's classes have it."""


class Older(NamedTuple):
    """A question under other words, and how its arguments are hashed."""

    question: Question
    how: Guard

    def meaning(self, module: str, key: tuple[str, ...]) -> Meaning:
        """What it means as the question of a tool."""
        with guarded(self.how):
            return meaning(module, key, self.question)

    def marks(self) -> dict[str, bytes]:
        """The hash of each argument."""
        with guarded(self.how):
            bound = self.question.bound.items()
            return {name: digest(value, path=name) for name, value in bound}


def olders(question: Question) -> Iterator[Older]:
    """The same question under each of the other words, where those make a difference."""
    clear = [] if vault.is_empty else [Guard(cuts=False)]
    named = [Guard(cuts=how.cuts, names={}) for how in (Guard(), *clear) if registry.has_scripts]
    for how in (*clear, *named):
        bound = {name: plain(value) for name, value in question.bound.items()}
        if not how.cuts:
            bound = {name: _revealed(value) for name, value in bound.items()}
        with guarded(how):
            whole = whole_digest(question.name, bound)
        if whole != question.digest:
            yield Older(replace(question, digest=whole, bound=bound), how)


def is_migrated(read: Read, meant: Intended, question: Question) -> bool:
    """Whether an effect was meant with what is asked now, in older versions of its classes."""
    if meant.call.name != question.name:
        return False
    before = registry.upgrades
    try:
        bound = read(meant.args)
    except NotStorable:  # Whatever was meant with it, nobody can ask for it any more.
        return False
    if type(bound) is not dict or registry.upgrades == before:
        return False
    return whole_digest(question.name, bound) == question.digest


def _revealed(value: Any) -> Any:  # noqa: ANN401 any argument
    """A plain value with the secrets in its containers as text."""
    if type(value) is Secret:
        return value.reveal()
    if type(value) is dict:
        return {_revealed(key): _revealed(item) for key, item in value.items()}
    return [_revealed(item) for item in value] if type(value) is list else value
