"""A person's word on effects in doubt, as the command line takes it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import UsageError
from holdfast.report.doubts import Doubt


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """What a person says of an effect in doubt."""

    key: str
    happened: bool
    outcome: object = None


def said_happened(text: str) -> Word:
    """What `--happened KEY[=JSON]` says."""
    key, equals, outcome = text.partition("=")
    try:
        return Word(key=key, happened=True, outcome=json.loads(outcome) if equals else None)
    except ValueError as error:
        msg = f"--happened {key}=…: the outcome is no JSON ({error}); a text is written '\"so\"'"
        raise UsageError(msg) from error


def said_not_done(text: str) -> Word:
    """What `--not-done KEY` says."""
    return Word(key=text, happened=False)


def in_full(word: Word, run: str, doubts: Sequence[Doubt]) -> Word:
    """The word with its key in full; keys are named by their start, like ids."""
    keys = [doubt.key for doubt in doubts]
    alike = [key for key in keys if word.key and key.startswith(word.key)]
    if len(alike) != 1:
        what = "several effects" if alike else "no effect"
        known = ", ".join(keys) or "none"
        msg = f"run {run} has {what} in doubt whose key begins with {word.key!r} (keys: {known})"
        raise UsageError(msg)
    return Word(key=alike[0], happened=word.happened, outcome=word.outcome)
