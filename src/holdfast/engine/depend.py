"""Which effects stand on which, as declared by `after=`: the order in which they are taken back.

Newest first is right for all that an effect could know of others: it can only use outcomes that
were recorded before it. What stands on another by declaration is taken back before it, whenever it
was done; and while it stands, the other one stays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.engine import tools
from holdfast.engine.effect import EffectSpec
from holdfast.engine.question import name_of
from holdfast.errors import UsageError
from holdfast.model.ids import Point
from holdfast.model.journal import Intended
from holdfast.model.rollback import Take, Taken
from holdfast.store.codec.script import imported
from holdfast.store.reader import Reader

STAYS = frozenset({"impossible", "unknown", "kept"})
"""Ways of an effect that leave it standing, or nobody knows."""

Declared = str | Callable[..., Any]


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that is to be taken back: where it was meant, and how it would be."""

    meant: Intended
    at: Point
    taken: Taken

    @property
    def take(self) -> Take:
        """As it is recorded."""
        taken = self.taken
        return Take(taken.key, *self.at, taken.how, list(taken.after))


def tools_after(after: Declared | Iterable[Declared], module: str) -> tuple[tuple[str, str], ...]:
    """`after=` as modules and names: effects, or their names; of this module if none is said."""
    given = (after,) if isinstance(after, str) or callable(after) else tuple(after)
    return tuple(_tool(each, module) for each in given)


def _tool(declared: Declared, module: str) -> tuple[str, str]:
    if isinstance(declared, str):
        home, _, name = declared.rpartition(":")
        if name:
            return home or module, name
    elif hasattr(declared, "bare"):
        return imported(declared.bare), name_of(declared.bare)
    msg = f"after= takes effects, or their names such as 'shop:pay', not {declared!r}"
    raise UsageError(msg)


def arranged(reader: Reader, newest_first: Sequence[Lost]) -> list[Lost]:
    """The effects in the order in which they are taken back.

    One that something stands on which stays is not taken back either, and says why.
    """
    above = _standing_on(reader, newest_first)
    found: dict[str, Lost] = {}

    def put(lost: Lost) -> None:
        key = lost.taken.key
        if key in found or key in begun:
            return
        begun.add(key)
        for other in above.get(key, ()):
            put(other)
        after = [other.taken.key for other in above.get(key, ())]
        stays = [found[each].taken for each in after if each in found and _stays(found[each])]
        taken = replace(lost.taken, after=after)
        if stays and not _stays(lost):
            why = f"{stays[0].effect} stands on it and stays"
            taken = replace(taken, how="impossible", why=why)
        found[key] = replace(lost, taken=taken)

    begun: set[str] = set()
    for lost in newest_first:
        put(lost)
    return list(found.values())


def _stays(lost: Lost) -> bool:
    return lost.taken.how in STAYS


def _standing_on(reader: Reader, lost: Sequence[Lost]) -> dict[str, list[Lost]]:
    """For each effect by its key, those that stand on it, newest first."""
    specs = {each.taken.key: tools.find(each.meant.call.name, each.meant.module) for each in lost}
    above: dict[str, list[Lost]] = {}
    for upper in lost:
        spec = specs[upper.taken.key]
        if spec is None or not spec.after:
            continue
        for lower in lost:
            below = specs[lower.taken.key]
            if below is None or (below.module, below.shape.name) not in spec.after:
                continue
            if lower is not upper and _is_about_the_same(reader, (spec, upper), (below, lower)):
                above.setdefault(lower.taken.key, []).append(upper)
    return above


def _is_about_the_same(
    reader: Reader, upper: tuple[EffectSpec, Lost], lower: tuple[EffectSpec, Lost]
) -> bool:
    """Whether two effects agree in what both name in `key=`; if they share nothing, they do."""
    shared = set(upper[0].key) & set(lower[0].key)
    if not shared:
        return True
    above, below = (_arguments(reader, each.meant) for _, each in (upper, lower))
    return all(above.get(name) == below.get(name) for name in shared)


def _arguments(reader: Reader, meant: Intended) -> Mapping[str, object]:
    bound = reader.value(meant.args)
    return bound if isinstance(bound, dict) else {}
