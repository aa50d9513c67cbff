"""Values as bytes and back: types, sharing, refusals with their place, damage."""

import datetime as dt
import decimal
import enum
import io
import math
import pathlib
import socket
import struct
import sys
import traceback
import uuid
import zoneinfo
from collections import OrderedDict
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from holdfast import errors
from holdfast.store.codec import values, wire

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
SUMMER_END = dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)


class TrackedList(list[Any]):
    __holdfast_plain__ = list


class TrackedDict(dict[str, Any]):
    __holdfast_plain__ = dict


def returned(value: object) -> Any:  # noqa: ANN401 -- any value at all
    return values.decode(values.encode(value))


EXAMPLES: list[object] = [
        None, True, False, 0, -1, 2**63 - 1, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**5000,
        -(256**20), 0.0, 1.5, math.inf, -math.inf, "", "text", "äöü 🌊", "\ud800", "a\udfffb",
        b"", b"\x00\xff", [], {}, [1, [2, [3]]], {"a": {"b": [None]}}, {"\udc80": 1},
        {1: "int", 2.5: "float", False: "bool"}, {None: 0, b"k": 1, (1, "t"): 2}, {0: {1: {2: 3}}},
        (), (1,), ((1, 2), [3, (4,)]), set(), {1, "a", b"b", None}, frozenset({(1, 2)}),
        {frozenset({1}), frozenset({2})}, bytearray(b"abc"), [bytearray()], 1j, complex(-0.0, 2),
        range(0), range(1, 10, 3), range(-(10**30), 10**30, 7), msgspec.UNSET,
        dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.timedelta(-1, 5, 7), dt.timedelta.max,
        dt.time(1, 2, 3, 4), dt.time(1, 2, fold=1, tzinfo=dt.UTC), dt.datetime.max,  # noqa: DTZ901

        dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=dt.UTC), SUMMER_END,
        dt.datetime(2024, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=-5, microseconds=3))),
        dt.datetime(2024, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=2), "Küste")),
        dt.UTC, BERLIN, dt.timezone(dt.timedelta(0), "Zulu"),
        decimal.Decimal("1.10"), decimal.Decimal("-0E+7"), decimal.Decimal("1E-999999"),
        decimal.Decimal("Infinity"), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1),
        pathlib.Path("a/b"), pathlib.PurePosixPath("/x"), pathlib.PureWindowsPath("C:\\x\\y"),
        pathlib.PurePosixPath("odd\udcff"), {"when": SUMMER_END, "items": [(1, {2})]},
]  # fmt: skip


@pytest.mark.parametrize("value", EXAMPLES, ids=range(len(EXAMPLES)))
def test_a_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    back = returned(value)

    assert (value, type(value)) == (back, type(back))


def test_floats_come_back_by_their_bits() -> None:
    quiet, payload = struct.unpack(">dd", bytes.fromhex("7ff8000000000000fff8000000000123"))

    back = returned([quiet, payload, -0.0, complex(payload, -0.0)])

    packed = struct.pack(">ddddd", quiet, payload, -0.0, payload, -0.0)
    assert packed == struct.pack(">ddddd", *back[:3], back[3].real, back[3].imag)


@pytest.mark.parametrize("text", ["1.10", "-0E+7", "NaN", "-NaN", "sNaN", "NaN123", "-sNaN7"])
def test_decimals_keep_every_digit_sign_and_payload(text: str) -> None:
    back = returned(decimal.Decimal(text))

    assert decimal.Decimal(text).as_tuple() == back.as_tuple()


def test_a_dict_keeps_its_order() -> None:
    assert ["z", "a", "m"] == list(returned({"z": 1, "a": 2, "m": 3}))
    assert [3, "a", None, 1] == list(returned({3: 1, "a": 2, None: 3, 1: 4}))


