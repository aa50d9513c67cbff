"""How an attached object is taken apart into what a section holds, and filled from it again."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from holdfast.capture.fixed import Value
from holdfast.errors import NotStorable, UsageError
from holdfast.store.codec.shapes import is_pydantic
from holdfast.store.codec.wire import name_of

FIELDS_SET: Final = "__pydantic_fields_set__"


class Form(Protocol):
    """One object, seen as the value of a section."""

    def take(self) -> Value:
        """What the section is to hold now; containers in it are the object's own."""

    def put(self, value: Value) -> None:
        """Fill the object from what was taken; `value` is given away."""


def form_of(obj: Value, only: Sequence[str] | None) -> Form:
    """The form of `obj`; `UsageError` if nothing says what in it is to be kept."""
    if only is not None:
        return Attributes(obj, _checked(obj, only))
    offers = [getattr(obj, name, None) for name in ("capture", "restore")]
    if not isinstance(obj, type) and all(map(callable, offers)):
        return Offered(obj)
    if is_pydantic(type(obj)):
        return Model(obj)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return Attributes(obj)
    msg = (
        f"{name_of(type(obj))} is no dataclass or Pydantic model and offers no `capture()` and "
        "`restore(value)`; name what is to be kept: run.attach(section, obj, only=[...])"
    )
    raise UsageError(msg)


class Offered:
    """An object that says itself what to keep."""

    def __init__(self, obj: Value) -> None:
        self._capture: Callable[[], Any] = obj.capture
        self._restore: Callable[[Any], Any] = obj.restore
        for offered in (self._capture, self._restore):
            if inspect.iscoroutinefunction(offered):
                msg = f"{offered.__qualname__} is asynchronous; it is called between turns, as is"
                raise UsageError(msg)

    def take(self) -> Value:  # noqa: D102 as in Form
        return self._capture()

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        self._restore(value)


class Attributes:
    """An object as its attributes: those that were named, or a dataclass's fields and others.

    Attributes are set past `__setattr__`, so that a frozen dataclass is filled too.
    """

    def __init__(self, obj: Value, only: Sequence[str] | None = None) -> None:
        self._obj, self._only = obj, only
        self._fields = only or [field.name for field in dataclasses.fields(obj)]
        self._had = {name for name in self._fields if hasattr(obj, name)}

    def take(self) -> Value:  # noqa: D102 as in Form
        obj = self._obj
        taken: dict[str, Any] = {}
        for name in self._fields:
            if hasattr(obj, name):
                self._had.add(name)
                taken[name] = getattr(obj, name)
            elif name in self._had:
                why = "the attribute was deleted, which a restart would not repeat; set it to None"
                raise NotStorable(f".{name}", name_of(type(obj)), why)
        return taken if self._only is not None else taken | self._others()

    def _others(self) -> dict[str, Any]:
        """Attributes that are no fields; what a class computes anew is none."""
        kind = type(self._obj)
        return {
            name: value
            for name, value in getattr(self._obj, "__dict__", {}).items()
            if name not in self._fields
            and not isinstance(getattr(kind, name, None), functools.cached_property)
        }

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        _refuse_unless_dict(self._obj, value)
        before = self.take()
        try:
            self._set(value)
        except Exception:
            self._set(before)
            raise

    def _set(self, value: dict[str, Any]) -> None:
        if self._only is None:
            for name in self._others().keys() - value.keys():
                object.__delattr__(self._obj, name)
        for name, item in value.items():
            object.__setattr__(self._obj, name, item)


class Model:
    """A Pydantic model: fields, extra and private attributes, and which fields were set."""

    def __init__(self, obj: Value) -> None:
        self._obj = obj

    def take(self) -> Value:  # noqa: D102 as in Form
        obj = self._obj
        return {
            **obj.__dict__,
            **(obj.__pydantic_extra__ or {}),
            **(obj.__pydantic_private__ or {}),
            FIELDS_SET: sorted(obj.__pydantic_fields_set__),
        }

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        obj = self._obj
        _refuse_unless_dict(obj, value)
        known, private = type(obj).__pydantic_fields__, type(obj).__private_attributes__
        extra = value.keys() - known.keys() - private.keys() - {FIELDS_SET}
        if extra and obj.__pydantic_extra__ is None:
            msg = f"{name_of(type(obj))} has no field {min(extra)!r} any more"
            raise UsageError(msg)
        obj.__dict__.update({name: value[name] for name in known if name in value})
        _fill(obj.__pydantic_extra__, {name: value[name] for name in value if name in extra})
        _fill(obj.__pydantic_private__, {name: value[name] for name in private if name in value})
        obj.__pydantic_fields_set__.clear()
        obj.__pydantic_fields_set__.update(value[FIELDS_SET])


def _fill(held: dict[str, Any] | None, content: dict[str, Any]) -> None:
    if held is not None:
        held.clear()
        held.update(content)


def _refuse_unless_dict(obj: object, value: object) -> None:
    if not isinstance(value, dict):
        msg = f"the section holds a {type(value).__name__}, not attributes of {name_of(type(obj))}"
        raise UsageError(msg)


def _checked(obj: object, only: Sequence[str]) -> list[str]:
    names = [only] if isinstance(only, str) else list(only)
    missing = [name for name in names if not hasattr(obj, name)]
    if missing or not names:
        what = f"no attribute {missing[0]!r}" if missing else "nothing to keep in an empty only="
        msg = f"run.attach: {name_of(type(obj))} has {what}"
        raise UsageError(msg)
    return names
