"""Exceptions ↔ records: a recorded error comes back as its own class where that is known."""

import builtins
import contextlib
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast import errors
from holdfast.engine.logs import log
from holdfast.errors import Cancelled, NotStorable, Paused, StepError
from holdfast.model.ids import MAIN, module_of
from holdfast.model.journal import Error
from holdfast.policy.signs import words_of
from holdfast.store.codec import values
from holdfast.store.codec.script import imported
from holdfast.store.codec.veil import redact

_registered: dict[tuple[str, str], type[BaseException]] = {}

MESSAGE_CHARS_MAX = 2000
TRACE_CHARS_MAX = 8000


_MARK = "__holdfast_raised__"
_CANCELLED = ("asyncio.exceptions", "CancelledError")
_CUTS = {
    _CANCELLED,
    *(("builtins", n) for n in ("KeyboardInterrupt", "SystemExit", "GeneratorExit")),
}


def register_error(cls: type[BaseException]) -> None:
    """Let recorded errors of this class come back as themselves."""
    _registered[module_of(cls), cls.__qualname__] = cls


def to_error(raised: BaseException, known: Iterable[type[BaseException]] = ()) -> Error:
    """The record of an exception. A class that will not come back as itself is warned about."""
    cls = type(raised)
    if isinstance(raised, Exception) and _find(module_of(cls), cls.__qualname__, known) is None:
        log.warning(
            "%s.%s is not known by name: a replay raises StepError in its place; "
            "name the class in raises= or register it",
            cls.__module__,
            cls.__qualname__,
        )
    return Error(
        module=module_of(cls),
        name=cls.__qualname__,
        # Before they are cut: half a secret would not be known as one.
        message=redact(words_of(raised))[:MESSAGE_CHARS_MAX],
        args=_contents(raised),
        trace=redact("".join(traceback.format_exception(raised)))[-TRACE_CHARS_MAX:],
    )


def to_exception(error: Error, known: Iterable[type[BaseException]] = ()) -> Exception:
    """The exception a record stands for, or `StepError` with its old name."""
    cls = _find(error.module, error.name, known)
    if cls is None or error.args is None:
        return StepError(f"{error.module}.{error.name}", error.message)
    contents = values.decode(error.args)
    args, attributes = contents if isinstance(contents, tuple) else (contents, {})
    assert isinstance(args, list)
    try:
        made = cls(*args)
    except Exception:  # noqa: BLE001 a user's constructor may want anything; the args are kept
        made = cls.__new__(cls)
        made.args = tuple(args)
    vars(made).update(attributes)
    return made


def _contents(raised: BaseException) -> bytes | None:
    """The arguments of an exception and, if it has any that can be stored, its attributes."""
    attributes = {}
    for name, value in vars(raised).items():
        if name != _MARK:
            with contextlib.suppress(NotStorable):
                values.encode(value, path=f"error.{name}")
                attributes[name] = value
    args = list(raised.args)
    try:
        return values.encode((args, attributes) if attributes else args, path="error")
    except NotStorable:
        return None


def mark(error: BaseException, what: tuple[Any, ...]) -> None:
    """Remember something on an exception, wherever it is caught and raised again."""
    vars(error)[_MARK] = what


def marks(error: BaseException) -> Iterator[tuple[Any, ...]]:
    """What was remembered on an exception, on its causes and on the members of a group."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if _MARK in vars(one):
            yield vars(one)[_MARK]
        left.append(one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            left.extend(one.exceptions)


def is_cut(error: Error) -> bool:
    """Whether the record says that code was cut off by a cancellation or alike: no answer."""
    return (error.module, error.name) in _CUTS


def is_cancelled(error: BaseException) -> bool:
    """Whether an exception is the cancellation of a task; asks without loading asyncio."""
    return (type(error).__module__, type(error).__qualname__) == _CANCELLED


def is_cutting(error: BaseException) -> bool:
    """Whether an exception cuts a call off and the code may go on without it; Ctrl-C does, too."""
    return is_cancelled(error) or isinstance(error, KeyboardInterrupt)


def _find(module: str, name: str, known: Iterable[type[BaseException]]) -> type[Exception] | None:
    """Look a class up among those named in the program; never by importing what is stored."""
    if module == "builtins":
        found: object = getattr(builtins, name, None)
    elif module == errors.__name__:
        found = getattr(errors, name, None)
    else:
        found = _named(module, name, [*known, *_registered.values()])
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _named(module: str, name: str, known: list[type[BaseException]]) -> type[BaseException] | None:
    """The class of that name; a script's module is `__main__` when it is run, else its own."""
    alike = [cls for cls in known if cls.__qualname__ == name]
    for cls in alike:
        if module_of(cls) == module:
            return cls
    same = {cls for cls in alike if module in (MAIN, imported(cls))}
    return same.pop() if len(same) == 1 else None


def describe(error: Error) -> str:
    """One line for people, whole: it may name a key that somebody has to copy."""
    return f"{error.name}: {' '.join(error.message.split())}" if error.message else error.name


def is_broken(stopped: BaseException | None) -> bool:
    """Whether a run stopped because it cannot go on; one that people stopped records what it did.

    That it was interrupted under an event loop counts as broken: its calls were cut off.
    """
    return stopped is not None and not isinstance(stopped, Paused | Cancelled)
