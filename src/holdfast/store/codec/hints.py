"""Which classes the annotations of a function lead to, through containers and fields."""

import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from holdfast.store.codec.shapes import is_pydantic, shape_of

T = TypeVar("T")


def classes_named(owner: Callable[..., object]) -> tuple[list[type], bool]:
    """The storable classes that `owner` names, and whether every annotation could be read.

    An annotation that cannot be read yet (a name that is defined later, or only for type checkers)
    is passed over.
    """
    found: list[type] = []
    whole = True
    seen: set[int] = set()
    kept: list[object] = []  # hints made on the way: their ids must not be given out again
    waiting: list[object] = [owner] if isinstance(owner, type) else [*hints_of(owner).values()]
    while waiting:
        hint = waiting.pop()
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        kept.append(hint)
        if isinstance(hint, str | typing.ForwardRef):
            whole = False
        elif isinstance(hint, type) and typing.get_origin(hint) is None:
            if shape_of(hint) is not None:
                found.append(hint)
                waiting.extend(_field_hints(hint))
            elif typing.is_typeddict(hint):
                waiting.extend(hints_of(hint).values())
        else:
            waiting.extend(_inner(hint))
    return found, whole


def _field_hints(cls: type) -> Iterator[object]:
    if is_pydantic(cls):
        for info in cls.__pydantic_fields__.values():  # type: ignore[attr-defined]  # Pydantic's own, on every model
            yield info.annotation
    else:
        yield from hints_of(cls).values()


def _inner(hint: object) -> Iterator[object]:
    """What a hint that is not a class is made of."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        yield from map(type, typing.get_args(hint))
    elif origin is not None:
        yield origin
        for part in typing.get_args(hint):
            yield from part if isinstance(part, list) else [part]
    elif isinstance(hint, typing.TypeVar):
        yield from (part for part in (hint.__bound__, *hint.__constraints__) if part is not None)
    elif isinstance(hint, typing.NewType):
        yield hint.__supertype__
    elif type(hint).__name__ == "TypeAliasType":
        # Of Python 3.12 on, and evaluated only when asked.
        yield _read(lambda: hint.__value__, "")  # type: ignore[attr-defined]  # typeshed has it from 3.12 on


def hints_of(owner: Any) -> dict[str, Any]:  # noqa: ANN401 -- a function or a class
    """Every annotation of `owner` by its name; one that cannot be read comes as its text."""
    hints = _read(lambda: typing.get_type_hints(owner, include_extras=True), None)
    if hints is not None:
        return hints
    module = sys.modules.get(getattr(owner, "__module__", ""))
    names = getattr(owner, "__globals__", None) or vars(module or types)
    found = _read(lambda: dict(owner.__annotations__), {"": ""})
    return {name: _one_hint(name, hint, names) for name, hint in found.items()}


def _one_hint(name: str, hint: object, names: dict[str, Any]) -> object:
    def alone() -> None:
        """Carry one annotation, since `get_type_hints` reads all of them or none."""

    alone.__annotations__ = {name: hint}
    return _read(
        lambda: typing.get_type_hints(alone, globalns=names, include_extras=True)[name], str(hint)
    )


def _read(evaluate: Callable[[], T], otherwise: T) -> T:
    try:
        return evaluate()
    except Exception:  # noqa: BLE001 -- a hint is any expression of the user's: none may fail a run
        return otherwise
