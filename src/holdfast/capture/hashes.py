"""What a large container remembers of its digest, so that a small change costs a small hash."""

from collections.abc import Callable, Collection
from typing import Final

from holdfast.native import sha256

GROUP: Final = 32
"""Items of a list that are hashed together; a dict has about as many keys in a bucket."""

_SIZE: Final = 32  # bytes of one digest


class Cache:
    """The digest of a container with more than `GROUP` entries, and those of its groups."""

    __slots__ = ("_groups", "_prefix", "_prefixed", "_unknown", "children_stale", "root")

    def __init__(self) -> None:
        self.root: bytes | None = None
        self.children_stale: set[int] = set()
        self._groups = bytearray()  # digest after digest, as they are hashed
        self._unknown: set[int] = set()  # groups whose digest is not what stands there
        self._prefix = sha256()  # of what stands before the last group, so that appending is cheap
        self._prefixed = -1  # groups in it

    def child_changed(self, child: int) -> bool:
        """Note that the item with identity `child` changed; say whether the digest was known."""
        self.children_stale.add(child)
        known = self.root is not None
        self.root = None
        return known

    def forget(self, group: int) -> None:
        """Note that the digest of a group is not known."""
        self._unknown.add(group)

    def forget_from(self, group: int) -> None:
        """Note that no digest is known from `group` on."""
        del self._groups[group * _SIZE :]

    def complete(
        self, kind: bytes, count: int, length: int, hash_group: Callable[[int], tuple[bytes, bool]]
    ) -> tuple[bytes, bool]:
        """Hash the groups that are not known, then all of them between `kind` and `length`.

        `hash_group` gives a digest and whether it stays true until it is forgotten; so does this.
        """
        groups = self._groups
        del groups[count * _SIZE :]
        known = len(groups) // _SIZE
        groups.extend(bytes((count - known) * _SIZE))
        due: Collection[int] = range(known, count)
        if self._unknown:
            due = {group for group in self._unknown if group < known}.union(due)
            self._unknown = set()
        for group in due:
            found, is_stable = hash_group(group)
            groups[group * _SIZE : (group + 1) * _SIZE] = found
            if not is_stable:
                self._unknown.add(group)
        root = self._root(kind, count, length, min(due, default=count))
        self.root = None if self._unknown else root
        return root, not self._unknown

    def _root(self, kind: bytes, count: int, length: int, first_new: int) -> bytes:
        """Hash all groups; those before `first_new` are what they were the last time."""
        before = count - 1
        if not 0 <= self._prefixed <= min(before, first_new):
            self._prefix, self._prefixed = sha256(kind), 0
        self._prefix.update(self._groups[self._prefixed * _SIZE : before * _SIZE])
        self._prefixed = before
        whole = self._prefix.copy()
        whole.update(self._groups[before * _SIZE :])
        whole.update(b"%d" % length)
        return whole.digest()


class ListCache(Cache):
    """Groups of consecutive items."""

    __slots__ = ()

    def splice(self, start: int, stop: int, count: int) -> None:
        """Note that items `start:stop` are replaced by `count` others."""
        self.root = None
        if count == stop - start:
            self._unknown.update(range(start // GROUP, (stop + GROUP - 1) // GROUP))
        else:
            del self._groups[start // GROUP * _SIZE :]


class DictCache(Cache):
    """Buckets of keys, each key in the one that its own bytes choose."""

    __slots__ = ("members", "touched")

    def __init__(self) -> None:
        super().__init__()
        self.members: list[dict[object, None]] = []
        self.touched: dict[object, None] = {}

    def touch(self, key: object) -> None:
        """Note that `key` is set or deleted."""
        self.root = None
        if type(key) is str:
            self.touched[key] = None
        else:  # 1, 1.0 and True are one key but hash apart: look at all of them again
            self.members.clear()


def buckets_for(length: int) -> int:
    """Give the number of buckets of a dict: a function of its length alone."""
    return 1 << ((length - 1) // GROUP).bit_length()


def hash_groups(kind: bytes, groups: bytes, length: int) -> bytes:
    """Give the digest of a large container: what it is, its groups, how long it is."""
    return sha256(b"%b%b%d" % (kind, groups, length)).digest()
