"""What this process declares: effects by module and name, steps by name; none is ever stored."""

from holdfast.engine.effect import EffectSpec

_declared: dict[tuple[str, str], EffectSpec] = {}
_steps: set[str] = set()


def declare(spec: EffectSpec) -> None:
    """Make an effect known to this process; the newest of a name counts."""
    _declared[spec.module, spec.shape.name] = spec


def declared(modules: frozenset[str] | None = None) -> list[EffectSpec]:
    """The effects of this process, or of the named modules only."""
    return [spec for spec in _declared.values() if modules is None or spec.module in modules]


def find(name: str, module: str) -> EffectSpec | None:
    """The effect that was recorded under this name; the oldest records name no module."""
    if module:
        return _declared.get((module, name))
    alike = [spec for spec in _declared.values() if spec.shape.name == name]
    return alike[0] if len(alike) == 1 else None


def mention(step: str) -> None:
    """Make the name of a step known to this process."""
    _steps.add(step)


def mentioned() -> frozenset[str]:
    """The names of the steps that this process declares."""
    return frozenset(_steps)
