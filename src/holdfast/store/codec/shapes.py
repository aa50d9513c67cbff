"""How instances of declared classes are taken apart and made again: no `__init__`, no pickle.

An instance is stored as its *fields*, a dict that migrations can rewrite, and for some classes a
*rest* that belongs to the class's machinery. Making it again sets the fields as they were stored
and runs no code of the class, except `__post_init__` of a msgspec Struct, whose effect on the
fields is overwritten.
"""

import copy
import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.store.codec.wire import Refusal, name_of

# `object.__new__` cannot make these, and their own contents would be missing among the fields.
_BUILT_IN_BASES: Final = (
    int, float, complex, str, bytes, bytearray, list, dict, tuple, set, frozenset, BaseException,
)  # fmt: skip

FIELDS_SET: Final = "set"
"""What a Pydantic model was given and what it took from defaults: no part of its content."""

UNSET: Final = "unset"
"""Which fields of a Pydantic model have no value: told by the fields that are there, too."""

MIGRATE: Final = (
    "register the class with a higher version= and a `holdfast.migrate` from the stored one"
)

OWN_WORDS: Final = "`holdfast.register` the class with encode= and decode="

Taken = tuple[object, dict[str, object] | None]


class _Unset(enum.Enum):
    """Stands for the value of a field that has none."""

    UNSET = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What kind of class this is: `take` gives fields and rest, `make` the instance again.

    `holds` gives all that `take` looks at: while that is the same, so is what it gives. None where
    nobody can say.
    """

    take: Callable[[Any], Taken]
    make: Callable[[type[Any], Any, Any], object]
    has_fields: bool = True
    holds: Callable[[Any], list[Any]] | None = None


def shape_of(cls: type) -> Shape | None:
    """The shape of a class that can be stored without further words; None for others."""
    if issubclass(cls, enum.Enum):
        return _FLAG if issubclass(cls, enum.Flag) else _ENUM
    if issubclass(cls, tuple):
        return _NAMED_TUPLE if hasattr(cls, "_fields") else None
    if issubclass(cls, msgspec.Struct):
        return _STRUCT
    if issubclass(cls, _BUILT_IN_BASES):
        return None
    if is_pydantic(cls):
        return _PYDANTIC
    return _DATACLASS if dataclasses.is_dataclass(cls) else None


def custom(encode: Callable[[Any], object], decode: Callable[[Any], object]) -> Shape:
    """The shape of a class whose user says how it becomes a value and back."""

    def make(cls: type, payload: object, _rest: object) -> object:
        made = decode(payload)
        if type(made) is not cls:
            raise Refusal(name_of(cls), f"its `decode` gave a {name_of(type(made))}")
        return made

    return Shape(take=lambda value: (encode(value), None), make=make, has_fields=False)


def is_pydantic(cls: type) -> bool:
    """Whether `cls` is a Pydantic model; without Pydantic loaded, nothing is."""
    pydantic = sys.modules.get("pydantic.main")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def is_pydantic_secret(cls: type) -> bool:
    """Whether `cls` is a text, or bytes, or any value that Pydantic hides."""
    pydantic = sys.modules.get("pydantic.types")
    hidden = () if pydantic is None else (pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret)
    return issubclass(cls, hidden)


def _slots_of(cls: type) -> tuple[str, ...]:
    """The names of all that `cls` and the classes above it have slots for."""
    return tuple(
        name
        for each in cls.__mro__
        if "__slots__" in vars(each)
        for name, slot in vars(each).items()
        if isinstance(slot, types.MemberDescriptorType)
    )


slots_of: Callable[[type], tuple[str, ...]] = functools.lru_cache(maxsize=256)(_slots_of)


def _take_enum(member: enum.Enum) -> Taken:
    cls = type(member)
    if cls.__members__.get(member.name) is not member:
        why = f"{member!r} is none of the members that the class declares and would not be found"
        raise Refusal(name_of(cls), f"{why} again; declare it, or {OWN_WORDS}")
    return {"name": member.name}, None


def _make_enum(cls: type[enum.Enum], fields: Mapping[str, Any], _rest: object) -> object:
    name = fields["name"]
    if name not in cls.__members__:
        raise Refusal(name_of(cls), f"stored as {name!r}, which is no longer a member; {MIGRATE}")
    return cls.__members__[name]


def _take_flag(member: enum.Flag) -> Taken:
    return {"value": member.value}, None


def _make_flag(cls: type[enum.Flag], fields: Mapping[str, Any], _rest: object) -> object:
    return cls(fields["value"])


def _take_named_tuple(value: Any) -> Taken:  # noqa: ANN401 -- any named tuple
    _refuse_strays(value, ())
    return dict(zip(value._fields, value, strict=True)), None


def _make_named_tuple(cls: Any, fields: Mapping[str, Any], _rest: object) -> object:  # noqa: ANN401
    defaults = {name: functools.partial(_same, it) for name, it in cls._field_defaults.items()}
    whole = _complete(cls, fields, {name: defaults.get(name) for name in cls._fields})
    return tuple.__new__(cls, (whole[name] for name in cls._fields))


def _take_struct(value: msgspec.Struct) -> Taken:
    names = value.__struct_fields__
    _refuse_strays(value, names)
    return {name: getattr(value, name) for name in names}, None


def _make_struct(cls: type[msgspec.Struct], fields: Mapping[str, Any], _rest: object) -> object:
    defaults: dict[str, Callable[[], object] | None] = {}
    for field in msgspec.structs.fields(cls):
        if field.default is not msgspec.NODEFAULT:
            defaults[field.name] = functools.partial(_same, field.default)
        elif field.default_factory is not msgspec.NODEFAULT:
            defaults[field.name] = field.default_factory
        else:
            defaults[field.name] = None
    whole = _complete(cls, fields, defaults)
    value = cls(**whole)
    if hasattr(cls, "__post_init__"):
        for name, item in whole.items():
            msgspec.structs.force_setattr(value, name, item)
    return value


def _take_dataclass(value: Any) -> Taken:  # noqa: ANN401 -- any dataclass
    cls = type(value)
    if not _can_be_made(cls):
        why = "it has a part of its own in a built-in class above it, which is none of its fields"
        raise Refusal(name_of(cls), f"{why}; {OWN_WORDS}")
    fields = dataclasses.fields(value)
    _refuse_strays(value, [field.name for field in fields])
    names = [field.name for field in fields if hasattr(value, field.name)]
    held = {name: getattr(value, name) for name in names}
    # One with init=False and no default may never have been set: it stays unset.
    _refuse_unset(cls, [f.name for f in fields if f.name not in held and not _may_be_unset(f)])
    return held, None


def _may_be_unset(field: "dataclasses.Field[Any]") -> bool:
    defaults = (field.default, field.default_factory)
    return not field.init and all(default is dataclasses.MISSING for default in defaults)


def _find_can_be_made(cls: type[Any]) -> bool:
    """Whether an instance can be made empty: no class above it keeps anything in C."""
    try:
        object.__new__(cls)
    except TypeError:
        return False
    return True


_can_be_made: Callable[[type], bool] = functools.lru_cache(maxsize=256)(_find_can_be_made)


def _make_dataclass(cls: type[Any], fields: Mapping[str, Any], _rest: object) -> object:
    defaults: dict[str, Callable[[], object] | None] = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = functools.partial(_same, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory
        elif field.init or field.name in fields:
            defaults[field.name] = None
    value = object.__new__(cls)
    for name, item in _complete(cls, fields, defaults).items():
        object.__setattr__(value, name, item)
    return value


def _find_names(cls: type[Any]) -> tuple[str, ...]:
    """The names of all fields of a dataclass or struct, and of what else it has slots for."""
    if issubclass(cls, msgspec.Struct):
        fields = cls.__struct_fields__
    else:
        fields = tuple(field.name for field in dataclasses.fields(cls))
    return *fields, *(name for name in slots_of(cls) if name not in fields)


_names_of: Callable[[type], tuple[str, ...]] = functools.lru_cache(maxsize=256)(_find_names)


def _held_by_fields(value: Any) -> list[Any]:  # noqa: ANN401 -- any dataclass or struct
    held = [getattr(value, name, _Unset.UNSET) for name in _names_of(type(value))]
    return [*held, *getattr(value, "__dict__", ())]


def _held_by_tuple(value: Any) -> list[Any]:  # noqa: ANN401 -- any named tuple
    return [*value, *getattr(value, "__dict__", ())]


def _held_by_pydantic(model: Any) -> list[Any]:  # noqa: ANN401 -- any Pydantic model
    held = model.__dict__
    return [
        *held,
        *held.values(),
        model.__pydantic_fields_set__,
        model.__pydantic_extra__,
        model.__pydantic_private__,
    ]


def _take_pydantic(model: Any) -> Taken:  # noqa: ANN401 -- any Pydantic model
    held = model.__dict__
    known = type(model).__pydantic_fields__
    fields = {name: held[name] for name in known if name in held}
    rest = {
        FIELDS_SET: sorted(model.__pydantic_fields_set__),
        "extra": model.__pydantic_extra__,
        "private": model.__pydantic_private__,
    }
    if len(fields) < len(
        known
    ):  # `model_construct` makes such: what a server left out has no value.
        rest[UNSET] = [name for name in known if name not in fields]
    return fields, rest


def _make_pydantic(cls: Any, fields: Mapping[str, Any], rest: Any) -> object:  # noqa: ANN401
    rest = rest or {FIELDS_SET: fields, "extra": None, "private": None}  # It was a dataclass once.
    unset = rest.get(UNSET, ())
    known = {name: info for name, info in cls.__pydantic_fields__.items() if name not in unset}
    defaults = {
        name: None
        if info.is_required()
        else functools.partial(info.get_default, call_default_factory=True)
        for name, info in known.items()
    }
    kept = {*known, *(rest["extra"] or ())}
    model = cls.__new__(cls)
    model.__setstate__(
        {
            "__dict__": _complete(cls, fields, defaults),
            "__pydantic_fields_set__": kept.intersection(rest[FIELDS_SET]),
            "__pydantic_extra__": {}
            if rest["extra"] is None and _takes_extra(cls)
            else rest["extra"],
            "__pydantic_private__": _private(cls, rest["private"]),
        }
    )
    return model


def _takes_extra(cls: Any) -> bool:  # noqa: ANN401
    return bool(cls.model_config.get("extra") == "allow")


def _private(cls: Any, stored: dict[str, Any] | None) -> dict[str, Any] | None:  # noqa: ANN401
    """The stored private attributes, newer ones by their default."""
    known = cls.__private_attributes__
    made = dict(stored or {})
    for name in known.keys() - made.keys():
        default, factory = known[name].default, known[name].default_factory
        if factory is not None and not getattr(known[name], _TAKES_FIELDS, False):
            made[name] = factory()
        elif factory is None and type(default).__name__ != "PydanticUndefinedType":
            made[name] = copy.deepcopy(default)
    return made if known or stored is not None else None


def _complete(
    cls: type, fields: Mapping[str, Any], defaults: Mapping[str, Callable[[], object] | None]
) -> dict[str, Any]:
    """The stored fields in the class's order, newer fields by their default; refuse a misfit."""
    gone = [name for name in fields if name not in defaults]
    missing = [name for name in defaults if name not in fields and defaults[name] is None]
    if gone or missing:
        facts = [f"stored with {name!r}, which the class no longer has" for name in gone]
        facts += [f"stored without {name!r}, which has no default" for name in missing]
        raise Refusal(name_of(cls), f"{'; '.join(facts)}; {MIGRATE}")
    made = {name: make() for name, make in defaults.items() if name not in fields and make}
    return {name: fields[name] if name in fields else made[name] for name in defaults}