def test_fold_and_named_offset_survive() -> None:
    named = dt.timezone(dt.timedelta(hours=1), "CET")

    back = returned((SUMMER_END, dt.datetime(2024, 1, 1, tzinfo=named)))

    assert (1, BERLIN) == (back[0].fold, back[0].tzinfo)
    assert "CET" == back[1].tzname()


def test_plain_values_are_bare_msgpack_behind_one_zero_byte() -> None:
    value = {"role": "user", "n": [1, None, 2.5, b"x"]}

    assert b"\0" + msgspec.msgpack.encode(value) == values.encode(value)


@pytest.mark.parametrize("shared", [[], {}, set(), bytearray(b"x"), {1: 2}, [1, (2,)]])
def test_a_container_at_two_places_is_one_object_again(shared: object) -> None:
    left, right, nested = returned([shared, shared, {"deep": (shared,)}])

    assert left is right
    assert left is nested["deep"][0]
    assert (shared, type(shared)) == (left, type(left))


def test_references_count_every_container_before_them() -> None:
    one: list[int] = [1]
    two: dict[str, object] = {"one": one}

    back = returned([(1, 2), {3: frozenset({4})}, {5}, two, bytearray(b"6"), one, [two, one]])

    assert [(1, 2), {3: frozenset({4})}, {5}, {"one": [1]}, bytearray(b"6"), [1]] == back[:6]
    assert back[3]["one"] is back[5] is back[6][1]
    assert back[3] is back[6][0]


def test_a_value_that_contains_itself_is_refused() -> None:
    messages: list[object] = [1]
    messages.append({"all": messages})

    for write in (values.encode, values.canonical):
        with pytest.raises(errors.NotStorable, match="it contains itself") as caught:
            write({"messages": messages}, path="state")
        assert 'state["messages"][1]["all"]' == caught.value.path


def test_tracked_containers_are_stored_as_the_plain_ones() -> None:
    plain = {"a": [1, {"b": (2,)}], "c": [3]}
    tracked = TrackedDict(a=TrackedList([1, TrackedDict(b=(2,))]), c=TrackedList([3]))

    assert values.encode(plain) == values.encode(tracked)
    assert values.canonical(plain) == values.canonical(tracked)
    assert (dict, list) == (type(returned(tracked)), type(returned(tracked)["a"]))


class Marked:
    __holdfast_plain__ = dict


class MyDict(dict[str, int]):
    pass


class MyStr(str):
    __slots__ = ()


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "path", "type_name"),
    [
        ({"messages": [0, 1, 2, {"tool": socket.socket}]}, '["messages"][3]["tool"]', "type"),
        ({"a": object()}, '["a"]', "object"),
        ([MyDict()], "[0]", f"{__name__}.MyDict"),
        ({MyStr("k"): 1}, ".keys()[0]", f"{__name__}.MyStr"),
        ([MyStr("k")], "[0]", f"{__name__}.MyStr"),
        ([OrderedDict(a=1)], "[0]", "collections.OrderedDict"),
        ([Colour.RED], "[0]", f"{__name__}.Colour"),
        ([Marked()], "[0]", f"{__name__}.Marked"),
        ((1, {2: [Ellipsis]}), "[1][2][0]", "ellipsis"),
        ({("k", 1): print}, "[('k', 1)]", "builtin_function_or_method"),
        ({1: 0, Ellipsis: 1}, ".keys()[1]", "ellipsis"),
        ([{1, Ellipsis}], "[0]{...}", "ellipsis"),
        ({'q"\\': print}, '["q\\"\\\\"]', "builtin_function_or_method"),
        ({"k" * 99: print}, '["' + "k" * 59 + "…]", "builtin_function_or_method"),
        ({frozenset({1}): print}, "[<frozenset>]", "builtin_function_or_method"),
        ([ValueError("no value")], "[0]", "ValueError"),
        ([msgspec.msgpack.Ext(1, b"")], "[0]", "msgspec.msgpack.Ext"),
        ([msgspec.Raw(b"\x01")], "[0]", "msgspec.Raw"),
    ],
)
def test_an_unknown_type_is_refused_with_its_place(
    value: object, path: str, type_name: str
) -> None:
    for write in (values.encode, values.canonical):
        with pytest.raises(errors.NotStorable) as caught:
            write(value, path="state")
        assert ("state" + path, type_name) == (caught.value.path, caught.value.type_name)


