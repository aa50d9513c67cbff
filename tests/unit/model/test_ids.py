"""Names of things: run ids and row ids."""

import pytest

from holdfast.model.ids import (
    RUN_ID_CHARS_MAX,
    SEQ_MAX,
    Range,
    branch_of,
    check_run_id,
    parse_point,
    point_id,
    ranges,
    row_id,
    seq_of,
)


@pytest.mark.parametrize("text", ["run-42", "Bericht für März", "a b", "x" * RUN_ID_CHARS_MAX])
def test_printable_text_names_a_run(text: str) -> None:
    assert text == check_run_id(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "non-empty"),
        ("x" * (RUN_ID_CHARS_MAX + 1), f"at most {RUN_ID_CHARS_MAX} characters"),
        ("a\nb", "printable"),
        ("a\x1b[2J", "printable"),
        (" a", "without spaces around"),
        ("a ", "without spaces around"),
    ],
)
def test_what_cannot_name_a_run_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_run_id(text)


def test_a_row_id_holds_branch_and_place_and_sorts_by_both() -> None:
    places = [(1, 0), (1, 1), (1, SEQ_MAX), (2, 0), (2, 7), (40_000, 1)]
    ids = [row_id(branch, seq) for branch, seq in places]

    assert ids == sorted(ids)
    assert places == [(branch_of(id_), seq_of(id_)) for id_ in ids]


@pytest.mark.parametrize("seq", [-1, SEQ_MAX + 1])
def test_a_place_that_does_not_fit_into_a_row_id_is_our_mistake(seq: int) -> None:
    with pytest.raises(AssertionError):
        row_id(1, seq)


@pytest.mark.parametrize("run", ["run-42", "a@b", "a@1.2.3", "."])
def test_a_point_is_named_for_people_and_found_again(run: str) -> None:
    point = (row_id(3, 17), 2)

    assert f"{run}@3.17.2" == point_id(run, point)
    assert (run, point) == parse_point(f"{run}@3.17.2")


@pytest.mark.parametrize(
    "text", ["", "run-42", "@1.2.3", "a@1.2", "a@1.2.x", "a@-1.2.3", f"a@1.{SEQ_MAX + 1}.0"]
)
def test_what_names_no_point_is_not_taken_for_one(text: str) -> None:
    assert parse_point(text) is None


@pytest.mark.parametrize(
    ("rows", "joined"),
    [
        ([], []),
        ([5], [(5, 5)]),
        ([1, 2, 3], [(1, 3)]),
        ([1, 3, 4, 9], [(1, 1), (3, 4), (9, 9)]),
        ([1, 1, 2, 2], [(1, 2)]),
    ],
)
def test_rows_are_joined_into_the_fewest_ranges(
    rows: list[int], joined: list[tuple[int, int]]
) -> None:
    assert [Range(first, last) for first, last in joined] == ranges(iter(rows))
