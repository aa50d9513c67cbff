"""What is built in C: see `src/holdfast/native.py`. Where there is no compiler, nothing is."""

import tempfile
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("src", "native")

# A folder of its own: what an older build left beside the source would be packed too.
with tempfile.TemporaryDirectory() as folder:
    setup(
        ext_modules=[
            Extension(
                "holdfast._native",
                sorted(map(str, NATIVE.glob("*.c"))),
                depends=sorted(map(str, NATIVE.glob("*.h"))),
                extra_compile_args=["-O2", "-std=c11"],
                optional=True,
            )
        ],
        options={"build": {"build_base": folder}},
    )
