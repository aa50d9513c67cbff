"""What happened to a run, in order: turns, steps, effects, restarts, and what is in doubt.

Reads the line of history that ends in the run's head and needs none of the user's classes: a value
whose class is not known here is shown by its name and size.
"""

import datetime as dt
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.model.branches import Retaking, RolledBack, Undoing
from holdfast.model.cadence import Pace
from holdfast.model.journal import (
    Aborted,
    Answer,
    Answered,
    Based,
    Call,
    Decided,
    Declined,
    Entry,
    Error,
    Failed,
    Finished,
    Happened,
    Intended,
    Interrupted,
    Kept,
    LoopLeft,
    Noted,
    Pruned,
    Questioned,
    Raised,
    Redone,
    Resumed,
    Retried,
    Saved,
    Spawned,
    Started,
    Streamed,
    TurnEnded,
    Undone,
    Usage,
)
from holdfast.model.run import Origin, Status
from holdfast.model.secrets import Exposed, Incomplete, Redacted
from holdfast.model.sections import Degraded
from holdfast.policy.parameters import used_by
from holdfast.policy.usage import total
from holdfast.report.branched import Branched, branched, called, effects_of
from holdfast.report.doubts import Doubt, doubts_in
from holdfast.report.event import Event, Single, judged, when
from holdfast.report.saves import Save, is_checkpoint, saved
from holdfast.report.shown import shown
from holdfast.report.streams import streamed, superseded
from holdfast.store.reader import Placed, Reader, Run
from holdfast.store.reference import length


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A run: what it is, what it came to, and its events, oldest first."""

    id: str
    agent: str
    module: str
    version: str | None
    asked: str
    status: Status
    origin: Origin | None
    created: dt.datetime | None
    ended: dt.datetime | None
    error: str | None
    trace: str | None
    turns: int
    steps: int
    effects: int
    checkpoints: int
    restarts: int
    pace: Pace
    branches: int
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    rows: int
    bytes: int
    doubts: list[Doubt]
    events: list[Event]


def timeline(reader: Reader, run: Run) -> Timeline:
    """The story of a run along its head, checked against its hashes while it is read."""
    head, body = run.row.head, run.body
    teller = _Teller(reader)
    for placed in reader.rows(head, reader.first(head), reader.end(head)):
        teller.read(placed)
    events = list(teller.events)
    used = total(teller.used)
    return Timeline(
        id=body.id,
        agent=body.agent,
        module=body.module,
        version=body.version,
        asked=events[0].asked or "" if events else "",
        status=body.status,
        origin=body.origin,
        created=when(body.created),
        ended=None if body.ended is None else when(body.ended),
        error=body.error,
        trace=teller.trace if body.error is not None else None,
        turns=teller.turns,
        steps=_count(events, "step") + _count(events, "stream"),
        effects=_count(events, "effect"),
        checkpoints=teller.checkpoints,
        restarts=run.row.epoch - 1,  # Also those whose turn was run anew on another branch.
        pace=teller.pace,
        branches=len(reader.branches(run)),
        model=used.model,
        tokens_in=used.tokens_in,
        tokens_out=used.tokens_out,
        rows=teller.rows,
        bytes=teller.bytes,
        doubts=doubts_in(events),
        events=events,
    )


class _Teller:
    """Turns entries into events, joining an effect's intents and outcome."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.events: list[Event] = []
        self.used: list[Usage] = []
        self.trace: str | None = None
        self.pace = self._first_pace = Pace()
        self.turns = self.checkpoints = self.rows = self.bytes = 0
        self._effects: dict[str, int] = {}
        self._words: dict[str, str] = {}
        self._row, self._turn = "", -1
        self._began: float | None = None

    def read(self, placed: Placed) -> None:
        """Take in one row."""
        self._row, self._turn = f"{placed.id:#x}", placed.row.turn
        self.rows += 1
        self.bytes += placed.size
        for entry in placed.row.entries:
            if isinstance(entry, Pruned):
                self._pruned(entry)
            elif isinstance(entry, Branched):
                self._branched(entry)
            elif isinstance(entry, Streamed):
                self._streamed(entry)
            elif isinstance(entry, Spawned):
                self._spawned(entry)
            else:
                self._tell(entry)

    def _tell(self, entry: Entry) -> None:
        match entry:
            case Started() | Resumed():
                self._begun(entry)
            case Answer() | Raised() | Noted():
                self._called(entry)
            case Intended():
                self._meant(entry)
            case Happened() | Declined():
                self._settled(entry)
            case TurnEnded() | Saved() | Kept() | Based():
                self._kept(entry)
            case Finished() | Failed() | Redone() | Redacted() | Incomplete() | Exposed():
                self._ended(entry)
            case LoopLeft() | Degraded():
                self._passed(entry)
            case Retried() | Decided() | Interrupted():
                self._judged(entry)
            case Questioned() | Answered() | Aborted():
                self._asked(entry)
            case _:
                pass  # Of the ledger, beside the run's history; or told elsewhere.

    def _branched(self, entry: Branched) -> None:
        event = branched(entry, self._row)
        if isinstance(entry, RolledBack | Retaking):
            self._words |= effects_of(self._reader, entry.takes)
        elif isinstance(entry, Undoing | Undone):
            event = replace(event, asked=self._words.get(entry.key))
        self._add(event)

    def _passed(self, entry: LoopLeft | Degraded) -> None:
        self._seen(entry.turn)
        if isinstance(entry, Degraded):
            for section, why in entry.sections.items():
                event = Event(kind="degraded", row=self._row, at=when(entry.at), name=section)
                self._add(replace(event, turn=_turn(entry.turn), error=why))

    def _pruned(self, entry: Pruned) -> None:
        if not self.events or self.events[-1].kind != "pruned":
            self._add(Event(kind="pruned", row=self._row, at=when(entry.at)))

    def _begun(self, entry: Started | Resumed) -> None:
        self._began = entry.at
        is_start = isinstance(entry, Started)
        if isinstance(entry, Started):
            self._first_pace = self.pace = entry.pace or Pace(checkpoint=entry.cadence)
        elif entry.facts is not None:
            self.pace = self._first_pace if entry.pace is None else entry.pace
        self._add(
            Event(
                kind="started" if is_start else "resumed",
                row=self._row,
                at=when(entry.at),
                name=str(entry.holder),
                asked=_asked(entry) if isinstance(entry, Started) else None,
            )
        )

    def _called(self, entry: Answer | Raised | Noted) -> None:
        event = self._call("note" if isinstance(entry, Noted) else "step", entry.call)
        begun = self._effects.get(_place(entry.call))
        child = None if begun is None else self.events[begun]
        if child is not None and child.kind == "child":
            event = replace(event, kind="child", name=child.name, key=child.key)
        match entry:
            case Answer():
                event = replace(
                    event,
                    at=when(entry.at),
                    outcome="answered",
                    took_s=entry.took_s,
                    **self._given(entry.value, entry.usage),
                )
            case Raised():
                event = replace(
                    event,
                    at=when(entry.at),
                    outcome="raised",
                    attempts=entry.attempt,
                    took_s=entry.took_s,
                    error=_error(entry.error),
                )
            case Noted():
                event = replace(event, **self._given(entry.value, None))
        if begun is not None and event.kind == "child":
            self.events[begun] = event
        else:
            self._add(event)

    def _spawned(self, entry: Spawned) -> None:
        self._effects[_place(entry.call)] = len(self.events)
        event = self._call("child", entry.call)
        name = entry.call.name.removeprefix("child ")
        self._add(replace(event, at=when(entry.at), name=name, key=entry.id, outcome="begun"))

    def _streamed(self, entry: Streamed) -> None:
        key = _place(entry.call)
        known = self._effects.get(key)
        if known is not None and self.events[known].attempts != entry.attempt:
            self.events[known] = superseded(self.events[known])
            known = None
        if known is None:
            known = self._effects[key] = len(self.events)
            self._add(self._call("stream", entry.call))
        self.events[known] = streamed(self.events[known], entry)
        self.used.append(used_by(entry))

    def _meant(self, entry: Intended) -> None:
        known = self._effects.get(entry.key)
        if known is None:
            self._effects[entry.key] = len(self.events)
            self._words[entry.key] = called(entry.call)
            event = self._call("effect", entry.call)
            self._add(
                replace(event, at=when(entry.at), key=entry.key, attempts=1, outcome="in doubt")
            )
        else:
            event = self.events[known]
            self.events[known] = replace(
                event, attempts=(event.attempts or 0) + 1, outcome="in doubt"
            )

    def _settled(self, entry: Happened | Declined) -> None:
        known = self._effects.get(entry.key)
        if known is None:
            raise Damaged(f"journal row {self._row}", f"key {entry.key} has no intent before it")
        event = replace(self.events[known], how=entry.how, took_s=entry.took_s)
        if isinstance(entry, Happened):
            event = replace(event, outcome="happened", **self._given(entry.value, entry.usage))
        else:
            error = None if entry.error is None else _error(entry.error)
            event = replace(event, outcome="not done", error=error)
        self.events[known] = event

    def _asked(self, entry: Questioned | Answered | Aborted) -> None:
        if isinstance(entry, Aborted):
            event = self._call("aborted", entry.call)
            event = replace(event, at=when(entry.at), name=entry.name, asked=None)
            self._add(replace(event, error=_error(entry.error)))
            return
        if isinstance(entry, Questioned):
            self._effects[entry.id] = len(self.events)
            event = self._call("question", entry.call)
            event = replace(event, at=when(entry.at), name=entry.kind, asked=entry.text)
            self._add(replace(event, key=entry.id, outcome="waiting"))
            return
        known = self._effects.get(entry.id)
        if known is None:
            raise Damaged(f"journal row {self._row}", f"question {entry.id} was never asked")
        value = None if entry.value is None else shown(entry.value)
        self.events[known] = replace(
            self.events[known], outcome=entry.how, how=entry.by, value=value
        )

    def _kept(self, entry: Save) -> None:
        self._seen(entry.turn)
        self.checkpoints += is_checkpoint(entry)
        event = Event(kind="base", row=self._row, turn=_turn(entry.turn))
        self._add(saved(event, entry, self._began))
        if isinstance(entry, TurnEnded):
            self._began = entry.at

    def _ended(self, entry: Single) -> None:
        event = Event(kind="finished", row=self._row, at=when(entry.at))
        match entry:
            case Finished():
                event = replace(event, **self._given(entry.value, None))
            case Failed():
                self.trace = entry.error.trace
                event = replace(
                    event, kind="failed", outcome=entry.status, error=_error(entry.error)
                )
            case Redone():
                event = replace(event, kind="redone", name=entry.reason)
            case Redacted():
                event = replace(event, kind="redacted", name=entry.place, outcome=entry.kind)
            case Exposed():
                event = replace(event, kind="exposed", name=", ".join(entry.references))
            case Incomplete():
                event = replace(event, kind="degraded", name=", ".join(entry.places))
        self._add(event)

    def _judged(self, entry: Retried | Decided | Interrupted) -> None:
        bare = Event(kind="decision", row=self._row)
        event = self._call("retry", entry.call) if isinstance(entry, Retried) else bare
        self._add(judged(event, entry))

    def _call(self, kind: str, call: Call) -> Event:
        turn = self._turn if isinstance(call.scope, bytes) else call.scope
        self._seen(turn)
        return Event(
            kind=kind,
            row=self._row,
            turn=_turn(turn),
            name=call.name,
            asked=", ".join(f"{each.name}={each.brief}" for each in call.asked),
            is_inside=isinstance(call.scope, bytes),
        )

    def _given(self, value: bytes, usage: Usage | None) -> dict[str, object]:
        if usage is None:
            return {"value": shown(value), "bytes": length(value)}
        self.used.append(usage)
        return {
            "value": shown(value),
            "bytes": length(value),
            "model": usage.model,
            "tokens_in": usage.tokens_in,
            "tokens_out": usage.tokens_out,
        }

    def _seen(self, turn: int) -> None:
        self.turns = max(self.turns, turn + 1)

    def _add(self, event: Event) -> None:
        self.events.append(event)


def _place(call: Call) -> str:
    return repr((call.scope, call.name, call.digest, call.ordinal))


def _asked(entry: Started) -> str:
    return ", ".join(f"{each.name}={each.brief}" for each in entry.asked)


def _error(error: Error) -> str:
    return f"{error.name}: {error.message}" if error.message else error.name


def _turn(turn: int) -> int | None:
    return turn if turn >= 0 else None


def _count(events: Iterable[Event], kind: str) -> int:
    return sum(event.kind == kind for event in events)
