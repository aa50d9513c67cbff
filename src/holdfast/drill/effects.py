"""Effects under a drill: none is done for real that nobody allowed, and none is undone for real."""

import contextlib
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.drill.ledger import Ledger, Line
from holdfast.engine import tools
from holdfast.engine.agents import Agent
from holdfast.engine.effect import EffectSpec
from holdfast.errors import UsageError


def real_effects(stubs: Iterable[str]) -> list[str]:
    """The effects that this process declares and nothing stands in for."""
    known = set(stubs)
    return sorted({spec.shape.name for spec in tools.declared()} - known)


def refuse_real(agent: Agent[..., Any], stubs: Mapping[str, str]) -> None:
    """`UsageError` if a drill would change the world."""
    left = real_effects(stubs)
    if left:
        names = ", ".join(left)
        stand_ins = " ".join(f"--stub {name}=module:fake" for name in left)
        msg = (
            f"a drill of {agent.module}:{agent.name} would do for real: {names}; let something "
            f"stand in ({stand_ins}), or say --allow-effects if doing them is harmless"
        )
        raise UsageError(msg)


def refuse_misspelt(agent: Agent[..., Any], stubs: Iterable[str]) -> None:
    """`UsageError` if a stand-in is all but named like something that nothing stands in for."""
    declared, named = _declared(), set(stubs)
    for name in _idle(agent, stubs, declared):
        if near := difflib.get_close_matches(name, sorted(declared - named), n=1):
            raise UsageError(_misspelt(name, near, declared))


def refuse_idle(agent: Agent[..., Any], stubs: Iterable[str], called: frozenset[str]) -> None:
    """`UsageError` if something stands in for nothing, now that undisturbed runs were seen."""
    known = _declared() | called
    for name in _idle(agent, stubs, known):
        near = difflib.get_close_matches(name, sorted(known), n=1)
        raise UsageError(_misspelt(name, near, known))


def _declared() -> frozenset[str]:
    return tools.mentioned() | {spec.shape.name for spec in tools.declared()}


def _idle(agent: Agent[..., Any], stubs: Iterable[str], known: frozenset[str]) -> list[str]:
    """Names that are not known; a function of the agent's module may be called in another run."""
    here = vars(sys.modules[agent.module])
    others = {name for name, each in here.items() if callable(each) and type(each) is not Agent}
    return [name for name in stubs if name not in known | others]


def _misspelt(name: str, near: list[str], known: frozenset[str]) -> str:
    meant = f"; did you mean {near[0]}?" if near else "."
    return (
        f"stand-in for {name}: no step, effect or stream has that name{meant} "
        f"Those are {', '.join(sorted(known)) or 'none'}"
    )


@contextlib.contextmanager
def stand_in(stubs: Mapping[str, str], undone: Ledger) -> Iterator[None]:
    """While inside, a rollback of this process undoes nothing real of what is stood in for."""
    before = [spec for spec in tools.declared() if spec.shape.name in stubs]
    for spec in before:
        tools.declare(_harmless(spec, undone))
    try:
        yield
    finally:
        for spec in before:
            tools.declare(spec)


def _harmless(spec: EffectSpec, undone: Ledger) -> EffectSpec:
    def undo(_outcome: object, *, idempotency_key: str, **_asked: object) -> None:
        line = Line(what="undone", name=spec.shape.name, key=idempotency_key)
        undone.add(line, is_durable=True)

    return replace(
        spec,
        undo=None if spec.undo is None else undo,
        offset=None if spec.offset is None else undo,
    )
