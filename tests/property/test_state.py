"""Random histories of a tracked state against a plain-Python twin."""

import copy
import random
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import errors
from holdfast.capture import known
from holdfast.capture.digest import digest
from holdfast.capture.fixed import is_fixed
from holdfast.capture.look import read
from holdfast.capture.node import KINDS, LOOSE
from holdfast.capture.state import State
from holdfast.capture.tracked import plain, track
from holdfast.store.codec import values

Value: TypeAlias = Any

CONTAINERS_MAX = 80
ITEMS_MAX = 90
KEYS: list[Any] = ["a", "b", "c", "long key", 1, True, (1, "x"), "\ud800", *range(40, 75)]


@values.register(name="test_state.Note")
@dataclass
class Note:
    tags: list[Any] = field(default_factory=list)
    count: int = 0


def kind_of(value: object) -> type:
    return KINDS.get(type(value), type(value))


def inner(node: Value) -> list[Any]:
    return list(node.values()) if isinstance(node, dict) else list(node)


def pairs_below(tracked: Value, twin: Value, seen: set[int]) -> Iterator[tuple[Any, Any]]:
    """Walk both sides in step: every container, then every leaf that may change in place."""
    if id(twin) in seen or (type(twin) not in (dict, list) and is_fixed(twin)):
        return
    seen.add(id(twin))
    yield tracked, twin
    if type(twin) in (dict, list):
        for ours, theirs in zip(inner(tracked), inner(twin), strict=True):
            yield from pairs_below(ours, theirs, seen)


def assert_same(tracked: Value, twin: Value, kinds: Container[type] = KINDS) -> None:
    """Content, types, order of keys and what is shared are the same, in containers of `kinds`."""
    partner: dict[int, int] = {}
    stack: list[tuple[Any, Any]] = [(tracked, twin)]
    while stack:
        ours, theirs = stack.pop()
        assert kind_of(ours) is type(theirs)
        if type(theirs) in (dict, list) or not is_fixed(theirs):
            assert partner.setdefault(id(theirs), id(ours)) == id(ours)
            assert partner.setdefault(id(ours), id(theirs)) == id(theirs)
        if type(theirs) not in (dict, list):
            assert values.canonical(ours) == values.canonical(theirs)
            continue
        assert type(ours) in kinds
        if isinstance(theirs, dict):
            keys = [values.canonical(key) for key in theirs]
            assert [values.canonical(key) for key in ours] == keys
        stack.extend(zip(inner(ours), inner(theirs), strict=True))


def contains(top: Value, wanted: Value) -> bool:
    """Say whether the plain container `wanted` is or stands below `top`."""
    seen: set[int] = set()
    stack = [top]
    while stack:
        node = stack.pop()
        if node is wanted:
            return True
        if type(node) in (dict, list) and id(node) not in seen:
            seen.add(id(node))
            stack.extend(inner(node))
    return False


def size_of(value: Value) -> int:
    return len(value) if isinstance(value, dict | list | str) else -1


def put(x: Value, key: Value, value: Value, _c: int) -> None:
    x[key] = value


def put_default(x: Value, key: Value, value: Value, _c: int) -> None:
    assert x.setdefault(key, value) is x[key]


def take(x: Value, key: Value, _value: Value, _c: int) -> None:
    x.pop(key, None)


def take_and_put(x: Value, key: Value, value: Value, c: int) -> None:
    if key in x:
        del x[key]
        if c % 2:
            x[key] = value


def take_last(x: Value, _key: Value, _value: Value, _c: int) -> None:
    if x:
        x.popitem()


def put_many(x: Value, key: Value, value: Value, _c: int) -> None:
    x.update({key: value, "u": 1}, v=2)


def merge(x: Value, key: Value, value: Value, c: int) -> None:
    x |= [(key, value), ("w", c)]


def empty(x: Value, _a: Value, _b: Value, c: int) -> None:
    if c % 5 == 0:
        x.clear()


DICT_CHANGES = [
    put, put, put, put_default, take, take_and_put, take_and_put, take_last, put_many, merge, empty,
]  # fmt: skip


def add(x: Value, value: Value, _b: int, _c: int) -> None:
    x.append(value)


def add_many(x: Value, value: Value, _b: int, c: int) -> None:
    x.extend(iter([value, c]))


