"""In the run's own process: every call is told to the outside ledger, and the fault strikes."""

import contextlib
import inspect
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from holdfast import failpoint
from holdfast.drill import fake
from holdfast.drill.bent import BentClock
from holdfast.drill.charge import Charge
from holdfast.drill.faults import Fault, Scene, Where
from holdfast.drill.ledger import Ledger, Line
from holdfast.engine import interpose, tools
from holdfast.engine.children import CARRIES
from holdfast.engine.effect import EffectSpec
from holdfast.engine.session import Frame
from holdfast.engine.stream import Flow
from holdfast.store.codec import values

BEGUN, ENDED = frozenset({"run.creating"}), frozenset({"run.ended", "arun.ended"})

Fakes = Mapping[str, Callable[..., Any]]


class Inside:
    """What stands between one life of a run and the world."""

    def __init__(
        self, charge: Charge, ledger: Ledger, fault: Fault | None, fakes: Fakes, clock: BentClock
    ) -> None:
        self._charge, self._ledger, self._fault, self._fakes = charge, ledger, fault, fakes
        chance = random.Random(f"{charge.seed}/strike")  # noqa: S311 it is to repeat
        self._scene = Scene(chance=chance, clock=clock, ledger=ledger, life=charge.life)
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._has_struck = False
        self._began_s: float | None = None
        self._calls_s = 0.0
        self._calls, self._calls_since = 0, 0.0
        self._specs = {id(spec.fn): spec for spec in tools.declared()}

    def begin(self) -> None:
        """From now on calls and crash points go through here."""
        fake.begin(self._charge.scale, f"case {self._charge.case}")
        interpose.put(self.between)
        failpoint.listen(self.reached)

    def reached(self, name: str) -> None:
        """A crash point of Holdfast's."""
        if name in BEGUN and self._began_s is None:  # Else a child begins.
            self._began_s = self._clock.monotonic()
            self._wait()
        if name in ENDED:
            self._tell_lived()
        self._count(Where.MOMENT)
        if self._has_struck and self._fault is not None:
            self._fault.reached(self._scene, name)

    def _wait(self) -> None:
        """A fault that comes at a time does so from beside the run, whatever that does then."""
        if self._fault is not None and self._fault.traits.where is Where.TIME:
            timer = threading.Timer(self._charge.nth, self._fault.strike, (self._scene,))
            timer.daemon = True
            timer.start()

    def between(
        self,
        frame: Frame,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 the user's own
        """A call, or an item of a stream: of the stand-in if there is one, else the real one.

        A child is no call: what it calls itself is, and comes here too.
        """
        if fn in CARRIES:
            return fn(*args, **kwargs)
        if isinstance(getattr(fn, "__self__", None), Flow):
            self._count(Where.ITEM)
            return self._timed(frame, lambda: fn(*args, **kwargs), None)
        spec = self._specs.get(id(fn))
        if frame.is_effect and spec is None:
            return self._probe(frame, fn, args, kwargs)
        work = self._fakes.get(frame.function, fn)
        self._before(frame, spec)
        if spec is not None and spec.is_idempotent and frame.function in self._fakes:
            known = self._did(frame)
            if known is not None:
                self._add("repeated", frame, spec)
                return values.decode(known.value)
        return self._timed(frame, _fitting(work, fn, args, kwargs), spec)

    def _before(self, frame: Frame, spec: EffectSpec | None) -> None:
        self._add("asked" if spec is None else "doing", frame, spec)
        self._count(Where.MOMENT)
        self._count(Where.STEP if spec is None else Where.EFFECT)

    def _timed(self, frame: Frame, work: Callable[[], Any], spec: EffectSpec | None) -> Any:  # noqa: ANN401
        with self._calling():
            value = work()
        if inspect.iscoroutine(value):
            return self._later(frame, value, spec)
        return self._after(frame, value, spec)

    async def _later(self, frame: Frame, work: Any, spec: EffectSpec | None) -> Any:  # noqa: ANN401
        with self._calling():
            value = await work
        return self._after(frame, value, spec)

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        """Time inside functions of the user's, counted once where several run at a time."""
        with self._lock:
            self._calls += 1
            if self._calls == 1:
                self._calls_since = self._clock.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if self._calls == 0:
                    self._calls_s += self._clock.monotonic() - self._calls_since

    def _after(self, frame: Frame, value: Any, spec: EffectSpec | None) -> Any:  # noqa: ANN401
        if spec is not None:
            self._add("did", frame, spec, value=values.encode(value))
        self._count(Where.MOMENT)
        return value

    def _probe(
        self, frame: Frame, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401 the user's own
        """The world of a stand-in is the ledger, so that is what is asked."""
        if frame.function not in self._fakes:
            return fn(*args, **kwargs)
        known = self._did(frame)
        if known is None:
            return None
        value = values.decode(known.value)
        return True if value is None else value

    def _did(self, frame: Frame) -> Line | None:
        found = [line for line in self._ledger.read() if line.what == "did"]
        return next((line for line in found if line.key == frame.key), None)

    def _count(self, what: Where) -> None:
        with self._lock:
            self._counts[what] += 1
            is_due = (
                self._fault is not None
                and not self._has_struck
                and self._fault.traits.where is what
                and self._counts[what] > self._charge.nth
            )
            self._has_struck = self._has_struck or is_due
        if is_due and self._fault is not None:
            self._fault.strike(self._scene)

    def _add(self, what: str, frame: Frame, spec: EffectSpec | None, value: bytes = b"") -> None:
        line = Line(
            what=what,
            life=self._charge.life,
            name=frame.function,
            run=frame.session.id,
            call=frame.call.hex(),
            about="" if frame.inside is None else frame.inside.digest.hex(),
            epoch=frame.session.writer.run.row.epoch,
            key=frame.key or "",
            is_idempotent=spec is not None and spec.is_idempotent,
            value=value,
        )
        self._ledger.add(line, is_durable=spec is not None)

    def _tell_lived(self) -> None:
        counts: dict[str, float] = {str(what): n for what, n in self._counts.items()}
        if self._began_s is not None:
            counts["run_s"] = self._clock.monotonic() - self._began_s
            counts["calls_s"] = self._calls_s
        self._ledger.add(Line(what="lived", life=self._charge.life, counts=counts))


def _fitting(
    work: Callable[..., Any],
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Callable[[], Any]:
    """The call; a stand-in for an asynchronous function or stream may be an ordinary one."""
    if inspect.iscoroutinefunction(fn) and not inspect.iscoroutinefunction(work):

        async def later() -> Any:  # noqa: ANN401 the user's own
            return work(*args, **kwargs)

        return later
    if inspect.isasyncgenfunction(fn) and not inspect.isasyncgenfunction(work):

        async def items() -> AsyncIterator[Any]:
            for item in work(*args, **kwargs):
                yield item

        return items
    return lambda: work(*args, **kwargs)