def test_a_refusal_says_which_line_to_add() -> None:
    with pytest.raises(errors.NotStorable) as caught:
        values.encode({"tool": Fraction(1, 3)}, path="state")
    assert 'state["tool"]: fractions.Fraction:' in str(caught.value)
    assert "holdfast.register(Fraction, encode=..., decode=...)" in str(caught.value)

    with pytest.raises(errors.NotStorable, match=r"holdfast\.register\(Colour\)"):
        values.encode(Colour.RED)


class OtherZone(dt.tzinfo):
    def __init__(self, offset: dt.timedelta) -> None:
        self._offset = offset

    def utcoffset(self, _when: dt.datetime | None) -> dt.timedelta:
        return self._offset

    def dst(self, _when: dt.datetime | None) -> dt.timedelta:
        return self._offset

    def tzname(self, _when: dt.datetime | None) -> str:
        return "other"


def test_a_time_zone_that_cannot_be_found_again_is_refused() -> None:
    for zone in (OtherZone(dt.timedelta(0)), zoneinfo.ZoneInfo.from_file(_zone_file())):
        with pytest.raises(errors.NotStorable) as caught:
            values.encode([dt.datetime(2024, 1, 1, tzinfo=zone)])
        assert "value[0]" == caught.value.path


def _zone_file() -> io.BytesIO:
    for root in zoneinfo.TZPATH:
        path = pathlib.Path(root, "Europe/Berlin")
        if path.exists():
            return io.BytesIO(path.read_bytes())
    pytest.skip("no zone files on this machine")


def test_a_time_zone_that_this_machine_lacks_is_named() -> None:
    known = values.encode(BERLIN)
    unknown = known.replace(b"Europe/Berlin", b"Europe/Berlim")

    with pytest.raises(errors.NotStorable, match=r"Europe/Berlim.*tzdata"):
        values.decode(unknown)


def test_a_time_zone_key_that_is_a_path_is_damage() -> None:
    body = msgspec.msgpack.encode(msgspec.msgpack.Ext(wire.ZONE, msgspec.msgpack.encode("../x")))

    with pytest.raises(errors.Damaged):
        values.decode(b"\x01" + body)


def nested(levels: int, leaf: object) -> object:
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("leaf", [1, 1j, (1,)])
def test_nesting_is_stored_up_to_the_limit_and_refused_beyond(leaf: object) -> None:
    most = wire.DEPTH_MAX - isinstance(leaf, tuple)

    assert nested(most, leaf) == returned(nested(most, leaf))

    with pytest.raises(errors.NotStorable, match="nested more than 128 levels"):
        values.encode(nested(most + 1, leaf))


def test_a_nearly_full_stack_is_a_refusal_and_no_crash() -> None:
    value = nested(100, (1,))
    sunk = values.encode(value)

    def sink(levels: int) -> None:
        if levels:
            sink(levels - 1)
        else:
            with pytest.raises(errors.NotStorable, match="what is left of the stack"):
                values.encode(value)
            with pytest.raises(errors.Damaged, match="stack"):
                values.decode(sunk)

    depth = sum(1 for _ in traceback.walk_stack(None))
    sink(sys.getrecursionlimit() - depth - 60)


def test_too_large_a_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MAX_VALUE_BYTES", 100)

    with pytest.raises(errors.NotStorable, match=r"has 102 bytes, more than 100"):
        values.encode("x" * 100)


