"""Every number of a place is bound by itself, also where the keys alone would tell two apart."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.codec.frame import seal
from holdfast.store.seal import keys
from holdfast.store.seal.aead import Cipher
from holdfast.store.seal.keys import StoreKeys
from holdfast.store.seal.sealed import SealedRun

MADE, _ = keys.make(b"s" * 16)
CIPHER = Cipher(b"k" * 32, 1)
STRANGE = StoreKeys(b"t" * 16, CIPHER, b"x" * 32)
ENDS = b"a" * 28 + b"b" * 28


def run(no: int = 7, made: StoreKeys = MADE) -> SealedRun:
    """The seals of a run; all runs here share one key, so that the place alone tells them apart."""
    return SealedRun(made, no, CIPHER)


ROW = run().run(RunRow(no=7, kid=b"i" * 16, epoch=3, head=9, mac=b"", body=b""), b"run")
BRANCH = run().branch(BranchRow(no=9, run=7, parent=4, at=5, mac=b"", body=b""), b"m" * 28, b"line")
ENTRY = run().row(1 << 32, b"m" * 28, b"entry")
PACK = run().pack(10, 20, ENDS, seal(b"rows"))


def entry(by: SealedRun, before: bytes = b"m" * 28, **changed: int) -> Callable[[], bytes]:
    return lambda: by.open_row(replace(ENTRY, **changed), before)


def pack(by: SealedRun, first: int = 10, last: int = 20, ends: bytes = ENDS) -> Callable[[], bytes]:
    return lambda: by.open_pack((first, last), ends, *PACK)


def test_what_stands_in_its_place_opens() -> None:
    assert b"run" == run().open_run(ROW)
    assert b"line" == run().open_branch(BRANCH, b"m" * 28)
    assert b"entry" == entry(run())()
    assert seal(b"rows") == pack(run())()


def moved_run(name: str) -> Callable[[], bytes]:
    return lambda: run().open_run(replace(ROW, **{name: 1}))


def moved_branch(name: str) -> Callable[[], bytes]:
    return lambda: run().open_branch(replace(BRANCH, **{name: 1}), b"m" * 28)


ELSEWHERE: dict[str, Callable[[], bytes]] = {
    **{f"another {name} of a run": moved_run(name) for name in ("no", "epoch", "head")},
    "another name of a run": lambda: run().open_run(replace(ROW, kid=b"j" * 16)),
    **{f"another {name} of a branch": moved_branch(name) for name in ("no", "run", "parent", "at")},
    "a branch after another row": lambda: run().open_branch(BRANCH, b"n" * 28),
    "a row of another run": entry(run(8)),
    "another number of a row": entry(run(), id=2 << 32),
    "a row after another row": entry(run(), b"n" * 28),
    "a row of another store": entry(run(made=STRANGE)),
    "a pack of another run": pack(run(8)),
    "another first row of a pack": pack(run(), first=11),
    "another last row of a pack": pack(run(), last=21),
    "a pack between other rows": pack(run(), ends=ENDS[::-1]),
    "a pack of another store": pack(run(made=STRANGE)),
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_what_stands_elsewhere_does_not_open(where: str) -> None:
    with pytest.raises(Damaged):
        ELSEWHERE[where]()


def test_names_tell_kinds_and_runs_apart() -> None:
    kinds = {MADE.name(kind, b"the same") for kind in (b"run", b"intent", b"chunk")}

    assert 3 == len(kinds)
    assert run(7).mark(b"intent") != run(8).mark(b"intent")


def test_a_row_out_of_a_pack_follows_the_row_before_it() -> None:
    packed = JournalRow(id=5, mac=b"m" * 28, body=seal(b"entry"), before=b"p" * 28)

    assert b"entry" == run().open_row(packed, b"p" * 28)
    with pytest.raises(Damaged, match="does not follow"):
        run().open_row(packed, b"q" * 28)
    with pytest.raises(Damaged, match="without the row before"):
        run().open_row(packed, None)
