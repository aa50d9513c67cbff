"""`@validate`: invariants of a state, by name, and what fails them."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar, overload

from holdfast.capture.tracked import TrackedDict, inside, plain
from holdfast.engine.question import name_of
from holdfast.errors import ChangedInCall, UsageError
from holdfast.store.codec.shapes import is_pydantic
from holdfast.store.codec.veil import redact

C = TypeVar("C", bound=Callable[..., Any])

FAULTS_SHOWN_MAX = 3


class Validator(Generic[C]):
    """A function or Pydantic schema that a state, or one section of it, has to pass."""

    def __init__(self, check: C, section: str | None = None) -> None:
        given: object = check
        self._is_schema = isinstance(given, type) and is_pydantic(given)
        if not callable(given) or (isinstance(given, type) and not self._is_schema):
            msg = f"a validator is a function or a Pydantic model, not {given!r}"
            raise UsageError(msg)
        self.check, self.section, self.name = check, section, name_of(check)
        if inspect.iscoroutinefunction(check):
            msg = f"validator {self.name} is asynchronous; it is called between turns, as is"
            raise UsageError(msg)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 the user's own types
        """Call the function itself."""
        return self.check(*args, **kwargs)

    def fault(self, state: TrackedDict) -> str | None:
        """Why `state` fails; None if it passes, or has no such section."""
        if self.section is not None and self.section not in state:
            return None
        value: Any = state if self.section is None else state[self.section]
        before = inside.get()
        try:
            inside.set(self.name)
            if self._is_schema:
                self.check.model_validate(plain(value))  # type: ignore[attr-defined]  # a schema is a Pydantic model
                return None
            result = self.check(value)
        except ChangedInCall:
            raise
        except Exception as error:  # noqa: BLE001 any error of the user's means: it fails
            return _told(error)
        finally:
            inside.set(before)
        return None if result is None or result else f"it returned {result!r}"


Check: TypeAlias = Validator[Any] | Callable[..., Any]


@overload
def validate(check: C, /) -> Validator[C]: ...
@overload
def validate(*, section: str | None = None) -> Callable[[C], Validator[C]]: ...
def validate(check: C | None = None, /, *, section: str | None = None) -> Any:
    """Name an invariant of the state: a function that returns False or raises, or a schema.

    It is given the state, or its section `section` where there is one, and may not change it.
    `@holdfast.agent(validate=[...])` says for which agent it holds: it is checked before a
    checkpoint is published and after the state was restored.
    """

    def declare(check: C) -> Validator[C]:
        return Validator(check, section)

    return declare if check is None else declare(check)


def validators(checks: Any) -> tuple[Validator[Any], ...]:  # noqa: ANN401 one, or some
    """What `validate=` of an agent names, as validators."""
    is_many = isinstance(checks, Iterable) and not isinstance(checks, type)
    named = checks if is_many else (checks,)
    return tuple(each if isinstance(each, Validator) else Validator(each) for each in named)


def first_fault(checks: Iterable[Validator[Any]], state: TrackedDict) -> tuple[str, str] | None:
    """The first validator that a state fails, and why."""
    for check in checks:
        why = check.fault(state)
        if why is not None:
            return check.name, redact(why)
    return None


def _told(error: Exception) -> str:
    """An error of a validator in one line; of a schema, the places and what is wrong there."""
    listed = getattr(error, "errors", None)
    if _is_of_schema(error) and listed is not None:
        faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in listed()]
        more = len(faults) - FAULTS_SHOWN_MAX
        shown = "; ".join(faults[:FAULTS_SHOWN_MAX])
        return f"{shown} (and {more} more)" if more > 0 else shown
    return f"{type(error).__name__}: {error}"


def _is_of_schema(error: Exception) -> bool:
    """Whether an error is Pydantic's, asked without loading Pydantic."""
    return type(error).__name__ == "ValidationError" and type(error).__module__.startswith(
        "pydantic"
    )
