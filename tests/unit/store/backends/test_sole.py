"""What a process may believe of its branches, and when it no longer may."""

import pytest

from holdfast.model.ids import row_id
from holdfast.store.backends import sole
from holdfast.store.backends.base import RunRow, Write
from holdfast.store.backends.sole import Soles
from holdfast.testing.rows import append, create, grow, journal_row


@pytest.fixture
def soles() -> Soles:
    """It has written row 3 of branch 1, for run 7 under epoch 1, while the fence was 5."""
    soles = Soles()
    soles.learn([append(7, journal_row(1, 3))], [row_id(1, 3)], 5)
    return soles


def test_the_row_behind_the_newest_is_next_and_so_is_the_one_behind_it(soles: Soles) -> None:
    both: list[Write] = [append(7, journal_row(1, 4)), append(7, journal_row(1, 5))]

    assert soles.are_next(both, 5)
    assert soles.are_next([append(7, journal_row(1, 6))], 5)
    assert not soles.are_next([append(7, journal_row(1, 6))], 5)


RAISED = RunRow(no=7, kid=b"", epoch=1, head=1, mac=b"", body=b"")


@pytest.mark.parametrize(
    "write",
    [
        append(7, journal_row(1, 6)),
        append(7, journal_row(1, 3)),
        append(7, journal_row(2, 4)),
        append(8, journal_row(1, 4)),
        append(7, journal_row(1, 4), epoch=2),
        append(7, journal_row(1, 4), run=RAISED),
        append(7, journal_row(1, 4), intents=[b"i"]),
        append(7, journal_row(1, 4), pack_from=row_id(1, 0)),
        append(7, journal_row(1, 4), is_sole=False),
        create(b"a"),
        grow(7, at=row_id(1, 3), head=2),
    ],
)
def test_any_other_write_is_not(soles: Soles, write: Write) -> None:
    assert not soles.are_next([write], 5)
    assert not soles.are_next([append(7, journal_row(1, 4)), write], 5)


def test_nothing_is_believed_once_anybody_may_have_fenced_a_writer(soles: Soles) -> None:
    assert not soles.are_next([append(7, journal_row(1, 4))], 6)
    assert not soles.are_next([append(7, journal_row(1, 4))], 5)


def test_what_is_learned_under_a_new_fence_does_not_bring_back_the_rest(soles: Soles) -> None:
    soles.learn([append(8, journal_row(2, 1))], [row_id(2, 1)], 6)

    assert not soles.are_next([append(7, journal_row(1, 4))], 6)
    assert soles.are_next([append(8, journal_row(2, 2))], 6)


def test_a_fenced_writer_knows_nothing(soles: Soles) -> None:
    soles.learn([append(7, journal_row(1, 4))], [-1], 5)

    assert not soles.are_next([append(7, journal_row(1, 4))], 5)


def test_a_takeover_is_learned_with_its_epoch() -> None:
    soles, raised = Soles(), RunRow(no=7, kid=b"", epoch=2, head=1, mac=b"", body=b"")
    soles.learn([append(7, journal_row(1, 4), run=raised)], [row_id(1, 4)], 0)

    assert soles.are_next([append(7, journal_row(1, 5), epoch=2)], 0)


def test_of_too_many_branches_nothing_is_known(
    soles: Soles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sole, "BRANCHES_MAX", 1)
    soles.learn([append(8, journal_row(2, 1))], [row_id(2, 1)], 5)

    assert not soles.are_next([append(7, journal_row(1, 4))], 5)
    assert soles.are_next([append(8, journal_row(2, 2))], 5)
