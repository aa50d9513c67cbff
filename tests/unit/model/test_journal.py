"""What a journal holds: every entry comes back from its bytes as what it was."""

from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect

from holdfast.model.journal import Entry, Row

KINDS = get_args(Entry)
SCALARS = {
    inspect.IntType: 7,
    inspect.FloatType: 0.5,
    inspect.StrType: "text",
    inspect.BytesType: b"bytes",
    inspect.NoneType: None,
}


def example(kind: inspect.Type, *, is_full: bool) -> Any:  # noqa: ANN401, PLR0911 -- a line per kind
    """A value of that type: with all that it may hold, or with as little as it may."""
    match kind:
        case inspect.UnionType(types=types):
            by_name = sorted(types, key=lambda each: type(each).__name__)
            full = [each for each in by_name if not isinstance(each, inspect.NoneType)]
            return example(
                full[0] if is_full or full == by_name else inspect.NoneType(), is_full=is_full
            )
        case inspect.StructType(cls=cls, fields=fields):
            return cls(**{each.name: example(each.type, is_full=is_full) for each in fields})
        case inspect.ListType(item_type=item):
            return [example(item, is_full=True)] * 2 if is_full else []
        case inspect.DictType(key_type=key, value_type=value):
            return {example(key, is_full=True): example(value, is_full=True)} if is_full else {}
        case inspect.VarTupleType(item_type=item):
            return (example(item, is_full=True),) if is_full else ()
        case inspect.TupleType(item_types=items):
            return tuple(example(item, is_full=is_full) for item in items)
        case inspect.BoolType():
            return is_full
        case inspect.EnumType(cls=cls):
            return next(iter(cls))
        case other:
            return SCALARS[type(other)]


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "bare"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_entry_comes_back_from_its_bytes(kind: type[Entry], is_full: bool) -> None:
    entry = example(inspect.type_info(kind), is_full=is_full)
    row = Row(-1, 3, [entry, entry])

    again = msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=Row)

    assert row == again
    assert kind is type(again.entries[0])


def test_the_kinds_are_told_apart_by_the_numbers_that_the_format_gives_them() -> None:
    numbers = [kind.__struct_config__.tag for kind in KINDS]

    assert sorted(set(numbers)) == sorted(numbers)
