"""The base of every error of Holdfast."""

from shlex import quote
from typing import ClassVar

PUBLIC = "holdfast.errors"


class HoldfastError(Exception):
    """Base of every error of Holdfast."""

    remedy: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith(f"{PUBLIC}."):
            cls.__module__ = PUBLIC  # Tracebacks and journals name an error where users import it.


HoldfastError.__module__ = PUBLIC


def shown_at(point: str) -> str:
    """The line to type that shows a point."""
    return f"`holdfast show {quote(point.rpartition('@')[0])} --at {quote(point)}`"
