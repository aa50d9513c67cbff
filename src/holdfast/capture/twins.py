"""Plain containers of the program and their tracked twins in the state, kept equal.

The program holds ordinary dicts and lists and changes them as it likes. Each has one twin in the
state: what is shared stays shared, what was moved keeps its twin, and a capture changes a twin
only where the content differs, so a save costs what changed. No container is ever both.
"""

from operator import is_
from typing import Any, Final

from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.leaves import within
from holdfast.capture.node import KINDS, LOOSE, TRACKED, Node, step, where
from holdfast.capture.tracked import TrackedDict, TrackedList, copy_with
from holdfast.errors import ChangedInCall, NotStorable, UsageError
from holdfast.store.codec import values

_NONE: Final[Any] = object()
_WHY_BOTH: Final = (
    "it is part of run.state too, and a restart would make two of it; "
    "put `holdfast.plain(x)` in the object instead"
)
_WHY_SHARED: Final = (
    "it stands inside a value that is kept whole and elsewhere too, and a restart would make two "
    "of it; give one of the places a copy"
)

Pairs = dict[int, tuple[Any, Any]]


class Twins:
    """What stands in the state for what attached objects hold."""

    def __init__(self) -> None:
        self._known: Pairs = {}  # by identity of the plain one: it, and its twin
        self._written: Pairs = {}  # by identity of a twin: it, and what a capture left in it
        self._tops: dict[str, Any] = {}  # by section: what the last capture left there

    def capture(self, root: TrackedDict, taken: dict[str, Value], inside: str = "") -> None:
        """Make the sections of `root` equal to what was taken of each object.

        `inside` names a step or effect that has just run: then a difference is what it changed,
        and raises `ChangedInCall`.
        """
        walk = _Walk(self._known, self._unsaved(), inside)
        try:
            for section, value in taken.items():
                if root.get(section, _NONE) is not self._tops.get(
                    section, root.get(section, _NONE)
                ):
                    raise changed_in_state(f"state{step(section)}")
                walk.section(root, section, value)
                self._tops[section] = root[section]
            walk.refuse_shared()
        except RecursionError:
            why = "it is nested too deep"
            raise NotStorable(f"state{step(section)}", type(value).__name__, why) from None
        finally:
            self._written = walk.written
        self._known = walk.met

    def _unsaved(self) -> Pairs:
        """What captures wrote that no save has taken yet."""
        return {
            key: (twin, left)
            for key, (twin, left) in self._written.items()
            if twin.hf_mark is not None
            or (twin.hf_tracker is not None and twin.hf_node < twin.hf_tracker.floor)
        }

    def forget(self) -> None:
        """A restored state was put in place: no twin is known any more."""
        self._known, self._written, self._tops = {}, {}, {}

    def unfold(self, section: str, twin: Value) -> Value:
        """Plain containers for a section of the state; the same ones for the same twins."""
        self._tops[section] = twin
        made = {id(twin): (plain, twin) for plain, twin in self._known.values()}
        return self._unfold(twin, made)

    def _unfold(self, twin: Value, made: Pairs) -> Value:
        if type(twin) not in KINDS:
            return twin
        if id(twin) in made:
            return made[id(twin)][0]
        plain: Any = KINDS[type(twin)]()
        made[id(twin)] = self._known[id(plain)] = (plain, twin)
        if isinstance(twin, dict):
            plain.update({key: self._unfold(item, made) for key, item in twin.items()})
        else:
            plain.extend([self._unfold(item, made) for item in twin])
        return plain


