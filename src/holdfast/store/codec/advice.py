"""What to do about a value of a type that is not known: the line to add, or where to keep it."""

import io
import types
from collections import defaultdict, deque
from collections.abc import Awaitable
from typing import Final

from holdfast.store.codec import shapes

_PLAIN: Final[dict[type, str]] = {
    **{kind: kind.__name__ for kind in (dict, list, tuple, set, frozenset, str, bytes, int, float)},
    deque: "list",
}
"""Types whose subclasses can be kept as what they are made from."""
_LIVE: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    type,
    io.IOBase,
)
"""Types whose values belong to the running process: code, and handles of its own."""


_VIEWS: Final[dict[type, str]] = {
    memoryview: "bytes",
    types.MappingProxyType: "dict",
    **dict.fromkeys((type({}.keys()), type({}.values()), type({}.items())), "list"),
}
"""Types that only look at what belongs to somebody else."""


def advice(kind: type) -> str:
    """What somebody who put a value of this type into the state can do."""
    name = kind.__qualname__
    if shapes.shape_of(kind) is not None:
        return f"add `holdfast.register({name})`, or name it in an annotation of a step"
    if shapes.is_pydantic_secret(kind):
        return (
            'keep `holdfast.secret("env:NAME")`, which is stored as that reference alone, '
            f"and make the {name} of it where it is needed"
        )
    if kind in _VIEWS:
        return f"put `{_VIEWS[kind]}(x)` in"
    return _of_process(kind, name) or _line(kind, name)


def _of_process(kind: type, name: str) -> str:
    """What to do with a value that belongs to the running process; nothing for others."""
    if issubclass(kind, Awaitable):
        return "it was not awaited; write `await` before the call that gave it"
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return "it belongs to Holdfast and to this process; hand on what is needed of it"
    if issubclass(kind, types.GeneratorType | types.AsyncGeneratorType):
        return "it can be read once: put `list(...)` of it in, or read it with `run.stream`"
    if issubclass(kind, _LIVE) or name in {"lock", "RLock", "socket"}:
        return "it lives in this process only: keep what it is made from, and make it anew"
    return ""


def _line(kind: type, name: str) -> str:
    """The line that makes a class known by what its values are made from."""
    for plain, word in _PLAIN.items():
        if issubclass(kind, plain):
            made = f"lambda kept: {name}(list, kept)" if issubclass(kind, defaultdict) else name
            line = f"`holdfast.register({name}, encode={word}, decode={made})`"
            return f"put `{word}(x)` in, or add {line}"
    return f"add `holdfast.register({name}, encode=..., decode=...)`, or leave it out"
