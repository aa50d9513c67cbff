"""A second reader of the stored format, written from `docs/format.md` alone: entries to states."""

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from tests.golden.independent import Store, Value, need, pack, sha, unpack

ANSWERS = {2: 2, 6: 3}
"""Where the value stands in `Answer` and `Happened`."""
DELTAS = {8: 4, 9: 3, 11: 9, 12: 3, 18: 5, 23: 3, 50: 5}
"""Where the delta stands in the entries that have one; in `Based`, the state stands at 3."""
RESUMED, BASED = 1, 10
TURN_ENDS = {8, 18, 23}
"""What a `Resumed` does not take back: the ends of turns, and where branches begin."""
SNAPSHOTS = {11: (6, 5), 50: (9, 8)}
"""Where `state` and `only` of `Saved` and `Kept` stand."""
TUPLE, PAIRS, SET, FROZENSET, BYTEARRAY, OBJECT, ARRAY = range(32, 39)

Entry = tuple[int, int, Value]
Classes = Mapping[str, Callable[[dict[str, Any], Any], object]]


class Leaf(msgspec.Struct, frozen=True):
    """An item or node of §8, kept as it is stored."""

    code: int
    items: tuple[Value, ...]


class Old(msgspec.Struct, frozen=True):
    """A node that was met before a save."""

    number: int


def decode(data: bytes) -> Value:
    """An encoded value (§8): lists, dicts, tuples, what msgpack has, and leaves."""
    need(data[0] in {0, 1, 2}, "a form")
    begun: list[Value] = []

    def read(value: Value) -> Value:
        if isinstance(value, Ext):
            is_reference = value.code == 48
            return begun[int.from_bytes(value.data, "big")] if is_reference else _leaf(value)
        if not isinstance(value, list | dict):
            return value
        made: Value = type(value)()
        number = len(begun)
        begun.append(made)
        if isinstance(value, dict):
            made.update((key, read(item)) for key, item in value.items())
        elif (
            value and isinstance(value[0], Ext) and value[0].data == b"" and value[0].code >= TUPLE
        ):
            made = begun[number] = _node(value[0].code, tuple(map(read, value[1:])))
        else:
            made.extend(map(read, value))
        return made

    return read(unpack(data[1:]))


def _leaf(item: Ext) -> Leaf:
    need(item.code in range(1, 17), f"item {item.code}")
    return Leaf(item.code, (bytes(item.data),))


def _node(code: int, items: tuple[Value, ...]) -> Value:
    if code == PAIRS:
        return dict(zip(items[::2], items[1::2], strict=True))
    return items if code == TUPLE else Leaf(code, items)


class Save:
    """One base or delta, read by itself: what it made, by number, and what it changes (§9)."""

    def __init__(self, states: "States", at: int) -> None:
        self._states, self._at = states, at
        entry = states.entries[at][2]
        is_base = entry[0] == BASED
        stored = unpack(states.store.whole(entry[3 if is_base else DELTAS[entry[0]]]))
        need(stored[0] == 1, "the version of a save")
        self.made: dict[int, Value] = {}
        self.leaves: list[Value] = []
        self.changes: list[tuple[int, Value, Value]] = []
        self.first = self._next = 0 if is_base else stored[1]
        if is_base:
            self._value(stored[1])
        else:
            for node, head, body in zip(stored[2::3], stored[3::3], stored[4::3], strict=True):
                read = self._items(body) if isinstance(body, list) else self._pairs(body)
                keys = [self._key(key) for key in head] if isinstance(read, dict) else head
                self.changes.append((node, keys, read))

    def _give(self, value: Value) -> Value:
        self.made[self._next] = value
        self._next += 1
        return value

    def _value(self, value: Value) -> Value:
        if isinstance(value, list):
            made = self._give([])
            made.extend(self._items(value))
        elif isinstance(value, dict) or (isinstance(value, Ext) and value.code == 2):
            made = self._give({})
            made.update(self._pairs(value))
        elif isinstance(value, Ext):
            made = self._item(value)
        else:
            made = value
        return made

    def _item(self, item: Ext) -> Value:
        code, data = item.code, bytes(item.data)
        if code in {4, 5}:
            value = decode(self._states.store.whole(data))
            self.leaves.append(value)
            return self._give(value) if code == 5 else value
        if code in {7, 8}:
            row, index, number = unpack(data)
            at = self._find(row, index)
            is_answer = number == -1
            value = self._states.answer(at) if is_answer else self._states.save(at).leaves[number]
            return self._give(value) if code == 7 else value
        if code == 1:
            return self._old(unpack(data)[0])
        need(code == 3, f"item {code}")
        count, (row, index, *ordinal), *keys = unpack(data)
        return self._elsewhere(count, self._find(row, index), ordinal[0] if ordinal else -1, keys)

    def _items(self, items: list[Value]) -> list[Value]:
        made: list[Value] = []
        for item in items:
            code = item.code if isinstance(item, Ext) else None
            if code == 1:
                made += map(self._old, _sums(unpack(item.data)))
            elif code == 6:
                counts, rows, indexes, ordinals = unpack(item.data)
                for count, row, index, ordinal in zip(
                    counts, _sums(rows), indexes, ordinals, strict=True
                ):
                    made.append(self._elsewhere(count, self._find(row, index), ordinal, []))
            else:
                made.append(self._value(item))
        return made

    def _pairs(self, body: Value) -> dict[Value, Value]:
        if isinstance(body, dict):
            return {key: self._value(value) for key, value in body.items()}
        flat = unpack(body.data)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {self._key(key): self._value(value) for key, value in pairs}

    def _key(self, key: Value) -> Value:
        return decode(self._states.store.whole(bytes(key.data))) if isinstance(key, Ext) else key

    def _old(self, number: int) -> Value:
        return self.made.get(number, Old(number))

    def _find(self, row: int, index: int) -> int:
        return self._states.places[row, index] if row else self._at - 1

    def _elsewhere(self, count: int, at: int, ordinal: int, keys: list[Value]) -> Value:
        if ordinal < 0:
            value = self._states.answer(at)
            for key in keys:
                value = value[self._key(key)]
        else:
            save = self._states.save(at)
            value = save.made[save.first + ordinal]
        start = self._next
        made = copied(value, {}, self._give)
        need(self._next - start == count, "the number of containers that stand elsewhere")
        return made