def insert(x: Value, value: Value, _b: int, c: int) -> None:
    x.insert(c % (len(x) + 3) - 1, value)


def pop(x: Value, _value: Value, b: int, c: int) -> None:
    if x:
        x.pop([-1, 0, c % len(x)][b % 3])


def replace(x: Value, value: Value, _b: int, c: int) -> None:
    if x:
        x[c % len(x) - len(x)] = value


def part(x: Value, b: int, c: int) -> slice:
    return slice(c % (len(x) + 2) - 1, b % (len(x) + 3) - 2, [None, 1, 2, -1, -3][c % 5])


def cut(x: Value, _value: Value, b: int, c: int) -> None:
    del x[part(x, b, c)]


def replace_part(x: Value, value: Value, b: int, c: int) -> None:
    where = part(x, b, c)
    if where.step in (None, 1):
        x[where] = [value, c]
    elif x[where]:
        x[where] = [value, *range(1, len(x[where]))]


def sort(x: Value, _value: Value, _b: int, c: int) -> None:
    x.sort(key=size_of, reverse=bool(c % 2))


def turn_round(x: Value, _value: Value, _b: int, _c: int) -> None:
    x.reverse()


def add_in_place(x: Value, value: Value, _b: int, _c: int) -> None:
    x += [value]


def repeat(x: Value, _value: Value, _b: int, c: int) -> None:
    if len(x) < 8:
        x *= c % 3


def remove(x: Value, _value: Value, _b: int, _c: int) -> None:
    if None in x:
        x.remove(None)


LIST_CHANGES = [
    add, add, add_many, insert, pop, pop, replace, cut, replace_part, replace_part, sort,
    turn_round, add_in_place, repeat, remove, empty,
]  # fmt: skip


def apart(value: Value) -> Value:
    """An equal value in which nothing is shared, as after a way through JSON."""
    if isinstance(value, dict):
        return {key: apart(item) for key, item in value.items()}
    return [*map(apart, value)] if isinstance(value, list) else copy.deepcopy(value)


