"""Declared classes: how they are known, taken apart, made again, and read in older versions."""

import dataclasses
import datetime as dt
import enum
import functools
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, NewType, TypedDict

import msgspec
import pydantic
import pytest

from holdfast import errors
from holdfast.store.codec import values, wire
from holdfast.store.codec.hints import classes_named
from holdfast.store.codec.registry import Registry, default_name

if typing.TYPE_CHECKING:
    OnlyForCheckers = int

T = typing.TypeVar("T")


def returned(value: object) -> Any:  # noqa: ANN401 -- any value at all
    return values.decode(values.encode(value))


@values.register
class Colour(enum.Enum):
    RED = 1
    ALSO_RED = 1  # noqa: PIE796 -- an alias
    ODD = object()


@values.register
class Level(enum.IntEnum):
    LOW = 1


@values.register
class Word(enum.StrEnum):
    YES = "yes"


@values.register
class Rights(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@values.register
class Bits(enum.IntFlag):
    A = 1


@values.register
@dataclasses.dataclass
class Message:
    text: str
    tags: list[str] = dataclasses.field(default_factory=list)
    seen: int = dataclasses.field(init=False, default=0)
    late: Any = dataclasses.field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "message"

    @functools.cached_property
    def length(self) -> int:
        return len(self.text)


@values.register
@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: Any = None

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError


@values.register
class Pair(NamedTuple):
    left: Any
    right: Any = 2


@values.register
class Order(msgspec.Struct, frozen=True, kw_only=True):
    item: str
    count: int = 1
    notes: list[str] = msgspec.field(default_factory=list)
    gift: bool | msgspec.UnsetType = msgspec.UNSET


@values.register
class Doubling(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        self.n *= 2


@values.register
class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    where: Any = None
    size: int = pydantic.Field(default=3, alias="Size")
    _hidden: list[int] = pydantic.PrivateAttr(default_factory=list)


@values.register
class Names(pydantic.RootModel[list[str]]):
    pass


MEMBERS = [
    Colour.RED, Colour.ODD, Level.LOW, Word.YES, Rights.READ, Rights.READ | Rights.WRITE,
    Rights(0), Bits(64 + 1),
]  # fmt: skip


@pytest.mark.parametrize("member", MEMBERS, ids=range(len(MEMBERS)))
def test_an_enum_member_is_the_same_member_again(member: enum.Enum) -> None:
    assert returned(member) is member
    assert returned([{"k": (member,)}])[0]["k"][0] is member


INSTANCES = [
    Point(1, Point(2, [3])), Pair(1), Pair(Pair(1, 2), {"a": (3,)}), Order(item="x"),
    Order(item="y", count=3, notes=["n"], gift=True), Names(["a"]),
    {Point(1): Order(item="z")}, {Pair(1, 2)}, [Message("a", ["b"])],
]  # fmt: skip


@pytest.mark.parametrize("value", INSTANCES, ids=range(len(INSTANCES)))
def test_an_instance_comes_back_equal_and_of_its_class(value: object) -> None:
    back = returned(value)

    assert (value, type(value)) == (back, type(back))
    assert repr(value) == repr(back)


def test_fields_outside_the_constructor_come_back_and_unset_ones_stay_unset() -> None:
    message = Message("a")
    message.seen = 7

    back = returned(message)

    assert (7, False) == (back.seen, hasattr(back, "late"))
    message.late = [1]
    assert [1] == returned(message).late


def test_a_cached_property_is_computed_again_and_a_stray_attribute_refused() -> None:
    message = Message("abc")
    assert 3 == message.length
    message.late = None

    assert message == returned(message)

    message.extra = 1  # type: ignore[attr-defined]
    with pytest.raises(errors.NotStorable, match=r"'extra' is not one of its fields"):
        values.encode([message])


class Hidden:
    __slots__ = ("__dict__", "hidden")
    hidden: int


@values.register
@dataclasses.dataclass
class Below(Hidden):
    shown: int = 1


def test_a_slot_of_a_class_above_is_refused_where_it_is_filled() -> None:
    value = Below()

    assert value == returned(value)
    value.hidden = 5
    with pytest.raises(errors.NotStorable, match="its attribute 'hidden' is not one of its fields"):
        values.encode(value)


class Single(NamedTuple):
    a: int


@values.register
class Noted(Single):
    """Its instances have attributes beside the items."""


@values.register
class Open(enum.Enum):
    KNOWN = 1

    @classmethod
    def _missing_(cls, value: object) -> "Open":
        made = object.__new__(cls)
        made._name_, made._value_ = f"OTHER_{value}", 7
        return made


@values.register
@dataclasses.dataclass
class Day(dt.date):
    note: str = ""

    def __new__(cls, note: str = "") -> "Day":  # noqa: ARG004, PYI034 -- the dataclass sets it
        return dt.date.__new__(cls, 2026, 1, 2)


@values.register
@dataclasses.dataclass(init=False)
class Lazy:
    content: list[int]
    more: list[int] = dataclasses.field(default_factory=list)


def noted() -> Noted:
    value = Noted(1)
    value.note = "lost"  # type: ignore[attr-defined]
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (noted(), "its attribute 'note' is not one of its fields"),
        (Open(7), "is none of the members that the class declares"),
        (Day("x"), "a part of its own in a built-in class above it"),
        (Lazy(), "it has no value for 'content', 'more'"),
    ],
)
def test_what_could_not_be_made_again_is_refused_when_it_is_written(
    value: object, why: str
) -> None:
    with pytest.raises(errors.NotStorable, match=why):
        values.encode([value])


