"""A script's own name: `python shop.py` declares what `import shop` declares."""

import sys
from pathlib import Path

from holdfast.model.ids import MAIN, SCRIPT


def imported(thing: object) -> str:
    """The module of a function or class; a script's is named as if it were imported.

    One without a file, as in a notebook, keeps the name that Python gives it.
    """
    module = getattr(thing, "__module__", None) or MAIN
    if module not in (MAIN, SCRIPT):
        return str(module)
    main = sys.modules.get(module)
    spec = getattr(main, "__spec__", None)
    if spec is not None and module == MAIN:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else MAIN
