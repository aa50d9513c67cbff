"""`register`: teach Holdfast a class of values or of errors, so that it comes back as itself."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from holdfast.engine.faults import register_error
from holdfast.errors import UsageError
from holdfast.store.codec import values

C = TypeVar("C", bound=type[Any])


@overload
def register(cls: C, /) -> C: ...
@overload
def register(
    cls: C,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[Any], object] | None = None,
    decode: Callable[[Any], object] | None = None,
) -> C: ...
@overload
def register(
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[Any], object] | None = None,
    decode: Callable[[Any], object] | None = None,
) -> Callable[[C], C]: ...
def register(
    cls: type[Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[Any], object] | None = None,
    decode: Callable[[Any], object] | None = None,
) -> Any:
    """Let instances of a class be stored, or errors of it be raised again on a replay.

    Use it as a decorator or as a call. Dataclasses, enums, named tuples, Pydantic models and
    msgspec structs need nothing more; other classes give `encode` and `decode`. `version` is
    stored with each value; `holdfast.migrate` reads older ones.
    """

    def know(cls: type[Any]) -> type[Any]:
        _refuse_odd(cls, version)
        if issubclass(cls, BaseException):
            register_error(cls)
        else:
            values.registry.register(cls, name=name, version=version, encode=encode, decode=decode)
        return cls

    return know if cls is None else know(cls)


def _refuse_odd(cls: object, version: object) -> None:
    if not isinstance(cls, type):
        raise UsageError(f"holdfast.register takes a class, not {cls!r:.80}")
    if type(version) is not int:
        msg = f"{cls.__qualname__}: version= is a whole number from 1, not {version!r:.80}"
        raise UsageError(msg)
