"""What entries of a journal are made of: calls, errors, usage, and what is told of a save."""

from typing import TypeAlias

import msgspec

Scope: TypeAlias = int | bytes
"""Turn n is n; the code before the first loop is -1, after the k-th loop -1-k; a call's id
stands for what is called inside it."""

Scalar: TypeAlias = bool | int | float | str | None


INTEGERS = range(-(1 << 63), 1 << 64)
"""Those that a record can hold as they are."""


def writable(text: str) -> str:
    """A text as a record can hold it: half a character stands there as its escape."""
    plain = str.__str__(text)  # Of a class of its own it could not be written either.
    return plain if plain.isascii() else plain.encode("utf-8", "backslashreplace").decode()


# What is read by the thousand has `gc=False`: such values hold no others in a circle.


class Usage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tokens, model and price of an answer; `None` is unknown, never zero.

    `usd` is what the answer said it cost, or its tokens at the price known when it was given;
    `provider` is who gave it, if it said so.
    """

    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    provider: str | None = None


class Asked(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One argument of a call, for people: its name, a short form, a mark of its content."""

    name: str
    brief: str
    mark: bytes


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which question was asked: known by scope, function, arguments, and ordinal among equals.

    `after` counts the answers its scope had received when the call began; `is_side` says that a
    thread or task beside the agent's own asked it, so its place among others is not fixed.
    """

    scope: Scope
    name: str
    digest: bytes
    ordinal: int
    after: int
    is_side: bool
    asked: list[Asked]


class Error(msgspec.Struct, frozen=True, array_like=True):
    """An exception as recorded: class by name, arguments encoded where they can be."""

    module: str
    name: str
    message: str
    args: bytes | None = None
    trace: str | None = None


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """Which program a life of a run was: versions, fingerprints, allow-listed environment."""

    holdfast: str
    python: str
    platform: str
    code: str | None = None
    tools: str | None = None
    libraries: dict[str, str] = msgspec.field(default_factory=dict)
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    prompts: str | None = None


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """What a checkpoint says of itself, besides the state.

    `root` is the content hash of what it holds, `life` the row that began the life which made it,
    `blocked_s` how long the agent stood still until it was queued; `model` and `parameters` are
    those of the last model call, `error` is the last one in its turn. `is_veiled`: secrets were
    known then, and what stood of them in the content was hashed as references.
    """

    root: bytes
    life: int
    blocked_s: float
    model: str | None = None
    parameters: dict[str, Scalar] = msgspec.field(default_factory=dict)
    error: str | None = None
    label: str | None = None
    is_veiled: bool = False