@pytest.fixture(autouse=True, scope="module")
def names_small_leaves() -> Iterator[None]:
    """Leaves of a few bytes are worth a name here, so that most of them are named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "LEAF_BYTES_MIN", 4)
        yield


SAVES = 1_000_000  # places from here on are saves, below they are answers


class World:
    """A state, its twin, and what a program may hold of both."""

    def __init__(self, *, check: bool) -> None:
        self.check = check
        self.answers: dict[Any, Any] = {}
        self.log: list[bytes] = []  # every save there was; later ones may name what is in it
        self.unlocated = 0
        self.held: list[tuple[Any, Any]] = []  # plain objects that were put in and are still held
        self.start(State(check=check, answer=self.answer), {})
        self.rebase()

    def answer(self, source: Value) -> Value:
        if source[0] >= SAVES:
            return self.log[source[0] - SAVES]
        found = copy.deepcopy(self.answers[source[:2]])
        return found if len(source) == 2 else values.encode(found)

    def keep(self, save: bytes) -> tuple[bytes, tuple[int, int]]:
        """Write a save to the log; the state is told a while later where it stands."""
        self.log.append(save)
        self.unlocated += 1
        return save, (SAVES + len(self.log) - 1, 0)

    def locate(self) -> None:
        for at in range(len(self.log) - self.unlocated, len(self.log)):
            self.state.locate((SAVES + at, 0))
        self.unlocated = 0

    def restored(self, count: int, *, check: bool = False) -> State:
        saves = [save for save, _ in self.saves[:count]]
        places = [place for _, place in self.saves[:count]]
        return State.restore(saves[0], saves[1:], self.answer, places=places, check=check)

    def start(self, state: State, twin: dict[Any, Any]) -> None:
        self.state, self.twin = state, twin
        self.pockets: list[tuple[Any, Any]] = []
        self.held = []
        self.copies: list[Any] = []  # keeps what became of the held objects, so they stay one

    def rebase(self) -> None:
        self.saves = [self.keep(self.state.base())]
        self.snapshots = [copy.deepcopy(self.twin)]
        assert self.state.delta() is None

    def tops(self) -> list[tuple[Any, Any]]:
        return [(self.state.root, self.twin), *self.pockets]

    def everything(self) -> list[tuple[Any, Any]]:
        seen: set[int] = set()
        return [pair for top in self.tops() for pair in pairs_below(*top, seen)]

    def container(self, pick: int, kind: type | None = None) -> tuple[Any, Any] | None:
        found = [
            pair
            for pair in self.everything()
            if type(pair[1]) in (dict, list) and kind in (None, type(pair[1]))
        ]
        return found[pick % len(found)] if found else None

    # Values: what goes into the tracked side, what into the twin.

    def value(self, pick: int, pick_more: int) -> tuple[Any, Any]:
        makers: list[Callable[[int], tuple[Any, Any]]] = [
            self.scalar,
            self.scalar,
            self.nested,
            self.nested,
            self.leaf,
            self.alias,
            self.alias,
            self.alias_in_plain,
            self.pocketed,
            self.answered,
            self.answered_leaf,
            self.held_original,
        ]
        return makers[pick % len(makers)](pick_more)

    def twice(self, make: Callable[[], Any]) -> tuple[Any, Any]:
        return make(), make()

    def scalar(self, pick: int) -> tuple[Any, Any]:
        found: list[Any] = [
            None, True, 1, 1.0, 0, -7, 2**70, -(2**63) - 1, "text", "\udc80", "x" * 50, b"by", 2.5,
            float("nan"), (1, "t"), frozenset({3}), 1 + 2j,
        ]  # fmt: skip
        return found[pick % len(found)], found[pick % len(found)]

    def nested(self, pick: int) -> tuple[Any, Any]:
        def make() -> Value:
            shared: dict[str, Any] = {"shared": [pick]}
            found: list[Any] = [
                {},
                [],
                {"role": "user", "content": "c" * (pick % 40)},
                [1, [2, [3]], {"k": {}}],
                [shared, shared],
                {"x": shared, "y": [shared]},
                list(range(pick % 70)),
                {f"k{n}": n for n in range(pick % 50)},
                [{"n": n} for n in range(pick % 6)],
                {1: "int key", (2, 3): [4]},
                {"s": {1, 2}, "n": Note([1])},
            ]
            return found[pick % len(found)]

        return self.twice(make)

    def leaf(self, pick: int) -> tuple[Any, Any]:
        def make() -> Value:
            found: list[Any] = [{pick, 1}, bytearray(b"ab"), Note([pick], 1), ([pick], 2)]
            return found[pick % len(found)]

        return self.twice(make)

    def alias(self, pick: int) -> tuple[Any, Any]:
        found = self.everything()
        return found[pick % len(found)]

    def alias_in_plain(self, pick: int) -> tuple[Any, Any]:
        ours, theirs = self.alias(pick)
        if pick % 3 == 0:
            return [ours, {"again": ours}], [theirs, {"again": theirs}]
        if type(theirs) is list:
            return ours[-3:], theirs[-3:]
        return {"one": [ours]}, {"one": [theirs]}

    def pocketed(self, pick: int) -> tuple[Any, Any]:
        return self.pockets[pick % len(self.pockets)] if self.pockets else self.scalar(pick)

    def answered(self, pick: int) -> tuple[Any, Any]:
        source = (len(self.answers) + 1, pick % 4)
        value, twin = self.nested(pick)
        if pick % 2:
            value, twin = {"message": value, "tags": ["t"]}, {"message": twin, "tags": ["t"]}
        self.answers[source] = copy.deepcopy(twin)
        pair = track(value, source), twin
        self.pockets.append(pair)
        if pick % 3 == 0 and isinstance(twin, dict) and type(twin.get("message")) in (dict, list):
            return pair[0]["message"], twin["message"]
        return pair

    def answered_leaf(self, pick: int) -> tuple[Any, Any]:
        source = (len(self.answers) + 1, pick % 4)
        leaf, twin = self.leaf(pick) if pick % 3 else self.twice(lambda: (pick, "said"))
        self.answers[source] = copy.deepcopy(twin)
        self.state.answered(values.encode(leaf), source)
        return leaf, twin

    def held_original(self, pick: int) -> tuple[Any, Any]:
        if len(self.held) < 3:
            self.held.append(self.nested(pick))
        return self.held[pick % len(self.held)]

    # Changes: the same on both sides.

    def change(self, op: int, a: int, b: int, c: int) -> None:
        if op % 3 == 0:
            self.change_dict(op, a, b, c)
        elif op % 3 == 1:
            self.change_list(op, a, b, c)
        else:
            others = [
                self.swap,
                self.to_pocket,
                self.drop_pocket,
                self.change_leaf,
                self.move,
                self.copy_part,
            ]
            others[op // 3 % len(others)](a, b)

    def change_dict(self, op: int, a: int, b: int, c: int) -> None:
        ours, theirs = self.container(a, dict) or (self.state.root, self.twin)
        key = list(theirs)[b % len(theirs)] if theirs and b % 3 else KEYS[b % len(KEYS)]
        value, twin = self.fitting(b, c, ours, theirs)
        change = DICT_CHANGES[op // 3 % len(DICT_CHANGES)]
        change(ours, key, value, c)
        change(theirs, key, twin, c)

    def change_list(self, op: int, a: int, b: int, c: int) -> None:
        target = self.container(a, list)
        if target is not None:
            ours, theirs = target
            value, twin = self.fitting(b, c, ours, theirs)
            change = LIST_CHANGES[op // 3 % len(LIST_CHANGES)]
            change(ours, value, b, c)
            change(theirs, twin, b, c)

    def fitting(self, b: int, c: int, ours: Value, target: Value) -> tuple[Any, Any]:
        """A value that makes no cycle and not too much of everything."""
        value, twin = self.value(b, c)
        if ours.hf_tracker is LOOSE and any(value is original for original, _ in self.held):
            return self.scalar(c)  # an answer that is in no state yet makes a copy of its own
        if len(target) > ITEMS_MAX or len(self.everything()) > CONTAINERS_MAX:
            return self.scalar(c)
        return self.scalar(c) if contains(twin, target) else (value, twin)

    def swap(self, a: int, b: int) -> None:
        target = self.container(a, list)
        if target is not None and target[1]:
            i, j = a % len(target[1]), b % len(target[1])
            for side in target:
                side[i], side[j] = side[j], side[i]

    def to_pocket(self, a: int, _b: int) -> None:
        if len(self.pockets) < 4:
            self.pockets.append(self.everything()[a % len(self.everything())])

    def drop_pocket(self, a: int, _b: int) -> None:
        if self.pockets and not self.held:
            del self.pockets[a % len(self.pockets)]

    def change_leaf(self, a: int, b: int) -> None:
        found = [pair for pair in self.everything() if type(pair[1]) not in (dict, list)]
        for leaf in found[a % len(found)] if found else ():
            if isinstance(leaf, set):
                leaf.symmetric_difference_update({b % 5})
            elif isinstance(leaf, Note):
                leaf.tags.append(b)
                leaf.count += 1
            elif isinstance(leaf, bytearray):
                leaf.append(b % 256)
            else:
                leaf[0].append(b)

    def copy_part(self, a: int, b: int) -> None:
        """Replace a part by an equal one or nearly so, as libraries do that give all anew."""
        target = self.container(a, (dict, list)[b % 2])
        if target is None or not target[1]:
            return
        key = b % len(target[1]) if b % 2 else list(target[1])[b % len(target[1])]
        for side in target:
            made = apart(side[key]) if b % 4 < 2 else copy.deepcopy(side[key])
            if isinstance(made, list) and b % 3 == 0:
                made.insert(a % (len(made) + 1), {"new": b})
            elif isinstance(made, dict) and b % 5 == 0:
                made = dict(reversed(made.items()))
            if b % 7 == 0 and b % 2:
                side[key : key + 2] = [made]
            else:
                side[key] = made

    def move(self, a: int, b: int) -> None:
        """Take a value out of one dict and put it into another."""
        source, target = self.container(a, dict), self.container(b, dict)
        if source is None or target is None or not source[1]:
            return
        key = list(source[1])[b % len(source[1])]
        value, twin = source[0].pop(key), source[1].pop(key)
        if not contains(twin, target[1]):
            target[0]["moved"], target[1]["moved"] = value, twin

    # What must not be stored, and what must not be missed.

    def make_cycle(self, a: int, b: int) -> None:
        ours, theirs = self.container(a, dict) or (self.state.root, self.twin)
        value, twin = self.alias(b)
        if "cycle" in theirs or not contains(twin, theirs):
            return
        ours["cycle"] = [value]
        if contains(self.twin, theirs):
            with pytest.raises(errors.NotStorable, match="contains itself"):
                self.state.delta()
        else:
            self.end_turn()
        del ours["cycle"]

    def change_original(self, a: int) -> None:
        if not self.held:
            return
        original, twin = self.held[a % len(self.held)]
        before = original.copy()
        original.update(other=1) if isinstance(original, dict) else original.append(1)
        if contains(self.twin, twin):
            with pytest.raises(errors.ChangedOutside):
                self.state.delta()
        original.clear()
        original.update(before) if isinstance(original, dict) else original.extend(before)

    def store_unstorable(self, a: int) -> None:
        ours, theirs = self.container(a, dict) or (self.state.root, self.twin)
        if "bad" in theirs:
            return
        ours["bad"] = {"deep": [object()]}
        if contains(self.twin, theirs):
            with pytest.raises(errors.NotStorable, match=r'\["bad"\]\["deep"\]\[0\]'):
                self.state.delta()
        else:
            self.end_turn()
        del ours["bad"]

    # Turns.

    def end_turn(self) -> None:
        for _ in range(2):  # a part that was taken out may be saved one turn later
            delta = self.state.delta()
            if delta is not None:
                self.saves.append(self.keep(delta))
                self.snapshots.append(copy.deepcopy(self.twin))
        assert self.state.delta() is None

    def check_restored(self, pick: int) -> None:
        at = pick % len(self.saves)
        restored = self.restored(at + 1)
        assert_same(restored.root, self.snapshots[at])
        assert restored.delta() is None

        saves, places = zip(*self.saves[: at + 1], strict=True)
        looked_at, lost = read(saves[0], saves[1:], self.answer, places=places)
        assert_same(looked_at, self.snapshots[at], (dict, list))
        assert lost == {}

    def check_digests(self, pick: int) -> None:
        ours, theirs = self.everything()[pick % len(self.everything())]
        assert digest(ours) == digest(theirs) == digest(plain(ours))
        assert digest(self.state.root) == digest(self.twin)

    def restart(self, pick: int) -> None:
        self.end_turn()
        state = self.restored(len(self.saves), check=self.check)
        if pick % 2:
            early = State({"a": {"b": []}, "c": [], "moved": {}}, check=self.check)
            taken = [early.root["a"], early.root["c"]]
            early.adopt(state)
            for node in taken:
                if all(node is not ours for ours in early.root.values()):
                    with pytest.raises(errors.UsageError, match="no place"):
                        node.clear()
            state = early
        self.start(state, copy.deepcopy(self.twin))
        self.unlocated = 0

    def act(self, op: int, a: int, b: int, c: int) -> None:
        if a % 3 == 0:
            self.locate()
        match op % 24:
            case 0 | 1 | 2 | 3:
                self.end_turn()
            case 4:
                self.check_restored(a)
            case 5:
                self.check_digests(a)
            case 6 if a % 2 == 0:
                self.rebase()
            case 7 if a % 3 == 0:
                self.restart(b)
            case 8:
                self.make_cycle(a, b)
            case 9:
                self.change_original(a)
            case 10:
                self.store_unstorable(a)
            case _:
                self.change(c + op, a, b, c)
        twins = {id(twin) for _, twin in self.held}
        self.copies += [ours for ours, theirs in self.everything() if id(theirs) in twins]

    def finish(self) -> None:
        self.end_turn()
        assert_same(self.state.root, self.twin)
        for at in range(len(self.saves)):
            self.check_restored(at)


numbers = st.integers(0, 9_999)
histories = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=60)


@settings(max_examples=2_000, deadline=None)
@given(histories, st.booleans())
def test_every_turn_comes_back_with_its_content_types_order_and_sharing(
    history: list[tuple[int, int, int, int]], check: bool
) -> None:
    world = World(check=check)

    for act in history:
        world.act(*act)

    world.finish()


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**64), st.booleans())
def test_long_histories_come_back_too(seed: int, check: bool) -> None:
    chance = random.Random(seed)  # noqa: S311 a history, not a secret
    world = World(check=check)

    for _ in range(150):
        world.act(*(chance.randrange(10_000) for _ in range(4)))

    world.finish()