def _sums(numbers: Iterable[int]) -> list[int]:
    sums: list[int] = []
    for number in numbers:
        sums.append(number + (sums[-1] if sums else 0))
    return sums


def copied(
    value: Value, known: dict[int, Value], each: Callable[[Value], Value], old: Value = None
) -> Value:
    """A copy of lists and dicts, given to `each` before what is in them; shared ones stay so."""
    if isinstance(value, Old):
        return old[value.number] if old else value
    if not isinstance(value, list | dict):
        return value
    if id(value) not in known:
        made = known[id(value)] = each(type(value)())
        if isinstance(value, dict):
            made.update((key, copied(item, known, each, old)) for key, item in value.items())
        else:
            made.extend(copied(item, known, each, old) for item in value)
    return known[id(value)]


class States:
    """The states along one line of history."""

    def __init__(self, store: Store, branch: int) -> None:
        self.store, self.entries = store, store.line(branch)
        self.places = {(row, index): at for at, (row, index, _) in enumerate(self.entries)}
        self._saves: dict[int, Save] = {}

    def save(self, at: int) -> Save:
        if at not in self._saves:
            self._saves[at] = Save(self, at)
        return self._saves[at]

    def answer(self, at: int) -> Value:
        entry = self.entries[at][2]
        return decode(self.store.whole(entry[ANSWERS[entry[0]]]))

    def restore(self, row: int, index: int) -> Value:
        """The state at a point: from the newest base before it, delta by delta."""
        end = self.places[row, index]
        tags = [entry[0] for _, _, entry in self.entries[: end + 1]]
        start = max((at for at, tag in enumerate(tags) if tag == BASED), default=0)
        nodes: dict[int, Value] = {0: {}}
        turn_end = nodes
        for at, tag in enumerate(tags[start:], start):
            entry = self.entries[at][2]
            if tag == RESUMED:
                nodes = _twin(turn_end)
            elif tag == BASED:
                nodes = _grown({}, self.save(at))
            elif tag in DELTAS and len(entry) > DELTAS[tag] and entry[DELTAS[tag]] is not None:
                nodes = _grown(nodes, self.save(at))
            if tag in TURN_ENDS or tag == BASED:
                turn_end = _twin(nodes)
        state, only = (self._part(end, place) for place in SNAPSHOTS.get(tags[-1], (99, 99)))
        if state is not None:
            return decode(self.store.whole(state))
        return nodes[0] if only is None else {key: nodes[0][key] for key in only}

    def _part(self, at: int, place: int) -> Value:
        entry = self.entries[at][2]
        return entry[place] if len(entry) > place else None


def _twin(nodes: dict[int, Value]) -> dict[int, Value]:
    known: dict[int, Value] = {}
    return {number: copied(value, known, lambda made: made) for number, value in nodes.items()}


