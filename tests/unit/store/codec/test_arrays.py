"""NumPy values: dtype, shape and bytes, byte order and structure kept."""

import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from holdfast import errors
from holdfast.store.codec import values, wire

PADDED = np.dtype([("a", "i1"), ("b", ">f8"), ("c", "U3", (2, 2))], align=True)
NESTED = np.dtype([("p", PADDED), ("q", "M8[ms]")])


def returned(value: object) -> Any:  # noqa: ANN401 -- any value at all
    return values.decode(values.encode(value))


ARRAYS = [
    np.arange(6).reshape(2, 3), np.arange(6, dtype=">i2"), np.array(5.5), np.zeros((0, 3)),
    np.array([True, False]), np.array([1 + 2j], "c8"), np.array(["a", "äß"]), np.array([b"x", b""]),
    np.array(["2024-01-01"], "M8[D]"), np.array([3], "m8[25s]"), np.array([b"ab"], "V2"),
    np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(10)[::-2], np.array([1, np.nan], "f2"),
    np.zeros(3, PADDED), np.zeros((2, 2), NESTED), np.zeros(0, NESTED),
]  # fmt: skip

SCALARS = [
    np.float64(1.5), np.float32(-0.0), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True),
    np.complex128(1 - 2j), np.str_("äß"), np.str_(""), np.bytes_(b"ab"), np.bytes_(b""),
    np.str_("a\0"), np.bytes_(b"a\0\0"), np.str_("\0"),
    np.datetime64("2024-01-01T00:00:00.5"), np.timedelta64(3, "h"), np.datetime64("NaT", "s"),
    np.zeros((), PADDED)[()], np.float16("nan"),
]  # fmt: skip


@pytest.mark.parametrize("array", ARRAYS, ids=range(len(ARRAYS)))
def test_an_array_comes_back_with_its_dtype_shape_and_bytes(array: Any) -> None:  # noqa: ANN401
    back = returned({"a": [array]})["a"][0]

    assert (np.ndarray, array.dtype, array.shape) == (type(back), back.dtype, back.shape)
    assert array.tobytes() == back.tobytes()
    assert array.dtype.str == back.dtype.str
    assert back.flags.writeable
    assert back.flags.owndata


@pytest.mark.parametrize("scalar", SCALARS, ids=range(len(SCALARS)))
def test_a_scalar_comes_back_as_the_same_scalar(scalar: Any) -> None:  # noqa: ANN401
    back = returned([scalar])[0]

    assert (type(scalar), scalar.dtype) == (type(back), back.dtype)
    assert scalar.tobytes() == back.tobytes()


def test_an_array_at_two_places_is_one_array_again() -> None:
    array = np.arange(3)

    left, right = returned([array, array])

    assert left is right


def test_padding_is_not_part_of_the_content() -> None:
    one, other = (
        np.ndarray(1, NESTED, buffer=bytearray(fill * NESTED.itemsize)) for fill in (b"\0", b"\1")
    )
    for name in PADDED.names or ():
        other["p"][name] = one["p"][name]
    other["q"] = one["q"]

    assert one.tobytes() != other.tobytes()
    assert values.canonical(one) == values.canonical(other)
    assert one.tobytes() == returned(other).tobytes()


class Sub(np.ndarray[Any, Any]):
    pass


REFUSED = [
    np.array([object()]), np.array([1], "O"), np.zeros(1, [("x", "O")]), np.zeros(1).view(Sub),
    np.longdouble(1), np.zeros(1, np.clongdouble), np.rec.array([(1,)], dtype=[("a", "i4")]),
    np.rec.array([(1,)], dtype=[("a", "i4")])[0], np.ma.masked_array([1]),
    np.array(["a"], np.dtypes.StringDType()), np.zeros(2, "V0"), np.zeros(2, []),
]  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=range(len(REFUSED)))
def test_what_would_not_come_back_is_refused(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(errors.NotStorable) as caught:
        values.encode({"x": value}, path="state")
    assert 'state["x"]' == caught.value.path


def stored_array(dtype: object, shape: object, data: bytes) -> bytes:
    tag = msgspec.msgpack.Ext(wire.NUMPY_ARRAY, b"")
    header = msgspec.msgpack.encode((dtype, shape))
    return b"\x02" + msgspec.msgpack.encode([tag, header, data])


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("O", [1], bytes(8)),
        ("T", [1], bytes(16)),
        ("<f16", [1], bytes(16)),
        ("i4,i4", [1], bytes(8)),
        ("(2,)i4", [1], bytes(8)),
        ("nonsense", [1], bytes(8)),
        ("<i4", [2], bytes(4)),
        ("<i4", [1], bytes(8)),
        ("<i4", [-1], bytes(8)),
        ("<i4", [2**62], bytes(8)),
        ("<i4", "x", bytes(8)),
        ({"names": ["a"], "formats": ["O"]}, [1], bytes(8)),
        ({"base": "O", "shape": [1]}, [1], bytes(8)),
        (7, [1], bytes(8)),
        ("V0", [10**12], b""),
        ({"names": [], "formats": [], "offsets": [], "itemsize": 0, "aligned": False}, [9], b""),
    ],
)
def test_a_hostile_array_is_damage(dtype: object, shape: object, data: bytes) -> None:
    with pytest.raises(errors.Damaged):
        values.decode(stored_array(dtype, shape, data))


def test_without_numpy_a_stored_array_says_what_to_import() -> None:
    code = (
        "import sys\n"
        "from holdfast import errors\n"
        "from holdfast.store.codec import values\n"
        "assert values.encode([1, (2,)])\n"
        "assert not {'numpy', 'pydantic', 'zoneinfo'} & set(sys.modules)\n"
        "try: values.decode(bytes.fromhex(sys.argv[1]))\n"
        "except errors.NotStorable as error: print(error)\n"
    )

    stored = values.encode(np.arange(3)).hex()
    done = subprocess.run(
        [sys.executable, "-c", code, stored], check=True, capture_output=True, text=True
    )

    assert "`import numpy` first" in done.stdout


class Parser:
    """Hears when Python's parser is asked; a hook cannot be taken out again, so there is one."""

    is_heard = False

    def __call__(self, event: str, _arguments: tuple[object, ...]) -> None:
        self.is_heard |= event == "compile"


@pytest.fixture(scope="module")
def parser() -> Parser:
    parser = Parser()
    sys.addaudithook(parser)
    return parser


@pytest.mark.parametrize("text", ["i4,i4", "(2,2)f8", "4", ",", "<i4, (1,)i2"])
def test_a_dtype_out_of_a_store_is_never_given_to_pythons_parser(parser: Parser, text: str) -> None:
    written = values.encode(np.arange(2, dtype="<i4"))
    head = msgspec.msgpack.encode(("<i4", [2]))
    forged = msgspec.msgpack.encode((text, [2]))
    parser.is_heard = False

    with pytest.raises(errors.Damaged):
        values.decode(written.replace(_binary(head), _binary(forged)))

    assert not parser.is_heard


def _binary(data: bytes) -> bytes:
    return msgspec.msgpack.encode(data)
