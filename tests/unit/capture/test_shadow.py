"""Whether a leaf is as it was is told without encoding it, and never wrongly."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, PrivateAttr

from holdfast.capture import shadow
from holdfast.capture.digest import digest
from holdfast.capture.node import Tracker
from holdfast.capture.shadow import Shadows, shadow_of
from holdfast.capture.state import State
from holdfast.store.codec import values
from holdfast.store.codec.vault import Guard, guarded


@values.register(name="test_shadow.Model")
class Model(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: object = ""
    more: Any = None
    _own: Any = PrivateAttr(default=None)

    @cached_property
    def length(self) -> int:
        return len(str(self.text))


@values.register(name="test_shadow.Record")
@dataclass
class Record:
    text: object = ""
    more: Any = None


@values.register(name="test_shadow.Twin")
@dataclass
class Twin:
    text: object = ""
    more: Any = None


@values.register(name="test_shadow.Slotted")
@dataclass(slots=True)
class Slotted:
    text: object = ""
    more: Any = field(default=None)


@values.register(name="test_shadow.Struct")
class Struct(msgspec.Struct):
    text: object = ""
    more: Any = None


@values.register(name="test_shadow.Pair")
class Pair(NamedTuple):
    text: object = ""
    more: Any = None


@values.register(name="test_shadow.Computed")
@dataclass
class Computed:
    """A field whose value another attribute of the class decides."""

    text: int = 0
    more: Any = None

    def __getattribute__(self, name: str) -> object:
        return Computed.hidden if name == "text" else super().__getattribute__(name)

    hidden = 0


CLASSES: list[type[Any]] = [Model, Record, Slotted, Struct]

plain = st.one_of(
    st.none(), st.booleans(), st.integers(0, 2), st.floats(0, 2), st.text(max_size=3), st.just(...)
)
parts = st.recursive(
    plain.filter(lambda it: it is not ...),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(lambda *it: it, inner, inner),
        st.sets(st.integers(0, 9), max_size=3),
        st.builds(Pair, inner, inner),
        *(st.builds(cls, text=inner, more=inner) for cls in CLASSES),
    ),
    max_leaves=8,
)


def reachable(leaf: object) -> list[Any]:
    """Every part of a leaf that can be changed in place."""
    found: list[Any] = []
    stack = [leaf]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            found.append(part)
            stack += part.values()
        elif isinstance(part, list | set):
            found.append(part)
            stack += part
        elif isinstance(part, tuple):
            stack += part
        elif isinstance(part, tuple(CLASSES)):
            found.append(part)
            stack += [part.text, part.more]  # type: ignore[attr-defined]  # all of them have both
    return found


def change(part: Any, value: object, way: int) -> None:  # noqa: ANN401 any of the above
    """Change a part in one of the ways its class has."""
    if isinstance(part, list):
        ways: list[Callable[[], object]] = [
            lambda: part.append(value),
            part.clear,
            part.reverse,
            lambda: part.__setitem__(slice(0, 1), [value]),
        ]
    elif isinstance(part, dict):
        ways = [
            lambda: part.update(a=value),
            part.clear,
            lambda: part.update({key: part.pop(key) for key in list(part)[:1]}),
            lambda: part.update(dict.fromkeys(part, value)),
        ]
    elif isinstance(part, set):
        ways = [lambda: part.add(11), part.clear, lambda: part.discard(1), lambda: part.add(True)]
    else:
        ways = [
            lambda: setattr(part, "text", value),
            lambda: setattr(part, "more", value),
            lambda: setattr(part, "text", part.more),
            lambda: _change_machinery(part, value),
        ]
    ways[way]()


def _change_machinery(part: Any, value: object) -> None:  # noqa: ANN401 as above
    if isinstance(part, Model):
        part._own = value  # noqa: SLF001 what a class keeps for itself is stored too
        part.model_fields_set.symmetric_difference_update({"text"})
        setattr(part, "beside", value)  # noqa: B010 an attribute that the class does not declare
        assert part.length >= 0
    else:
        part.more = [part.more]


@given(leaf=parts, data=st.data())
def test_what_is_remembered_is_what_the_codec_gives(leaf: object, data: st.DataObject) -> None:
    shadows = Shadows()
    for _ in range(data.draw(st.integers(1, 6))):
        assert values.canonical(leaf) == shadows.canonical(leaf)
        packed = values.encode(leaf)
        assert sha256(packed).digest() == shadows.digest(leaf, lambda: values.encode(leaf))
        changeable = reachable(leaf)
        if changeable:
            part = data.draw(st.sampled_from(changeable))
            change(part, data.draw(parts), data.draw(st.integers(0, 3)))


@pytest.mark.parametrize("cls", CLASSES)
def test_what_is_as_it_was_is_not_encoded_again(
    cls: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State({"many": [cls(text=f"{n}", more=["more"]) for n in range(40)]})
    state.base()
    known = digest(state.root)

    monkeypatch.setattr(values, "encode", _fail)
    monkeypatch.setattr(values, "canonical", _fail)

    assert state.delta() is None
    assert known == digest(state.root)
    monkeypatch.undo()
    state.root["many"][7].more.append(1)
    assert state.delta() is not None
    assert known != digest(state.root)


def _fail(*_: object, **__: object) -> bytes:
    pytest.fail("nothing changed")


@pytest.mark.parametrize("cls", [Record, Slotted, Struct, Model])
def test_equal_is_not_the_same(cls: type[Any]) -> None:
    for before, after in ((1, True), (0, 0.0), ([1], [True])):
        leaf = cls(text=before)
        seen = shadow_of(leaf)
        assert seen is not None
        assert seen.is_true()
        leaf.text = after
        assert not seen.is_true()


def test_a_field_without_a_value_is_not_one_whose_value_is_an_ellipsis() -> None:
    leaf = Record()
    del leaf.__dict__["more"]
    seen = shadow_of(leaf)
    assert seen is not None
    leaf.more = ...

    assert not seen.is_true()


def test_an_instance_whose_class_was_changed_is_another() -> None:
    leaf = Record("a")
    seen = shadow_of(leaf)
    assert seen is not None

    object.__setattr__(leaf, "__class__", Twin)

    assert not seen.is_true()


def test_a_field_that_is_computed_is_looked_at_each_time() -> None:
    leaf, shadows = Computed(more=[]), Shadows()
    before = shadows.canonical(leaf)

    Computed.hidden = 1

    assert before != shadows.canonical(leaf)
    assert values.canonical(leaf) == shadows.canonical(leaf)


def test_nothing_is_remembered_of_what_may_change_unseen() -> None:
    for unseen in (np.zeros(3), bytearray(b"a"), object(), {"of": np.zeros(1)}):
        assert shadow_of(Record(more=unseen)) is None
    assert shadow_of([[] for _ in range(shadow.PARTS_MAX)]) is None


def test_what_is_hashed_as_it_is_and_with_secrets_cut_out_is_kept_apart() -> None:
    leaf, shadows = Record("sk-ant-" + "api03-" + "Zq7Rw2Xt9Lm4Kp8Vn3Bs6Hd1" * 4), Shadows()
    cut = shadows.canonical(leaf)

    with guarded(Guard(cuts=False)):
        assert cut != shadows.canonical(leaf)

    assert cut == shadows.canonical(leaf)


def test_what_left_the_state_is_let_go() -> None:
    state = State({"many": [Record(f"{n}") for n in range(3)]})
    state.base()
    shadows = _tracker(state).shadows
    assert 3 == len(shadows._known)  # noqa: SLF001 nobody else can see it

    del state.root["many"][1:]
    state.delta()

    assert 1 == len(shadows._known)  # noqa: SLF001 as above


def test_all_is_encoded_anew_once_another_secret_is_known() -> None:
    state = State({"it": Record("a")})
    state.base()

    state.hashes_anew(1)

    assert not _tracker(state).shadows._known  # noqa: SLF001 as above


def _tracker(state: State) -> Tracker:
    tracker = state.root.hf_tracker
    assert tracker is not None
    return tracker
