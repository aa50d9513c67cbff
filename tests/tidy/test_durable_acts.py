"""Durable code reads like a list: each line is one act, each gap has a crash point."""

import re
from collections import Counter

import pytest

from tests.tidy.source import (
    HANDS,
    Act,
    Module,
    acts_by_function,
    failpoints,
    functions,
    modules,
)


@pytest.mark.parametrize(
    "module",
    [module for module in modules() if module.is_durable],
    ids=lambda module: module.name,
)
def test_a_durable_act_has_a_crash_point_on_either_side(module: Module) -> None:
    assert [] == _bare_acts(module)


@pytest.mark.parametrize("place", HANDS)
def test_a_function_that_acts_for_its_callers_does_not_hide_a_second_act(place: str) -> None:
    file, _, name = place.partition(":")
    [module] = [module for module in modules() if file == module.name]
    acts = [act.text for acts in acts_by_function(module) for act in acts if place == act.function]

    assert name in {function.name for function in functions(module.tree)}
    assert [] == acts[1:]


def test_each_crash_point_has_a_dotted_name_of_its_own() -> None:
    counted = Counter(failpoints())

    assert [] == [name for name in counted if not re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", name)]
    assert [] == [name for name, places in counted.items() if places > 1]


@pytest.mark.parametrize(
    ("code", "bare"),
    [
        ("failpoint.reach('a.a'); os.fsync(fd); failpoint.reach('a.b')", []),
        ("failpoint.reach('a.a'); os.fsync(fd)", ["os.fsync(fd)"]),
        ("self.link.commit(); failpoint.reach('a.b')", ["self.link.commit()"]),
        (
            "failpoint.reach('a.a'); os.fsync(fd); os.replace(a, b); failpoint.reach('a.b')",
            ["os.fsync(fd)", "os.replace(a, b)"],
        ),
        ("failpoint.reach('a.a'); link.execute('COMMIT')", ["link.execute('COMMIT')"]),
        ("failpoint.reach('a.a')\n def g(): os.fsync(fd)", ["os.fsync(fd)"]),
        ("link.execute('SELECT 1')", []),
        ("with transaction(x): failpoint.reach('a.a')", ["transaction(x)"]),
        ("with transaction(x): failpoint.reach('a.a')\n failpoint.reach('a.b')", []),
    ],
)
def test_an_act_without_its_crash_points_is_found(code: str, bare: list[str]) -> None:
    text = f"def f():\n {code}\n"
    module = Module(name="store/made_up.py", text=text)

    assert bare == [line.split(" ", 1)[1] for line in _bare_acts(module)]


def test_a_crash_point_whose_name_is_computed_is_refused() -> None:
    text = "failpoint.reach(f'a.{b}')"
    module = Module(name="store/made_up.py", text=text)

    with pytest.raises(AssertionError, match="plain string"):
        acts_by_function(module)


def _bare_acts(module: Module) -> list[str]:
    """Acts whose neighbour on one side, in their own function, is another act or nothing."""
    return [
        f"{act.where} {act.text}"
        for acts in acts_by_function(module)
        for before, act, after in zip([None, *acts], acts, [*acts[1:], None], strict=False)
        if act.point is None
        and act.function not in HANDS
        and not (_is_point(before) and _is_point(after))
    ]


def _is_point(neighbour: Act | None) -> bool:
    return neighbour is not None and neighbour.point is not None
