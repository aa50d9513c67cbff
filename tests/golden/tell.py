"""Everything a store tells, as JSON that keeps every type apart."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.store.open import open_store
from holdfast.store.verify import verify

LONG = 1000
"""From here on a text is told by its hash."""
KEY = "env:HOLDFAST_GOLDEN_KEY"
KEY_TEXT = "6b656c70" * 8
"""Of the encrypted golden store; it protects nothing."""


def contents(path: Path, key: str | None) -> dict[str, Any]:
    """Runs, points with their states, results; the class that has changed since is left out."""
    told: dict[str, Any] = {}
    with holdfast.open(path, key=key, must_exist=True) as store:
        for run in sorted(store.runs(), key=lambda each: each.id):
            points = store.checkpoints(run.id, every_turn=True)
            told[run.id] = {
                "run": [run.agent, run.status, run.created, run.epoch, run.branch, run.error],
                "points": {
                    point.id: [point.kind, point.turn, point.step, point.root, point.label]
                    for point in points
                },
            }
            if run.id != "bank":
                told[run.id]["states"] = {
                    point.id: tell(store.restore(point.id)[1]) for point in points
                }
    return told


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def findings(path: Path, key: str | None) -> list[str]:
    """What a verification of every byte finds."""
    opened = open_store(path, SystemClock(), key=given_key(key), must_exist=True)
    try:
        return [f"{each.where}: {each.why}" for each in verify(opened, deep=True).findings]
    finally:
        opened.close()


def tell(value: object) -> Any:  # noqa: ANN401 whatever JSON takes
    """A value with its type, so that 1, 1.0 and True differ."""
    if value is None or isinstance(value, bool):
        return value
    return {type(value).__name__: _inside(value)}


def _inside(value: object) -> object:
    match value:
        case str():
            data = value.encode("utf-8", "surrogatepass")
            return value if len(data) < LONG and value.isprintable() else sha256(data)
        case dict():
            return [[tell(key), tell(item)] for key, item in value.items()]
        case list() | tuple():
            return [tell(item) for item in value]
        case set() | frozenset():
            return sorted(repr(item) for item in value)
        case np.ndarray():
            return [str(value.dtype), list(value.shape), value.tobytes().hex()]
        case _:
            return repr(value)
