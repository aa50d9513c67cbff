"""ObjectsContract: what every keeper of large bytes is held to.

A backend joins by a class of three lines, as with `testing.contract.RecordsContract`.
"""

import hashlib
from pathlib import Path

import pytest

from holdfast.store.backends.base import Objects
from holdfast.testing.rows import THREADS, in_threads


class ObjectsContract:
    """Promises of `Objects`: what was put is there, whole, under its id, once."""

    def open(self, place: Path) -> Objects:
        """A handle on the objects kept at `place`; the subclass makes it."""
        raise AssertionError(f"{type(self).__name__} says how to open {place}")

    @pytest.fixture
    def objects(self, tmp_path: Path) -> Objects:
        """A keeper of nothing yet."""
        return self.open(tmp_path / "objects")

    def test_what_was_put_is_there(self, objects: Objects) -> None:
        """Whatever the bytes and however many."""
        kept = [b"", b"\x00", bytes(range(256)), b"large " * 200_000]
        for data in kept:
            objects.put(name(data), data)

        assert kept == [objects.get(name(data)) for data in kept]
        assert sorted(name(data) for data in kept) == sorted(objects.ids())

    def test_what_was_never_put_is_not_there(self, objects: Objects) -> None:
        """An empty keeper has no ids, and no bytes under any."""
        assert objects.get(name(b"x")) is None
        assert [] == list(objects.ids())

    def test_an_id_that_is_kept_stays_as_it_is(self, objects: Objects) -> None:
        """Putting again is no error and changes nothing."""
        objects.put(name(b"x"), b"x")
        objects.put(name(b"x"), b"x")
        objects.put(name(b"x"), b"other")

        assert b"x" == objects.get(name(b"x"))
        assert [name(b"x")] == list(objects.ids())

    def test_what_was_removed_is_gone_and_can_be_kept_again(self, objects: Objects) -> None:
        """Also by a handle that has put it before."""
        objects.put(name(b"x"), b"x")
        objects.remove(name(b"x"))
        objects.remove(name(b"x"))

        assert objects.get(name(b"x")) is None
        objects.put(name(b"x"), b"x")
        assert b"x" == objects.get(name(b"x"))

    def test_what_is_upheld_is_there_afterwards(self, objects: Objects) -> None:
        """Whether or not somebody took it away; what is there stays as it is."""
        objects.put(name(b"x"), b"x")
        objects.uphold(name(b"x"), b"other")
        assert b"x" == objects.get(name(b"x"))

        objects.remove(name(b"x"))
        objects.uphold(name(b"x"), b"x")
        assert b"x" == objects.get(name(b"x"))

    def test_threads_may_put_the_same_bytes_at_once(self, objects: Objects) -> None:
        """All of them find all of it whole."""

        def work(n: int) -> list[bytes | None]:
            for each in (b"shared" * 9_000, b"own %d" % n):
                objects.put(name(each), each)
            return [objects.get(name(b"shared" * 9_000)), objects.get(name(b"own %d" % n))]

        assert [[b"shared" * 9_000, b"own %d" % n] for n in range(THREADS)] == in_threads(work)
        assert THREADS + 1 == len(list(objects.ids()))


class DurableObjectsContract(ObjectsContract):
    """What holds besides for bytes that outlive the handle that put them."""

    def test_another_handle_finds_what_was_put(self, tmp_path: Path) -> None:
        """And does not put it again under the same id."""
        one, two = self.open(tmp_path / "objects"), self.open(tmp_path / "objects")
        one.put(name(b"x"), b"x")

        two.put(name(b"x"), b"other")

        assert b"x" == two.get(name(b"x"))
        assert [name(b"x")] == list(self.open(tmp_path / "objects").ids())


def name(data: bytes) -> bytes:
    """The id of bytes."""
    return hashlib.sha256(data).digest()
