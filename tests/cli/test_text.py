"""Numbers, times and foreign text as people read them."""

import datetime as dt

import pytest

from holdfast.cli.grid import Grid, aligned
from holdfast.cli.text import (
    apart,
    clock,
    duration,
    harmless,
    line,
    moment,
    number,
    plural,
    short,
    size,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        (0, "0 s"),
        (0.0005, "500 µs"),
        (0.012, "12 ms"),
        (3.44, "3.4 s"),
        (312, "5 min 12 s"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
        (-3.44, "-3.4 s"),
    ],
)
def test_a_duration_is_said_in_two_parts_at_most(seconds: float | None, text: str) -> None:
    assert text == duration(seconds)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, ""),
        (0, "0 B"),
        (999, "999 B"),
        (12_345, "12.3 kB"),
        (10**9, "1.0 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_a_size_has_its_unit(count: int | None, text: str) -> None:
    assert text == size(count)


def test_times_are_shown_in_the_zone_of_this_machine() -> None:
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=dt.UTC)

    assert at.astimezone().strftime("%Y-%m-%d %H:%M:%S") == moment(at)
    assert at.astimezone().strftime("%H:%M:%S") + ".678" == clock(at)
    assert ("", "") == (moment(None), clock(None))


def test_foreign_text_cannot_steer_the_terminal() -> None:
    assert "a\\x1b[2Jb\nc\\x07" == harmless("a\x1b[2Jb\nc\x07")
    assert "a b c" == line(" a\n b\t c ")
    assert 72 == len(short("x" * 100))
    assert ("1 run", "2 runs") == (plural(1, "run"), plural(2, "run"))


def test_a_grid_is_aligned_and_leaves_no_blanks_at_the_end() -> None:
    rows = [("a", "1", "x"), ("long", "100", "")]
    grid = Grid(columns=("name", "count", "rest"), rows=rows, right=frozenset({"count"}))

    assert ["NAME  COUNT  REST", "a         1  x", "long    100"] == aligned(grid).splitlines()


def test_a_grid_is_aligned_by_what_characters_take_on_a_screen() -> None:
    rows = [("日本", "1", "x"), ("cafe\u0301", "💥", "y"), ("long", "100", "z")]

    told = aligned(Grid(columns=("name", "count", "rest"), rows=rows, right=frozenset({"count"})))

    assert [
        "NAME  COUNT  REST",
        "日本      1  x",
        "cafe\u0301     💥  y",
        "long    100  z",
    ] == told.splitlines()


def test_a_number_has_few_digits_and_is_written_out_when_it_is_large() -> None:
    told = [number(n) for n in (0, 0.25, 3.14159, 1234.5, 9999.7, 12_345.6, -70_000)]

    assert ["0", "0.25", "3.142", "1,234", "10,000", "12,346", "-70,000"] == told
    assert "6,001" == number(6000.8, 3)


def test_two_long_texts_are_shown_from_where_they_part() -> None:
    same = "kelp " * 40

    assert ("… kelp kelp kelp 12", "… kelp kelp kelp 7") == apart(same + "12", same + "7")
    assert ("kelp", "rock") == apart("kelp", "rock")
    assert ("a b", "a b") == apart("a b", "a  b")
