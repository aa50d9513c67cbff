"""What a list of the program's own holds is hashed once, and told again while it is the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.capture import digest as hashing
from holdfast.capture import flats as remembering
from holdfast.capture.digest import digest
from holdfast.capture.flats import Flats
from holdfast.capture.tracked import track
from holdfast.store.codec.vault import vault

TEXT = "what is said in a message, and a little more"


def message(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"{TEXT} {number}"}


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was packed to be hashed."""
    found: list[object] = []
    quick = hashing._quick  # noqa: SLF001 counts what is hashed

    def counting(tokens: list[Any]) -> bytes | None:
        found.append(tokens)
        return quick(tokens)

    monkeypatch.setattr(hashing, "_quick", counting)
    return found


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5)
)
items = st.one_of(
    values,
    st.dictionaries(st.text(max_size=3), values, max_size=4),
    st.dictionaries(st.integers(), values, max_size=2),
    st.dictionaries(st.text(max_size=3), st.lists(values, max_size=2), max_size=2),
    st.lists(values, max_size=3),
    st.tuples(values),
)


@given(st.lists(items, max_size=70), st.lists(st.integers(0, 10**6), max_size=12))
def test_a_list_has_the_digest_that_it_has_without_what_was_remembered(
    found: list[Any], picks: list[int]
) -> None:
    flats = Flats()
    for pick in [0, *picks]:
        if found:
            item = found[pick % len(found)]
            if isinstance(item, dict) and item:
                key = list(item)[pick % len(item)]
                item[key] = [pick] if pick % 3 else pick
            elif isinstance(item, list):
                item.append(pick)
            else:
                found[pick % len(found)] = track({"said": TEXT, "n": pick})
        assert digest(found) == digest(found, flats=flats)
        assert digest(found) == digest(found, flats=flats)


@pytest.mark.parametrize("count", [5, 100])
def test_only_what_is_new_in_a_list_is_hashed(hashed: list[object], count: int) -> None:
    flats, messages = Flats(), [message(number) for number in range(count)]
    digest(messages, flats=flats)
    hashed.clear()

    messages.append(message(count))
    found = digest(messages, flats=flats)

    assert 1 == len(hashed)
    assert digest(messages) == found


def test_a_change_of_a_message_is_seen_however_it_is_made(hashed: list[object]) -> None:
    flats, messages = Flats(), [message(number) for number in range(40)]
    before = digest(messages, flats=flats)

    dict.__setitem__(messages[7], "content", TEXT)
    changed = digest(messages, flats=flats)
    messages[7]["content"] = f"{TEXT} 7"

    assert before != changed
    assert before == digest(messages, flats=flats)
    assert hashed


def test_what_holds_something_that_can_change_is_hashed_each_time() -> None:
    flats, parts = Flats(), [1]
    messages = [{"role": "user", "parts": parts}]
    before = digest(messages, flats=flats)

    parts.append(2)

    assert before != digest(messages, flats=flats)
    assert digest(messages) == digest(messages, flats=flats)


def test_a_new_secret_makes_everything_be_hashed_anew(
    hashed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    flats, messages = Flats(), [message(1)]
    digest(messages, flats=flats)
    hashed.clear()

    monkeypatch.setattr(vault, "declared", vault.declared + 1)
    digest(messages, flats=flats)

    assert hashed


def test_what_is_not_asked_for_again_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "KEPT_MIN", 4)
    flats = Flats()
    for number in range(50):
        digest([message(number), message(-number)], flats=flats)

    assert len(flats._young) + len(flats._old) <= 8  # noqa: SLF001 nothing else tells
