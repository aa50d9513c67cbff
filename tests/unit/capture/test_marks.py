import random

import pytest

from holdfast.capture import marks
from holdfast.capture.marks import Changes, Window


def cut(length: int, *splices: tuple[int, int, int]) -> tuple[int, int, int]:
    window = Window(length)
    for splice in splices:
        window.splice(*splice)
    return window.cut(window.length)


def test_an_append_keeps_everything_before_it() -> None:
    assert (0, 5, 0) == cut(5, (5, 5, 1))
    assert (0, 5, 0) == cut(5, (5, 5, 1), (6, 6, 1))


def test_a_trim_in_front_keeps_the_rest() -> None:
    assert (2, 3, 0) == cut(5, (0, 2, 0))
    assert (3, 2, 0) == cut(5, (0, 2, 0), (3, 3, 2), (0, 1, 0))


def test_a_change_in_the_middle_keeps_both_sides() -> None:
    assert (0, 2, 2) == cut(5, (2, 3, 1))
    assert (0, 1, 0) == cut(5, (2, 3, 1), (4, 5, 1), (1, 1, 1))


def test_an_insertion_in_front_keeps_the_end() -> None:
    assert (0, 0, 5) == cut(5, (0, 0, 1))


def test_a_list_of_another_length_than_noted_is_written_whole() -> None:
    window = Window(5)
    window.splice(5, 5, 1)

    assert (0, 0, 0) == window.cut(7)


def test_a_window_is_clean_until_something_moves() -> None:
    window = Window(5)
    window.splice(0, 0, 0)

    assert window.is_clean(5)
    window.splice(4, 5, 1)
    assert not window.is_clean(5)


def test_a_key_that_came_and_went_leaves_nothing() -> None:
    changes = Changes(0)
    changes.add("new")
    changes.delete("new")

    assert changes.is_clean()


def test_a_key_that_went_and_came_is_deleted_and_set_at_the_end() -> None:
    changes = Changes(2)
    changes.delete("a")
    changes.overwrite("b")
    changes.add("c")
    changes.add("a")

    assert ["a"] == list(changes.gone)
    assert ["b", "c", "a"] == list(changes.put)


def written(window: Window, length: int) -> list[tuple[int, int]]:
    return [(start, stop) for _, start, stop in window.parts(length)]


def test_changes_far_apart_are_written_each_by_itself() -> None:
    window = Window(1000)
    window.splice(990, 991, 1)
    window.splice(3, 4, 1)
    window.splice(500, 500, 2)

    assert [(992, 993), (500, 502), (3, 4)] == written(window, 1002)


def test_the_newest_first_and_the_oldest_away_is_two_small_changes() -> None:
    window = Window(1000)
    window.splice(0, 0, 1)
    window.splice(1000, 1001, 0)

    assert [([0, 999, 0], 1000, 1000), ([0, 0, 999], 0, 1)] == window.parts(1000)


def test_changes_near_to_each_other_are_one() -> None:
    window = Window(1000)
    window.splice(500, 501, 1)
    window.splice(505, 506, 1)

    assert [([0, 500, 494], 500, 506)] == window.parts(1000)


@pytest.mark.parametrize("most", [3, 256])
@pytest.mark.parametrize("seed", range(20))
def test_the_parts_make_of_what_was_saved_what_there_is(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "EDITS_MAX", most)
    chance = random.Random(seed)  # noqa: S311 a seed
    saved = [*range(400)]
    now, window, fresh = list(saved), Window(len(saved)), 1000

    for _ in range(60):
        start = chance.randint(0, len(now))
        stop = min(len(now), start + chance.choice([0, 0, 1, 1, 3, 40]))
        items = [*range(fresh, fresh + chance.choice([0, 1, 1, 2]))]
        fresh += len(items)
        window.splice(start, stop, len(items))
        now[start:stop] = items
        restored = list(saved)
        for head, first, last in window.parts(len(now)):
            trim, lo, hi = (0, head, 0) if isinstance(head, int) else head
            restored[trim + lo : len(restored) - hi] = now[first:last]
            del restored[:trim]

        assert now == restored
