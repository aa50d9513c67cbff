"""A planted fault: which text of the source becomes which, and the test that must notice."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """In `file` of the package, `old`, which stands there once, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A fault of the list in RELIABILITY §9, named by its words, and the test that kills it."""

    fault: str
    name: str
    killed_by: str
    edits: tuple[Edit, ...]


def mutant(fault: str, name: str, killed_by: str, *edits: tuple[str, str, str]) -> Mutant:
    """A mutant of edits given as (file, old, new)."""
    return Mutant(fault, name, killed_by, tuple(Edit(*edit) for edit in edits))
