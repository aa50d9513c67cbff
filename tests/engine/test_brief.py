"""Short forms of values: what a person reads of a call's arguments."""

import dataclasses
import enum

import msgspec
import pydantic
import pytest

from holdfast.engine.brief import OBJECT_CHARS_MAX, brief


class Size(enum.Enum):
    SMALL = "s"


class Refund(pydantic.BaseModel):
    order: str
    usd: int
    note: str | None = None
    pin: str = pydantic.Field(default="1234", repr=False)


@dataclasses.dataclass(slots=True)
class Parcel:
    size: Size
    to: list[str]
    label: str = dataclasses.field(default="hidden", repr=False)


class Order(msgspec.Struct):
    refund: Refund


class Bare:
    def __init__(self) -> None:
        self.held = "kelp"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Refund(order="A-3", usd=150), "Refund(order='A-3', usd=150)"),
        (Parcel(Size.SMALL, ["ann"]), "Parcel(size=Size.SMALL, to=['ann'])"),
        (Order(Refund(order="A-3", usd=1)), "Order(refund=Refund(order='A-3', usd=1))"),
        ([Order(Refund(order="A-3", usd=1))], "[Order(refund=<Refund>)]"),
        (Bare(), "<Bare>"),
        (Bare, "<type>"),
    ],
)
def test_an_object_is_told_by_the_fields_that_its_class_shows(value: object, said: str) -> None:
    assert said == brief(value)


def test_an_object_of_many_fields_is_cut() -> None:
    names = [f"field_{n}" for n in range(100)]
    made = msgspec.defstruct("Many", [(name, str) for name in names])(*("x" * 50 for _ in names))

    said = brief(made)

    assert said.startswith("Many(field_0='xxx")
    assert said.endswith(", …)")
    assert len(said) < 2 * OBJECT_CHARS_MAX
