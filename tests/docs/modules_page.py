"""The list of modules in ARCHITECTURE.md, made from their first lines; run it to renew the list."""

import ast
from pathlib import Path

from tests.docs.blocks import ROOT

PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src" / "holdfast"
START, END = "<!-- modules:start -->\n", "<!-- modules:end -->\n"
LAYERS = (
    "",
    "errors",
    "model",
    "policy",
    "store",
    "capture",
    "engine",
    "report",
    "testing",
    "drill",
    "cli",
)


def listing() -> str:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    order = sorted(folders, key=lambda folder: (_layer(folder), folder))
    return "".join(_section(folder) for folder in order)


def written() -> str:
    """What the page says now."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(START) + len(START) : text.index(END)]


def renew() -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(START) + len(START), text.index(END)
    PAGE.write_text(text[:begin] + listing() + text[end:], encoding="utf-8")


def _layer(folder: Path) -> int:
    return LAYERS.index("".join(folder.relative_to(PACKAGE).parts[:1]))


def _section(folder: Path) -> str:
    name = folder.relative_to(PACKAGE).as_posix()
    title = "holdfast" if name == "." else f"holdfast/{name}"
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    lines = [f"- `{path.stem}`: {_first_line(path)}" for path in modules]
    return "\n".join([f"\n**`{title}`** {_first_line(folder / '__init__.py')}", *lines]) + "\n"


def _first_line(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    return doc.partition("\n")[0]


if __name__ == "__main__":
    renew()
