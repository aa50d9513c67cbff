"""Values of every kind keep the promises of a codec."""

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass

import holdfast
from holdfast.testing import CodecContract


@holdfast.register
@dataclass(frozen=True)
class Point:
    x: int
    tags: tuple[str, ...] = ()


@holdfast.register
class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Money:
    def __init__(self, cents: int, unit: str) -> None:
        self.cents, self.unit = cents, unit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.cents, self.unit))


holdfast.register(
    Money, encode=lambda money: [money.cents, money.unit], decode=lambda it: Money(*it)
)


class TestBuiltIns(CodecContract):
    def examples(self) -> Sequence[object]:
        return [1, 1.0, True, None, "text", b"bytes", (1, 2), {3}, 10**30, dt.date(2026, 11, 16)]


class TestDataclass(CodecContract):
    def examples(self) -> Sequence[object]:
        return [Point(1), Point(1, ("a",)), Point(2)]


class TestEnum(CodecContract):
    def examples(self) -> Sequence[object]:
        return list(Colour)


class TestClassWithACodecOfItsOwn(CodecContract):
    def examples(self) -> Sequence[object]:
        return [Money(3, "usd"), Money(3, "eur")]