class _Walk:
    """One capture: every container that the objects hold is met, each once."""

    def __init__(self, known: Pairs, written: Pairs, inside: str) -> None:
        self.met: Pairs = {}
        self.written = written
        self._known, self._inside = known, inside
        self._taken: set[int] = set()  # identities of twins that belong to what was met
        self._leaves: list[tuple[Any, str]] = []
        self._path = ""

    def section(self, root: TrackedDict, section: str, value: Value) -> None:
        """Make one section equal to `value`."""
        self._path = f"state{step(section)}"
        standing = root.get(section, _NONE)
        twin = self._twin(value, standing)
        if twin is not standing:
            self._refuse_in_call()
            root[section] = twin

    def refuse_shared(self) -> None:
        """Refuse a container that stands inside a leaf as well as beside it."""
        for leaf, path in self._leaves:
            if any(id(item) in self.met for item in within(leaf, but=BASIC)):
                raise NotStorable(path, type(leaf).__name__, _WHY_SHARED)

    def _twin(self, value: Value, standing: Value) -> Value:
        """What is to stand in the state for `value`: what stands there, where that is right."""
        kind = type(value)
        if kind in BASIC:
            return standing if _is_same_basic(value, standing) else value
        if id(value) in self.met:
            return self.met[id(value)][1]
        if KINDS.get(kind, kind) not in TRACKED:
            return self._leaf(value, standing)
        return self._claim(value, self._chosen(value, standing))

    def _chosen(self, value: Value, standing: Value) -> Value:
        """The twin that a container has had, or takes over, or a new one."""
        known = self._twin_of(value)
        if known is not _NONE:
            return known
        source = value.hf_source if type(value) in KINDS else None
        if source is not None and getattr(standing, "hf_source", None) != source:
            return copy_with(value, source)  # An answer is named in the journal, not repeated.
        kind = TRACKED[KINDS.get(type(value), type(value))]
        return standing if type(standing) is kind and id(standing) not in self._taken else kind()

    def _twin_of(self, value: Value) -> Value:
        plain, twin = self._known.get(id(value), (None, _NONE))
        return twin if plain is value and id(twin) not in self._taken else _NONE

    def _claim(self, value: Value, twin: Value) -> Value:
        """Make `twin` the one of `value`, and equal to it."""
        if type(value) in KINDS and value.hf_tracker not in (None, LOOSE):
            raise NotStorable(self._path, KINDS[type(value)].__name__, _WHY_BOTH)
        self._meet(value, twin)
        if not _is_flat_same(value, twin):
            above = self._path
            if isinstance(value, dict):
                self._dict(list(value.items()), twin)
            else:
                self._list(list(value), twin)
            self._path = above
        if twin.hf_tracker is LOOSE:  # A new one bears no marks until it is saved.
            self.written[id(twin)] = twin, twin.copy()
        return twin

    def _meet(self, value: Value, twin: Value) -> None:
        self.met[id(value)] = value, twin
        self._taken.add(id(twin))

    def _dict(self, pairs: list[tuple[Any, Any]], twin: TrackedDict) -> None:
        above, ready = self._path, {}
        for key, item in pairs:
            self._path = above + step(key)
            ready[key] = self._twin(item, twin.get(key, _NONE))
        gone = _gone(list(twin), list(ready))
        left = twin.keys() - gone
        due = [key for key in ready if key not in left or twin[key] is not ready[key]]
        if gone or due:
            self._path = above
            self._refuse_foreign(twin)
            for key in gone:
                del twin[key]
            for key in due:
                twin[key] = ready[key]
            self.written[id(twin)] = twin, dict(twin)

    def _list(self, items: list[Any], twin: TrackedList) -> None:
        above, before = self._path, list(twin)
        shorter = min(len(items), len(before))
        front, back = self._untouched(items, before), 0
        while front < shorter and self._stands(items[front], before[front], above, front):
            front += 1
        while back < shorter - front and self._stands(
            items[-1 - back], before[-1 - back], above, len(items) - 1 - back
        ):
            back += 1
        old, new = before[front : len(before) - back], items[front : len(items) - back]
        pairs = old if len(old) == len(new) else [_NONE] * len(new)
        ready = []
        for at, (item, standing) in enumerate(zip(new, pairs, strict=True), front):
            self._path = f"{above}[{at}]"
            ready.append(self._twin(item, standing))
        if len(ready) != len(old) or not all(map(is_, ready, old)):
            self._path = above
            self._refuse_foreign(twin)
            twin[front : len(before) - back] = ready
            self.written[id(twin)] = twin, list(twin)

    def _untouched(self, items: list[Any], before: list[Any]) -> int:
        """How many messages at the front are as they were; nearly always nearly all of them."""
        known, met, taken, count = self._known, self.met, self._taken, 0
        for item, twin in zip(items, before, strict=False):
            pair = known.get(id(item))
            if pair is None or pair[0] is not item or pair[1] is not twin or id(twin) in taken:
                break
            if type(item) is not dict and getattr(item, "hf_tracker", None) is not LOOSE:
                break
            if id(item) in met or not _is_flat_same(item, twin):
                break
            met[id(item)] = pair
            taken.add(id(twin))
            count += 1
        return count

    def _stands(self, item: Value, standing: Value, above: str, at: int) -> bool:
        """Whether `standing` is what stands for `item`; then it is made equal to it."""
        kind = type(item)
        if kind in BASIC:
            return _is_same_basic(item, standing)
        if id(item) in self.met:
            return self.met[id(item)][1] is standing
        if id(standing) in self._taken:
            return False
        self._path = f"{above}[{at}]"
        if KINDS.get(kind, kind) not in TRACKED:
            is_right = item is standing or _is_equal(item, standing)
            return is_right and self._leaf(item, standing) is standing
        known = self._twin_of(item)
        if known is not standing and (known is not _NONE or not _is_equal(item, standing)):
            return False
        self._claim(item, standing)
        return True

    def _leaf(self, value: Value, standing: Value) -> Value:
        if is_fixed(value):
            return standing if _is_equal(value, standing) else value
        if id(value) in self.met:
            return self.met[id(value)][1]
        self._leaves.append((value, self._path))
        for twin in (self._twin_of(value), standing):
            if id(twin) not in self._taken and (twin is value or _is_equal(value, twin)):
                self._meet(value, twin)
                return twin
        twin = value
        if id(value) in self._taken:  # It stands for another one already, which it equalled.
            twin = values.decode(values.encode(value, path=self._path))
        self._meet(value, twin)
        return twin

    def _refuse_foreign(self, twin: Node) -> None:
        """A twin is to be changed: not if a step changed the object, or others the twin."""
        self._refuse_in_call()
        _, left = self.written.get(id(twin), (None, None))
        if twin.hf_mark is not None if left is None else not _holds(twin, left):
            raise changed_in_state(where(twin))

    def _refuse_in_call(self) -> None:
        if self._inside:
            raise ChangedInCall(self._inside, self._path)


