"""Places inside a state as people write them: `messages[-3:].content`, `["odd key"][0]`."""

import ast
import re
from collections.abc import Hashable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import msgspec

from holdfast.capture.fixed import Value
from holdfast.errors import UsageError

Step = Hashable | slice
"""A name or key, a place, or a part of a list."""


class Written(msgspec.Struct, frozen=True):
    """A key that has no literal, such as a date, as `repr` writes it."""

    text: str


ROOT = "state"
"""How errors and differences call the whole state; a path may begin so too."""

_NUMBER = r"(?:-?\d{1,18})?"
_STEP = re.compile(
    rf"""\.?(?P<name>[^\s.\[\]"'\\]+)       # a name, as in messages or .content
    | \[(?P<part>{_NUMBER}(?::{_NUMBER}){{1,2}})\]  # a part of a list
    | \["(?P<double>(?:[^"\\]|\\.)*)"\]    # a key that is no name
    | \['(?P<single>(?:[^'\\]|\\.)*)'\]
    | \[(?P<literal>(?:[^\[\]"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+)\]
                                           # a place in a list; a key that is no text""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:N\{[^{}]*\}|x..|u.{4}|U.{8}|[0-3]?[0-7]{1,2}|[\\'\"abfnrtv])", re.DOTALL
)
_TWO_SPACES = re.compile("(?<= ) ")
_WRITTEN = re.compile(r"[\w.]*\(.*\)|\w+(\.\w+)+|<.*>|-?(inf|nan)j?", re.DOTALL)


def parse(text: str) -> list[Step]:
    """Read a path; `UsageError` names the place where it stops making sense."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        try:
            step, at = _step(text, at)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            msg = f"path {text!r} cannot be read from {text[at:]!r}; write it as messages[-3:].role"
            raise UsageError(msg) from None
        steps.append(step)
    return steps


def _step(text: str, at: int) -> tuple[Step, int]:
    """The step that begins at a place of a path, and where the next one begins."""
    found = _STEP.match(text, at)
    if found is None:
        raise ValueError(text)
    return _value(found), found.end()


def _value(found: re.Match[str]) -> Step:
    if found["name"] is not None:
        if not found["name"].isidentifier():
            raise ValueError(found["name"])
        return found["name"]
    if found["part"] is not None:
        part = slice(*(int(each) if each else None for each in found["part"].split(":")))
        if part.step == 0:
            raise ValueError(part)
        return part
    if found["literal"] is not None:
        return _key(found["literal"].strip())
    quoted = found["double"] if found["double"] is not None else found["single"]
    return _ESCAPE.sub(lambda escape: str(ast.literal_eval(f'"{escape[0]}"')), quoted)


def _key(text: str) -> Hashable:
    try:
        key: Hashable = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if _WRITTEN.fullmatch(text) is None:
            raise
        return Written(text)
    hash(key)
    return key


def show(steps: Sequence[object]) -> str:
    """A path in the form that `parse` reads."""
    return "".join(_shown(step, is_first=n == 0) for n, step in enumerate(steps)) or ROOT


def _shown(step: object, *, is_first: bool) -> str:
    if isinstance(step, str) and step.isidentifier():
        return step if is_first else f".{step}"
    if isinstance(step, str):
        return f'["{_escaped(step)}"]'
    if isinstance(step, slice):
        ends = [step.start, step.stop, *([] if step.step is None else [step.step])]
        return f"[{':'.join('' if end is None else str(end) for end in ends)}]"
    return f"[{step.text if isinstance(step, Written) else repr(step)}]"


def _escaped(key: str) -> str:
    """A key as it stands between quotes: visible, and in a table the same as it was."""
    text = key.replace("\\", "\\\\").replace('"', '\\"')
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return _TWO_SPACES.sub(r"\\x20", text)


def pick(value: Value, steps: Sequence[Step]) -> Value:
    """What stands at a path; after a part of a list, the rest of the path goes into each item.

    The path may begin with the word `state`, as paths in errors do.
    """
    if steps and steps[0] == ROOT and isinstance(value, Mapping) and ROOT not in value:
        steps = steps[1:]
    return _pick(value, steps, 0)


def _pick(value: Value, steps: Sequence[Step], at: int) -> Value:
    for n in range(at, len(steps)):
        step, so_far = steps[n], steps[: n + 1]
        if not isinstance(step, slice):
            value = _one(value, step, so_far)
        elif not _has_places(value):
            raise _nothing(so_far, value)
        elif isinstance(value, str | bytes | bytearray):
            if n + 1 < len(steps):
                raise _nothing(steps[: n + 2], value[step])
            return value[step]
        else:
            return [_pick(item, steps, n + 1) for item in value[step]]
    return value


def put(value: object, steps: Sequence[Step], new: object) -> None:
    """Set what stands at a path; what it stands in must be there."""
    *above, last = steps or [slice(None)]
    within = pick(value, above)
    if isinstance(last, slice) or any(isinstance(step, slice) for step in above):
        msg = f"{show(steps)} does not name one place; write it as notes or messages[-1].content"
        raise UsageError(msg)
    if isinstance(last, Written):
        last = _meant(within, last, steps)
    if isinstance(within, MutableMapping):
        within[last] = new
    elif isinstance(within, MutableSequence) and isinstance(last, int):
        _one(within, last, steps)
        within[last] = new
    else:
        raise _nothing(steps, within)


def _one(value: Value, step: Hashable, so_far: Sequence[Step]) -> Value:
    if isinstance(step, Written):
        return value[_meant(value, step, so_far)]
    if isinstance(value, Mapping) and step in value:
        return value[step]
    if type(step) is int and _has_places(value):
        if -len(value) <= step < len(value):
            return value[step]
    elif isinstance(step, str) and not isinstance(value, Mapping) and not step.startswith("__"):
        found = getattr(value, step, _nothing)
        if not callable(found):
            return found
    raise _nothing(so_far, value)


def _meant(value: Value, step: Written, so_far: Sequence[Step]) -> Hashable:
    """The key of `value` that is written so."""
    for key in value if isinstance(value, Mapping) else ():
        if not isinstance(key, str) and repr(key) == step.text:
            return key  # type: ignore[no-any-return]  # keys of any mapping
    raise _nothing(so_far, value)


def _has_places(value: Value) -> bool:
    """Whether items of `value` are counted: a list, text, or an array of at least one dimension."""
    return isinstance(value, Sequence | bytearray) or bool(getattr(value, "shape", ()))


def _nothing(so_far: Sequence[Step], value: object) -> UsageError:
    offered = ", ".join(_offered(value))
    return UsageError(f"there is nothing at {show(so_far)}; there is: {offered or 'nothing'}")


def _offered(value: Any) -> Iterator[str]:  # noqa: ANN401 any state
    if isinstance(value, Mapping):
        yield from (repr(key) for key, _ in zip(value, range(12), strict=False))
    elif _has_places(value):
        what = "characters" if isinstance(value, str) else "items"
        kind = "list" if isinstance(value, list) else type(value).__name__
        yield f"{kind} of {len(value)} {what}"
    else:
        yield type(value).__name__
