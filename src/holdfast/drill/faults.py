"""Faults: what can be done to a run, each a few lines; users add theirs with `--fault module:Name`.

A fault strikes once, in the first life of a run, at a moment that the seed chooses.
"""

import contextlib
import errno
import os
import random
import resource
import signal
import threading
from collections.abc import Iterator
from enum import StrEnum
from typing import NoReturn, Protocol

import msgspec

from holdfast.drill.bent import BentClock
from holdfast.drill.damage import Damage
from holdfast.drill.ledger import Ledger, Line


class Where(StrEnum):
    """What a fault strikes at: the n-th of these, as a run without faults has them."""

    MOMENT = "moments"
    """Any place before or after something durable, or before or after a call of the user's."""
    STEP = "steps"
    """The beginning of a step."""
    EFFECT = "effects"
    """The beginning of an effect."""
    ITEM = "items"
    """An item of a stream, before it comes."""
    TIME = "run_s"
    """Any time since the run began, in seconds: also within a call of the user's."""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What a fault is. `is_failure`: the run fails by it and has to recover.

    One that is `alone` harms the whole store, so its run gets a store of its own; one that does
    `damage` has struck once stored bytes are changed. It does not come before the part `after` of
    the run's moments.
    """

    name: str
    about: str
    where: Where = Where.MOMENT
    is_failure: bool = True
    is_alone: bool = False
    is_damage: bool = False
    after: float = 0.0


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a fault strikes: chance from the seed, its clock, the outside ledger."""

    chance: random.Random
    clock: BentClock
    ledger: Ledger
    life: int

    def note(self, name: str) -> None:
        """Say that the fault comes now; done before it is."""
        self.ledger.add(Line(what="struck", name=name, life=self.life), is_durable=True)


class Fault(Protocol):
    """One kind of trouble."""

    @property
    def traits(self) -> Traits:
        """What it is."""

    def strike(self, scene: Scene) -> None:
        """In the run's process, at the moment: raise, kill, block, or set something up."""

    def reached(self, scene: Scene, name: str) -> None:
        """In the run's process, at every crash point after the moment."""

    def between(self, damage: Damage, chance: random.Random) -> None:
        """While no process has the run, before its next life."""


class Trouble:
    """A fault that does nothing; others change what they are about."""

    traits = Traits(name="nothing", about="nothing happens", is_failure=False)

    def strike(self, scene: Scene) -> None:
        """At the moment."""

    def reached(self, scene: Scene, name: str) -> None:
        """At every crash point after it."""

    def between(self, damage: Damage, chance: random.Random) -> None:
        """Before the next life."""


class Kill(Trouble):
    """The process is gone."""

    traits = Traits(name="kill", about="SIGKILL, at any moment")

    def strike(self, scene: Scene) -> None:
        """End this process now."""
        scene.note(self.traits.name)
        _die()


class KillAny(Kill):
    """The process is gone, whatever it does just then; the longer a call, the more often in it."""

    traits = Traits(
        name="kill-any", about="SIGKILL, at any time, also within a call", where=Where.TIME
    )


class Hang(Trouble):
    """A call never returns; the process is there and does nothing."""

    traits = Traits(name="hang", about="a step that never returns", where=Where.STEP)

    def strike(self, scene: Scene) -> None:
        """Wait for ever."""
        scene.note(self.traits.name)
        threading.Event().wait()


class Freeze(Trouble):
    """The whole process is stopped, as by a host that is overloaded."""

    traits = Traits(name="freeze", about="SIGSTOP, at any moment")

    def strike(self, scene: Scene) -> None:
        """Stop this process."""
        scene.note(self.traits.name)
        os.kill(os.getpid(), signal.SIGSTOP)


class ReadTimedOut(TimeoutError):
    """As a provider's library raises it when no answer comes."""


class Timeout(Trouble):
    """The provider does not answer in time."""

    traits = Traits(name="timeout", about="a step raises a timeout", where=Where.STEP)

    def strike(self, scene: Scene) -> None:
        """Raise what the library would."""
        scene.note(self.traits.name)
        raise ReadTimedOut("the read operation timed out")


class RateLimited(Exception):
    """As a provider's library raises it: it carries an HTTP status and asks to be left alone."""

    status_code = 429

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"too many requests; try again in {self.retry_after:.2f} s"


