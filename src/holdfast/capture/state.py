"""The run's state: whole as a base, what changed as a delta, and back."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from threading import RLock
from typing import Any, Final, Self, TypeAlias, TypeVar, cast
from weakref import ref

from holdfast import errors, native
from holdfast.capture import wire
from holdfast.capture.adopt import Adoption, shifted
from holdfast.capture.check import Mirror
from holdfast.capture.ended import Ended
from holdfast.capture.fixed import Value
from holdfast.capture.flats import Flats
from holdfast.capture.insert import blank
from holdfast.capture.known import Known
from holdfast.capture.leaves import Leaves, Now, saved_leaves
from holdfast.capture.live import LiveLift
from holdfast.capture.lost import lost_in
from holdfast.capture.lower import Lowering
from holdfast.capture.node import Tracker, forget_digests, path_below, where
from holdfast.capture.packable import may_hold_large
from holdfast.capture.places import At, Place
from holdfast.capture.reach import reach
from holdfast.capture.tracked import TrackedDict, TrackedList
from holdfast.store.backends.base import Name
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from holdfast.store.codec.vault import vault

T = TypeVar("T", bound=bytes | None)

Whole: TypeAlias = list[tuple[Any, int]]
"""Containers that a save wrote without a reference in them, with their numbers."""

_EMPTY: Final = wire.pack([wire.VERSION, {}])

NAMED_BYTES: Final = 256
"""What a container that a base names is taken to have; smaller ones are mostly written."""


class State:
    """The durable values of a run, in tracked containers below `root`.

    `base()` gives the whole state and begins a new numbering; each `delta()` after it gives what
    changed since the save before. `restore` takes a base and the deltas that followed it.
    A save that fails changes nothing: the next one still reports everything.

    Once it is known where a save stands, `locate` says so; later saves then name what it wrote
    instead of repeating it, as they name answers, as long as that is unchanged.

    With `check`, each save is read back and compared with the live containers, so that a change
    made without their methods is found; `answer` then gives what saves name. Large leaves are put
    `aside`, and stand there before the save that refers to them is given out.
    """

    def __init__(
        self,
        content: Mapping[Any, Any] | None = None,
        *,
        check: bool = False,
        answer: Callable[[Any], object] | None = None,
        aside: Chunks | None = None,
        names_leaves: bool = True,
    ) -> None:
        self._tracker = Tracker()
        self._leaves = Leaves()
        self._aside = aside
        self._mirror = Mirror(answer, aside) if check else None
        self._names_answers = not check or answer is not None
        self._known = Known() if names_leaves and self._names_answers else None
        self._unlocated: deque[Place] = deque()
        self.bytes_to_read = 0
        """About what a reader of the last base has to read, with all that it names."""
        self.bytes_aside = 0
        """What the large leaves have that the last base names."""
        self.lost: dict[Any, errors.HoldfastError] = {}
        """Sections that a restore had to leave out, and why."""
        self.flats = Flats()
        """What is known of messages that are given to calls in lists of the program's own."""
        self._hashed_with = 0  # secrets that were known when something was hashed last
        self._set_root(blank(TrackedDict, self._tracker))
        if content:
            self.root.update(content)

    def _set_root(self, root: TrackedDict) -> None:
        self.root = root
        self._tracker.root = ref(root)

    @property
    def lock(self) -> RLock:
        """What every change and every save holds while it goes on."""
        return self._tracker.lock

    def hashes_anew(self, secrets: int) -> None:
        """Forget all digests if `secrets`, how many are known, is another number than before."""
        with self.lock:
            if secrets != self._hashed_with:
                self._hashed_with = secrets
                forget_digests(self.root)
                self._tracker.shadows.forget()

    def end(self, run: str) -> None:
        """The run has ended here: from now on, changes are refused; reading goes on."""
        self._tracker.lock = cast("RLock", Ended(self._tracker.lock, run))

    def where(self, value: object) -> str:
        """Find the path of a container or leaf, such as `state["messages"][3]`."""
        with self.lock:
            return path_below(self.root, value) or where(value)

    def base(self, *, is_beside: bool = False) -> bytes:
        """Give the whole state; deltas from now on follow this.

        `is_beside` says that it will stand right after the delta before it, which it then names.
        """
        with self.lock:
            if not (self.root or self._tracker.next or self._mirror):
                return self._first_base()
            before = self._unlocated[-1] if is_beside and self._unlocated else Place()
            if self._mirror is None and before.at is None:
                before.at = wire.BESIDE
            try:
                return self._save(self._write_base)
            finally:
                if before.at is wire.BESIDE:
                    before.at = None

    def _first_base(self) -> bytes:
        """Give the base of a state that nothing was ever put in: every run begins with it."""
        self.root.hf_node, self._tracker.next = 0, 1
        self._unlocated.append(Place())
        self.bytes_to_read = len(_EMPTY)
        return _EMPTY

    def delta(self) -> bytes | None:
        """Give what changed since the last save; None if nothing did."""
        with self._tracker.lock:
            assert self.root.hf_node >= self._tracker.floor, "a delta follows a base"
            return self._save(self._write_delta)

    def locate(self, at: At | None) -> None:
        """Say where the oldest save stands of which that was not said; None: nowhere.

        `at` is a row and an index in it, from where `answer` must give the save for ever.
        """
        self._unlocated.popleft().at = at

    def answered(self, data: bytes, at: At) -> None:
        """Say where an answer stands that is no container, and which bytes it has."""
        with self.lock:
            if self._known is not None:
                self._known.answered(data, at)

    def _save(self, write: Callable[[set[int] | None], T]) -> T:
        """Write; first everything that is marked, and if that fails, only what the root holds.

        A part that was taken out of the state is written as long as that is possible, so that it
        can come back by its id. It must not make a save fail.
        """
        if self._tracker.originals.watches and (changed := self._tracker.originals.review()):
            self._refuse_changed_originals(changed)
        held = reach(self.root) if self._tracker.suspects else None
        try:
            done = write(held)
        except errors.UsageError:
            if held is not None:
                raise
            held = reach(self.root)
            done = write(held)
        if held is not None:
            self._tracker.suspects = [
                weak
                for weak in self._tracker.suspects
                if (node := weak()) is not None and id(node) not in held
            ]
        return done

    def _refuse_changed_originals(self, changed: list[Any]) -> None:
        for copy in changed:
            path = path_below(self.root, copy)
            if path is not None:
                raise errors.ChangedOutside(path)

    def _write_base(self, held: set[int] | None) -> bytes:
        tracker = self._tracker
        floor = tracker.next
        seen = self._leaves.look(tracker, held)

        def build(lowering: Lowering) -> bytes:
            return wire.pack([wire.VERSION, lowering.written(self.root)])

        data, lowering = self._lower(build, floor, seen, is_base=True)
        self._remember(lowering.whole, lowering.leaf_numbers, tracker.next)
        if self._known is not None:
            self._known.keep(lowering.leaves_named.union(lowering.leaf_numbers))
        self.root.hf_source = None  # a base always writes its root
        self.bytes_to_read = len(data) + lowering.named * NAMED_BYTES
        self.bytes_aside = lowering.bytes_aside
        tracker.floor, tracker.next = floor, lowering.next
        for node in tracker.dirty:
            node.hf_mark = None
        tracker.dirty.clear()
        self._leaves.keep(seen, lowering.leaves_written)
        tracker.shadows.keep(seen.keys())
        return data

    def _write_delta(self, held: set[int] | None) -> bytes | None:
        tracker = self._tracker
        if native.delta is not None and held is None and self._is_usual():
            most = CHUNK_BYTES_MIN
            quick = native.delta(tracker.dirty, tracker.floor, tracker.next, most, vault.signs)
            if quick is not None:
                return self._written(*quick)
        seen = self._leaves.look(tracker, held) if tracker.holders else {}
        due: list[Any] = tracker.dirty
        if not (due or seen or self._leaves.saved or self._mirror):
            return None
        if held is not None:
            due = [node for node in due if id(node) in held]

        def build(lowering: Lowering) -> bytes | None:
            document: list[Any] = [wire.VERSION, tracker.next - tracker.floor]
            for node in due:
                document += self._operation(lowering, node)
            return wire.pack(document) if len(document) > 2 else None  # noqa: PLR2004

        data, lowering = self._lower(build, tracker.floor, seen)
        if data is not None:
            self._remember(lowering.whole, lowering.leaf_numbers, tracker.next)
        tracker.next = lowering.next
        for node in due:
            node.hf_mark = None
        tracker.dirty = [] if held is None else [n for n in tracker.dirty if n.hf_mark is not None]
        if seen or self._leaves.saved:
            self._leaves.keep(seen, lowering.leaves_written)
            tracker.shadows.keep(seen.keys())
        return data

    def _is_usual(self) -> bool:
        """Whether all that can be in a state are basic values and containers, saved as ever."""
        has_leaves = self._tracker.holders or self._leaves.saved
        return not has_leaves and self._mirror is None and self._names_answers

    def _written(self, data: bytes | None, next_: int, whole: Whole) -> bytes | None:
        """Note what a delta wrote that is made already."""
        tracker = self._tracker
        if data is not None:
            self._remember(whole, {}, tracker.next)
        tracker.next = next_
        for node in tracker.dirty:
            node.hf_mark = None
        tracker.dirty = []
        return data

    def _remember(self, whole: Whole, leaf_numbers: dict[bytes, int], first: int) -> None:
        """Remember what a save wrote by which number, until it is changed."""
        place = Place()
        self._unlocated.append(place)
        if self._names_answers:
            for node, number in whole:
                node.hf_source = (place, number - first)
        if self._known is not None and leaf_numbers:
            self._known.written(place, leaf_numbers)

    def _operation(self, lowering: Lowering, node: Value) -> tuple[Value, ...]:
        """Give node, head and body of one changed container; nothing if it is as it was."""
        mark = node.hf_mark
        number = node.hf_node - self._tracker.floor
        if mark is None:
            return ()
        if type(node) is TrackedList:
            done: list[Any] = []
            for head, start, stop in mark.parts(len(node)):
                done += number, head, lowering.items(node[start:stop])
            return tuple(done)
        if mark.length != len(node) or not mark.put.keys() <= node.keys():
            raise errors.ChangedOutside(where(node))
        if mark.is_clean():
            return ()
        gone = [lowering.key(node, key) for key in mark.gone] if mark.gone else []
        return number, gone, lowering.pairs(node, mark.put)

    def _lower(
        self,
        build: Callable[[Lowering], T],
        floor: int,
        seen: dict[int, Now],
        *,
        is_base: bool = False,
    ) -> tuple[T, Lowering]:
        """Run `build`, again with care where a value is beyond msgpack, large or secret."""
        is_careful = False
        while True:
            lowering = Lowering(
                root=self.root,
                floor=floor,
                first=self._tracker.next,
                leaves=self._leaves,
                seen=seen,
                names_answers=self._names_answers,
                known=self._known,
                is_careful=is_careful,
                repeats_small=is_base,
                aside=self._aside,
            )
            try:
                data = build(lowering)
                if is_careful or not self._needs_care(data):
                    if self._mirror is not None:
                        self._check(self._mirror, data, is_base=is_base)
                    return data, lowering
                lowering.undo()
                is_careful = True
            except (UnicodeEncodeError, OverflowError):
                lowering.undo()
                if is_careful:
                    raise
                is_careful = True
            except RecursionError:
                lowering.undo()
                raise errors.NotStorable("state", "dict", "it is nested too deep") from None
            except BaseException:
                lowering.undo()
                raise

    def _needs_care(self, data: bytes | None) -> bool:
        """Whether something in a save may be large, or secret."""
        if data is None:
            return False
        return vault.may_hold(data) or (self._aside is not None and may_hold_large(data))

    def _check(self, mirror: Mirror, data: bytes | None, *, is_base: bool) -> None:
        """In checking mode, compare what a save would restore with what is there."""
        if is_base and data is not None:
            mirror.check_base(data, self.root)
        else:
            mirror.check_delta(data, self.root)

    @classmethod
    def restore(
        cls,
        base: bytes,
        deltas: Iterable[bytes],
        answer: Callable[[Any], object],
        *,
        places: Iterable[At | None] = (),
        aside: Chunks | None = None,
        check: bool = False,
        goes_on: bool = False,
        ready: dict[Name, Any] | None = None,
        names_leaves: bool = True,
    ) -> Self:
        """Give the state as it was at the last of `deltas`; its next delta follows that one.

        If it `goes_on`, a section of which a part cannot be read is left out, as a change, and
        named in `lost`.

        `answer` gives the recorded answer for the `source` that `track` was given, and the save
        for the place that `locate` was given. `places` say where base and deltas stand. What is
        `ready` is not asked for: values by their names, which are used up.
        """
        state = cls(check=check, answer=answer, aside=aside, names_leaves=names_leaves)
        tracker, known = state._tracker, state._known
        lift = LiveLift(tracker, answer, aside, goes_on=goes_on, ready=ready, known=known)
        standing = chain(places, repeat(None))
        state._set_root(lift.base(base, next(standing)))
        state.bytes_to_read = len(base) + lift.named * NAMED_BYTES
        if check:
            deltas = list(deltas)
        for data, at in zip(deltas, standing, strict=False):
            lift.delta(data, at)
        tracker.next = len(lift.nodes)
        state.lost = lost_in(state.root) if goes_on and lift.has_lost else {}
        for section in state.lost:
            del state.root[section]
        state._leaves.saved = saved_leaves(lift.nodes, tracker)
        if state._mirror is not None:
            state._mirror.follow([base, *deltas])
        return state

    def adopt(self, other: "State") -> None:
        """Become `other`, inside the containers that stand at the same paths; `other` is used up.

        What the program took from this state before (`m = state["messages"]`) is then the restored
        container. One that has no place any more raises `UsageError` when it is changed.
        """
        with self.lock, other.lock:
            theirs = other._tracker  # noqa: SLF001 of the same class
            shift = Adoption(self.root, other.root).apply(self._tracker, theirs)
            self._leaves = shifted(other._leaves, shift)  # noqa: SLF001 of the same class
            self._mirror = other._mirror  # noqa: SLF001 of the same class
            self._names_answers = other._names_answers  # noqa: SLF001 of the same class
            self._known = other._known  # noqa: SLF001 of the same class
            self.bytes_to_read = other.bytes_to_read
