"""`holdfast doctor`: what could go wrong on this machine."""

from holdfast.cli.checks import BAD, Check, examine
from holdfast.cli.grid import Grid
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.clock import SystemClock

CLOSING = closing(("holdfast doctor", "holdfast doctor --app shop --json"), (0, 2, 7))
EXIT_BAD = 7


def doctor(
    *,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Look for what could go wrong on this machine.

    Looks at the platform, the libraries, the place of the store, the store itself, the clock and
    the modules you name. Changes nothing.
    """
    config = settings(store, output, app, as_json=as_json)
    checks = examine(config, SystemClock())
    emit(
        config.output,
        document={"checks": checks},
        lines=[_line(check) for check in checks],
        grids=[
            Grid(
                columns=("check", "is", "found"),
                rows=[(check.name, check.verdict, check.found) for check in checks],
            )
        ],
    )
    return EXIT_BAD if any(check.verdict == BAD for check in checks) else 0


def _line(check: Check) -> dict[str, object]:
    return {"name": check.name, "verdict": check.verdict, "found": check.found}
