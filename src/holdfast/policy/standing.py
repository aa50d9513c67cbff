"""What the entries of a ledger come to: which word stands for each question."""

from holdfast.model.ledger import LedgerEntry, Said


class Standing:
    """A ledger as it stands after the entries taken in so far."""

    def __init__(self) -> None:
        self.words: dict[bytes, Said] = {}

    def take(self, entry: LedgerEntry) -> None:
        """Take in the next entry; what was said first stays."""
        if isinstance(entry, Said):
            self.words.setdefault(entry.key, entry)
