"""Text that compresses like prose: a seeded order-2 word chain over Python's own documentation."""

import random
from collections import defaultdict
from collections.abc import Iterator
from pydoc_data.topics import topics

MESSAGE_CHARS = 1_000
SEED = 20_261


def messages(count: int) -> list[str]:
    """`count` different texts of `MESSAGE_CHARS` characters, the same ones on every machine."""
    words = _words()
    return [_take(words, MESSAGE_CHARS) for _ in range(count)]


def _take(words: Iterator[str], chars: int) -> str:
    """The next words, joined and cut to exactly `chars` characters."""
    taken: list[str] = []
    length = 0
    while length <= chars:
        word = next(words)
        taken.append(word)
        length += len(word) + 1
    return " ".join(taken)[:chars]


def _words() -> Iterator[str]:
    """Walk the chain for ever; a dead end starts again at a random pair."""
    source = " ".join(topics[name] for name in sorted(topics)).split()
    follow: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for first, second, third in zip(source, source[1:], source[2:], strict=False):
        follow[first, second].append(third)
    pairs = list(follow)
    chance = random.Random(SEED)  # noqa: S311 - the same text everywhere, not a secret
    pair = chance.choice(pairs)
    while True:
        choices = follow.get(pair)
        if choices is None:
            pair = chance.choice(pairs)
            continue
        word = chance.choice(choices)
        pair = (pair[1], word)
        yield word
