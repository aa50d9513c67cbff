"""House rules for the files of the package."""

import ast
import re

import pytest

from tests.tidy.source import Module, functions, modules

LINES_MAX = 400
FUNCTION_LINES_MAX = 60


def test_a_module_is_short_enough_to_be_read_at_once() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}

    assert {} == {name: length for name, length in lengths.items() if length > LINES_MAX}


def test_a_function_fits_on_a_screen() -> None:
    long = {
        f"{module.name}:{function.lineno}: {function.name}": length
        for module in modules()
        for function in functions(module.tree)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    }

    assert {} == long


def test_the_first_line_of_a_module_says_what_it_is() -> None:
    first = {
        module.name: (ast.get_docstring(module.tree) or "").partition("\n")[0]
        for module in modules()
    }

    assert {} == {
        name: line for name, line in first.items() if not re.fullmatch(r".*\w.*[.:]", line)
    }


@pytest.mark.parametrize(
    "unwanted",
    [
        pytest.param(r"\b(?:TO" + r"DO|FIX" + r"ME|XXX)\b.*", id="left for later"),
        pytest.param(r".*# type: ignore(?:\[[^\]]*\])?\s*$", id="no reason for the type checker"),
    ],
)
def test_no_module_says(unwanted: str) -> None:
    found = {
        module.name: re.findall(unwanted, module.text, re.MULTILINE)
        for module in modules()
        if re.search(unwanted, module.text, re.MULTILINE)
    }

    assert {} == found


@pytest.mark.parametrize(
    "module",
    [module for module in modules() if module.name.endswith("__init__.py")],
    ids=lambda module: module.name,
)
def test_an_init_file_exports_again_and_does_nothing_else(module: Module) -> None:
    others = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in module.tree.body
        if not (_is_import(node) or _is_docstring(node) or _is_export(node))
    ]

    assert [] == others


def _is_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.If) and "TYPE_CHECKING" == ast.unparse(node.test):
        return all(map(_is_import, node.body)) and all(map(_is_export, node.orelse))
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_export(node: ast.stmt) -> bool:
    """The list of names, the table of those that are loaded on demand, or what they offer."""
    if not isinstance(node, ast.Assign):
        return False
    target, value = ast.unparse(node.targets[0]), node.value
    makers = {"__getattr__": "later", "__dir__": "offered"}
    if target in makers:
        return isinstance(value, ast.Call) and makers[target] == ast.unparse(value.func)
    return "__all__" == target
