"""The head note: a witness of acknowledged rows beside the database."""

import errno
import os
from pathlib import Path

import pytest

from holdfast.errors import StoreUnwritable
from holdfast.model.ids import row_id
from holdfast.store.backends.heads import SLOTS, HeadNote

MAC = bytes(range(32))


def test_a_note_is_read_back_by_another_handle(tmp_path: Path) -> None:
    note = HeadNote(tmp_path / "heads")
    assert [] == list(note.read())

    note.write(row_id(1, 5), MAC)
    note.write(row_id(2, 7), MAC[::-1])
    note.write(row_id(1, 6), MAC)

    assert [(row_id(1, 6), MAC), (row_id(2, 7), MAC[::-1])] == list(
        HeadNote(tmp_path / "heads").read()
    )
    note.close()
    note.close()


def test_branches_that_share_a_slot_leave_the_newest_note(tmp_path: Path) -> None:
    note = HeadNote(tmp_path / "heads")

    note.write(row_id(3, 1), MAC)
    note.write(row_id(3 + SLOTS, 1), MAC)

    assert [(row_id(3 + SLOTS, 1), MAC)] == list(note.read())
    note.close()


def test_a_torn_or_changed_slot_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "heads"
    note = HeadNote(file)
    note.write(row_id(1, 5), MAC)
    note.write(row_id(2, 5), MAC)
    whole = file.read_bytes()

    for place in range(64, 64 + 44):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert [(row_id(2, 5), MAC)] == list(note.read())
    for size in range(128 + 44):
        file.write_bytes(whole[:size])
        assert (row_id(2, 5), MAC) not in list(note.read())
    note.close()


def test_a_forked_child_lets_the_note_go_without_a_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = HeadNote(tmp_path / "heads")
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)

    note.abandon()
    note.abandon()
    note.close()

    assert [] == flushed


def test_a_note_that_cannot_be_made_or_written_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "heads").mkdir()
    with pytest.raises(StoreUnwritable):
        HeadNote(tmp_path / "heads")

    note = HeadNote(tmp_path / "other")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        with pytest.raises(StoreUnwritable, match="no space left"):
            note.write(row_id(1, 1), MAC)
    note.close()