class RateLimit(Trouble):
    """The provider wants to be left alone."""

    traits = Traits(name="rate-limit", about="a step raises HTTP 429", where=Where.STEP)

    def strike(self, scene: Scene) -> None:
        """Raise what the library would."""
        scene.note(self.traits.name)
        raise RateLimited(scene.chance.uniform(0.05, 0.5))


class CutStream(Trouble):
    """The line is cut while tokens arrive."""

    traits = Traits(name="cut-stream", about="a stream breaks off before an item", where=Where.ITEM)

    def strike(self, scene: Scene) -> None:
        """Raise what the socket would."""
        scene.note(self.traits.name)
        raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")


class StallStream(Trouble):
    """The line is open and nothing comes any more."""

    traits = Traits(name="stall-stream", about="the next item never comes", where=Where.ITEM)

    def strike(self, scene: Scene) -> None:
        """Wait for ever."""
        scene.note(self.traits.name)
        threading.Event().wait()


class Corrupt(Trouble):
    """The process dies, and a checkpoint is damaged while it is gone: one without later effects.

    Where the record of an effect may be lost too, Holdfast stops and asks a person; a drill of
    that is `corrupt-any`.
    """

    traits = Traits(
        name="corrupt",
        about="SIGKILL, then a bit of a checkpoint is flipped that no effect came after",
        is_alone=True,
        is_damage=True,
        after=0.25,
    )

    def strike(self, scene: Scene) -> None:
        """End this process now."""
        scene.note(self.traits.name)
        _die()

    def between(self, damage: Damage, chance: random.Random) -> None:
        """Flip a bit of a row that a checkpoint stands in."""
        damage.flip_any(damage.checkpoints(is_free=True), chance)


class CorruptAny(Corrupt):
    """The same to any checkpoint: if effects were done since, a person says what became of them."""

    traits = msgspec.structs.replace(
        Corrupt.traits,
        name="corrupt-any",
        about="the same, also where effects were done since: those end with a person",
    )

    def between(self, damage: Damage, chance: random.Random) -> None:
        """Flip a bit of a row that any checkpoint stands in."""
        damage.flip_any(damage.checkpoints(), chance)


class DiskFull(Trouble):
    """No file can be written any more, until the process is started anew."""

    traits = Traits(
        name="disk-full", about="every write to a file fails from a moment on", is_alone=True
    )

    def strike(self, scene: Scene) -> None:
        """Have the kernel refuse every byte that is written to a file."""
        scene.note(self.traits.name)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

        @contextlib.contextmanager
        def room() -> Iterator[None]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

        scene.ledger.around = room
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))


class SlowDisk(Trouble):
    """Every durable act takes much longer, from a moment on."""

    traits = Traits(name="slow-disk", about="flushes take 20 to 100 ms each", is_failure=False)

    def strike(self, scene: Scene) -> None:
        """Begin to be slow."""
        scene.note(self.traits.name)

    def reached(self, scene: Scene, name: str) -> None:
        """Wait where something is about to be made durable."""
        if name.endswith("ing"):
            scene.clock.sleep(scene.chance.uniform(0.02, 0.1))


class ClockJump(Trouble):
    """The wall clock is set by up to a day, forward or back."""

    traits = Traits(
        name="clock-jump", about="the wall clock jumps by up to a day", is_failure=False
    )

    def strike(self, scene: Scene) -> None:
        """Set the clock of this process."""
        scene.note(self.traits.name)
        scene.clock.off_s = scene.chance.choice((-1, 1)) * scene.chance.uniform(600, 86_400)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(errno.EINTR, "SIGKILL did not come")


FAULTS: dict[str, type[Fault]] = {
    kind.traits.name: kind
    for kind in (
        Kill, Hang, Timeout, RateLimit, Corrupt, DiskFull, SlowDisk, ClockJump,
        CutStream, StallStream, Freeze, CorruptAny, KillAny,
    )
}  # fmt: skip
"""The faults that come with Holdfast, by name."""

_UNUSUAL = frozenset({"cut-stream", "stall-stream", "freeze", "corrupt-any", "kill-any"})
"""Not every agent has streams; a frozen process takes ten seconds to be noticed; most of the time
passes within calls, and most places where a kill could do harm lie between them."""
USUAL = tuple(name for name in FAULTS if name not in _UNUSUAL)
"""The faults of a drill that names none."""