def test_a_model_that_lacks_a_field_comes_back_without_it() -> None:
    model = Model.model_construct(where=None)

    back = returned(model)

    assert model.__dict__ == back.__dict__
    assert not hasattr(back, "name")
    assert values.canonical(model) == values.canonical(back)
    assert values.canonical(model) != values.canonical(Model(name="", where=None))


def test_making_an_instance_runs_neither_constructor_nor_validation() -> None:
    point = Point(1)
    object.__setattr__(point, "x", -1)
    doubled = Doubling(2)

    assert -1 == returned(point).x
    assert 4 == returned(doubled).n


def test_a_pydantic_model_keeps_what_was_set_extra_and_private() -> None:
    model = Model.model_validate({"name": "n", "other": [1]})
    model._hidden.append(5)  # noqa: SLF001

    back = returned(model)

    assert model == back
    assert ({"name", "other"}, {"other": [1]}) == (back.model_fields_set, back.model_extra)
    assert [5] == back._hidden  # noqa: SLF001
    model.where = print
    with pytest.raises(errors.NotStorable) as caught:
        values.encode({"m": model}, path="state")
    assert 'state["m"].where' == caught.value.path


def test_an_instance_at_two_places_is_one_object_again() -> None:
    message = Message("a", late := [])  # type: ignore[var-annotated]
    message.late = late
    model = Model(name="n", where=message)

    back = returned({"first": message, "model": model, "again": [message, model]})

    assert back["first"] is back["again"][0] is back["model"].where
    assert back["model"] is back["again"][1]
    assert back["first"].tags is back["first"].late


def test_an_instance_that_contains_itself_is_refused() -> None:
    message = Message("a")
    message.late = {"me": message}

    with pytest.raises(errors.NotStorable, match="contains itself") as caught:
        values.encode(message, path="state")
    assert 'state.late["me"]' == caught.value.path


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


class Sorted(list[int]):
    pass


values.register(Celsius, name="celsius", encode=lambda c: c.degrees, decode=Celsius)
values.register(Sorted, encode=list, decode=Sorted)


def test_any_class_can_be_taught() -> None:
    one = Celsius(20.5)

    back = returned([one, Sorted([1, 2]), one])

    assert (20.5, [1, 2]) == (back[0].degrees, back[1])
    assert (Celsius, Sorted) == (type(back[0]), type(back[1]))
    assert back[0] is back[2]
    assert b"celsius" in values.encode(one)


def test_an_encode_or_decode_that_fails_is_named() -> None:
    class Broken:
        pass

    def fail(_: object) -> Any:  # noqa: ANN401 -- never returns
        raise ZeroDivisionError

    values.register(Broken, name="broken", encode=fail, decode=fail)
    with pytest.raises(errors.NotStorable, match="ZeroDivisionError") as caught:
        values.encode([Broken()])
    assert "value[0]" == caught.value.path

    values.register(Broken, name="broken", encode=lambda _: 1, decode=fail)
    with pytest.raises(errors.NotStorable, match=r"from version 1 failed: ZeroDivisionError"):
        returned(Broken())

    values.register(Broken, name="broken", encode=lambda _: 1, decode=lambda _: "other")  # type: ignore[arg-type,return-value]
    with pytest.raises(errors.NotStorable, match=r"its `decode` gave a str"):
        returned(Broken())

    values.register(Broken, name="broken", encode=lambda it: it, decode=fail)
    with pytest.raises(errors.NotStorable, match="contains itself"):
        values.encode(Broken())


