"""`secret`: a value that is stored as a reference, never as itself."""

import datetime as dt
from collections.abc import Mapping

from holdfast.clock import SystemClock
from holdfast.errors import UsageError
from holdfast.model.limits import seconds
from holdfast.model.secrets import SecretRules
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.vault import Guard, vault
from holdfast.store.codec.veil import is_clean, leak_in, redact, text_bytes

MODES = ("redact", "strict")

__all__ = ["Secret", "redact", "secret"]


def secret(
    reference: str,
    *,
    expires: dt.datetime | float | str | None = None,
    value: str | None = None,
) -> Secret:
    """The secret that `reference` names: `env:NAME`, `file:PATH`, `cmd:COMMAND`, or `name:ANY`.

    The value is looked up now; of `name:` it is given as `value`. It is a `str`, so SDKs take it.
    Stored is the reference alone, and a restart looks it up again. `expires` is a time, or from now
    on a number of seconds or `"1h"`; after that the secret is not brought back to life.
    """
    if value is not None and (type(value) is not str or not value):
        msg = f"secret({reference!r}, value=…) takes a text that is not empty"
        raise UsageError(msg)
    return vault.declare(reference, _moment(expires), value)


def rules_of(asked: str | SecretRules) -> SecretRules:
    """What `open(secrets=)` says, as rules."""
    if isinstance(asked, SecretRules):
        return asked
    if asked not in MODES:
        msg = f"secrets= takes {' or '.join(map(repr, MODES))} or SecretRules, not {asked!r}"
        raise UsageError(msg)
    return SecretRules(strict=asked == "strict")


def refuse_secret_values(environment: Mapping[str, str], rules: SecretRules) -> None:
    """In a strict store, refuse to record variables whose values look secret."""
    guard = Guard(rules=rules)
    for name, value in environment.items():
        kind = leak_in(text_bytes(value))
        if kind is not None and rules.strict:
            guard.judge(f"environment {name}", kind)


def refuse_secret_id(run: str) -> None:
    """A run's id is shown everywhere and never changed: a secret has no place in it."""
    if not is_clean(text_bytes(run)):
        msg = f"the run id {redact(run)!r} holds a secret; choose another id"
        raise UsageError(msg)


def _moment(expires: dt.datetime | float | str | None) -> float | None:
    """When a secret expires, in seconds since 1970."""
    if expires is None:
        return None
    if isinstance(expires, dt.datetime):
        return expires.timestamp()
    try:
        return SystemClock().now() + seconds(expires)
    except ValueError as error:
        raise UsageError(f"expires: {error}") from None