def changed_in_state(path: str) -> UsageError:
    """The error for a section that was changed past the object it belongs to."""
    return UsageError(
        f"{path} was changed in run.state, but it belongs to an attached object; "
        "change the object: the state follows at the turn's end"
    )


def _gone(before: list[Any], keys: list[Any]) -> list[Any]:
    """The keys to delete so that setting all of `keys` in order gives their order."""
    if len(before) <= len(keys) and all(map(_is_equal, before, keys)):
        return []
    staying = set(keys)
    kept = [key for key in before if key in staying]
    if all(map(_is_equal, kept, keys)):
        return [key for key in before if key not in staying]
    return before


def _is_flat_same(value: Value, twin: Value) -> bool:
    """Whether a container holds the very things its twin does, and none that must be met."""
    if len(value) != len(twin) or not all(map(is_, value, twin)):
        return False
    if not isinstance(value, dict):
        return BASIC.issuperset(map(type, value))
    is_same = all(map(is_, value.values(), twin.values()))
    return is_same and BASIC.issuperset(map(type, value.values()))


def _holds(twin: Value, left: Value) -> bool:
    """Whether a container holds the very things it was left with."""
    if len(twin) != len(left) or not all(map(is_, twin, left)):
        return False
    return not isinstance(twin, dict) or all(map(is_, twin.values(), left.values()))


def _is_same_basic(one: Value, two: Value) -> bool:
    if type(one) is not type(two) or type(one) not in BASIC:
        return False
    if type(one) is float:
        return bool(one.hex() == two.hex())  # NaN is NaN, and -0.0 is not 0.0
    return bool(one == two)


def _is_equal(one: Value, two: Value) -> bool:
    """Whether two values are equal in content and type, all the way down, keys in order too."""
    kind = KINDS.get(type(one), type(one))
    if kind is not KINDS.get(type(two), type(two)):
        return False
    if kind in BASIC:
        return _is_same_basic(one, two)
    if kind in TRACKED:
        is_alike = len(one) == len(two) and all(map(_is_equal, one, two))
        if kind is list or not is_alike:
            return is_alike
        return all(map(_is_equal, one.values(), two.values()))
    # The order of a dict inside a leaf counts, that of a set does not.
    pack = values.canonical if issubclass(kind, set | frozenset) else values.encode
    try:
        return pack(one, path="") == pack(two, path="")
    except NotStorable:
        return False