def test_too_many_containers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "NODES_MAX", 1000)
    laughs: object = ()
    for _ in range(60):
        laughs = (laughs, laughs)

    for write in (values.encode, values.canonical):
        with pytest.raises(errors.NotStorable, match="more than 1,000"):
            write(laughs)


def test_sharing_makes_neither_more_bytes_nor_another_value() -> None:
    laughs: list[object] = []
    for _ in range(60):
        laughs = [laughs, laughs]

    back = returned(laughs)

    assert len(values.encode(laughs)) < 1000
    assert back[0] is back[1]


def ext(code: int, data: bytes = b"") -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, data)


def reference(number: int) -> msgspec.msgpack.Ext:
    return ext(wire.REFERENCE, number.to_bytes(4, "big"))


@pytest.mark.parametrize(
    ("form", "tree"),
    [
        (0, ext(wire.UUID, bytes(16))),
        (0, [ext(99)]),
        (1, ext(99)),
        (1, ext(wire.UUID, b"short")),
        (1, ext(wire.UNSET, b"x")),
        (1, ext(wire.DECIMAL, b"one")),
        (1, ext(wire.COMPLEX, b"")),
        (1, ext(wire.DATE, msgspec.msgpack.encode([2024, 13, 1]))),
        (1, ext(wire.DATETIME, msgspec.msgpack.encode(7))),
        (1, ext(wire.PATH, msgspec.msgpack.encode(["Path", b"x"]))),
        (1, [ext(wire.TUPLE), 1]),
        (1, reference(0)),
        (2, ext(wire.TUPLE)),
        (2, [1, ext(wire.TUPLE)]),
        (2, {"a": ext(wire.SET)}),
        (2, [ext(wire.TUPLE, b"x"), 1]),
        (2, [ext(wire.PAIRS), 1]),
        (2, [ext(wire.PAIRS), [], 1]),
        (2, [ext(wire.SET), {}]),
        (2, [ext(wire.BYTEARRAY)]),
        (2, [ext(wire.BYTEARRAY), 10**9]),
        (2, [ext(wire.OBJECT), "name"]),
        (2, [ext(wire.OBJECT), 1, 1, {}]),
        (2, [reference(0)]),
        (2, [[], reference(2)]),
        (2, [[ext(wire.TUPLE)], reference(1)]),
        (2, {1: 2}),
        (2, nested(140, 1)),
        (3, 1),
    ],
)
def test_a_tree_that_was_never_written_is_damage(form: int, tree: object) -> None:
    with pytest.raises(errors.Damaged) as caught:
        values.decode(bytes([form]) + msgspec.msgpack.encode(tree), where="row 7")
    assert "row 7" == caught.value.where


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\xff", b"\0\xc1", b"\0\x01\x01", b"\0\xa1\xff", b"\0\xdd\xff\xff\xff\xff"],
)
def test_bytes_that_are_no_value_are_damage(data: bytes) -> None:
    with pytest.raises(errors.Damaged):
        values.decode(data)


def test_bytes_nested_beyond_reason_are_damage() -> None:
    for form in (b"\0", b"\1", b"\2"):
        with pytest.raises(errors.Damaged):
            values.decode(form + b"\x91" * 1_000_000 + b"\xc0")


def test_a_name_that_nobody_registered_is_refused_and_runs_nothing() -> None:
    planted = msgspec.msgpack.encode([ext(wire.OBJECT), "os:system", 1, {"command": "exit 1"}])

    with pytest.raises(errors.NotStorable, match=r"os:system.*import the module"):
        values.decode(b"\x02" + planted, where="answer 3")


def test_a_path_of_another_system_says_so() -> None:
    other = "WindowsPath" if sys.platform != "win32" else "PosixPath"
    body = ext(wire.PATH, msgspec.msgpack.encode([other, b"x"]))

    with pytest.raises(errors.NotStorable, match="cannot make such a path"):
        values.decode(b"\x01" + msgspec.msgpack.encode(body))
