"""Large values, kept once under the hash of their bytes and shared by every run that holds them.

Where a value would stand, a reference stands instead (`reference`). What a run keeps is a patch on
what it kept before where the two are alike (`lines`). An object is durable before the row that
names it; reading a value checks hash and length.

Between the two, garbage collection may take an object away that no row names yet. So what was kept
is remembered until a row claims it, and the commit of that row writes it again if it is gone, with
all that it is a patch on.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from holdfast.errors import Damaged
from holdfast.store.backends.base import Objects
from holdfast.store.codec.frame import seal, seal_patch
from holdfast.store.large import read
from holdfast.store.lines import PATCHED_BYTES_MAX, Kept, Lines, is_worth_it
from holdfast.store.reference import (
    is_reference,
    object_id,
    parts,
    patched,
    whole,
)
from holdfast.store.seal.base import Seals

CHUNK_BYTES_MIN = 64 * 1024

_Unclaimed: TypeAlias = tuple[Mapping[bytes, bytes], bytes]
"""Objects by name as they are stored, and the value as it was given."""


class Chunks:
    """Puts large bytes aside and brings them back."""

    def __init__(self, objects: Objects, seals: Seals, *, with_patches: bool = False) -> None:
        self._objects, self._seals, self.with_patches = objects, seals, with_patches
        self.unclaimed: dict[bytes, _Unclaimed] = {}
        """What was kept and no row has claimed yet, by name."""
        self._lock = threading.Lock()
        self._sound: set[bytes] = set()  # objects that were seen to be what they are named as
        self._renewing = threading.Lock()
        self._lines: Lines | None = None

    def of_run(self) -> "Chunks":
        """The same for the writer of one run, who stores patches where the store may hold them."""
        own = object.__new__(Chunks)  # As in `Opened.reader_of_run`.
        vars(own).update(vars(self), _lines=Lines() if self.with_patches else None)
        return own

    def keep(self, data: bytes) -> bytes:
        """`data` itself if it is small, else a reference under which it is now durable."""
        if len(data) < CHUNK_BYTES_MIN:
            return data
        id_ = hashlib.sha256(data).digest()
        if self._lines is None or len(data) > PATCHED_BYTES_MAX:
            return self._put(whole(id_, len(data)), seal(data), {}, data).reference
        with self._lines.lock:
            kept = self._lines.find(id_)
            if kept is None:
                return self._put_in_line(self._lines, id_, data).reference
            self._hold(kept, data)
            return kept.reference

    def _put_in_line(self, lines: Lines, id_: bytes, data: bytes) -> Kept:
        line = lines.like(data)
        base = line.base
        patch = None if base is None else self._patch(data, base.reference)
        if base is None or patch is None:
            kept = self._put(whole(id_, len(data)), seal(data), {}, data)
            line.begin(kept, data)
        else:
            reference = patched(id_, len(data), base.reference)
            kept = self._put(reference, patch, base.objects, data)
            line.go_on(kept, data)
        return kept

    def _patch(self, data: bytes, base: bytes) -> bytes | None:
        """What `data` has that the value of `base` has not, if that is little."""
        try:
            patch = seal_patch(data, self.fetch(base))
        except Damaged:
            return None  # Its row was removed since, and it with that.
        return patch if is_worth_it(patch, data) else None

    def _put(
        self, reference: bytes, frame: bytes, below: Mapping[bytes, bytes], data: bytes
    ) -> Kept:
        name, body = self._stored(reference, frame)
        kept = Kept(reference, {**below, name: body})
        self._hold(kept, data)
        return kept

    def _hold(self, kept: Kept, data: bytes) -> None:
        name = self.name(kept.reference)
        with self._lock:
            self.unclaimed[name] = kept.objects, data
        self._store(kept.reference, name, kept.objects[name])

    def _store(self, reference: bytes, name: bytes, body: bytes) -> None:
        """Put an object; one that is there already and damaged makes room for it."""
        if name not in self._sound and not self._is_sound(reference, name, body):
            with self._renewing:  # Another thread may just have put a sound one in its place.
                if not self._is_sound(reference, name, body):
                    self._objects.remove(name)
        self._objects.put(name, body)
        self._sound.add(name)

    def _is_sound(self, reference: bytes, name: bytes, body: bytes) -> bool:
        """Whether what lies under a name may stay: it is as given, or reads as the same value."""
        try:
            return self._objects.get(name) in (None, body) or bool(self.fetch(reference))
        except Damaged:
            return False

    def fetch(self, data: bytes) -> bytes:
        """What `keep` was given, checked."""
        if not is_reference(data):
            return data
        return read(data, self.frame, self._where)

    def frame(self, reference: bytes) -> bytes:
        """What is stored under a reference itself, unsealed: the frame of a value or of a patch."""
        where = self._where(reference)
        body = self._objects.get(self.name(reference))
        if body is None:
            raise Damaged(where, "it is named but not there")
        return self._seals.open_chunk(object_id(reference), body, where)

    def adopt(self, frames: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Keep what another store keeps, under the same references.

        Names and bytes of it, to go with the commit of the rows that name it.
        """
        objects: dict[bytes, bytes] = {}
        for reference, frame in frames.items():
            name, body = self._stored(reference, frame)
            self._store(reference, name, body)
            objects[name] = body
        return objects

    def claim(self, references: Iterable[bytes]) -> dict[bytes, bytes]:
        """Names and bytes of what was kept and is named by a row now, to go with its commit."""
        found: dict[bytes, bytes] = {}
        for reference in references:
            name = self.name(reference)
            with self._lock:
                known = self.unclaimed.pop(name, None)
            if known is not None:
                found |= known[0]
        return found

    def recall(self, data: bytes) -> bytes:
        """What `keep` was given, without reading it while it is not claimed."""
        if not is_reference(data):
            return data
        known = self.unclaimed.get(self.name(data))
        return self.fetch(data) if known is None else known[1]

    def name(self, reference: bytes) -> bytes:
        """The name of the object that a reference leads to."""
        return self._seals.name_chunk(object_id(reference))

    def _where(self, reference: bytes) -> str:
        return f"chunk {self.name(reference).hex()}"

    def _stored(self, reference: bytes, frame: bytes) -> tuple[bytes, bytes]:
        id_ = object_id(reference)
        return self._seals.name_chunk(id_), self._seals.seal_chunk(id_, frame)

    def names(self, reference: bytes) -> list[bytes]:
        """The names of all objects that are needed to read what a reference leads to."""
        return [self.name(each) for each in parts(reference)]
