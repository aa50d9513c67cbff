"""What is said of the sections of a state: which may be missing, and which are after a restore."""

from enum import StrEnum
from typing import TypeGuard

import msgspec

from holdfast.model.parts import writable


def is_name(said: object) -> TypeGuard[str]:
    """Whether a section can be named so where it is spoken of: by a text without half characters.

    Other keys a state may have too.
    """
    return isinstance(said, str) and writable(said) == said


class Section(msgspec.Struct, frozen=True, array_like=True):
    """What is declared of a section: it is an attached object's; a restart may go on without it."""

    is_attached: bool = False
    is_optional: bool = False


class Declared(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """What the program says of its sections, all of them; a section not named is essential."""

    sections: dict[str, Section]


class Degraded(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """A restart went on without some sections, all of them optional: each with the reason."""

    at: float
    turn: int
    sections: dict[str, str]


class Outcome(StrEnum):
    """What became of a section in a restore."""

    RESTORED = "restored"
    DEGRADED = "degraded"
    FAILED = "failed"


class Part(msgspec.Struct, frozen=True):
    """A section after a restore: whether it is there, and if not, why."""

    outcome: Outcome
    why: str | None = None
