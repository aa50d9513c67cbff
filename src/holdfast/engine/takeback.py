"""Taking effects back: each one recorded before and after, so that a kill never undoes one twice.

Before an effect is undone its probe, if it has one, says whether the world still holds it. One that
was cut off while it was being undone is undone again only where that is safe: the probe finds it
still there, or the handler takes an idempotency key.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine import handlers, tools
from holdfast.engine.effect import EffectSpec
from holdfast.engine.faults import to_error
from holdfast.engine.outcomes import Entered, Fates
from holdfast.errors import HoldfastError, NotDone, StoreError
from holdfast.model.branches import Undoing
from holdfast.model.journal import (
    Entry,
    Happened,
    Intended,
    Undone,
)
from holdfast.model.rollback import Take
from holdfast.policy.effects import TAKEN_BACK
from holdfast.store.marks import marks_of
from holdfast.store.reader import Reader
from holdfast.store.writer import RunWriter

NOTHING_YET: Mapping[str, Undone] = {}
GONE = object()
"""What a probe found: the world does not hold the effect."""


class Unknown(Exception):
    """It cannot be told whether the effect stands."""


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """An effect to be taken back, with all that its handlers get."""

    spec: EffectSpec
    bound: dict[str, Any]
    outcome: object
    key: str

    @property
    def undo_key(self) -> str:
        """The idempotency key of the undo: one of its own, always the same."""
        return hashlib.sha256(b"undo" + self.key.encode()).hexdigest()[:32]


class TakeBack:
    """Takes the effects of a rollback back, one after the other, as the writer of the run."""

    def __init__(self, reader: Reader, clock: Clock, writer: RunWriter) -> None:
        self._reader, self._clock, self._writer = reader, clock, writer
        self._fates = Fates(reader, writer.run.ledger)

    def carry_out(
        self, take: Take, *, was_cut: bool, over: Mapping[str, Undone] = NOTHING_YET
    ) -> Undone:
        """Take one effect back and record what came of it; `was_cut`: that had begun before.

        `over` is what came of those before it, by key.
        """
        began = self._clock.monotonic()
        error: BaseException | None = None
        try:
            _refuse_if_needed(take, over)
            how = self._try(take, was_cut=was_cut)
        except StoreError:
            raise
        except Unknown as unknown:
            how, error = "unknown", unknown.__cause__ or unknown
        except (HoldfastError, Exception) as failed:  # noqa: BLE001 recorded and reported
            how, error = "impossible", failed
        entry = Undone(
            take.key,
            how,
            self._clock.now(),
            self._clock.monotonic() - began,
            None if error is None else to_error(error, (type(error),)),
        )
        self._record(entry)
        return entry

    def _try(self, take: Take, *, was_cut: bool) -> str:
        if take.move in {"impossible", "unknown"}:
            return take.move
        meant = self._reader.row(take.row).row.entries[take.index]
        assert isinstance(meant, Intended)
        spec = tools.find(meant.call.name, meant.module)
        if spec is None:
            raise NotDone(f"no effect {meant.module}:{meant.call.name} is declared here")
        bound = self._reader.value(meant.args)
        assert isinstance(bound, dict)
        fate = self._fates.of(Entered(meant=meant, at=(take.row, take.index)))
        outcome = self._reader.value(fate.value) if isinstance(fate, Happened) else None
        case = _Case(spec=spec, bound=bound, outcome=outcome, key=take.key)
        return self._take_back(case, take, was_cut=was_cut)

    def _take_back(self, case: _Case, take: Take, *, was_cut: bool) -> str:
        held = self._probe(case)
        if held is GONE:
            return "cancelled" if take.move == "ask" and not was_cut else "undone"
        if take.move == "ask":
            outcome = None if held is True and case.spec.returns_none else held
            case = msgspec.structs.replace(case, outcome=outcome)
        for how, fn in (("undo", case.spec.undo), ("offset", case.spec.offset)):
            if fn is None:
                continue
            if was_cut and held is None and not handlers.takes_key(fn):
                raise Unknown("taking it back was begun before; nobody recorded what came of that")
            self._record(Undoing(case.key, how, self._clock.now()))
            failpoint.reach("undo.calling")
            try:
                handlers.call(fn, case.spec.shape, case.bound, case.undo_key, case.outcome)
            except Exception as error:
                failpoint.reach("undo.failed")
                if self._is_over(case, error):
                    return _done(how)
                if how == "undo" and case.spec.offset is not None:
                    continue
                raise
            failpoint.reach("undo.called")
            return _done(how)
        raise NotDone("it has neither undo= nor offset=")

    def _probe(self, case: _Case) -> object:
        """What the world holds of the effect; None where nobody can be asked."""
        if case.spec.probe is None:
            return None
        try:
            found = handlers.call(case.spec.probe, case.spec.shape, case.bound, case.key)
        except Exception as error:
            raise Unknown("its probe cannot tell") from error
        return GONE if found is None else found

    def _is_over(self, case: _Case, error: Exception) -> bool:
        """Whether an undo that raised did its work; `Unknown` where nothing can tell."""
        if isinstance(error, (NotDone, *case.spec.not_done)):
            return False
        held = self._probe(case)
        if held is None:
            raise Unknown("its undo raised") from error
        return held is GONE

    def _record(self, entry: Entry) -> None:
        _, ticket = self._writer.submit([entry], intents=tuple(marks_of(entry)))
        failpoint.reach("undo.recording")
        self._writer.finish(ticket)
        failpoint.reach("undo.recorded")


def _refuse_if_needed(take: Take, over: Mapping[str, Undone]) -> None:
    """An effect that another one stands on stays while that one does."""
    stands = [key for key in take.after if key in over and over[key].how not in TAKEN_BACK]
    if stands and take.move not in {"impossible", "unknown"}:
        meant = f"{len(stands)} effects stand" if len(stands) > 1 else "an effect stands"
        raise NotDone(f"{meant} on it and could not be taken back ({', '.join(stands)})")


def _done(how: str) -> str:
    return "undone" if how == "undo" else "offset"
