"""The same store and world for tests of the engine that run here once more, encrypted."""

from tests.engine.conftest import stage, world

__all__ = ["stage", "world"]