def _refuse_strays(value: object, names: list[str] | tuple[str, ...]) -> None:
    """Refuse attributes beside the fields: they would be lost without a word."""
    slots = [name for name in slots_of(type(value)) if hasattr(value, name)]
    for name in [*getattr(value, "__dict__", {}), *slots]:
        if name not in names and not is_computed(value, name):
            raise Refusal(
                name_of(type(value)),
                f"its attribute {name!r} is not one of its fields and would be lost; "
                f"declare it, or {OWN_WORDS}",
            )


def _refuse_unset(cls: type, names: list[str]) -> None:
    """Refuse fields that were never given a value: they would have one when they are read."""
    if names:
        named = ", ".join(map(repr, names))
        raise Refusal(name_of(cls), f"it has no value for {named}; give it one, or {OWN_WORDS}")


def is_computed(value: object, name: str) -> bool:
    """Whether an attribute is no content: computed anew where it is missing, or typing's note."""
    # `Box[int](3)` notes on the instance that it was made so; `Box(3)` is equal to it.
    cached = isinstance(getattr(type(value), name, None), functools.cached_property)
    return cached or name == "__orig_class__"


def _same(value: object) -> object:
    return value


_TAKES_FIELDS = "default_factory_takes_validated_data"
_ENUM = Shape(take=_take_enum, make=_make_enum)
_FLAG = Shape(take=_take_flag, make=_make_flag)
_NAMED_TUPLE = Shape(take=_take_named_tuple, make=_make_named_tuple, holds=_held_by_tuple)
_STRUCT = Shape(take=_take_struct, make=_make_struct, holds=_held_by_fields)
_DATACLASS = Shape(take=_take_dataclass, make=_make_dataclass, holds=_held_by_fields)
_PYDANTIC = Shape(take=_take_pydantic, make=_make_pydantic, holds=_held_by_pydantic)
