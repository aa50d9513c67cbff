"""docs/reference/errors.md, made from the classes: `python -m tests.docs.errors_page > FILE`."""

import inspect
import sys
from collections.abc import Iterator

from holdfast import errors
from holdfast.cli.main import EXITS
from holdfast.errors import base, keys, stopped, storage, usage

HEAD = """# Errors

Every error that Holdfast raises, what it means, the facts it carries as attributes, and what to do
next. Each class is `holdfast.<Name>`; `error.remedy` is the text of *next*. The last line is the
exit status of a command that ends with it. This page is made from `src/holdfast/errors`; a test
compares the two.
"""


def page() -> str:
    return HEAD + "".join(f"\n{_section(cls)}" for cls in classes())


def classes() -> list[type[errors.HoldfastError]]:
    """Every error class, in the order in which the modules define them."""
    modules = (base, usage, stopped, storage, keys)
    found = dict.fromkeys(cls for each in modules for cls in vars(each).values() if _is_error(cls))
    assert {cls.__name__ for cls in found} == set(errors.__all__)
    return list(found)


def _is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, errors.HoldfastError)


def _section(cls: type[errors.HoldfastError]) -> str:
    return "\n".join(_lines(cls)) + "\n"


def _lines(cls: type[errors.HoldfastError]) -> Iterator[str]:
    parent, *_ = cls.__bases__
    yield f"## {cls.__name__}"
    yield f"{inspect.cleandoc(cls.__doc__ or '')} *Is a* `{parent.__name__}`."
    if facts := _facts(cls):
        yield f"- facts: {', '.join(f'`{name}`' for name in facts)}"
    if cls.remedy:
        yield f"- next: {cls.remedy}"
    yield f"- exit status: {_exit_status(cls)}"


def _facts(cls: type[errors.HoldfastError]) -> list[str]:
    if "__init__" not in vars(cls):
        return []
    return list(inspect.signature(cls).parameters)


def _exit_status(cls: type[errors.HoldfastError]) -> int:
    return next(EXITS[each] for each in cls.__mro__ if each in EXITS)


if __name__ == "__main__":
    sys.stdout.write(page())
