"""Every keeper of large bytes keeps the promises of `Objects`."""

from pathlib import Path

from holdfast.store.backends.base import Objects
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.memory import MemoryObjects
from holdfast.testing.objects import DurableObjectsContract, ObjectsContract


class TestMemoryObjects(ObjectsContract):
    def open(self, place: Path) -> Objects:  # noqa: ARG002 -- it is kept nowhere
        return MemoryObjects()


class TestDirectory(DurableObjectsContract):
    def open(self, place: Path) -> Objects:
        return Directory(place, RealFs())
