"""Items of a stream as a record holds them, apart from those that the agent was handed."""

from itertools import accumulate
from typing import Any

from holdfast.model.journal import Streamed
from holdfast.store.codec import values
from holdfast.store.reader import Reader

_FIXED = frozenset({str, int, float, bool, bytes, type(None)})


def own(item: Any, path: str) -> Any:  # noqa: ANN401 the user's own value, twice
    """An item as a replay would give it, which no change of the other reaches.

    What cannot be stored is refused here, by itself.
    """
    return item if type(item) in _FIXED else values.decode(values.encode(item, path=path))


def packed(items: list[Any]) -> object:
    """What a record holds: text is kept in one piece, so that a secret in several is found."""
    if len(items) > 1 and all(type(item) is str for item in items):
        return {"text": "".join(items), "sizes": [len(item) for item in items]}
    return list(items)


def items_of(reader: Reader, part: Streamed) -> list[Any]:
    """The items that a record of a stream holds."""
    found = reader.value(part.items)
    if isinstance(found, dict):
        text, sizes = found["text"], found["sizes"]
        if len(text) != sum(sizes):  # Something in it was redacted: the cuts are not known.
            return [text]
        return [text[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)]
    assert isinstance(found, list)
    return found