@dataclasses.dataclass
class Undeclared(Message):
    pass


def test_a_subclass_of_a_declared_class_is_not_declared() -> None:
    with pytest.raises(errors.NotStorable, match=r"register\(Undeclared\)"):
        values.encode(Undeclared("x"))


@dataclasses.dataclass
class Inner:
    n: int


@dataclasses.dataclass
class Outer:
    inner: "Inner | None"
    me: "Outer | None" = None


class Typed(TypedDict):
    level: "TypedLevel"


class TypedLevel(enum.Enum):
    ONE = 1


class InLiteral(enum.Enum):
    A = 1


class InModel(enum.Enum):
    A = 1


class AModel(pydantic.BaseModel):
    deep: dict[str, list[InModel]] = {}


class AStruct(msgspec.Struct):
    pair: "Pair2"


class Pair2(NamedTuple):
    a: "InPair"


class InPair(enum.Enum):
    A = 1


class Bounded(enum.Enum):
    A = 1


class Argument(enum.Enum):
    A = 1


class Given(enum.Enum):
    A = 1


class Boxed(enum.Enum):
    A = 1


@dataclasses.dataclass
class Box(Generic[T]):
    it: T


Id = NewType("Id", Argument)
B = typing.TypeVar("B", bound=Bounded)


def annotated(  # noqa: PLR0917 -- one parameter for each way to name a class
    a: Outer,
    b: "list[Annotated[Typed, 'noted']]",
    c: Literal[InLiteral.A],
    d: AModel | AStruct | int,
    e: B,
    f: Callable[[Id], None],
    g: "OnlyForCheckers",
    h: Box[Boxed],
    *args: "Given",
) -> None:
    raise NotImplementedError


def test_an_instance_made_of_a_class_with_its_parameter_is_stored_like_any_other() -> None:
    values.register(Box, name="test_classes.Box")

    back = returned(Box[int](3))

    assert (Box, Box(3)) == (type(back), back)
    assert values.canonical(Box(3)) == values.canonical(Box[int](3))


def test_annotations_lead_to_every_class_and_unreadable_ones_are_passed_over() -> None:
    found, whole = classes_named(annotated)

    assert {
        Outer, Inner, TypedLevel, InLiteral, AModel, InModel, AStruct, Pair2, InPair, Bounded,
        Argument, Given, Box, Boxed,
    } == set(found)  # fmt: skip
    assert not whole
    assert ([Outer, Inner], True) == classes_named(Outer)


def test_a_class_is_known_by_annotation_when_it_is_met() -> None:
    value = {"o": Outer(Inner(1), Outer(None)), "l": TypedLevel.ONE}
    with pytest.raises(errors.NotStorable):
        values.encode(value)

    values.learn(annotated)

    assert value == returned(value)


def test_the_classes_of_its_fields_are_known_with_a_class_that_is_registered() -> None:
    registry = Registry()

    registry.register(Outer, name="outer")

    inner = registry.of_class(Inner)
    assert inner is not None
    assert not inner.is_declared
    assert registry.of_class(Outer) is registry.of_name("outer")


def test_a_name_defined_later_is_found_the_next_time() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    exec("def late(x: 'Late') -> None: ...", names)  # noqa: S102 -- a module of its own
    registry = Registry()
    registry.learn(names["late"])
    Late = enum.Enum("Late", "A")  # noqa: N806

    assert registry.of_class(Late) is None
    names["Late"] = Late

    entry = registry.of_class(Late)
    assert entry is not None
    assert entry is registry.of_name(f"{__name__}:Late")
    assert not entry.is_declared


def at_version(value: object, *, name: str, version: int) -> bytes:
    """What an older or newer program would have stored."""
    tag = msgspec.msgpack.Ext(wire.OBJECT, b"")
    return b"\x02" + msgspec.msgpack.encode([tag, name, version, value])


@dataclasses.dataclass
class Account:
    owner: str
    cents: int


values.register(Account, name="account", version=3)


@values.migrate("account", from_=1, to=2)
def _rename(fields: dict[str, Any]) -> dict[str, Any]:
    return {"owner": fields["name"], "euros": fields["euros"]}


@values.migrate(Account, from_=2, to=3)
def _to_cents(fields: dict[str, Any]) -> dict[str, Any]:
    return {"owner": fields["owner"], "cents": fields["euros"] * 100}