def _grown(nodes: dict[int, Value], save: Save) -> dict[int, Value]:
    """The nodes after a save; those it changes are changed in place."""
    known: dict[int, Value] = {}

    def ours(value: Value) -> Value:
        return copied(value, known, lambda made: made, nodes)

    nodes |= {number: ours(value) for number, value in save.made.items()}
    for number, head, body in save.changes:
        node = nodes[number]
        if isinstance(node, dict):
            for key in head:
                del node[key]
            node.update((key, ours(value)) for key, value in body.items())
        else:
            trim, low, high = (0, head, 0) if isinstance(head, int) else head
            end = node[len(node) - high :]
            node[:] = [*node[trim : trim + low], *map(ours, body), *end]
    return nodes


def content_hash(value: Value) -> bytes:
    """The hash of §10."""
    if isinstance(value, list):
        groups = [pack(list(map(_token, value[at : at + 32]))) for at in range(0, len(value), 32)]
        if len(value) <= 32:
            return sha(b"l", *(groups or [pack([])]))
        return sha(b"L", *map(sha, groups), str(len(value)).encode())
    if not isinstance(value, dict):
        return sha(b"v", pack([_token(value)]))
    if len(value) <= 32:
        return sha(b"d", _bucket(value))
    buckets: list[dict[Value, Value]] = [
        {} for _ in range(1 << ((len(value) - 1) // 32).bit_length())
    ]
    for key, item in value.items():
        text = _text(key)
        place = zlib.crc32(pack([_token(key)]) if text is None else text)
        buckets[place % len(buckets)][key] = item
    return sha(b"D", *(sha(_bucket(each)) for each in buckets), str(len(value)).encode())


def _text(key: Value) -> bytes | None:
    if isinstance(key, Leaf) and key.code == 2:
        return bytes(key.items[0])
    return key.encode() if isinstance(key, str) else None


def _bucket(part: dict[Value, Value]) -> bytes:
    texts = {key: _text(key) for key in part}
    if None not in texts.values():
        keys = sorted(part, key=lambda key: texts[key] or b"")
        return pack([*map(_token, keys), *(_token(part[key]) for key in keys)])
    pairs = sorted((pack([_token(key)]), at) for at, key in enumerate(part))
    items = list(part.values())
    return pack([0, *(key for key, _ in pairs), *(_token(items[at]) for _, at in pairs)])


def _token(value: Value) -> Value:
    if isinstance(value, list | dict):
        return Ext(0, content_hash(value))
    return Ext(1, canonical(value)) if isinstance(value, tuple | Leaf) else value


def canonical(value: Value) -> bytes:
    """The canonical form of §8 (but for secrets, of which no golden store has one)."""
    match value:
        case list():
            return _array(map(canonical, value))
        case tuple():
            return _array([_mark(TUPLE), *map(canonical, value)])
        case dict() if all(isinstance(key, str) for key in value):
            pairs = [pack(key) + canonical(value[key]) for key in sorted(value)]
            return _begin(len(pairs), 0x80, 0xDE) + b"".join(pairs)
        case dict():
            pairs = sorted(canonical(key) + canonical(item) for key, item in value.items())
            return _begin(1 + 2 * len(pairs), 0x90, 0xDC) + _mark(PAIRS) + b"".join(pairs)
        case Leaf():
            return _canonical_leaf(value)
        case _:
            return pack(value)


def _canonical_leaf(leaf: Leaf) -> bytes:
    if leaf.code < TUPLE:
        return pack(Ext(leaf.code, leaf.items[0]))
    items = leaf.items
    if leaf.code == OBJECT:
        name, _, fields, *rest = items
        items = (name, 0, fields, *map(_without_set, rest))
    parts = list(map(canonical, items))
    return _array([_mark(leaf.code), *(sorted(parts) if leaf.code in {SET, FROZENSET} else parts)])


def _without_set(rest: Value) -> Value:
    is_map = isinstance(rest, dict)
    return {k: v for k, v in rest.items() if k not in {"set", "unset"}} if is_map else rest


def _mark(code: int) -> bytes:
    return pack(Ext(code, b""))


def _array(parts: Iterable[bytes]) -> bytes:
    every = list(parts)
    return _begin(len(every), 0x90, 0xDC) + b"".join(every)


def _begin(count: int, short: int, long: int) -> bytes:
    """How msgpack begins an array or a map."""
    if count < 16:
        return bytes([short | count])
    return (
        struct.pack(">BH", long, count) if count < 1 << 16 else struct.pack(">BI", long + 1, count)
    )
