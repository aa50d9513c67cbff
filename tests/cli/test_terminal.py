"""Tables on a terminal of any width: wrapped, or row under row; no id and no column is cut off."""

import re

import pytest

from holdfast.cli.grid import Grid
from holdfast.cli.terminal import fitting
from tests.cli.kit import Shop, on_terminal

KEY = "ee1d2d4f22b94feb18ac169411a5c20b"


def fits(*rows: tuple[str, ...], width: int) -> dict[str, bool] | None:
    return fitting(Grid(columns=("id", "expires", "question"), rows=rows), rows, width)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (100, {"id": False, "expires": False, "question": True}),
        (57, {"id": False, "expires": False, "question": True}),
        (56, {"id": False, "question": True}),
        (48, {"id": False, "question": True}),
        (47, None),
    ],
)
def test_where_room_is_short_texts_wrap_then_empty_columns_go_then_rows_stand_below_each_other(
    width: int, shown: dict[str, bool] | None
) -> None:
    assert shown == fits((KEY, "", "did it happen? " * 5), width=width)


def test_wide_characters_take_the_room_they_take() -> None:
    ids = [("日本語" * 4, "", "why?"), ("x" * 24, "", "why?")]

    assert [None, None] == [fits(row, width=33) for row in ids]
    assert None not in [fits(row, width=34) for row in ids]


def test_a_table_without_rows_or_without_names_is_a_table() -> None:
    bare = Grid(columns=("name", "value"), rows=[("x" * 40, "y" * 40)], has_header=False)

    assert fits(width=40) is not None
    assert {"name": False, "value": True} == fitting(bare, bare.rows, 20)


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_the_inbox_shows_the_whole_key_and_the_question_on_any_terminal(
    history: Shop, columns: str
) -> None:
    known = history("inbox", "-o", "json").data["inbox"]
    done = on_terminal(history, "inbox", COLUMNS=columns)

    words = "".join(re.sub(r"\x1b\[[0-9;]*m", "", done.out).split())
    assert known
    for item in known:
        assert item["id"] in words
        assert item["run"] in words
        assert "".join(item["question"].split())[:40] in words


def test_runs_on_a_narrow_terminal_keep_their_ids_and_say_their_status(history: Shop) -> None:
    known = history("runs", "-o", "json").data["runs"]
    done = on_terminal(history, "runs", COLUMNS="40")

    for run in known:
        assert run["id"] in done.out
        assert run["status"] in done.out
    assert "…" not in re.sub(r"ERROR.*", "", done.out, flags=re.DOTALL)
