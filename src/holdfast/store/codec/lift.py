"""From a decoded msgpack tree back to the value; a class is found only in the registry."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from holdfast.store.codec import arrays, leaves, veil, wire
from holdfast.store.codec.registry import Registry
from holdfast.store.codec.vault import guard
from holdfast.store.codec.wire import Refusal, told

_READERS: Final[Mapping[int, Callable[[bytes], object]]] = {
    **leaves.READERS,
    **veil.READERS,
    wire.NUMPY_SCALAR: arrays.read_scalar,
}


class Malformed(Exception):
    """The tree is not one that was ever written."""


class Tag:
    """The first item of an array that is a node."""

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code


class Reference:
    """Stands for the array or map of that number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def read_item(code: int, data: memoryview) -> object:
    """The value of an extension item, where only whole values may stand."""
    read = _READERS.get(code)
    if read is None:
        raise Malformed(f"unknown item {code}")
    return read(bytes(data))


def read_item_or_mark(code: int, data: memoryview) -> object:
    """The value of an extension item, or the mark that `Lift` is to follow."""
    if code in _TAGS and not data:
        return _TAGS[code]
    if code == wire.REFERENCE:
        return Reference(int.from_bytes(data, "big"))
    return read_item(code, data)


def refuse_item(code: int, _data: memoryview) -> object:
    """Where no item may stand at all."""
    raise Malformed(f"item {code} in a plain value")


class Lift:
    """One walk over one tree."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: list[object] = []

    def lift(self, tree: Any, depth: int = 0) -> object:  # noqa: ANN401 -- any tree at all
        """The value of `tree`; plain lists and dicts are filled in place."""
        kind = type(tree)
        if kind is not list and kind is not dict:
            return self._follow(tree) if kind is Reference or kind is Tag else tree
        number = len(self._made)
        if depth > wire.DEPTH_MAX or number > wire.NODES_MAX:
            raise Malformed("nested too deep or too often")
        self._made.append(_UNFINISHED)
        value: object = tree
        if kind is dict:
            for key, item in tree.items():
                if type(key) is not str:
                    raise Malformed("a map with a key that is no text")
                if type(item) in _INNER:
                    tree[key] = self.lift(item, depth + 1)
        elif tree and type(tree[0]) is Tag:
            value = self._NODES[tree[0].code](self, tree, depth + 1)
        else:
            self._items(tree, 0, depth + 1)
        self._made[number] = value
        return value

    def _follow(self, mark: Reference | Tag) -> object:
        if isinstance(mark, Tag):
            raise Malformed("a tag that is not first in its array")
        if mark.number >= len(self._made):
            raise Malformed("a reference to what comes later")
        value = self._made[mark.number]
        if value is _UNFINISHED or type(value) in _NEVER_SHARED:
            raise Malformed("a reference to what holds it, or to what is never shared")
        return value

    def _items(self, tree: list[Any], start: int, depth: int) -> list[Any]:
        for index in range(start, len(tree)):
            if type(tree[index]) in _INNER:
                tree[index] = self.lift(tree[index], depth)
        return tree[start:] if start else tree

    def _tuple(self, tree: list[Any], depth: int) -> object:
        return tuple(self._items(tree, 1, depth))

    def _pairs(self, tree: list[Any], depth: int) -> object:
        flat = self._items(tree, 1, depth)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def _set(self, tree: list[Any], depth: int) -> object:
        return set(self._items(tree, 1, depth))

    def _frozenset(self, tree: list[Any], depth: int) -> object:
        return frozenset(self._items(tree, 1, depth))

    def _bytearray(self, tree: list[Any], _depth: int) -> object:
        (content,) = tree[1:]
        return bytearray(_typed(content, bytes, veil.VeiledBytes))

    def _array(self, tree: list[Any], _depth: int) -> object:
        header, content = tree[1:]
        if type(content) is list:
            return arrays.read_cells(_typed(header, bytes), content)
        return arrays.read_array(_typed(header, bytes), _typed(content, bytes))

    def _object(self, tree: list[Any], depth: int) -> object:
        name, version, payload, *rest = tree[1:]
        entry = self._registry.of_name(_typed(name, str))
        if entry is None:  # Of what is inside nothing can be said either: this is the name to tell.
            raise Refusal(
                name,
                f"stored as {name!r}, which this program does not know; import the module whose "
                "steps or agents name it in annotations, or which registers it (`--app MODULE` in "
                "a command), or `holdfast.register` the class under this name=",
            )
        called = guard.get().called
        if called is not None and name != entry.name:
            called[entry.cls] = name
        # Fields and rest are no deeper than the object itself.
        payload = self.lift(payload, depth - 1 if type(payload) is dict else depth)
        rest = [self.lift(part, depth - 1) for part in rest]
        try:
            payload = self._registry.upgrade(entry, _typed(version, int), payload)
            return entry.shape.make(entry.cls, payload, rest[0] if rest else None)
        except Refusal:
            raise
        except Exception as error:
            why = f"making it again from version {version} failed: {told(error)}"
            raise Refusal(name, why) from error

    _NODES: ClassVar[Mapping[int, Callable[..., object]]] = {
        wire.TUPLE: _tuple,
        wire.PAIRS: _pairs,
        wire.SET: _set,
        wire.FROZENSET: _frozenset,
        wire.BYTEARRAY: _bytearray,
        wire.OBJECT: _object,
        wire.NUMPY_ARRAY: _array,
    }


def _typed(item: Any, *kinds: type) -> Any:  # noqa: ANN401
    if type(item) not in kinds:
        raise Malformed(f"{type(item).__name__} where {kinds[0].__name__} must stand")
    return item


_UNFINISHED: Final = object()
_INNER: Final = frozenset({list, dict, Reference, Tag})
_NEVER_SHARED: Final = frozenset({tuple, frozenset})
_TAGS: Final[Mapping[int, Tag]] = {
    code: Tag(code)
    for code in (
        wire.TUPLE,
        wire.PAIRS,
        wire.SET,
        wire.FROZENSET,
        wire.BYTEARRAY,
        wire.OBJECT,
        wire.NUMPY_ARRAY,
    )
}
