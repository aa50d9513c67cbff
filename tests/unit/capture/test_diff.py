"""A difference is named once, at its place, with lists aligned."""

import dataclasses
import math
from collections.abc import Hashable
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.capture import diff as aligning
from holdfast.capture.diff import ALIGNED_ITEMS_MAX, Change, diff
from holdfast.capture.digest import digest
from holdfast.capture.paths import parse, pick, show
from holdfast.store.codec import values

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


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), ((1, 2), (True, 2)), (0, "0")])
def test_a_key_that_became_another_one_is_no_equal_key(old: Hashable, new: Hashable) -> None:
    assert [
        Change(kind="removed", path=show([old]), before="x"),
        Change(kind="added", path=show([new]), after="x"),
    ] == diff({old: "x", "same": 1}, {new: "x", "same": 1})


def test_an_item_put_in_front_is_one_addition() -> None:
    items = [{"n": n} for n in range(50)]

    assert [Change(kind="added", path="[0]", after={"n": -1})] == diff(items, [{"n": -1}, *items])


@values.register(name="diffed quote")
@dataclasses.dataclass
class Quote:
    cents: int
    notes: list[str]


@values.register(name="diffed order")
class Order(msgspec.Struct):
    quote: Quote
    size: int = 1


@values.register(name="diffed shop")
class Shop(pydantic.BaseModel):
    name: str
    orders: list[Any] = []


def test_of_an_object_the_fields_that_differ_are_named() -> None:
    before = Shop(name="kelp", orders=[Order(Quote(1, ["a"])), Order(Quote(2, []))])
    after = Shop(name="kelp", orders=[Order(Quote(1, ["a", "b"])), Order(Quote(3, []), 5)])

    assert [
        ("added", "shop.orders[0].quote.notes[1]"),
        ("changed", "shop.orders[1].quote.cents"),
        ("changed", "shop.orders[1].size"),
    ] == [(change.kind, change.path) for change in diff({"shop": before}, {"shop": after})]
    assert [("changed", "x")] == [
        (change.kind, change.path) for change in diff({"x": Quote(1, [])}, {"x": {"cents": 1}})
    ]


def test_a_trimmed_list_is_only_removals() -> None:
    items = list(range(100))

    assert ["removed"] * 50 == [change.kind for change in diff(items, items[-50:])]


def test_a_long_list_that_lost_its_beginning_and_grew_is_still_aligned() -> None:
    items = [{"n": n} for n in range(ALIGNED_ITEMS_MAX * 2)]
    after: list[Any] = [*items[100:3000], {"n": "new"}, *items[3000:], {"n": "last"}]
    after[5] = {"n": "changed"}

    assert [
        *(("removed", f"[{n}]") for n in range(100)),
        ("changed", "[5].n"),
        ("added", "[2900]"),
        ("added", f"[{len(after) - 1}]"),
    ] == [(change.kind, change.path) for change in diff(items, after)]


def test_long_lists_of_items_that_repeat_are_compared_place_by_place() -> None:
    before = [n % 7 for n in range(ALIGNED_ITEMS_MAX + 10)]

    changes = diff(before, [n + 1 for n in before])

    assert {("changed", n) for n in range(len(before))} == {
        (change.kind, int(change.path.strip("[]"))) for change in changes
    }


def test_lists_of_few_different_items_are_compared_without_trying_every_pair() -> None:
    flags = [False] * 1600
    seen = [n % 2 == 1 for n in range(1600)]

    assert [f"[{n}]" for n in range(1, 1600, 2)] == [change.path for change in diff(flags, seen)]
    assert [("added", "[0]"), ("added", "[801]"), ("added", "[1602]")] == [
        (change.kind, change.path)
        for change in diff(flags, [True, *flags[:800], None, *flags[800:], True])
    ]


@given(st.lists(st.integers(0, 9), max_size=30), st.lists(st.integers(0, 9), max_size=30))
def test_the_changes_of_a_list_lead_from_one_to_the_other(
    before: list[int], after: list[int]
) -> None:
    for longest, most, edits in ((3, 2500, 500), (1000, 2500, 500), (1000, -1, 60), (1000, -1, 3)):
        with patch.multiple(
            aligning,
            ALIGNED_ITEMS_MAX=longest,
            MATCHES_MAX=most,
            MATCHES_EACH=most,
            EDITS_MAX=edits,
        ):
            found = {(str(c.kind), int(c.path.strip("[]"))): c.after for c in diff(before, after)}
        stays = [item for n, item in enumerate(before) if ("removed", n) not in found]

        made = []
        for n in range(len(after)):
            made.append(found[added] if (added := ("added", n)) in found else stays.pop(0))
            made[-1] = found.get(("changed", n), made[-1])

        assert (after, []) == (made, stays)


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


ODD = st.recursive(
    st.sampled_from([None, 0, 1, True, 1.0, -0.0, math.nan, "x", b"x", (1, True), (1, 1)]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([1, True, 1.0, "1", "a.b", "[0]", None, (1,), (True,), Decimal("0.3")]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(before=st.lists(ODD, max_size=4), after=st.lists(ODD, max_size=4), is_alike=st.booleans())
def test_every_path_leads_to_what_it_names_and_no_difference_is_passed_over(
    before: list[Any], after: list[Any], is_alike: bool
) -> None:
    if is_alike:
        after = [*before[1:], *after]
    found = diff(before, after)

    assert (digest(before) == digest(after)) == (not found)
    for change in found:
        is_gone = change.kind == "removed"
        there = pick(before if is_gone else after, parse(change.path))
        assert digest(change.before if is_gone else change.after) == digest(there)