def test_older_versions_pass_through_their_migrations() -> None:
    first = at_version({"name": "Ada", "euros": 5}, name="account", version=1)
    second = at_version({"owner": "Ada", "euros": 5}, name="account", version=2)

    assert Account("Ada", 500) == values.decode(first)
    assert Account("Ada", 500) == values.decode(second)
    assert Account("Ada", 500) == returned(Account("Ada", 500))


@pytest.mark.parametrize(
    ("version", "fields", "why"),
    [
        (4, {"owner": "A", "cents": 1}, "newer than version 3"),
        (0, {}, r"add `@holdfast.migrate\('account', from_=0"),
        (1, {}, "its migration from version 1 to 2 raised KeyError: 'name'"),
        (3, {"owner": "A"}, "stored without 'cents', which has no default"),
        (3, {"owner": "A", "cents": 1, "x": 1}, "stored with 'x', which the class no longer has"),
    ],
)
def test_what_does_not_fit_the_class_is_refused(
    version: int, fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(errors.NotStorable, match=why):
        values.decode(at_version(fields, name="account", version=version))


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ((Message, {"text": "a"}), Message("a")),
        ((Order, {"item": "a"}), Order(item="a")),
        ((Pair, {"left": 1}), Pair(1)),
        ((Point, {"x": 1}), Point(1)),
    ],
)
def test_a_field_that_is_new_in_the_class_has_its_default(
    stored: tuple[type, dict[str, Any]], expected: object
) -> None:
    cls, fields = stored
    name = f"{cls.__module__}:{cls.__qualname__}"

    back = values.decode(at_version(fields, name=name, version=1))

    assert repr(expected) == repr(back) or expected == back
    assert cls is type(back)


def test_a_model_field_that_is_new_in_the_class_has_its_default() -> None:
    tag = msgspec.msgpack.Ext(wire.OBJECT, b"")
    rest: dict[str, Any] = {"set": ["name", "gone"], "extra": {}, "private": None}
    tree = [tag, f"{__name__}:Model", 1, {"name": "n"}, rest]

    back = values.decode(b"\x02" + msgspec.msgpack.encode(tree))

    assert isinstance(back, Model)
    assert ("n", 3, {"name"}) == (back.name, back.size, back.model_fields_set)


@values.register(name="privately")
class Late(pydantic.BaseModel):
    size: int = 1
    _old: int = pydantic.PrivateAttr(default=1)
    _new: list[int] = pydantic.PrivateAttr(default_factory=lambda: [7])
    _unset: int = pydantic.PrivateAttr()


