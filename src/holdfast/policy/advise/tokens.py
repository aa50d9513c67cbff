"""Work that is recorded within a call: a stream's tokens, so that a cut call goes on from them."""

import math

from msgspec.structs import replace

from holdfast.model.case import Case, Scope, Strategy, Unit


def is_known(case: Case) -> bool:
    """Whether the case says enough of tokens: how many, and that a call can go on from a prefix."""
    return case.saving.continues and any(_parts(unit, case) > 1 for unit in case.units)


def records(case: Case) -> int:
    """How many units the work has where tokens are recorded as they arrive."""
    return sum(_parts(unit, case) for unit in case.units)


def off(case: Case) -> list[str]:
    """The ways to save that are not ranked, each with what is missing for it."""
    saving, found = case.saving, []
    if saving.snapshot_local_s is None and saving.snapshot_remote_s is None:
        found.append("snapshots: give saving.snapshot_local or snapshot_remote, and snapshot_bytes")
    if not any(unit.tokens for unit in case.units):
        found.append("token records: give tokens of a work.unit, and saving.continues = true")
    elif not saving.continues:
        found.append(
            "token records: they help where the provider continues a prefix (saving.continues)"
        )
    elif not is_known(case):
        found.append(f"token records: no {case.unit} has more than saving.tokens_every tokens")
    return found


def seen_by(case: Case, strategy: Strategy) -> Case:
    """The case as a strategy meets it: with token records, calls are cut where one is made.

    A record of tokens is no point to roll back to, so a rollback passes all those of a call.
    """
    if not strategy.is_streamed:
        return case
    most = max(_parts(unit, case) for unit in case.units)
    return replace(
        case,
        units=[part for unit in case.units for part in _cut(unit, _parts(unit, case))],
        causes=[
            replace(cause, generations=cause.generations * most)
            if cause.scope is Scope.ROLLBACK
            else cause
            for cause in case.causes
        ],
    )


def _parts(unit: Unit, case: Case) -> int:
    return max(1, math.ceil(unit.tokens / case.saving.tokens_every))


def _cut(unit: Unit, parts: int) -> list[Unit]:
    part = replace(
        unit, seconds=unit.seconds / parts, usd=unit.usd / parts, bytes=unit.bytes / parts
    )
    whole = [replace(part, is_effect=False)] * (parts - 1)
    return [*whole, part]
