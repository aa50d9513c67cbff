"""A difference is named once, at its place, with lists aligned."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.capture.diff import Change, diff

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=12,
)


def test_what_was_added_removed_and_changed_is_named_at_its_place() -> None:
    before: dict[str, Any] = {"a": 1, "gone": True, "m": [{"t": "x"}, {"t": "y"}]}
    after: dict[str, Any] = {"a": 2, "m": [{"t": "x"}, {"t": "z"}, {"t": "new"}], "fresh": []}

    assert [
        Change(kind="changed", path="a", before=1, after=2),
        Change(kind="removed", path="gone", before=True),
        Change(kind="changed", path="m[1].t", before="y", after="z"),
        Change(kind="added", path="m[2]", after={"t": "new"}),
        Change(kind="added", path="fresh", after=[]),
    ] == diff(before, after)


def test_an_item_put_in_front_is_one_addition() -> None:
    items = [{"n": n} for n in range(50)]

    assert [Change(kind="added", path="[0]", after={"n": -1})] == diff(items, [{"n": -1}, *items])


def test_a_trimmed_list_is_only_removals() -> None:
    items = list(range(100))

    assert ["removed"] * 50 == [change.kind for change in diff(items, items[-50:])]


def test_true_one_and_one_point_nought_are_different() -> None:
    assert ["a", "b"] == [c.path for c in diff({"a": 1, "b": 1}, {"a": True, "b": 1.0})]


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert [] == diff(value, value)


@given(VALUES, VALUES)
def test_different_values_have_a_difference(before: object, after: object) -> None:
    assert (repr(_sorted(before)) == repr(_sorted(after))) == (diff(before, after) == [])


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
