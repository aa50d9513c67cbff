"""NumPy arrays and scalars as dtype, shape and bytes; without NumPy loaded, there are none.

A dtype is its NumPy string, or a map: `names`, `formats`, `offsets`, `itemsize`, `aligned` of a
structured one, `base` and `shape` of a subarray. Bytes are in C order, padding is zero.
"""

import re
import sys
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast.store.codec import wire
from holdfast.store.codec.wire import Refusal

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode

_KINDS: Final = frozenset("biufcmMSUV")
_LONG_DOUBLES: Final = frozenset("gG")
_TEXT_KINDS: Final = frozenset("SU")
_PLAIN: Final = re.compile(r"[<>|=][biufcmMSUV]\d{0,9}(\[[0-9A-Za-z/]{1,24}\])?")
"""How NumPy writes a dtype without fields: byte order, kind, bytes, unit of a time."""


def is_scalar(cls: type) -> bool:
    """Whether `cls` is a NumPy scalar type."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(cls, numpy.generic) and cls.__module__ == "numpy"


def is_array(cls: type) -> bool:
    """Whether `cls` is the NumPy array, not one of its subclasses."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and cls is numpy.ndarray


def write_scalar(value: Any) -> Ext:  # noqa: ANN401 -- NumPy is not imported here
    """A scalar as its item."""
    dtype = value.dtype
    if dtype.kind in _TEXT_KINDS:
        # Their dtype carries the length, and NumPy has no array of empty text; `item()` would
        # leave out zeros at the end.
        data = bytes(value) if dtype.kind == "S" else str.encode(value, "utf-8", "surrogatepass")
        return Ext(wire.NUMPY_SCALAR, _pack((dtype.kind, data)))
    return Ext(wire.NUMPY_SCALAR, _pack((_describe(dtype), _bytes_of(value))))


def read_scalar(data: bytes) -> object:
    """The scalar of an item."""
    numpy = _numpy()
    described, content = _unpack(data)
    if described == "S":
        return numpy.bytes_(content)
    if described == "U":
        return numpy.str_(content.decode("utf-8", "surrogatepass"))
    return _array(numpy, described, (), content)[()]


def write_array(value: Any) -> tuple[bytes, bytes]:  # noqa: ANN401
    """The header and the bytes of an array."""
    return _pack((_describe(value.dtype), value.shape)), _bytes_of(value)


def read_array(header: bytes, content: bytes) -> object:
    """The array of a header and its bytes, writable and with memory of its own."""
    described, shape = _unpack(header)
    return _array(_numpy(), described, shape, content)


def text_in(value: Any, content: bytes) -> bytes | None:  # noqa: ANN401
    """The bytes of an array in which a secret could be seen; None if it holds only numbers."""
    dtype = value.dtype.base
    if dtype.kind == "U":
        return "\n".join(value.reshape(-1).tolist()).encode("utf-8", "surrogatepass")
    if dtype.names is not None:
        return content.replace(b"\0", b"")  # a character of text in it takes four bytes
    return content if dtype.kind == "S" or dtype.itemsize == 1 else None


def cells_of(value: Any) -> list[Any]:  # noqa: ANN401
    """The text of an array, cell by cell, so that secrets can be cut out of it."""
    if value.dtype.kind in _TEXT_KINDS:
        found: list[Any] = value.reshape(-1).tolist()
        return found
    raise Refusal(
        f"numpy.ndarray[{value.dtype}]",
        "a secret stands in it, where it cannot be cut out; keep that part out of the array",
    )


def read_cells(header: bytes, cells: list[Any]) -> object:
    """The array of a header and its cells; a cell that became longer is kept whole."""
    numpy = _numpy()
    described, shape = _unpack(header)
    if _dtype(numpy, described).kind not in _TEXT_KINDS:
        raise ValueError("cells that are no text")
    known = numpy.array([str(cell) if isinstance(cell, str) else cell for cell in cells])
    return known.astype(max(known.dtype, _dtype(numpy, described))).reshape(shape)


def _numpy() -> Any:  # noqa: ANN401
    numpy = sys.modules.get("numpy")
    if numpy is None:
        why = "a NumPy value is stored here; `import numpy` first (`--app numpy` in a command)"
        raise Refusal("numpy", why)
    return numpy


def _array(numpy: Any, described: Any, shape: Any, content: bytes) -> Any:  # noqa: ANN401
    dtype = _dtype(numpy, described)
    if not dtype.itemsize:
        # Any number of such elements would fit into no bytes at all.
        raise ValueError("elements of no size")
    view = numpy.ndarray(tuple(shape), dtype, buffer=content)
    if view.nbytes != len(content) or list(view.shape) != list(shape):
        raise ValueError("the bytes do not fill the shape")
    return view.copy()


def _describe(dtype: Any) -> object:  # noqa: ANN401
    described = _parts(dtype)
    if not dtype.itemsize:
        raise Refusal(f"numpy.ndarray[{dtype}]", "its elements have no size")
    again = _dtype(sys.modules["numpy"], described)
    if again != dtype or again.type is not dtype.type:
        raise Refusal(f"numpy.ndarray[{dtype}]", "this dtype would not come back as it was")
    return described


def _parts(dtype: Any) -> object:  # noqa: ANN401
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": _parts(base), "shape": shape}
    if dtype.names is not None:
        fields = [dtype.fields[name] for name in dtype.names]
        return {
            "names": dtype.names,
            "formats": [_parts(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "itemsize": dtype.itemsize,
            "aligned": dtype.isalignedstruct,
        }
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise Refusal(f"numpy.ndarray[{dtype}]", "arrays of Python objects have no bytes to store")
    if dtype.char in _LONG_DOUBLES:
        raise Refusal(
            f"numpy.ndarray[{dtype}]", "long doubles differ between machines; use float64"
        )
    return dtype.str


def _dtype(numpy: Any, described: Any) -> Any:  # noqa: ANN401
    if isinstance(described, str):
        if _PLAIN.fullmatch(described) is None:
            # NumPy would take it for a list of fields, and give parts of it to Python's parser.
            raise ValueError("a dtype that is never written")
        dtype = numpy.dtype(described)
        if dtype.names is not None or dtype.subdtype is not None:
            raise ValueError("a structured dtype comes as a map")
        if dtype.kind not in _KINDS or dtype.hasobject or dtype.char in _LONG_DOUBLES:
            raise ValueError("a dtype that is never stored")
        return dtype
    if "base" in described:
        return numpy.dtype((_dtype(numpy, described["base"]), tuple(described["shape"])))
    layout = {
        "names": described["names"],
        "formats": [_dtype(numpy, part) for part in described["formats"]],
        "offsets": described["offsets"],
        "itemsize": described["itemsize"],
    }
    return numpy.dtype(layout, align=described["aligned"])


def _bytes_of(value: Any) -> bytes:  # noqa: ANN401
    """The bytes in C order; padding holds whatever lay in memory, so it is left zero."""
    if value.dtype.names is None:
        return bytes(value.tobytes())
    numpy = sys.modules["numpy"]
    clean = numpy.ndarray(value.shape, value.dtype, buffer=bytearray(value.nbytes))
    _copy_fields(numpy.asarray(value), clean)
    return bytes(clean.tobytes())


def _copy_fields(source: Any, target: Any) -> None:  # noqa: ANN401
    for name in source.dtype.names:
        if source.dtype[name].base.names is None:
            target[name] = source[name]
        else:
            _copy_fields(source[name], target[name])
