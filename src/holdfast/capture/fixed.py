"""Which leaves of the state cannot change in place."""

import datetime as dt
import sys
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from pathlib import PosixPath, PurePosixPath
from types import EllipsisType
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from holdfast.store.codec.saved import BASIC
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.veil import Veiled, VeiledBytes

__all__ = ["BASIC", "Value", "is_fixed"]

Value: TypeAlias = Any
"""Whatever a program keeps in its state, and the containers that hold it there."""

_FIXED = BASIC | {
    complex,
    range,
    Decimal,
    Fraction,
    UUID,
    dt.date,
    dt.datetime,
    dt.time,
    dt.timedelta,
    dt.timezone,
    PosixPath,
    PurePosixPath,
    EllipsisType,
    Secret,
    Veiled,
    VeiledBytes,
}


def is_fixed(value: object) -> bool:
    """Say whether `value` is known never to change in place; when unsure, it is not."""
    kind = type(value)
    if kind in _FIXED or isinstance(value, Enum):
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_fixed, value))  # type: ignore[call-overload]  # a tuple or a frozenset, as asked above
    names = _frozen_fields(kind)
    if names is not None:
        return all(is_fixed(getattr(value, name, None)) for name in names)
    return _is_numpy_scalar(value)


def _find_frozen_fields(kind: type) -> tuple[str, ...] | None:
    """Give the field names of a frozen dataclass or struct; None for any other class."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        return tuple(field.name for field in fields(kind))
    if issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen:
        return kind.__struct_fields__
    return None


_frozen_fields: Callable[[type], tuple[str, ...] | None] = lru_cache(maxsize=256)(
    _find_frozen_fields
)


def _is_numpy_scalar(value: object) -> bool:
    numpy = sys.modules.get("numpy")  # before NumPy is imported there is no value of it
    if numpy is None:
        return False
    return isinstance(value, numpy.generic) and not isinstance(value, numpy.void)
