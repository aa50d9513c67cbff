"""What can be read on an exception of any library: status, code, headers, causes; imports none."""

import builtins
import contextlib
import datetime as dt
import email.utils
from collections.abc import Iterator, Mapping

from holdfast.errors import RunFailed, StepError

RETRY_AFTER_S_MAX = 7 * 86400.0
_STATUS_FIRST, _STATUS_LAST = 100, 599
_FROM_MS = 1000.0


def class_names(error: BaseException) -> Iterator[tuple[str, str]]:
    """Module and name of an error's classes, the most special first.

    An error that stands for a recorded one has the name that the record has.
    """
    if isinstance(error, StepError | RunFailed):
        module, _, name = error.kind.rpartition(".")
        yield from recorded_names(module or "builtins", name)
    for cls in type(error).__mro__:
        yield cls.__module__, cls.__qualname__


def recorded_names(module: str, name: str) -> Iterator[tuple[str, str]]:
    """The same of a class by its name alone; of a built-in one also what it is derived from."""
    found = getattr(builtins, name, None) if module == "builtins" else None
    if isinstance(found, type):
        yield from ((cls.__module__, cls.__qualname__) for cls in found.__mro__)
    else:
        yield module, name


def words_of(error: BaseException) -> str:
    """The text of an error; where its class cannot make one, what a traceback says then."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 a user's class may raise anything here
        return "<exception str() failed>"


def members_of(error: BaseException) -> list[BaseException]:
    """The errors that an exception group holds."""
    return list(error.exceptions) if isinstance(error, BaseExceptionGroup) else []


def cause_of(error: BaseException) -> BaseException | None:
    """What the error was raised from, where the program says so; urllib calls it the reason."""
    reason = None if error.__cause__ is not None else _get(error, "reason")
    return reason if isinstance(reason, BaseException) else error.__cause__


def status_of(error: BaseException) -> int | None:
    """The HTTP status an error carries, as OpenAI, Anthropic, httpx, requests, aiohttp, urllib,
    Google and botocore write it.
    """  # noqa: D205 a list of names
    response = _get(error, "response")
    candidates = (
        _get(error, "status_code"),
        _get(error, "status"),
        _get(error, "code"),
        _get(error, "http_status"),
        _get(response, "status_code"),
        _get(response, "status"),
        _get(_get(response, "ResponseMetadata"), "HTTPStatusCode"),
    )
    return next((each for each in candidates if _is_status(each)), None)  # type: ignore[return-value]  # `_is_status` says that it is an int


def code_of(error: BaseException) -> str | None:
    """A provider's own word for the error: `insufficient_quota`, `ThrottlingException`."""
    body = _get(error, "body")
    inner = _get(body, "error")
    response = _get(error, "response")
    candidates = (
        _get(error, "code"),
        _get(inner, "code"),
        _get(inner, "type"),
        _get(body, "code"),
        _get(body, "type"),
        _get(error, "type"),
        _get(_get(response, "Error"), "Code"),
        _get(_get(error, "code"), "name"),
    )
    return next((each for each in candidates if isinstance(each, str) and each), None)


def errno_of(error: BaseException) -> int | None:
    """The errno of an `OSError`."""
    return error.errno if isinstance(error, OSError) else None


def should_retry(error: BaseException) -> bool | None:
    """What the server says in `x-should-retry`, if it says anything."""
    return {"true": True, "false": False}.get((_header(error, "x-should-retry") or "").lower())


def retry_after_of(error: BaseException, now: float) -> float | None:
    """How long the other side asks to be left alone, in seconds; None if it does not say."""
    ms = _number(_header(error, "retry-after-ms"))
    if ms is not None:
        return _bounded(ms / _FROM_MS)
    text = _header(error, "retry-after")
    found = _number(text)
    if found is None and text:
        found = _until(text, now)
    if found is None:
        found = _number(_get(error, "retry_after"))
    return None if found is None else _bounded(found)


def _until(text: str, now: float) -> float | None:
    """Seconds from now to an HTTP date."""
    with contextlib.suppress(ValueError, TypeError):
        at = email.utils.parsedate_to_datetime(text)
        return (at if at.tzinfo else at.replace(tzinfo=dt.UTC)).timestamp() - now
    return None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), RETRY_AFTER_S_MAX)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]  # whatever it is, `float` says whether it is a number
    except (TypeError, ValueError):
        return None
    return found if found == found and abs(found) != float("inf") else None  # noqa: PLR0124 NaN


def _header(error: BaseException, name: str) -> str | None:
    response = _get(error, "response")
    for headers in (
        _get(response, "headers"),
        _get(error, "headers"),
        _get(_get(response, "ResponseMetadata"), "HTTPHeaders"),
    ):
        if headers is not None:
            for key in (name, name.title()):
                value = _item(headers, key)
                if isinstance(value, str):
                    return value
    return None


def _item(headers: object, key: str) -> object:
    get = getattr(headers, "get", None)
    if get is None:
        return None
    try:
        return get(key)
    except Exception:  # noqa: BLE001 somebody's own mapping; then it says nothing
        return None


def _get(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return value.get(name)
    if value is None or isinstance(value, str | bytes | int | float | list | tuple):
        return None
    try:
        found = getattr(value, name, None)
    except Exception:  # noqa: BLE001 a property of somebody's error; then it says nothing
        return None
    return None if callable(found) else found


def _is_status(value: object) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return _STATUS_FIRST <= value <= _STATUS_LAST
