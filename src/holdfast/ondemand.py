"""Modules that are slow to import and loaded when first used."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class OnDemand:
    """Stands for a module; the first use of one of its names imports it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 whatever the module holds
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found


def later(homes: Mapping[str, str], package: str = "holdfast") -> Callable[[str], Any]:
    """A package's `__getattr__`: name → the module that holds it, imported at its first use."""

    def find(name: str) -> Any:  # noqa: ANN401 whatever the module holds
        home = homes.get(name)
        if home is None:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(importlib.import_module(home), name)

    return find


def offered(names: Iterable[str]) -> Callable[[], list[str]]:
    """A package's `__dir__`: what it offers, used yet or not, for whoever completes a name."""
    found = sorted(names)
    return lambda: found
