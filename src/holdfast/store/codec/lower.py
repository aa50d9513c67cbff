"""From a value to a tree that msgpack holds without loss, or a refusal that names the place.

Everything is chosen by exact type: msgspec itself would take a tuple, a datetime or a subclass of
`str` without a word and give back something else.
"""

import functools
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast.store.codec import arrays, leaves, shapes, veil, wire
from holdfast.store.codec.advice import advice
from holdfast.store.codec.registry import Entry, Registry
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.vault import guard, vault
from holdfast.store.codec.wire import Leak, Refusal, name_of, told

# Leaves that msgpack always holds without loss, and those that it mostly does.
_AS_IS: Final = frozenset({float, bool, type(None), bytes})
_PLAIN_LEAVES: Final = _AS_IS | {str, int}
_LEAVES: Final = {**leaves.WRITERS, **veil.WRITERS}
_KEY_CHARS_MAX: Final = 60

_items = dict.items
_iter = list.__iter__

sorted_bytes = msgspec.msgpack.Encoder(order="deterministic").encode
"""msgpack with the keys of every map in the order of their UTF-8 bytes."""


def is_plain(value: object) -> bool:
    """Whether msgpack alone gives `value` back, unless an int or a text is out of its range.

    Walks level by level, so that finding each container only once is a comparison of two counts.
    """
    if type(value) in _PLAIN_LEAVES:
        return True
    level = [value]
    seen = {id(value)}
    count = 1
    for _ in range(wire.DEPTH_MAX):
        below = _below(level)
        if not below:
            return below is not None
        level = below
        seen.update(map(id, level))
        count += len(level)
        if len(seen) != count:
            return False
    return False


def _below(level: list[Any]) -> list[Any] | None:
    """What lies in these containers and is no plain leaf; None if one of them is not plain."""
    below: list[Any] = []
    for box in level:
        kind: type | None = type(box)
        if kind is not dict and kind is not list:
            kind = _plain_kind(type(box))
        if kind is dict:
            for key, item in _items(box):
                if type(key) is not str:
                    return None
                if type(item) not in _PLAIN_LEAVES:
                    below.append(item)
        elif kind is list:
            below += [item for item in _iter(box) if type(item) not in _PLAIN_LEAVES]
        else:
            return None
    return below


def is_built_in(cls: type) -> bool:
    """Whether values of this class are stored without being declared."""
    return cls in _AS_IS or cls in _LEAVES or cls in Lowering.BUILT_IN


def _plain_kind(cls: type) -> type | None:
    """The plain type that a container marked with `__holdfast_plain__` stands for."""
    plain = getattr(cls, "__holdfast_plain__", None)
    return plain if plain in (list, dict) and issubclass(cls, plain) else None


class Judged:
    """What was found in the leaves of one value, kept while it is lowered again and again."""

    def __init__(self) -> None:
        self.may_stay: dict[bytes, bool] = {}
        self.pieces: dict[bytes, veil.Pieces | None] = {}


