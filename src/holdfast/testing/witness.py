"""In a child of the crash kit: notes what the run reaches and does, and kills it where told."""

import base64
import functools
import os
import signal
from collections import Counter
from pathlib import Path

import msgspec

from holdfast import failpoint
from holdfast.engine import context, tools
from holdfast.engine.question import show
from holdfast.errors import NotStorable
from holdfast.model.journal import Call
from holdfast.store.codec import values
from holdfast.testing.kill import Failpoint
from holdfast.testing.points import EFFECT_CALLED, POINTS, TURN_BEGUN, TURN_OPENED


class Reached(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A point that a life of a run came to; of an effect, its key and its outcome."""

    point: str
    nth: int
    what: str = ""
    turn: int | None = None
    key: str = ""
    is_idempotent: bool = False
    has_probe: bool = False
    outcome: str = ""

    @property
    def name(self) -> str:
        """As `crash_at` takes it."""
        return f"{self.point}:{self.nth}"

    def value(self) -> object:
        """What the effect gave back."""
        return values.decode(base64.b64decode(self.outcome))

    def __str__(self) -> str:
        where = f", in turn {self.turn}" if self.turn is not None else ""
        return f"{self.name}, {POINTS[self.point].format(what=self.what or 'the call')}{where}"


class Witness:
    """Writes a line for each point that is reached, before anything else happens there."""

    def __init__(self, file: Path, death: Failpoint | None) -> None:
        self._file, self._death = file, death
        self._counted: Counter[str] = Counter()

    def watch(self) -> None:
        """Look out for every point."""
        for name in POINTS:
            failpoint.watch(name, functools.partial(self._reached, name))

    def _reached(self, name: str, *facts: object) -> None:
        self._counted[name] += 1
        here = context.frame.get()
        turn = None if here is None or here.session.turn < 0 else here.session.turn
        reached = Reached(point=name, nth=self._counted[name], what=_what(facts), turn=turn)
        if name == EFFECT_CALLED:
            call, key, is_idempotent, value = facts
            reached = msgspec.structs.replace(
                reached,
                key=str(key),
                is_idempotent=bool(is_idempotent),
                has_probe=isinstance(call, Call) and _has_probe(call.name),
                outcome=_encoded(value),
            )
        self._note(reached)
        if name == TURN_OPENED and here is not None and self._is_due(TURN_BEGUN, reached.nth):
            here.session.flush()
            self._note(msgspec.structs.replace(reached, point=TURN_BEGUN))
            die()
        if self._is_due(name, reached.nth):
            die()

    def _is_due(self, name: str, nth: int) -> bool:
        return self._death == Failpoint(name=name, nth=nth)

    def _note(self, reached: Reached) -> None:
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(fd, msgspec.json.encode(reached) + b"\n")
        os.close(fd)


def seen(file: Path) -> list[Reached]:
    """What was written so far, by all lives."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Reached) for line in file.read_bytes().splitlines()]


def die() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def _has_probe(effect: str) -> bool:
    return any(s.shape.name == effect and s.probe is not None for s in tools.declared())


def _encoded(value: object) -> str:
    try:
        return base64.b64encode(values.encode(value)).decode()
    except NotStorable:
        return ""  # The run says so itself, a moment later.


def _what(facts: tuple[object, ...]) -> str:
    call = facts[0] if facts else None
    return named(call) if isinstance(call, Call) else ""


def named(call: Call) -> str:
    """A call as people write it; of a function inside a test, without the name of the test."""
    return show(call.name.rpartition("<locals>.")[2], call.asked)
