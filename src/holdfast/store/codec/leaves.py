"""Values of the standard library that are one extension item: dates, numbers, ids, paths.

The bytes of an item are fixed here for ever. *Text* in an item is UTF-8 with lone surrogates kept
(`surrogatepass`), *integer* is big-endian two's complement of `bit_length // 8 + 1` bytes, *array*
is msgpack.
"""

import datetime as dt
import decimal
import pathlib
import re
import struct
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast.store.codec import wire
from holdfast.store.codec.wire import Refusal, name_of

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode

_COMPLEX = struct.Struct(">dd")
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
PATHS: Final = {
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
    "PosixPath": pathlib.PosixPath,
    "WindowsPath": pathlib.WindowsPath,
}
# A key becomes a file name below the zone directory: nothing else may pass.
_ZONE_KEY = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,3}")


def is_text(value: str) -> bool:
    """Whether `value` is UTF-8 without further ado: it holds no lone surrogate."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_zone(zone: dt.tzinfo) -> Ext:
    """A time zone that is a value of its own."""
    return Ext(wire.ZONE, _pack(_zone_parts(zone)))


def _text_bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _text_from(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _int_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _int_from(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _write_text(value: str) -> str | Ext:
    return value if is_text(value) else Ext(wire.RAW_TEXT, _text_bytes(value))


def _write_int(value: int) -> int | Ext:
    return value if _INT_MIN <= value <= _INT_MAX else Ext(wire.BIG_INT, _int_bytes(value))


def _zone_parts(zone: Any) -> object:  # noqa: ANN401 -- any tzinfo, or None
    """Nil, the key of a ZoneInfo, or the offset (and name) of a `datetime.timezone`."""
    if zone is None:
        return None
    if isinstance(zone, dt.timezone):
        # What the constructor was given: whether a name was, cannot be seen otherwise.
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]  # what pickle asks for; typeshed leaves it out
        return [offset.days, offset.seconds, offset.microseconds, *map(_text_bytes, name)]
    zoneinfo = sys.modules.get("zoneinfo")
    if zoneinfo is not None and type(zone) is zoneinfo.ZoneInfo:
        if zone.key is not None and _ZONE_KEY.fullmatch(zone.key):
            return str(zone.key)
        raise Refusal(name_of(type(zone)), "this ZoneInfo has no key to find it by again")
    raise Refusal(
        name_of(type(zone)),
        "of time zones only datetime.timezone and zoneinfo.ZoneInfo come back as they were; "
        "convert it with `.astimezone(zoneinfo.ZoneInfo(...))`",
    )


def _zone_from(parts: Any) -> dt.tzinfo | None:  # noqa: ANN401 -- what a store holds, unchecked
    if parts is None:
        return None
    if isinstance(parts, str):
        return _zone_by_key(parts)
    days, seconds, microseconds, *name = parts
    offset = dt.timedelta(days, seconds, microseconds)
    return dt.timezone(offset, *map(_text_from, name))


def _zone_by_key(key: str) -> dt.tzinfo:
    import zoneinfo  # noqa: PLC0415 -- costs milliseconds that most programs need not pay

    if not _ZONE_KEY.fullmatch(key):
        raise ValueError("a time zone key that is none")
    try:
        return zoneinfo.ZoneInfo(key)
    except zoneinfo.ZoneInfoNotFoundError as error:
        raise Refusal(
            "zoneinfo.ZoneInfo",
            f"time zone {key} is not on this machine; install its zone data (`tzdata`)",
        ) from error


def _write_datetime(value: dt.datetime) -> Ext:
    clock = (value.hour, value.minute, value.second, value.microsecond, value.fold)
    zone = _zone_parts(value.tzinfo)
    return Ext(wire.DATETIME, _pack((value.year, value.month, value.day, *clock, zone)))


def _read_datetime(data: bytes) -> dt.datetime:
    year, month, day, *clock = _unpack(data)
    return dt.datetime.combine(dt.date(year, month, day), _time_from(*clock))


def _write_time(value: dt.time) -> Ext:
    clock = (value.hour, value.minute, value.second, value.microsecond, value.fold)
    return Ext(wire.TIME, _pack((*clock, _zone_parts(value.tzinfo))))


def _read_time(data: bytes) -> dt.time:
    return _time_from(*_unpack(data))


def _time_from(  # noqa: PLR0917 -- in the order in which they are stored
    hour: int, minute: int, second: int, microsecond: int, fold: int, zone: object
) -> dt.time:
    return dt.time(hour, minute, second, microsecond, _zone_from(zone), fold=fold)


def _write_date(value: dt.date) -> Ext:
    return Ext(wire.DATE, _pack((value.year, value.month, value.day)))


def _write_timedelta(value: dt.timedelta) -> Ext:
    return Ext(wire.TIMEDELTA, _pack((value.days, value.seconds, value.microseconds)))


def _write_range(value: range) -> Ext:
    bounds = (value.start, value.stop, value.step)
    return Ext(wire.RANGE, _pack([_int_bytes(bound) for bound in bounds]))


def _write_path(value: pathlib.PurePath) -> Ext:
    return Ext(wire.PATH, _pack((type(value).__name__, _text_bytes(str(value)))))


def _read_path(data: bytes) -> pathlib.PurePath:
    flavour, text = _unpack(data)
    try:
        return PATHS[flavour](_text_from(text))
    except NotImplementedError as error:
        raise Refusal(f"pathlib.{flavour}", "this system cannot make such a path") from error


def _read_unset(data: bytes) -> msgspec.UnsetType:
    if data:
        raise ValueError("bytes where none belong")
    return msgspec.UNSET


WRITERS: Final[Mapping[type, Callable[[Any], object]]] = {
    str: _write_text,
    int: _write_int,
    dt.datetime: _write_datetime,
    dt.date: _write_date,
    dt.time: _write_time,
    dt.timedelta: _write_timedelta,
    dt.timezone: write_zone,
    decimal.Decimal: lambda value: Ext(wire.DECIMAL, str(value).encode()),
    uuid.UUID: lambda value: Ext(wire.UUID, value.bytes),
    complex: lambda value: Ext(wire.COMPLEX, _COMPLEX.pack(value.real, value.imag)),
    range: _write_range,
    msgspec.UnsetType: lambda _: Ext(wire.UNSET, b""),
    **dict.fromkeys(PATHS.values(), _write_path),
}
"""By exact type: the value itself where msgpack can hold it, else its item."""

READERS: Final[Mapping[int, Callable[[bytes], object]]] = {
    wire.BIG_INT: _int_from,
    wire.RAW_TEXT: _text_from,
    wire.DATETIME: _read_datetime,
    wire.DATE: lambda data: dt.date(*_unpack(data)),
    wire.TIME: _read_time,
    wire.TIMEDELTA: lambda data: dt.timedelta(*_unpack(data)),
    wire.DECIMAL: lambda data: decimal.Decimal(data.decode("ascii")),
    wire.UUID: lambda data: uuid.UUID(bytes=data),
    wire.COMPLEX: lambda data: complex(*_COMPLEX.unpack(data)),
    wire.RANGE: lambda data: range(*map(_int_from, _unpack(data))),
    wire.PATH: _read_path,
    wire.ZONE: lambda data: _zone_from(_unpack(data)),
    wire.UNSET: _read_unset,
}
