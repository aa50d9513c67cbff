"""Whatever a program does to an attached object, its section is a full copy of it at every turn."""
# ruff: noqa: ANN401 objects hold anything

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import NotStorable
from holdfast.capture.node import KINDS
from holdfast.capture.state import State
from holdfast.capture.tracked import TrackedDict, TrackedList, track
from holdfast.capture.twins import Twins
from holdfast.store.codec import values

PLAIN: dict[type, type] = {TrackedDict: dict, TrackedList: list}
SCALARS: list[Any] = [
    None, True, 1, 1.0, 0, False, 0.0, -0.0, math.nan, 2**70, "", "a", "text", b"", b"raw", (1, 2),
]  # fmt: skip


class Machine:
    """A program with one object, the state it is attached to, and the journal beside it."""

    def __init__(self) -> None:
        self.journal: dict[tuple[int, int], Any] = {}
        self.row = 0
        self.fields: dict[str, Any] = {"messages": [], "session": {}, "count": 0}
        self.twins = Twins()
        self.state = State()
        self.saves = [self.state.base()]
        self.places: list[tuple[int, int] | None] = [None]
        self.state.locate(None)

    def end_turn(self, *, has_checkpoint: bool) -> None:
        """Capture and save; with `has_checkpoint` something was captured before, and not saved."""
        if has_checkpoint:
            self.capture()
        self.capture()
        delta = self.state.delta()
        if delta is not None:
            self.keep(delta)
        assert alike(self.fields, self.read().root["bot"])

    def capture(self) -> None:
        self.twins.capture(self.state.root, {"bot": dict(self.fields)})

    def keep(self, save: bytes) -> None:
        self.row += 1
        self.journal[self.row, 0] = save
        self.saves.append(save)
        self.places.append((self.row, 0))
        self.state.locate((self.row, 0))

    def base(self) -> None:
        save = self.state.base()
        self.saves, self.places = [], []
        self.keep(save)

    def read(self) -> State:
        return State.restore(
            self.saves[0], self.saves[1:], self.journal.__getitem__, places=self.places
        )

    def crash(self) -> None:
        """A new life: the fields are filled from what was saved."""
        self.state = self.read()
        self.twins = Twins()
        self.fields = self.twins.unfold("bot", self.state.root["bot"])
        assert alike(self.fields, self.state.root["bot"])
        assert not any(type(each) in KINDS for each in containers(self.fields))

    def answer(self, value: Any) -> Any:
        """A recorded answer, as a step gives it."""
        self.row += 1
        self.journal[self.row, 0] = copy.deepcopy(value)
        return track(value, source=(self.row, 0))


def alike(ours: Any, theirs: Any) -> bool:
    """Equal in content, type and order all the way down, and in what is shared."""
    partner: dict[int, int] = {}
    stack = [(ours, theirs)]
    while stack:
        one, two = stack.pop()
        kind = PLAIN.get(type(one), type(one))
        if kind is not PLAIN.get(type(two), type(two)):
            return False
        if kind in (dict, list, set, bytearray, np.ndarray):
            if id(one) in partner or id(two) in partner:
                if partner.get(id(one)) != id(two) or partner.get(id(two)) != id(one):
                    return False
                continue
            partner[id(one)], partner[id(two)] = id(two), id(one)
        if kind in (dict, list):
            if len(one) != len(two):
                return False
            if kind is dict:
                stack.extend(zip(one, two, strict=True))
                one, two = one.values(), two.values()
            stack.extend(zip(one, two, strict=True))
        elif values.canonical(one) != values.canonical(two):
            return False
    return True


def containers(top: Any) -> list[Any]:
    found: dict[int, Any] = {}
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list) and id(node) not in found:
            found[id(node)] = node
            stack.extend(node.values() if isinstance(node, dict) else node)
    return list(found.values())


def leaves(top: Any) -> Iterator[Any]:
    for node in containers(top):
        for item in node.values() if isinstance(node, dict) else node:
            if isinstance(item, set | bytearray | np.ndarray):
                yield item


def new(machine: Machine, n: int) -> Any:
    """A value that is new to the program."""
    makers: list[Callable[[], Any]] = [
        list,
        dict,
        lambda: {"role": "user", "content": f"text {n}"},
        lambda: [1.5, 2.5, n],
        lambda: {"deep": [{"er": [n]}], n: 0},
        lambda: {n},
        lambda: bytearray(b"ab"),
        lambda: np.arange(4.0),
        lambda: machine.answer({"content": f"answer {n}", "parts": [{"n": n}, [n]]}),
        lambda: machine.answer([n, {"a": {n}}]),
    ]
    return makers[n % len(makers)]()


def put(node: Any, at: int, value: Any) -> None:
    if isinstance(node, dict):
        node[("messages", "session", "a", "b", 1, True, 1.0)[at % 7]] = value
    elif at % 3 == 0:
        node.append(value)
    elif at % 3 == 1 or not node:
        node.insert(at % (len(node) + 1), value)
    else:
        node[at % len(node)] = value


