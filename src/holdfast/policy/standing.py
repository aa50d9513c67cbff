"""What the entries of a ledger come to: which word stands for each question, what was spent."""

from decimal import Decimal

from holdfast.model.ledger import LedgerEntry, Notified, Said, Spent


class Standing:
    """A ledger as it stands after the entries taken in so far.

    `words` are by question, `spendings` by call, `budgets` (the newest spending of each) by name;
    `deliveries` are those that succeeded.
    """

    def __init__(self) -> None:
        self.words: dict[bytes, Said] = {}
        self.spendings: dict[bytes, Spent] = {}
        self.budgets: dict[str, Spent] = {}
        self.deliveries: set[str] = set()

    def take(self, entry: LedgerEntry) -> None:
        """Take in the next entry; what was said first stays."""
        if isinstance(entry, Said):
            self.words.setdefault(entry.key, entry)
        elif isinstance(entry, Spent):
            self.spendings[entry.id] = self.budgets[entry.budget] = entry
        elif isinstance(entry, Notified):
            self.deliveries.add(entry.id)

    def spent(self, budget: str) -> Decimal:
        """What a budget has spent in all."""
        newest = self.budgets.get(budget)
        return Decimal(0) if newest is None else Decimal(newest.total)
