"""Runs as OpenTelemetry spans: the run, its lives, their calls; what was replayed is marked.

A child's spans stand inside those of its parent, a restart links to the life before it, a fork to
the run it comes from. Checkpoints are events of the life that made them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from holdfast.model.branches import RolledBack
from holdfast.model.ids import Point, branch_of, row_id, seq_of
from holdfast.model.journal import (
    Answer,
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
    Raised,
    Redone,
    Resumed,
    Retried,
    Saved,
    Spawned,
    Started,
    Streamed,
    TurnEnded,
)
from holdfast.report.episodes import NO_FAILURE, Line, lines_of
from holdfast.report.traced import (
    AGENT,
    CHAT,
    WORKFLOW,
    Asked,
    Save,
    Stream,
    Told,
    Value,
    again,
    asked_of,
    checkpointed,
    decided,
    doubtful,
    is_point,
    retried,
    streamed,
    turn_of,
)
from holdfast.store.reader import Placed, Reader, Run
from holdfast.store.steady import left_of, of_each

NS = 1_000_000_000

_Known: TypeAlias = tuple[Told | None, Asked]
"""What a restart finds recorded; of a stream no entry alone says it."""


class Trace:
    """Sends runs of one store, each once, with the times at which things happened."""

    def __init__(self, reader: Reader, tracer: Tracer) -> None:
        self.reader, self.tracer = reader, tracer
        self.count = 0
        self.roots: dict[str, SpanContext] = {}

    def whole(self, runs: Iterable[Run]) -> int:
        """Send these runs and all their children; returns how many spans that made."""
        for run in sorted(runs, key=lambda run: run.row.no):  # A parent is older than its children.
            self.tell(run, None)
        return self.count

    def tell(self, run: Run, parent: Span | None) -> None:
        """Send a run, inside the span of its parent if that is told too."""
        if run.body.id not in self.roots:
            for lines in of_each(self.reader, [run], lambda run: lines_of(self.reader, run)):
                _Telling(self, run, parent).whole(lines)

    def begin(
        self,
        name: str,
        attributes: Mapping[str, Value],
        begun: float,
        *,
        parent: Span | None = None,
        links: Sequence[SpanContext] = (),
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """Begin a span; outside any other one it is a trace of its own."""
        self.count += 1
        return self.tracer.start_span(
            name,
            context=Context() if parent is None else trace.set_span_in_context(parent),
            kind=kind,
            attributes=dict(attributes),
            links=[Link(each) for each in links],
            start_time=_ns(begun),
        )


class _Telling:
    """One pass over a run's journal."""

    def __init__(self, to: Trace, run: Run, parent: Span | None) -> None:
        self._to, self._run, self._body = to, run, run.body
        self._at, self._is_fork = self._body.created, False
        self._root = self._begin_root(parent)
        self._life: Span | None = None
        self._is_recovery = self._is_further = False
        self._has_failed = not self._is_fork  # A fork's first life recovers from nothing.
        self._before: SpanContext | None = None
        self._decided: Decided | None = None
        self._outside: list[_Known] = []
        self._turn: list[_Known] = []
        self._due: list[Asked] = []
        self._streams: dict[str, Stream] = {}
        self._items: dict[str, tuple[int, int]] = {}
        self._children: dict[str, str] = {}
        self._meant: dict[str, Intended] = {}
        self._points: dict[int, list[Point]] = {}
        self._branch = self._steps = 0

    def whole(self, lines: Sequence[Line]) -> None:
        for line in lines:
            for placed in line.rows:
                self._row(placed, line)
        self._end_life()
        for id_ in self._children.values():  # Of those nothing has come yet.
            self._child(id_, self._root)
        if self._body.error is not None:
            self._fail(self._root, str(self._body.status))
        self._root.end(_ns(self._body.ended or self._at))

    def _begin_root(self, parent: Span | None) -> Span:
        body, origin = self._body, self._body.origin
        told: dict[str, Value] = {
            **self._common(WORKFLOW),
            "gen_ai.workflow.name": body.agent,
            "holdfast.run.status": str(body.status),
        }
        links: list[SpanContext] = []
        if origin is not None and origin.is_child:
            told["holdfast.run.parent.id"] = origin.run
            links = [] if parent is None else [parent.get_span_context()]
        elif origin is not None:
            self._is_fork = True
            told["holdfast.fork.parent"] = origin.run
            links = [self._to.roots[origin.run]] if origin.run in self._to.roots else []
        root = self._to.begin(
            f"{WORKFLOW} {body.agent}", told, self._at, parent=parent, links=links
        )
        self._to.roots[body.id] = root.get_span_context()
        return root

    def _row(self, placed: Placed, line: Line) -> None:
        entries, branch = placed.row.entries, branch_of(placed.id)
        if branch != self._branch:
            self._branch, grown = branch, line.grown_from
            known = [] if grown is None else self._points.get(branch_of(grown[0]), [])
            self._points[branch] = [p for p in known if grown is not None and p < grown][-1:]
        if any(isinstance(entry, Redone) for entry in entries):
            self._redo(placed, line)  # All else in such a row was told where it was recorded.
            return
        for index, entry in enumerate(entries):
            if not isinstance(entry, Resumed):
                self._replay()
            self._take(entry, (placed.id, index))

    def _redo(self, placed: Placed, line: Line) -> None:
        """The turn is run anew: its steps are asked again, its effects stand."""
        for index, entry in enumerate(placed.row.entries):
            if isinstance(entry, Redone):
                break
            if is_point(entry) and line.grown_from is not None:
                home = row_id(branch_of(line.grown_from[0]), seq_of(placed.id))
                self._points[self._branch].append((home, index))
        dropped = [told for entry, told in self._turn if not isinstance(entry, Happened | Declined)]
        self._due = [told for told in self._due if told not in dropped]
        self._turn = [each for each in self._turn if each[1] not in dropped]

    def _replay(self) -> None:
        """What a life found recorded before it came to anything new."""
        due, self._due = self._due, []
        for told in due:
            self._send(again(told, self._at), is_replayed=True)

    def _take(self, entry: Entry, at: Point) -> None:
        match entry:
            case Started() | Resumed():
                self._begun(entry)
            case TurnEnded() | Saved() | Kept():
                self._saved(entry, at)
            case RolledBack():
                self._turn = []
            case Decided():
                self._judged(entry)
            case Interrupted():
                self._at, self._has_failed = entry.at, False
            case Finished() | Failed():
                self._ended(entry)
            case _:
                self._called(entry)
        if is_point(entry):
            self._points[self._branch].append(at)

    def _called(self, entry: Entry) -> None:
        match entry:
            case Answer() | Happened() | Raised() | Declined():
                self._answered(entry)
            case Streamed():
                self._streamed(entry)
            case Spawned():
                self._children[_place(entry.call)] = entry.id
            case Intended():
                self._at, self._meant[entry.key] = entry.at, entry
            case Retried():
                self._retried(entry)
            case _:
                pass

    def _begun(self, entry: Started | Resumed) -> None:
        if entry.facts is None:
            return  # A person's word, and no life.
        self._end_life()
        self._at = entry.at
        told: dict[str, Value] = {**self._common(AGENT), "gen_ai.agent.name": self._body.agent}
        if entry.version is not None:
            told["gen_ai.agent.version"] = entry.version
        self._is_recovery, self._is_further = isinstance(entry, Resumed) and self._has_failed, False
        self._has_failed = True
        if isinstance(entry, Resumed):
            if self._is_recovery:
                told["holdfast.recovery.attempt"] = entry.epoch - 1
            if self._decided is not None:
                told |= decided(self._decided)
            self._due = [told for _, told in (*self._outside, *self._turn)]
        self._decided = None
        links = [] if self._before is None else [self._before]
        name = f"{AGENT} {self._body.agent}"
        self._life = self._to.begin(name, told, self._at, parent=self._root, links=links)

    def _judged(self, entry: Decided) -> None:
        """Of the next life or, where a supervisor decided, of the one that has just begun."""
        self._at = entry.at
        if entry.by == "run" or self._life is None:
            self._decided = entry
        else:
            self._life.set_attributes(decided(entry))

    def _ended(self, entry: Finished | Failed) -> None:
        self._at = entry.at
        self._is_further |= isinstance(entry, Finished)
        self._has_failed = isinstance(entry, Finished) or entry.status not in NO_FAILURE
        for known in (self._outside, self._turn):
            if isinstance(entry, Failed) and known and isinstance(known[-1][0], Raised):
                known.pop()  # What the run failed of is asked again.
        self._end_life(entry if isinstance(entry, Failed) else None)

    def _end_life(self, failed: Failed | None = None) -> None:
        self._replay()
        for place in list(self._streams):
            self._close(place, None)
        for entry in self._meant.values():
            self._send(doubtful(entry.call, entry.key, (entry.at, self._at)), entry.call)
        self._meant = {}
        if self._life is None:
            return
        if failed is not None:
            self._fail(self._life, failed.error.name)
        if self._is_recovery:
            outcome = "recovered" if self._is_further else "failed"
            self._life.set_attribute("holdfast.recovery.outcome", outcome)
        self._before = self._life.get_span_context()
        self._life.end(_ns(self._at))
        self._life = None

    def _answered(self, entry: Told) -> None:
        place = _place(entry.call)
        self._at, self._is_further = entry.at, True
        if isinstance(entry, Happened | Declined):
            self._meant.pop(entry.key, None)
        if place in self._streams and isinstance(entry, Raised):
            self._close(place, entry.error)
            return
        self._steps += 1
        told = asked_of(entry)
        child = self._children.pop(place, None)
        if child is not None:
            told.attributes["holdfast.child.id"] = child
        self._send(told, entry.call, child=child)
        self._remember(entry, entry.call, told)

    def _streamed(self, part: Streamed) -> None:
        place = _place(part.call)
        known = self._streams.get(place)
        if known is not None and known.attempt != part.attempt:
            self._close(place, None)
            known = None
        if known is None:
            attempt, items = self._items.get(place, (0, 0))
            before = items if attempt == part.attempt else 0
            began = max(0.0, part.at - part.took_s)
            known = Stream(call=part.call, attempt=part.attempt, before=before, began=began)
            self._streams[place] = known
        known.take(part)
        self._at, self._is_further = part.at, True
        if known.how:
            self._close(place, None)

    def _close(self, place: str, error: Error | None) -> None:
        stream = self._streams.pop(place)
        self._items[place] = stream.attempt, stream.before + stream.items
        self._steps += bool(stream.how)
        told = streamed(stream, error)
        self._send(told, stream.call)
        if stream.how:
            self._remember(None, stream.call, told)

    def _remember(self, entry: Told | None, call: Call, told: Asked) -> None:
        """A restart answers it from the record: in the open turn, or outside turns."""
        told.attributes.update(self._place(), **turn_of(call))
        if isinstance(call.scope, int) and call.scope < 0:
            self._outside.append((entry, told))
        elif isinstance(call.scope, int):
            self._turn.append((entry, told))

    def _send(
        self,
        asked: Asked,
        call: Call | None = None,
        *,
        child: str | None = None,
        is_replayed: bool = False,
    ) -> None:
        begun, ended = asked.times
        told: dict[str, Value] = {
            **self._common(asked.operation),
            **({} if call is None else turn_of(call)),
            **self._place(),
            **asked.attributes,
            "holdfast.replayed": is_replayed,
        }
        kind = SpanKind.CLIENT if asked.operation == CHAT else SpanKind.INTERNAL
        parent = self._life or self._root
        name = f"{asked.operation} {asked.name}"
        span = self._to.begin(name, told, begun, parent=parent, kind=kind)
        if asked.error is not None:
            self._fail(span, asked.error.name)
        if child is not None:
            self._child(child, span)
        span.end(_ns(ended))

    def _child(self, id_: str, parent: Span) -> None:
        run = left_of(self._to.reader, id_)
        if run is not None:
            self._to.tell(run, parent)

    def _saved(self, entry: Save, at: Point) -> None:
        if isinstance(entry, TurnEnded):
            self._turn, self._is_further = [], True  # A restart begins behind it.
        if entry.mark is not None:
            points = self._points[self._branch]
            told = checkpointed(self._body.id, entry, at, points[-1] if points else None)
            (self._life or self._root).add_event("holdfast.checkpoint", told, _ns(entry.at))
        self._at = entry.at

    def _retried(self, entry: Retried) -> None:
        self._at = entry.at
        (self._life or self._root).add_event("holdfast.retry", retried(entry), _ns(entry.at))

    def _place(self) -> dict[str, Value]:
        return {"holdfast.branch.id": self._branch, "holdfast.step.index": self._steps}

    def _common(self, operation: str) -> dict[str, Value]:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._body.id,
            "holdfast.run.id": self._body.id,
        }

    def _fail(self, span: Span, kind: str) -> None:
        span.set_status(Status(StatusCode.ERROR))
        span.set_attribute("error.type", kind)


def _place(call: Call) -> str:
    return repr((call.scope, call.name, call.digest, call.ordinal))


def _ns(at: float) -> int:
    return int(at * NS)
