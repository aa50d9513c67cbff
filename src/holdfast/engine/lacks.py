"""What is told where something looked secret: that it was left out, that it did not come back."""

import logging
from collections.abc import Collection, Sequence
from typing import TypeAlias

from holdfast.model.secrets import Exposed, Incomplete, Redacted
from holdfast.store.codec.secret import shown
from holdfast.store.codec.vault import Guard

Log: TypeAlias = "logging.LoggerAdapter[logging.Logger]"


def redacted(guard: Guard, log: Log, now: float) -> list[Redacted]:
    """What was left out of what is recorded now, told once.

    It goes in front of a row: a base stands right behind the turn's end that it names.
    """
    found, guard.redacted = guard.redacted, []
    for place, kind in found:
        log.warning(
            "%s looks secret (%s) and is not stored: after a restart it is missing; "
            "name it with holdfast.secret(...)",
            place,
            kind,
        )
    return [Redacted(now, place, kind) for place, kind in found]


def incomplete(places: Sequence[str], log: Log, now: float) -> Incomplete:
    """What came back without a part that was left out."""
    for place in places:
        log.warning("degraded: %s: a part that looked secret was not stored", place)
    return Incomplete(now, list(places))


def exposed(run: str, references: Collection[str], log: Log, now: float) -> Exposed:
    """What stands in clear in what a restart read, stored before it was declared a secret."""
    found = sorted(references)
    for reference in found:
        log.warning(
            "%s was declared after this run had stored its value in clear: renew that secret; "
            "`holdfast erase %s` removes the run with it",
            shown(reference),
            run,
        )
    return Exposed(now, found)
