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
