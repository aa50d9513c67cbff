"""Modules that are slow to import and loaded when first used."""

import importlib
from typing import Any


class OnDemand:
    """Stands for a module; the first use of one of its names imports it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 whatever the module holds
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found
