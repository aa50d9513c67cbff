"""Whoever put in a value of an unknown type is told what to do with a value of that very type."""

import io
import threading
import types
from collections import Counter, OrderedDict, defaultdict, deque
from enum import Enum

import pytest
from pydantic import Secret, SecretBytes, SecretStr

from holdfast import errors
from holdfast.store.codec import values
from holdfast.store.codec.advice import advice


class Word(str):
    __slots__ = ()


class Colour(Enum):
    RED = 1


class Client:
    pass


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Colour, "add `holdfast.register(Colour)`, or name it in an annotation"),
        (Client, "`holdfast.register(Client, encode=..., decode=...)`"),
        (OrderedDict, "put `dict(x)` in, or add `holdfast.register(OrderedDict, encode=dict, "),
        (Counter, "decode=Counter)`"),
        (defaultdict, "decode=lambda kept: defaultdict(list, kept))`"),
        (deque, "put `list(x)` in, or add `holdfast.register(deque, encode=list, decode=deque)`"),
        (Word, "put `str(x)` in"),
        (SecretStr, 'keep `holdfast.secret("env:NAME")`, which is stored as that reference alone'),
        (SecretBytes, "make the SecretBytes of it where it is needed"),
        (Secret, 'keep `holdfast.secret("env:NAME")`'),
        (types.FunctionType, "it lives in this process only"),
        (types.ModuleType, "it lives in this process only"),
        (types.GeneratorType, "put `list(...)` of it in, or read it with `run.stream`"),
        (io.StringIO, "it lives in this process only"),
        (type(threading.Lock()), "it lives in this process only"),
        (memoryview, "put `bytes(x)` in"),
        (types.MappingProxyType, "put `dict(x)` in"),
        (type({}.items()), "put `list(x)` in"),
    ],
)
def test_the_advice_fits_the_type(kind: type, told: str) -> None:
    assert told in advice(kind)


def test_a_refusal_names_place_type_and_advice() -> None:
    with pytest.raises(errors.NotStorable) as refused:
        values.encode({"seen": [OrderedDict(a=1)]}, path="state")

    assert (
        'state["seen"][0]: collections.OrderedDict: Holdfast does not know this type; '
        "put `dict(x)` in, or add `holdfast.register(OrderedDict, encode=dict, decode=OrderedDict)`"
    ) == str(refused.value)


class Tally(Counter[str]):
    pass


class Line(deque[int]):
    pass


@pytest.mark.parametrize(
    ("plain", "value"), [(dict, Tally("aab")), (list, Line([1, 2]))], ids=["dict", "list"]
)
def test_the_line_that_is_advised_works(plain: type, value: object) -> None:
    kind = type(value)
    assert f"encode={plain.__name__}, decode={kind.__name__}" in advice(kind)
    values.register(kind, encode=plain, decode=kind)

    back = values.decode(values.encode(value))

    assert (kind, value) == (type(back), back)
