"""Places inside a state as people write them: `messages[-3:].content`, `["odd key"][0]`."""

import re
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence

from holdfast.errors import UsageError

Step = str | int | slice

_STEP = re.compile(
    r"""\.?(?P<name>[^\W\d]\w*)            # a name, as in messages or .content
    | \[(?P<index>-?\d+)\]                 # a place in a list
    | \[(?P<low>-?\d*):(?P<high>-?\d*)\]   # a part of a list
    | \["(?P<double>(?:[^"\\]|\\.)*)"\]    # a key that is no name
    | \['(?P<single>(?:[^'\\]|\\.)*)'\]""",
    re.VERBOSE,
)


def parse(text: str) -> list[Step]:
    """Read a path; `UsageError` names the place where it stops making sense."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            msg = f"path {text!r} cannot be read from {text[at:]!r}; write it as messages[-3:].role"
            raise UsageError(msg)
        steps.append(_step(found))
        at = found.end()
    return steps


def _step(found: re.Match[str]) -> Step:
    if found["name"] is not None:
        return found["name"]
    if found["index"] is not None:
        return int(found["index"])
    if found["low"] is not None:
        return slice(*(int(part) if part else None for part in (found["low"], found["high"])))
    quoted = found["double"] if found["double"] is not None else found["single"]
    return re.sub(r"\\(.)", r"\1", quoted)


def show(steps: Sequence[object]) -> str:
    """A path in the form that `parse` reads."""
    return "".join(_shown(step, is_first=n == 0) for n, step in enumerate(steps)) or "state"


def _shown(step: object, *, is_first: bool) -> str:
    if isinstance(step, str) and step.isidentifier():
        return step if is_first else f".{step}"
    if isinstance(step, str):
        return '["' + step.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return f"[{step!r}]"


def pick(value: object, steps: Sequence[Step]) -> object:
    """What stands at a path; after a part of a list, the rest of the path goes into each item."""
    for n, step in enumerate(steps):
        if isinstance(step, slice):
            if not isinstance(value, Sequence) or isinstance(value, str | bytes):
                raise _nothing(steps[: n + 1], value)
            rest = steps[n + 1 :]
            return [pick(item, rest) for item in value[step]]
        value = _one(value, step, steps[: n + 1])
    return value


def put(value: object, steps: Sequence[Step], new: object) -> None:
    """Set what stands at a path; what it stands in must be there."""
    *above, last = steps or [slice(None)]
    within = pick(value, above)
    if isinstance(last, slice) or any(isinstance(step, slice) for step in above):
        msg = f"{show(steps)} does not name one place; write it as notes or messages[-1].content"
        raise UsageError(msg)
    if isinstance(within, MutableMapping):
        within[last] = new
    elif isinstance(within, MutableSequence) and isinstance(last, int):
        _one(within, last, steps)
        within[last] = new
    else:
        raise _nothing(steps, within)


def _one(value: object, step: str | int, so_far: Sequence[Step]) -> object:
    if isinstance(value, Mapping) and step in value:
        return value[step]
    if isinstance(step, int) and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if -len(value) <= step < len(value):
            return value[step]
    elif isinstance(step, str) and not isinstance(value, Mapping) and hasattr(value, step):
        return getattr(value, step)
    raise _nothing(so_far, value)


def _nothing(so_far: Sequence[Step], value: object) -> UsageError:
    offered = ", ".join(_offered(value))
    return UsageError(f"there is nothing at {show(so_far)}; there is: {offered or 'nothing'}")


def _offered(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (repr(key) for key, _ in zip(value, range(12), strict=False))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield f"{len(value)} items"
    else:
        yield type(value).__name__
