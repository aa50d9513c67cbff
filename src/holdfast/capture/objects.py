"""How an attached object is taken apart into what a section holds, and filled from it again."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from holdfast.capture.fixed import Value
from holdfast.errors import NotStorable, UsageError
from holdfast.store.codec import values
from holdfast.store.codec.shapes import MIGRATE, is_computed, is_pydantic, slots_of
from holdfast.store.codec.wire import Refusal, name_of

FIELDS_SET: Final = "__pydantic_fields_set__"
VERSION: Final = "__version__"
"""Beside the attributes of a class that is registered in a later version than the first."""


class Form(Protocol):
    """One object, seen as the value of a section."""

    def take(self) -> Value:
        """What the section is to hold now; containers in it are the object's own."""

    def put(self, value: Value) -> None:
        """Fill the object from what was taken; `value` is given away."""


def form_of(obj: Value, only: Sequence[str] | None) -> Form:
    """The form of `obj`; `UsageError` if nothing says what in it is to be kept."""
    if only is not None:
        return Versioned(obj, Attributes(obj, _checked(obj, only)))
    offers = [getattr(obj, name, None) for name in ("capture", "restore")]
    if not isinstance(obj, type) and all(map(callable, offers)):
        return Offered(obj)
    if is_pydantic(type(obj)):
        return Versioned(obj, Model(obj))
    if isinstance(obj, msgspec.Struct) or (
        dataclasses.is_dataclass(obj) and not isinstance(obj, type)
    ):
        return Versioned(obj, Attributes(obj))
    if isinstance(obj, dict | list | set | tuple | str | bytes | int | float | None):
        msg = f"a {type(obj).__name__} is a value, not an object: keep it in run.state[...]"
        raise UsageError(msg)
    msg = (
        f"{name_of(type(obj))} is no dataclass, Pydantic model or msgspec Struct and offers no "
        "`capture()` and `restore(value)`; name what is to be kept: "
        "run.attach(section, obj, only=[...])"
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
        _refuse_others(self._capture, ())
        _refuse_others(self._restore, (None,))

    def take(self) -> Value:  # noqa: D102 as in Form
        return self._capture()

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        self._restore(value)


def _refuse_others(offered: Callable[..., Any], args: tuple[None, ...]) -> None:
    """Raise `UsageError` where a method cannot be called so: said now, not after a crash."""
    try:
        inspect.signature(offered).bind(*args)
    except TypeError as error:
        name = getattr(offered, "__qualname__", repr(offered))
        msg = f"{name} is called with {'the captured value' if args else 'nothing'}: {error}"
        raise UsageError(msg) from error
    except ValueError:  # One in C does not tell.
        return


class Beside:
    """An object in whose section somebody else keeps a value, under a key that is not its own.

    The value stays in the section and never reaches the object. What the object itself captures
    under that key is its own.
    """

    def __init__(self, form: Form, key: str) -> None:
        self._form, self._key = form, key
        self._held: dict[str, Any] = {}

    def take(self) -> Value:  # noqa: D102 as in Form
        taken = self._form.take()
        return self._held | taken if self._held and isinstance(taken, dict) else taken

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        if isinstance(value, dict) and self._key in value:
            own = self._form.take()
            if not (isinstance(own, dict) and self._key in own):
                self._held = {self._key: value.pop(self._key)}
        self._form.put(value)


class Versioned:
    """An object whose attributes pass through the migrations of its class, if they are older."""

    def __init__(self, obj: Value, form: Form) -> None:
        self._name, self._form = name_of(type(obj)), form
        self._known = values.registry.of_class(type(obj))
        self._version = 1 if self._known is None else self._known.version

    def take(self) -> Value:  # noqa: D102 as in Form
        taken = self._form.take()
        if self._version > 1:
            taken[VERSION] = self._version
        return taken

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        if not isinstance(value, dict):
            kind = type(value).__name__
            msg = f"the section holds a {kind}, not attributes of {self._name}"
            raise UsageError(msg)
        stored = value.pop(VERSION, 1)
        if stored != self._version:
            value = self._upgraded(stored, value)
        self._form.put(value)

    def _upgraded(self, stored: int, value: Value) -> Value:
        if self._known is None:
            msg = f"{self._name} was captured in version {stored}; register it with that version="
            raise UsageError(msg)
        aside = {FIELDS_SET: value.pop(FIELDS_SET)} if FIELDS_SET in value else {}
        try:
            made: Any = values.registry.upgrade(self._known, stored, value)
        except Refusal as refusal:
            raise UsageError(f"{refusal.type_name}: {refusal.why}") from refusal
        if not isinstance(made, dict):
            msg = f"a migration of {self._name} gave a {type(made).__name__}; return the attributes"
            raise UsageError(msg)
        return made | aside


class Attributes:
    """An object as its attributes: those that were named, or its fields and others.

    Attributes are set past `__setattr__`, so that a frozen dataclass is filled too.
    """

    def __init__(self, obj: Value, only: Sequence[str] | None = None) -> None:
        self._obj, self._only = obj, only
        self._fields = only or _fields(obj)
        self._had = {name for name in self._fields if hasattr(obj, name)}
        self._slots = [name for name in slots_of(type(obj)) if name not in self._fields]

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
        obj = self._obj
        others = {
            name: value
            for name, value in getattr(obj, "__dict__", {}).items()
            if name not in self._fields and not is_computed(obj, name)
        }
        return others | {name: getattr(obj, name) for name in self._slots if hasattr(obj, name)}

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        value.pop(FIELDS_SET, None)  # The class was a Pydantic model once.
        if not hasattr(self._obj, "__dict__"):
            _refuse_gone(self._obj, value.keys() - {*self._fields, *self._slots})
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
            _set(self._obj, name, item)


def _fields(obj: Value) -> list[str]:
    if isinstance(obj, msgspec.Struct):
        return list(obj.__struct_fields__)
    return [field.name for field in dataclasses.fields(obj)]


def _set(obj: Value, name: str, item: object) -> None:
    """Set an attribute past `__setattr__`."""
    if isinstance(obj, msgspec.Struct) and name in obj.__struct_fields__:
        msgspec.structs.force_setattr(obj, name, item)
    else:
        object.__setattr__(obj, name, item)


class Model:
    """A Pydantic model: fields, extra and private attributes, and which fields were set."""

    def __init__(self, obj: Value) -> None:
        self._obj = obj

    def take(self) -> Value:  # noqa: D102 as in Form
        obj = self._obj
        return {
            **{name: it for name, it in obj.__dict__.items() if not is_computed(obj, name)},
            **(obj.__pydantic_extra__ or {}),
            **(obj.__pydantic_private__ or {}),
            FIELDS_SET: sorted(obj.__pydantic_fields_set__),
        }

    def put(self, value: Value) -> None:  # noqa: D102 as in Form
        obj = self._obj
        known, private = type(obj).__pydantic_fields__, type(obj).__private_attributes__
        extra = value.keys() - known.keys() - private.keys() - {FIELDS_SET}
        if obj.__pydantic_extra__ is None:
            _refuse_gone(obj, extra)
        obj.__dict__.update({name: value[name] for name in known if name in value})
        if obj.__pydantic_extra__ is not None:
            obj.__pydantic_extra__.clear()
            obj.__pydantic_extra__.update({name: value[name] for name in value if name in extra})
        if obj.__pydantic_private__ is not None:
            kept = {name: value[name] for name in private if name in value}
            obj.__pydantic_private__.update(kept)
        obj.__pydantic_fields_set__.clear()
        obj.__pydantic_fields_set__.update(value.keys() & set(value.get(FIELDS_SET, known)))


def _refuse_gone(obj: object, names: set[str]) -> None:
    """Refuse what was captured of attributes that the class has no place for any more."""
    if names:
        msg = f"{name_of(type(obj))} has no field {min(names)!r} any more; {MIGRATE}"
        raise UsageError(msg)


def _checked(obj: object, only: Sequence[Any]) -> list[str]:
    names = [only] if isinstance(only, str) or not isinstance(only, Iterable) else list(only)
    unnamed = [name for name in names if not isinstance(name, str)]
    if unnamed:
        msg = f"run.attach: only= names attributes of the object, not {unnamed[0]!r}"
        raise UsageError(msg)
    missing = [name for name in names if not hasattr(obj, name)]
    if missing or not names:
        what = f"no attribute {missing[0]!r}" if missing else "nothing to keep in an empty only="
        msg = f"run.attach: {name_of(type(obj))} has {what}"
        raise UsageError(msg)
    for name in names:
        try:
            _set(obj, name, getattr(obj, name))  # Said now, not after a crash.
        except (AttributeError, TypeError) as error:
            msg = f"run.attach: {name} of {name_of(type(obj))} cannot be set again ({error}); "
            raise UsageError(msg + "leave it out of only=") from error
    return names