@pytest.mark.parametrize(
    ("stored", "expected"),
    [({"_old": 5}, {"_old": 5, "_new": [7]}), (None, {"_old": 1, "_new": [7]})],
)
def test_a_private_attribute_that_is_new_in_the_class_has_its_default(
    stored: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    tag = msgspec.msgpack.Ext(wire.OBJECT, b"")
    rest: dict[str, Any] = {"set": [], "extra": None, "private": stored}
    tree = [tag, "privately", 1, {"size": 2}, rest]

    back = values.decode(b"\x02" + msgspec.msgpack.encode(tree))

    assert isinstance(back, Late)
    assert expected == back.__pydantic_private__


@values.register(name="a dataclass once", version=2)
class Grown(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    size: int
    name: str = "n"
    _seen: int = pydantic.PrivateAttr(default=0)


@values.migrate("a dataclass once", from_=1, to=2)
def _to_whole(fields: dict[str, Any]) -> dict[str, Any]:
    return {"size": round(fields["size"])}


@pytest.mark.parametrize(
    ("version", "rest"),
    [(1, []), (2, []), (2, [{"set": ["size"], "extra": None, "private": None}])],
)
def test_a_class_that_became_a_pydantic_model_or_takes_extra_now_is_a_whole_one(
    version: int, rest: list[Any]
) -> None:
    tag = msgspec.msgpack.Ext(wire.OBJECT, b"")
    tree = [tag, "a dataclass once", version, {"size": 2}, *rest]

    back = values.decode(b"\x02" + msgspec.msgpack.encode(tree))

    assert Grown(size=2) == back
    assert {"size"} == back.model_fields_set
    back.more, back._seen = 1, 2  # type: ignore[attr-defined]  # noqa: SLF001 extra, and its own
    assert {"more": 1} == back.model_extra
    assert back == values.decode(values.encode(back))


def test_a_member_that_is_gone_is_refused() -> None:
    stored = at_version({"name": "BLUE"}, name=f"{__name__}:Colour", version=1)

    with pytest.raises(errors.NotStorable, match="'BLUE', which is no longer a member"):
        values.decode(stored)


class Plain:
    pass


@dataclasses.dataclass
class Crash(Exception):
    n: int


class Base(tuple[int, ...]):
    __slots__ = ()


@pytest.mark.parametrize(
    ("cls", "options", "why"),
    [
        (Plain, {}, "register it with encode= and decode="),
        (Crash, {}, "register it with encode= and decode="),
        (Base, {}, "register it with encode= and decode="),
        (Plain, {"encode": str}, "encode= and decode= together"),
        (Inner, {"version": 0}, "counts from 1"),
        (Inner, {"version": "2"}, "counts from 1, not '2'"),
        (Inner, {"name": 2}, "name= is a text, not 2"),
        (Inner, {"name": "celsius"}, "'celsius' stands for"),
        (dict, {"encode": str, "decode": str}, "needs no register"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(
    cls: type, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(errors.UsageError, match=why):
        values.register(cls, **options)


@pytest.mark.parametrize(
    ("to", "change", "why"),
    [
        (3, dict, r"leads to 3, but the class is registered with version=2"),
        (2, lambda _fields: None, r"from version 1 to 2 returned None; return the fields"),
        (2, lambda fields: [*fields], r"to version 2 returned a list; return the fields as a dict"),
        (2, iter, r"to version 2 returned a dict_keyiterator; return the fields as a dict"),
    ],
)
def test_a_migration_that_leads_nowhere_is_named(
    to: int, change: Callable[[Any], Any], why: str
) -> None:
    registry = Registry()
    registry.register(Account, name="account", version=2)
    registry.migrate("account", from_=1, to=to)(change)
    entry = registry.of_name("account")
    assert entry is not None

    with pytest.raises(wire.Refusal) as refused:
        registry.upgrade(entry, 1, {"owner": "A"})

    assert re.search(why, refused.value.why)


def test_migrations_lead_upwards_and_each_version_has_one() -> None:
    registry = Registry()
    registry.migrate("x", from_=1, to=2)(dict)

    wrong: list[tuple[Any, Any]] = [(2, 2), (2, 1), (0, 1), (1, 3), ("2", 3), (2, 3.0), (True, 3)]
    for from_, to in wrong:
        with pytest.raises(errors.UsageError):
            registry.migrate("x", from_=from_, to=to)(dict)


@pytest.mark.parametrize("kind", ["", 7, None, ("x",)])
def test_a_migration_of_what_is_no_class_and_no_name_is_refused(kind: Any) -> None:  # noqa: ANN401 anything
    with pytest.raises(errors.UsageError, match="of a class, or of the name it is registered"):
        Registry().migrate(kind, from_=1, to=2)


def test_a_class_declared_again_takes_the_place_of_the_old_one() -> None:
    registry = Registry()
    old, new = (dataclasses.make_dataclass("Cell", ["x"]) for _ in range(2))
    registry.register(old)
    registry.register(new, version=2)

    assert registry.of_class(old) is None
    assert registry.of_name(default_name(new)) is registry.of_class(new)


def test_a_renamed_class_is_still_found_under_its_old_name() -> None:
    registry = Registry()
    registry.register(Inner)
    registry.register(Inner, name="inner", version=2)

    entry = registry.of_name(f"{__name__}:Inner")

    assert entry is not None
    assert ("inner", 2) == (entry.name, entry.version)
    registry.learn(Inner)
    assert registry.of_name("unknown") is None
    assert entry is registry.of_class(Inner)


def test_register_is_a_decorator_with_and_without_arguments() -> None:
    @values.register(name="decorated", version=4)
    @dataclasses.dataclass
    class Decorated:
        x: int

    assert Decorated(1) == returned(Decorated(1))
    assert b"decorated\x04" in values.encode(Decorated(1))


def test_canonical_bytes_tell_classes_apart_but_not_versions_or_what_was_set() -> None:
    assert values.canonical(Point(1, 2)) != values.canonical({"x": 1, "y": 2})
    assert values.canonical(Level.LOW) != values.canonical(1)
    assert values.canonical(Model(name="n")) == values.canonical(Model(name="n", where=None))
    assert values.canonical(Model(name="n")) != values.canonical(
        Model.model_validate({"name": "n", "extra": 1})
    )

    before = values.canonical(Account("a", 1))
    values.register(Account, name="account", version=4)
    try:
        assert before == values.canonical(Account("a", 1))
    finally:
        values.register(Account, name="account", version=3)