def take(node: Any, at: int) -> None:
    if not node:
        return
    if isinstance(node, dict):
        if list(node)[at % len(node)] not in ("messages", "session"):
            del node[list(node)[at % len(node)]]
    else:
        del node[at % len(node)]


def reorder(node: Any, at: int) -> None:
    if isinstance(node, dict) and node:
        key = list(node)[at % len(node)]
        node[key] = node.pop(key)
    elif isinstance(node, list):
        node[:] = node[at % (len(node) + 1) :] + node[: at % (len(node) + 1)]


def change_leaf(machine: Machine, at: int) -> None:
    found = list(leaves(machine.fields))
    if found:
        leaf = found[at % len(found)]
        if isinstance(leaf, set):
            leaf.add(at)
        elif isinstance(leaf, bytearray):
            leaf.append(at % 256)
        else:
            leaf[at % 4] += 1


def copy_part(machine: Machine, node: Any, at: int) -> None:
    """Replace a part by an equal one, as libraries that copy or validate do."""
    if isinstance(node, list) and node:
        node[at % len(node)] = copy.deepcopy(node[at % len(node)])
    elif isinstance(node, dict) and node:
        key = list(node)[at % len(node)]
        node[key] = copy.deepcopy(node[key])
    if at % 5 == 0:
        machine.fields = copy.deepcopy(machine.fields)


def share(machine: Machine, node: Any, at: int) -> None:
    """Put a container elsewhere too; it has moved if its old place goes."""
    nodes = containers(machine.fields)
    other = nodes[at % len(nodes)]
    if not any(each is node for each in containers(other)):
        put(node, at, other)


def is_endless(value: Any, around: tuple[Any, ...] = ()) -> bool:
    """Whether a container stands in itself: what an answer holds of a plain one is that one."""
    if not isinstance(value, dict | list):
        return False
    if any(each is value for each in around):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return any(is_endless(part, (*around, value)) for part in parts)


def is_refused(machine: Machine, *, has_checkpoint: bool = False) -> bool:
    """End a turn; whether the fields cannot be saved, as none can that stand in themselves."""
    try:
        machine.end_turn(has_checkpoint=has_checkpoint)
    except NotStorable:
        assert is_endless(machine.fields)
        return True
    return False


def share_leaf(machine: Machine, node: Any, at: int) -> None:
    found = list(leaves(machine.fields))
    if found:
        put(node, at, found[at % len(found)])


def shorten(machine: Machine, at: int) -> None:
    if isinstance(messages := machine.fields["messages"], list):
        machine.fields["messages"] = messages[at % 3 :]


ACTS: list[Callable[[Machine, Any, int], None]] = [
    lambda machine, node, at: put(node, at, new(machine, at)),
    lambda machine, node, at: put(node, at, new(machine, at)),
    lambda _, node, at: put(node, at, SCALARS[at % len(SCALARS)]),
    lambda _, node, at: take(node, at),
    lambda _, node, at: reorder(node, at),
    share,
    lambda machine, _, at: change_leaf(machine, at),
    copy_part,
    share_leaf,
    lambda machine, _, at: shorten(machine, at),
]


def change(machine: Machine, what: int, where: int, at: int) -> None:
    """One of the things people do to their objects."""
    nodes = containers(machine.fields)
    ACTS[what](machine, nodes[where % len(nodes)], at)


CHANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40), st.integers(0, 40)), max_size=8)
TURNS = st.lists(
    st.tuples(CHANGES, st.sampled_from(["", "", "", "checkpoint", "base", "crash"])), max_size=8
)


@given(TURNS)
@settings(max_examples=400, deadline=None)
def test_the_section_is_a_full_copy_at_every_turn_and_comes_back_as_one(
    turns: list[tuple[list[tuple[int, int, int]], str]],
) -> None:
    machine = Machine()
    for changes, then in turns:
        for what, where, at in changes:
            change(machine, what, where, at)
        if is_refused(machine, has_checkpoint=then == "checkpoint"):
            return
        if then == "base":
            machine.base()
            assert alike(machine.fields, machine.read().root["bot"])
        if then == "crash":
            machine.crash()


@given(TURNS)
@settings(max_examples=100, deadline=None)
def test_a_turn_that_changes_nothing_writes_nothing(
    turns: list[tuple[list[tuple[int, int, int]], str]],
) -> None:
    machine = Machine()
    for changes, _ in turns:
        for what, where, at in changes:
            change(machine, what, where, at)
        if is_refused(machine):
            return

        machine.capture()
        assert machine.state.delta() is None
        machine.fields = copy.deepcopy(machine.fields)
        machine.capture()
        assert machine.state.delta() is None
