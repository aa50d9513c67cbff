"""Effects that this process declares, by module and name; nothing stored can add to them."""

from holdfast.engine.effect import EffectSpec

_declared: dict[tuple[str, str], EffectSpec] = {}


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
