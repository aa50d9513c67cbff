"""Named crash points: free when disarmed, armed by crash tests and drills.

A durable act is bracketed by `reach("area.before")` and `reach("area.after")`. Arming is by
`arm(name, act)` in process, or by `HOLDFAST_FAILPOINT=name[:nth]` for a child that is to be killed.
Some points say what they are about: `watch(name, act)` has it handed to `act`.
"""

import os
import re
import signal
from collections.abc import Callable

_NAME = re.compile(r"\w+(\.\w+)+")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_armed: dict[str, Callable[..., None]] = {}
_listening: list[Callable[[str], None]] = []


def is_idle() -> bool:
    """Whether nothing is armed and nobody listens: then acts may be done without being told."""
    return not _armed and not _listening


def reach(name: str, *facts: object) -> None:
    """Do what is armed for `name`; nothing when disarmed. Who watches it is handed `facts`."""
    if _armed:
        act = _armed.get(name)
        if act is not None:
            act(*facts)
    if _listening:
        for heard in _listening:
            heard(name)


def arm(name: str, act: Callable[[], None]) -> None:
    """Have `act` done each time `name` is reached."""
    _armed[name] = lambda *_: act()


def watch(name: str, act: Callable[..., None]) -> None:
    """Have `act` done each time `name` is reached, with what is said there."""
    _armed[name] = act


def listen(heard: Callable[[str], None]) -> None:
    """Have `heard` told each point that is reached, whatever its name; it may raise or kill."""
    _listening.append(heard)


def disarm() -> None:
    """Forget every armed point and whoever listens."""
    _armed.clear()
    _listening.clear()


def kill_at(name: str, nth: int = 1) -> None:
    """Arm `name` so that its `nth` reaching ends this process with SIGKILL."""
    left = nth

    def act() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    arm(name, act)


def arm_from(setting: str) -> None:
    """Arm what a setting such as `effect.called:2` says; an empty one arms nothing.

    `ValueError` where it cannot be one. Which names there are is not known here: one that is never
    reached kills nothing.
    """
    if setting:
        name, colon, nth = setting.partition(":")
        if not _NAME.fullmatch(name) or (colon and not _COUNT.fullmatch(nth)):
            msg = (
                f"HOLDFAST_FAILPOINT={setting} says nothing of where to be killed; "
                "it is area.what, or area.what:2 for the second time"
            )
            raise ValueError(msg)
        kill_at(name, int(nth or "1"))


def _fault_of(setting: str) -> str | None:
    """Arm what the environment says, or tell what is wrong with it."""
    try:
        arm_from(setting)
    except ValueError as error:
        return str(error)
    return None


fault = _fault_of(os.environ.get("HOLDFAST_FAILPOINT", ""))
"""Why what the environment says arms nothing; whoever opens a store is told."""
