"""The source of Holdfast as house rules see it: modules, functions, durable acts, crash points."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"

# What makes bytes durable: by the name that is called, and by the SQL that is executed.
# Each such call stands between two crash points.
DURABLE_CALLS = (
    r"os\.(fdatasync|fsync|rename|replace)"
    r"|(.*\.)?(transaction|_do|finish|afinish|raise_epoch|Commit)"
)
DURABLE_SQL = r"COMMIT|VACUUM|PRAGMA wal_checkpoint.*"
# Functions that do one such act for their callers, around whose calls the crash points stand.
HANDS = (
    "engine/drive.py:drive",
    "engine/drive.py:_acommit",
    "store/backends/connection.py:transaction",
    "store/backends/tail.py:_flush",
    "store/backends/tail.py:_write_zeros",
    "store/committer.py:finish",
    "store/committer.py:afinish",
    "store/writer.py:finish",
    "store/writer.py:afinish",
    "store/writer.py:raise_epoch",
)
DURABLE_LAYERS = ("store/", "engine/")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of the package."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @property
    def is_durable(self) -> bool:
        return self.name.startswith(DURABLE_LAYERS)


@dataclass(frozen=True, kw_only=True)
class Act:
    """A durable act or a crash point, at its place."""

    function: str
    """The function it stands in, as `file:name`."""
    where: str
    text: str
    point: str | None
    """The name of a crash point; None for a durable act."""


@cache
def modules() -> tuple[Module, ...]:
    return tuple(
        Module(
            name=path.relative_to(PACKAGE).as_posix(),
            text=path.read_text(encoding="utf-8"),
        )
        for path in sorted(PACKAGE.rglob("*.py"))
    )


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


@cache
def failpoints() -> tuple[str, ...]:
    """The name of every crash point, once for each place that reaches it, in order."""
    found = (
        act.point
        for module in modules()
        if "failpoint.reach" in module.text
        for acts in acts_by_function(module)
        for act in acts
        if act.point is not None
    )
    return tuple(sorted(found))


def acts_by_function(module: Module) -> list[list[Act]]:
    """For the module's top and each function, its own acts and crash points in their order."""
    return [
        [
            act
            for _, call in sorted(_own_calls(scope), key=itemgetter(0))
            if (act := _as_act(module, _name_of(scope), call)) is not None
        ]
        for scope in (module.tree, *functions(module.tree))
    ]


def _name_of(scope: ast.Module | Function) -> str:
    return "" if isinstance(scope, ast.Module) else scope.name


def _own_calls(scope: ast.AST) -> Iterator[tuple[tuple[int, int], ast.Call]]:
    """Calls outside inner functions, with their place; a `with` does its act at its end."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Function):
            continue
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if isinstance(item.context_expr, ast.Call):
                    yield (node.end_lineno or 0, node.end_col_offset or 0), item.context_expr
        elif isinstance(node, ast.Call) and not isinstance(scope, ast.withitem):
            yield (node.lineno, node.col_offset), node
        yield from _own_calls(node)


def _as_act(module: Module, function: str, call: ast.Call) -> Act | None:
    where = f"{module.name}:{call.lineno}"
    place = f"{module.name}:{function}"
    name = ast.unparse(call.func)

    def act(point: str | None = None) -> Act:
        return Act(function=place, where=where, text=ast.unparse(call), point=point)

    match call.args:
        case [ast.Constant(value=str(point)), *_] if name == "failpoint.reach":
            return act(point)
        case _ if name == "failpoint.reach":
            raise AssertionError(f"{where}: a crash point is named by a plain string")
        case [ast.Constant(value=str(sql)), *_] if re.fullmatch(DURABLE_SQL, sql):
            return act()
        case [] if name.endswith(".commit"):  # Of a database connection: ours take what to commit.
            return act()
        case _ if re.fullmatch(DURABLE_CALLS, name):
            return act()
        case _:
            return None
