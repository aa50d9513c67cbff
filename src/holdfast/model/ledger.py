"""What a run's ledger holds: what people said and what was spent, outside what rolls back.

The ledger is a branch beside the history of a run, its branches and its forks. Whoever has
something to say appends to it; of two who say it at once the first one stands.
"""

from typing import TypeAlias

import msgspec


class Opened(msgspec.Struct, frozen=True, array_like=True, tag=32):
    """The ledger of a run, its branches and its forks begins."""

    at: float


class Said(msgspec.Struct, frozen=True, array_like=True, tag=35):
    """A person's word on a question, or that its time ran out; the first one stands.

    `key` binds it to one question of one run of one store; `kind` and `text` are the question's;
    `word` is answered, approved, rejected or expired.
    """

    key: bytes
    id: str
    run: str
    kind: str
    text: str
    asked: float
    word: str
    value: bytes | None
    by: str | None
    note: str | None
    at: float
    nonce: bytes


class Spent(msgspec.Struct, frozen=True, array_like=True, tag=36):
    """Something was spent from a budget, for good; amounts are decimal numbers as text.

    `id` binds it to one call of one run of one store; `total` is what the budget has spent with it
    and `limit` what it might spend then.
    """

    id: bytes
    budget: str
    run: str
    amount: str
    total: str
    limit: str
    what: str | None
    at: float


class Notified(msgspec.Struct, frozen=True, array_like=True, tag=37):
    """People were told of an item of the inbox; `how` is webhook, command or apprise.

    `id` names the delivery: the same however often it was tried.
    """

    id: str
    item: str
    run: str
    how: str
    attempts: int
    at: float


LedgerEntry: TypeAlias = Opened | Said | Spent | Notified
