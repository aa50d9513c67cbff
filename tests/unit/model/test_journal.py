"""What a journal holds: every entry comes back from its bytes as what it was."""

from typing import get_args

import msgspec
import pytest

from holdfast.model.ids import Range
from holdfast.model.journal import (
    Answer,
    Asked,
    Based,
    Call,
    Declined,
    Entry,
    Error,
    Failed,
    Finished,
    Happened,
    Intended,
    LoopLeft,
    Noted,
    Raised,
    Redone,
    Resumed,
    Row,
    Saved,
    Started,
    TurnEnded,
    Usage,
)
from holdfast.model.limits import SLA, Every
from holdfast.model.run import Holder

HOLDER = Holder(pid=7, host="reef", since=5.0)
ASKED = [Asked("city", "'Kiel'", b"\x01" * 8)]
STEP = Call(3, "search", b"d" * 16, 0, 2, is_side=False, asked=ASKED)
INNER = Call(b"id of a call", "search", b"d" * 16, 1, 0, is_side=True, asked=[])
ERROR = Error("m", "Bad", "why", b"args", "trace")

ENTRIES: list[Entry] = [
    Started(1.0, "a", "m", "2", b"args", b"d", ASKED, Every(turns=2), SLA(), HOLDER, "0.1", "3.11"),
    Resumed(1.0, 2, HOLDER, None),
    Answer(STEP, b"value", 1.0, 0.5, Usage("m", 1, None)),
    Raised(INNER, ERROR, 1.0, 0.5, 1),
    Noted(STEP, b"value"),
    Intended(STEP, "key", b"about", 1, b"args", 1.0, 2),
    Happened(STEP, "key", b"value", 1.0, 0.5, "probe", None),
    Declined(STEP, "key", None, 1.0, 0.5, "person"),
    TurnEnded(3, 0, 1.0, b"delta", is_checkpoint=True, is_loop_over=False, used=Usage()),
    LoopLeft(3, 0, None),
    Based(3, 0, b"state", [Range(1, 2)]),
    Saved(STEP, 3, 1.0, "label", b"state"),
    Finished(1.0, b"value", None),
    Failed(1.0, "failed", ERROR),
    Redone(1.0, 5, None),
]


def test_every_kind_of_entry_is_looked_at_here() -> None:
    assert [entry.__name__ for entry in get_args(Entry)] == [type(e).__name__ for e in ENTRIES]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_comes_back_from_its_bytes(entry: Entry) -> None:
    row = Row(-1, 3, [entry, entry])

    assert row == msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=Row)


def test_the_kinds_are_told_apart_by_the_numbers_that_the_format_gives_them() -> None:
    kinds = [msgspec.msgpack.decode(msgspec.msgpack.encode(entry))[0] for entry in ENTRIES]

    assert list(range(15)) == kinds
