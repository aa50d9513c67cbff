"""JSON that a person types, as the values that a function's annotations say."""

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.ondemand import OnDemand
from holdfast.store.codec.hints import hints_of

if TYPE_CHECKING:
    import pydantic
else:
    pydantic = OnDemand("pydantic")

_IN_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def fitted(fn: Callable[..., object], outcome: object) -> object:
    """The outcome in the type that an effect's function says it returns.

    Raises `UsageError` where it cannot be one, since the agent would go on with it: nothing said is
    None, and JSON that a person types is no model yet. What fits already, or where the function
    does not say what fits, stays the object that it is.
    """
    hint = _hints(fn).get("return")
    if hint is None or hint is type(None):
        return outcome
    try:
        return _fit(hint, outcome)
    except pydantic.ValidationError as error:
        what = "nothing" if outcome is None else f"something else ({error.errors()[0]['msg']})"
        raise UsageError(
            f"{fn.__name__} gives back {getattr(hint, '__name__', hint)}, and {what} was said; "
            "say what it gave back: `--happened KEY=JSON`, `--outcome JSON` or `outcome=`"
        ) from None


def as_said(fn: Callable[..., object], outcome: object) -> object:
    """The same where it was said and recorded before anybody knew the function.

    It cannot be said again: what does not fit is given as it is.
    """
    with contextlib.suppress(UsageError):
        return fitted(fn, outcome)
    return outcome


def fitted_arguments(
    fn: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of an agent, in the types that its parameters say; the run is not among them.

    Raises `UsageError` where one cannot be such. What fits already stays the object that it is.
    """
    _, *known = inspect.signature(fn).parameters.values()
    order = [each.name for each in known if each.kind in _IN_ORDER]
    named = {each.name for each in known if each.kind in _BY_NAME}
    optional = {each.name for each in known if each.default is None}
    hints = _hints(fn)

    def fit(name: str, value: object) -> object:
        if value is None and name in optional:
            return None  # `limit: int = None`, as many write it.
        try:
            return _fit(hints[name], value) if name in hints else value
        except pydantic.ValidationError as error:
            wrong = error.errors()[0]
            place = ".".join(map(str, (name, *wrong["loc"])))
            why = f"{place}: {wrong['msg']}"
            msg = f"agent {fn.__name__} cannot take this input: {why}; see --input"
            raise UsageError(msg) from None

    first = [fit(name, value) for name, value in zip(order, args, strict=False)]
    rest = {name: fit(name, value) for name, value in kwargs.items() if name in named}
    return (*first, *args[len(order) :]), {**kwargs, **rest}


def _fit(hint: Any, value: object) -> object:  # noqa: ANN401 any annotation
    """The value in a type; itself where it is one, or nobody can say. May raise ValidationError."""
    try:
        adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(hint)
    except (pydantic.errors.PydanticUserError, TypeError, NameError):
        return value  # A class of which nobody can say what fits.
    made = adapter.validate_python(value)
    return value if _is_same(made, value) or _lacks(made, value) else made


def _lacks(made: object, value: object) -> bool:
    """Whether something that was typed would be gone: keys that a TypedDict does not name."""
    match made, value:
        case (list(), list()):
            return any(map(_lacks, made, value))
        case (dict(), dict()):
            return len(made) < len(value) or any(map(_lacks, made.values(), value.values()))
        case _:
            return False


def _is_same(made: object, value: object) -> bool:
    """Whether fitting changed nothing: 1.5 equals Decimal("1.5"), and is none; 30 is 30.0."""
    if made is value:
        return True
    match made, value:
        case (list(), list()):
            return len(made) == len(value) and all(map(_is_same, made, value))
        case (dict(), dict()):
            keys = _is_same([*made], [*value])
            return keys and _is_same([*made.values()], [*value.values()])
        case (float(), int()):
            return made == value
        case _:
            return isinstance(value, type(made)) and made == value


def _hints(fn: Callable[..., object]) -> dict[str, Any]:
    """The annotations that can be read; others are names for type checkers only."""
    return {name: hint for name, hint in hints_of(fn).items() if not isinstance(hint, str)}
