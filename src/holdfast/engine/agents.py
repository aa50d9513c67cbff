"""Agents that this process declares, by name; nothing stored can add to them."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from holdfast.engine.question import OBJECTS, Shape, signature_of
from holdfast.errors import UnknownAgent, UsageError
from holdfast.model.cadence import Pace
from holdfast.model.ids import MAIN, module_of
from holdfast.model.limits import SLA
from holdfast.model.sections import is_name
from holdfast.policy.classify import Rule

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Agent(Generic[P, R_co]):
    """A declared agent: give it to `store.run`."""

    def __init__(
        self,
        fn: Callable[..., R_co],
        *,
        version: str | None = None,
        pace: Pace | None = None,
        sla: SLA | None = None,
        optional: Iterable[str] = (),
        validate: tuple[Any, ...] = (),
        rules: Sequence[Rule] = (),
    ) -> None:
        self.validate = validate
        self.optional = _sections(optional)
        self.fn, self.version, self.sla = fn, version, sla
        self.pace = pace or Pace()
        self.rules = tuple(rules)
        self.name = fn.__qualname__
        self.module = module_of(fn)
        self.is_async = inspect.iscoroutinefunction(fn)
        self.shape = Shape(self.name, _after_run(self.name, fn))
        self.__doc__, self.__name__ = fn.__doc__, fn.__name__
        self.__module__, self.__qualname__ = fn.__module__, fn.__qualname__

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:  # noqa: ANN401 the run comes first
        """Call the function itself, with a `Run` that a store made."""
        return self.fn(*args, **kwargs)

    def is_same(self, name: str, module: str) -> bool:
        """Whether this is the agent a run was started with; `__main__` is any module."""
        return self.name == name and (self.module == module or MAIN in (self.module, module))

    def __repr__(self) -> str:
        return f"<agent {self.module}:{self.name}>"


def _sections(named: object) -> tuple[str, ...]:
    """The sections that `optional=` names; refused where it is declared, not when a run begins."""
    if isinstance(named, str):
        named = [named]
    sections = tuple(named) if isinstance(named, Iterable) else (named,)
    for section in sections:
        if not is_name(section):
            msg = f"optional= names sections of the state, such as ['cache'], not {section!r}"
            raise UsageError(msg)
    return sections


_declared: dict[tuple[str, str], Agent[..., Any]] = {}


def declare(agent: Agent[..., Any]) -> None:
    """Make an agent known to this process; the newest of a name counts."""
    _declared[agent.module, agent.name] = agent


def declared(modules: frozenset[str] | None = None) -> list[Agent[..., Any]]:
    """The agents of this process, or of the named modules only."""
    return [a for a in _declared.values() if modules is None or a.module in modules]


def find(name: str, module: str, modules: frozenset[str] | None = None) -> Agent[..., Any]:
    """The declared agent a run was started with. Never imports anything."""
    among = declared(modules)
    for agent in among:
        if (agent.module, agent.name) == (module, name):
            return agent
    alike = [agent for agent in among if agent.is_same(name, module)]
    if len(alike) == 1:
        return alike[0]
    if module == MAIN:
        why = "it was started from a script or notebook; a restart needs it in a module"
    else:
        known = ", ".join(sorted(f"{a.module}:{a.name}" for a in among)) or "none"
        why = f"no such agent is declared here (declared: {known})"
    raise UnknownAgent(f"{module}:{name}", why)


def refuse_no_agent(taker: str, given: object) -> None:
    """Raise where something is no agent that has to be one."""
    if not isinstance(given, Agent):
        kind = type(given).__name__
        raise UsageError(f"{taker} takes an agent, not {kind}; decorate it with @holdfast.agent")


def known(name: str, module: str) -> Agent[..., Any] | None:
    """The same, or None where this process declares no such agent."""
    try:
        return find(name, module)
    except UnknownAgent:
        return None


def _after_run(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A stand-in with the agent's parameters after the run, to bind arguments against."""
    signature = signature_of(name, fn)
    parameters = list(signature.parameters.values())
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    if not parameters or parameters[0].kind not in positional:
        msg = f"agent {name} takes no run: its first parameter is the run, `run: holdfast.Run`"
        raise UsageError(msg)
    if parameters[0].name in OBJECTS:
        msg = (
            f"agent {name} is a method: an agent takes the run first; write it as a function "
            "that makes the object, and keep what it holds with run.attach"
        )
        raise UsageError(msg)

    def stand_in() -> None:
        """Carry the signature."""

    rest = signature.replace(parameters=parameters[1:])
    stand_in.__signature__ = rest  # type: ignore[attr-defined]  # how inspect takes one
    return stand_in