class Lowering:
    """One walk over one value.

    In `canonical` form maps and sets are sorted, sharing is forgotten and versions are left out,
    so that equal contents give equal trees. With `judged`, secrets are cut out of text and bytes;
    it says of what nobody declared whether it may stay.
    """

    def __init__(
        self, registry: Registry, *, canonical: bool, judged: "Judged | None" = None
    ) -> None:
        self.form = wire.FORM_PLAIN
        self.holds_secret = False  # where the packed bytes do not show it
        self._registry = registry
        self._canonical = canonical
        self._names = guard.get().names
        self._count = 0
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()
        # What the walk itself made: its ids must not be given out again before the end.
        self._kept: list[object] = []
        self._as_is = _AS_IS
        self._judged = judged
        self._leaves: dict[type, Callable[[Any], object]] = dict(_LEAVES)
        if canonical:
            self._leaves[Secret] = veil.write_secret_canonical
            self._leaves[veil.Veiled] = veil.canonical_text
            self._leaves[veil.VeiledBytes] = veil.canonical_bytes
        if judged is not None:
            self._as_is = _AS_IS - {bytes}
            self._leaves |= {str: self._veiled_text, bytes: self._veiled_bytes}
            self._leaves |= dict.fromkeys(leaves.PATHS.values(), self._veiled_path)
        self._writers = dict(self.BUILT_IN)

    def lower(self, value: Any, depth: int = 0) -> object:  # noqa: ANN401 -- any value at all
        """The tree of `value`, which lies `depth` containers deep."""
        kind = type(value)
        if kind in self._as_is:
            return value
        write_leaf = self._leaves.get(kind)
        if write_leaf is not None:
            item = write_leaf(value)
            if item is not value and self.form == wire.FORM_PLAIN:
                self.form = wire.FORM_ITEMS
            return item
        write = self._writers.get(kind)
        if write is None:
            self._find(kind)
            return self.lower(value, depth)
        ident = id(value)
        if ident in self._open:
            raise Refusal(name_of(kind), "it contains itself; store a name or an id in its place")
        number = self._numbers.get(ident)
        if number is not None:
            self.form = wire.FORM_NODES
            return Ext(wire.REFERENCE, number.to_bytes(4, "big"))
        if depth >= wire.DEPTH_MAX:
            raise Refusal(name_of(kind), f"it is nested more than {wire.DEPTH_MAX} levels deep")
        if not self._canonical and kind not in _IMMUTABLE:
            self._numbers[ident] = self._count
        self._open.add(ident)
        node = write(self, value, depth + 1)
        self._open.remove(ident)
        return node

    def _find(self, kind: type) -> None:
        """Find how values of this type are written; refuse one that nobody declared."""
        zoneinfo = sys.modules.get("zoneinfo")
        plain = _plain_kind(kind)
        if plain is not None:
            self._writers[kind] = self.BUILT_IN[plain]
        elif arrays.is_array(kind):
            self._writers[kind] = Lowering._array
        elif arrays.is_scalar(kind):
            self._leaves[kind] = arrays.write_scalar if self._judged is None else self._scalar
        elif zoneinfo is not None and kind is zoneinfo.ZoneInfo:
            self._leaves[kind] = leaves.write_zone
        else:
            entry = self._registry.of_class(kind)
            if entry is None:
                raise _unknown(kind)
            self._writers[kind] = functools.partial(Lowering._object, entry=entry)

    def _begin(self, code: int | None = None) -> list[object]:
        """Count an array or map of the tree, and give the array of a node its first item."""
        self._count += 1
        if self._count > wire.NODES_MAX:
            raise Refusal("containers", f"there are more than {wire.NODES_MAX:,} of them")
        if code is None:
            return []
        self.form = wire.FORM_NODES
        return [Ext(code, b"")]

    def _list(self, value: list[Any], depth: int) -> object:
        node = self._begin()
        self._add(node, _iter(value), depth)
        return node

    def _tuple(self, value: tuple[Any, ...], depth: int) -> object:
        node = self._begin(wire.TUPLE)
        self._add(node, iter(value), depth)
        return node

    def _add(self, node: list[object], items: Iterator[Any], depth: int) -> None:
        start = len(node)
        try:
            for item in items:
                node.append(self.lower(item, depth))  # noqa: PERF401 -- one frame less per level
        except Refusal as refusal:
            refusal.inside(f"[{len(node) - start}]")
            raise

    def _dict(self, value: dict[Any, Any], depth: int) -> object:
        if not all(type(key) is str and leaves.is_text(key) for key in dict.keys(value)):
            return self._pairs(value, depth)
        if self._judged is not None and not all(
            veil.is_clean(veil.text_bytes(key)) for key in dict.keys(value)
        ):
            return self._pairs(value, depth)
        return self._map(_items(value), depth, _at)

    def _map(
        self, items: Iterable[tuple[str, Any]], depth: int, place: Callable[[str], str]
    ) -> dict[str, object]:
        self._begin()
        tree: dict[str, object] = {}
        key = ""
        try:
            for key, item in items:
                tree[key] = self.lower(item, depth)
        except Refusal as refusal:
            refusal.inside(place(key))
            raise
        return tree

    def _pairs(self, value: dict[Any, Any], depth: int) -> object:
        node = self._begin(wire.PAIRS)
        pairs: list[tuple[object, object]] = []
        key, is_key = None, True
        try:
            for key, item in _items(value):
                is_key = True
                tree = self.lower(key, depth)
                is_key = False
                pairs.append((tree, self.lower(item, depth)))
        except Refusal as refusal:
            refusal.inside(f".keys()[{len(pairs)}]" if is_key else _at(key))
            raise
        if self._canonical:
            ordered = sorted((sorted_bytes(key), sorted_bytes(item)) for key, item in pairs)
            pairs = [(msgspec.Raw(key), msgspec.Raw(item)) for key, item in ordered]
        for pair in pairs:
            node.extend(pair)
        return node

    def _set(self, value: set[Any] | frozenset[Any], depth: int) -> object:
        node = self._begin(wire.SET if type(value) is set else wire.FROZENSET)
        items: list[object] = []
        try:
            for item in value:
                items.append(self.lower(item, depth))  # noqa: PERF401 -- one frame less per level
        except Refusal as refusal:
            refusal.inside("{...}")
            raise
        if self._canonical:
            items = [msgspec.Raw(item) for item in sorted(map(sorted_bytes, items))]
        return node + items

    def _bytearray(self, value: bytearray, _depth: int) -> object:
        return [*self._begin(wire.BYTEARRAY), self.lower(bytes(value))]

    def _array(self, value: object, depth: int) -> object:
        node = self._begin(wire.NUMPY_ARRAY)
        header, content = arrays.write_array(value)
        text = arrays.text_in(value, content)
        if text is None or not vault.may_hold(text):
            return [*node, header, content]
        if self._judged is None:
            self.holds_secret = True
            return [*node, header, content]
        cells: list[object] = []
        self._add(cells, iter(arrays.cells_of(value)), depth)
        return [*node, header, cells]

    def _object(self, value: object, depth: int, *, entry: Entry) -> object:
        node = self._begin(wire.OBJECT)
        try:
            payload, rest = entry.shape.take(value)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal(name_of(entry.cls), f"taking it apart failed: {told(error)}") from error
        self._kept += (payload, rest)
        if self._canonical:
            known = entry.canonical if self._names is None else self._names.get(entry.cls)
            node += [known or entry.name, 0]
        else:
            node += [entry.name, entry.version]
        if entry.shape.has_fields:
            assert isinstance(payload, dict)
            node.append(self._map(payload.items(), depth, _field))
        else:
            node.append(self.lower(payload, depth))
        if rest is not None:
            if self._canonical:
                rest.pop(shapes.FIELDS_SET, None)
                rest.pop(shapes.UNSET, None)
            node.append(self._map(rest.items(), depth, _field))
        return node

    def _cut(self, value: object, data: bytes) -> veil.Pieces | None:
        """The pieces of a leaf with secrets in it; raise `Leak` where that is not judged yet."""
        judged = self._judged
        assert judged is not None
        if data not in judged.pieces:
            found = None
            if vault.may_hold(data):
                kind = None if self._canonical else veil.leak_in(data)
                if kind is not None and data not in judged.may_stay:
                    raise Leak(name_of(type(value)), kind, data)
                found = veil.cut(data, unknown=not judged.may_stay.get(data, False))
            judged.pieces[data] = found
        return judged.pieces[data]

    def _veiled_text(self, value: str) -> object:
        pieces = self._cut(value, veil.text_bytes(value))
        return leaves.WRITERS[str](value) if not pieces else self._item(veil.TEXT, pieces)

    def _veiled_bytes(self, value: bytes) -> object:
        pieces = self._cut(value, value)
        return value if pieces is None else self._item(veil.BYTES, pieces)

    def _veiled_path(self, value: pathlib.PurePath) -> object:
        pieces = self._cut(value, veil.text_bytes(str(value)))
        if pieces is None:
            return leaves.WRITERS[type(value)](value)
        return self._item(veil.PATH, pieces, type(value).__name__)

    def _item(self, what: int, pieces: veil.Pieces, *more: object) -> Ext:
        return veil.item(what, pieces, *more, canonical=self._canonical)

    def _scalar(self, value: Any) -> object:  # noqa: ANN401 -- NumPy is not imported here
        """A NumPy scalar; text with a secret in it comes back as plain text."""
        plain = value.item()
        if isinstance(plain, str | bytes):
            item = self._veiled_text(plain) if isinstance(plain, str) else self._veiled_bytes(plain)
            if isinstance(item, Ext) and item.code == wire.VEILED:
                return item
        return arrays.write_scalar(value)

    BUILT_IN: ClassVar[Mapping[type, Callable[..., object]]] = {
        list: _list,
        dict: _dict,
        tuple: _tuple,
        set: _set,
        frozenset: _set,
        bytearray: _bytearray,
    }


# Found twice, these are written twice: a shared hashable could make hashing it endless on reading.
_IMMUTABLE: Final = frozenset({tuple, frozenset})


def _at(key: object) -> str:
    return f"[{_shown(key)}]"


def _field(name: str) -> str:
    return f".{name}"


def _shown(key: object) -> str:
    """A key as it stands in a path: quoted, and short."""
    if type(key) is str:
        text = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    elif type(key) in _PLAIN_LEAVES or type(key) in _LEAVES or type(key) is tuple:
        text = repr(key)
    else:
        text = f"<{name_of(type(key))}>"
    return text if len(text) <= _KEY_CHARS_MAX else f"{text[:_KEY_CHARS_MAX]}…"


def _unknown(kind: type) -> Refusal:
    """Refuse a type with the line to add."""
    return Refusal(name_of(kind), f"Holdfast does not know this type; {advice(kind)}")
