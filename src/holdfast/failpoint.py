"""Named crash points: free when disarmed, armed by crash tests and drills.

A durable act is bracketed by `reach("area.before")` and `reach("area.after")`. Arming is by
`arm(name, act)` in process, or by `HOLDFAST_FAILPOINT=name[:nth]` for a child that is to be killed.
Some points say what they are about: `watch(name, act)` has it handed to `act`.
"""

import os
import signal
from collections.abc import Callable

_armed: dict[str, Callable[..., None]] = {}
_listening: list[Callable[[str], None]] = []


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
    """Arm what a setting such as `effect.called:2` says; an empty one arms nothing."""
    if setting:
        name, _, nth = setting.partition(":")
        kill_at(name, int(nth or "1"))


arm_from(os.environ.get("HOLDFAST_FAILPOINT", ""))
