"""Exception, exit status or signal → the kind of failure it is.

Pure: an error is judged by what can be read on it (the names of its classes, an HTTP status, an
error code, an errno), so no provider's library is imported. The first that knows it counts: the
user's rules, what Holdfast itself raised, a provider's error code, the HTTP status, the classes
from the most special to the most general, the errno; at last what it was raised from.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from holdfast.model.failure import TEXT_CHARS_MAX, Ended, Failure, FailureKind
from holdfast.policy.known import CODES, ERRNOS, EXITS, NAMES, SIGNALS, STATUSES
from holdfast.policy.signs import (
    cause_of,
    class_names,
    code_of,
    errno_of,
    members_of,
    recorded_names,
    retry_after_of,
    should_retry,
    status_of,
    words_of,
)

Rule: TypeAlias = Callable[[BaseException | Ended], FailureKind | str | None]
"""A user's rule: the kind, or its word such as "transient"; None where it does not know."""

DEPTH_MAX = 8
_SERVER_ERROR, _SERVER_ERROR_LAST = 500, 599
_EXIT_SIGNALLED, _EXIT_SIGNALLED_LAST = 128, 192
_Said: TypeAlias = tuple[FailureKind, str]


def classify(
    raised: BaseException | Ended, *, rules: Iterable[Rule] = (), now: float = 0.0
) -> Failure:
    """The failure that `raised` is; `now` (wall time) is what a `Retry-After` date counts from.

    What nothing knows is `unknown`, which escalates.
    """
    kind, why = _by_rules(raised, rules) or _by_table(raised)
    return Failure(
        kind=kind,
        what=_what(raised),
        why=why,
        sign=_sign(raised),
        retry_after_s=None if isinstance(raised, Ended) else _retry_after(raised, now),
    )


def classify_name(module: str, name: str, message: str) -> Failure:
    """The failure that a recorded error is of which only the name is left."""
    full = f"{module}.{name}"
    kind, why = _by_names(recorded_names(module, name)) or (
        FailureKind.UNKNOWN,
        f"no rule knows {full}",
    )
    return Failure(kind=kind, what=_line(name, message), why=why, sign=full)


def _by_rules(raised: BaseException | Ended, rules: Iterable[Rule]) -> _Said | None:
    for rule in rules:
        name = getattr(rule, "__name__", "rule")
        try:
            said = rule(raised)
            kind = None if said is None else FailureKind(said)
        except Exception as error:  # noqa: BLE001 a user's rule may raise anything; a person decides
            return (
                FailureKind.UNKNOWN,
                f"rule {name} raised {type(error).__name__}: {words_of(error)}",
            )
        if kind is not None:
            return kind, f"rule {name}"
    return None


def _by_table(raised: BaseException | Ended, depth: int = 0) -> _Said:
    if isinstance(raised, Ended):
        return _ended(raised)
    if depth == DEPTH_MAX:
        return FailureKind.UNKNOWN, "its causes are nested too deep"
    inner = members_of(raised)
    if inner:
        return _together([_by_table(each, depth + 1) for each in inner])
    said = (
        _by_word(raised)
        or _by_code(raised)
        or _by_status(raised)
        or _by_names(class_names(raised))
        or _by_errno(raised)
    )
    cause = cause_of(raised)
    if said is None and cause is not None:
        kind, why = _by_table(cause, depth + 1)
        return kind, f"raised from {type(cause).__name__}: {why}"
    return said or (FailureKind.UNKNOWN, f"no rule knows {_sign(raised)}")


def _together(said: list[_Said]) -> _Said:
    """Several at once: what all of them are, else a partial failure."""
    kinds = sorted({kind for kind, _ in said})
    if len(kinds) == 1:
        return said[0][0], f"all {len(said)} errors of a group: {said[0][1]}"
    return FailureKind.PARTIAL, f"a group of errors of different kinds: {', '.join(kinds)}"


def _by_word(error: BaseException) -> _Said | None:
    """What the server itself says about trying again."""
    word = should_retry(error)
    if word is None:
        return None
    if word:
        return FailureKind.TRANSIENT, "the server says x-should-retry: true"
    said = _by_code(error) or _by_status(error)
    if said is None or said[0] is FailureKind.TRANSIENT:
        return FailureKind.UNKNOWN, "the server says x-should-retry: false"
    return said


def _by_code(error: BaseException) -> _Said | None:
    code = code_of(error)
    kind = None if code is None else CODES.get(code)
    return None if kind is None else (kind, f"error code {code}")


def _by_status(error: BaseException) -> _Said | None:
    status = status_of(error)
    if status is None:
        return None
    kind = STATUSES.get(status)
    if kind is None and _SERVER_ERROR <= status <= _SERVER_ERROR_LAST:
        kind = FailureKind.TRANSIENT
    return (kind or FailureKind.UNKNOWN), f"HTTP status {status}"


def _by_names(classes: Iterable[tuple[str, str]]) -> _Said | None:
    for module, name in classes:
        package = module.partition(".")[0]
        kind = NAMES.get((package, name.rpartition(".")[2]))
        if kind is not None:
            return kind, f"{module}.{name}"
    return None


def _by_errno(error: BaseException) -> _Said | None:
    number = errno_of(error)
    kind = None if number is None else ERRNOS.get(number)
    return None if kind is None else (kind, f"errno {number}")


def _ended(ended: Ended) -> _Said:
    if ended.is_hung:
        return FailureKind.TIMEOUT, "no progress within the limit"
    if ended.signal is not None:
        return FailureKind.CRASH, f"signal {ended.signal}"
    status = ended.status or 0
    kind = EXITS.get(status)
    if kind is None and _EXIT_SIGNALLED < status < _EXIT_SIGNALLED_LAST:
        return FailureKind.CRASH, f"exit status {status} (signal {status - _EXIT_SIGNALLED})"
    return kind or FailureKind.UNKNOWN, f"exit status {status}"


def _retry_after(error: BaseException, now: float) -> float | None:
    seen: BaseException | None = error
    for _ in range(DEPTH_MAX):
        if seen is None:
            break
        found = retry_after_of(seen, now)
        if found is not None:
            return found
        seen = cause_of(seen)
    return None


def _what(raised: BaseException | Ended) -> str:
    if isinstance(raised, Ended):
        return str(raised)
    return _line(type(raised).__qualname__, words_of(raised))


def _line(name: str, message: str) -> str:
    text = " ".join(message.split())
    return (f"{name}: {text}" if text else name)[:TEXT_CHARS_MAX]


def _sign(raised: BaseException | Ended) -> str:
    if not isinstance(raised, Ended):
        return f"{type(raised).__module__}.{type(raised).__qualname__}"
    if raised.is_hung:
        return "hung"
    if raised.signal is None:
        return f"exit {raised.status}"
    return f"signal {SIGNALS.get(raised.signal, raised.signal)}"
