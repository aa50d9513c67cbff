"""A run as OpenTelemetry spans: the run, its lives, their calls; what was replayed is marked.

Names and attributes follow the conventions for generative AI (`gen_ai.*`); our own are
`holdfast.*`. A replayed call is no usage and no cost, so it carries neither. Messages and
arguments are not told.
"""

from collections.abc import Mapping, Sequence

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, Tracer

from holdfast.model.ids import branch_of
from holdfast.model.journal import (
    Answer,
    Call,
    Decided,
    Declined,
    Entry,
    Failed,
    Finished,
    Happened,
    Kept,
    Raised,
    Resumed,
    Saved,
    Started,
    TurnEnded,
)
from holdfast.model.run import RunBody
from holdfast.report.episodes import Line

NS = 1_000_000_000
Value = str | bool | int | float
Told = Answer | Happened | Raised | Declined


def emit(body: RunBody, lines: Sequence[Line], tracer: Tracer) -> int:
    """Emit a run's spans with the times at which things happened; returns how many."""
    return _Emission(body, tracer).whole(lines)


class _Emission:
    """One pass over a run's journal."""

    def __init__(self, body: RunBody, tracer: Tracer) -> None:
        self._body, self._tracer = body, tracer
        self._at = body.created
        self._root = self._begin("invoke_workflow", body.agent, {})
        self._life: Span | None = None
        self._before: SpanContext | None = None
        self._decided: Decided | None = None
        self._open: list[Told] = []
        self._branch = self._steps = self._lives = 0
        self._count = 1

    def whole(self, lines: Sequence[Line]) -> int:
        for line in lines:
            for placed in line.rows:
                self._branch = branch_of(placed.id)
                for entry in placed.row.entries:
                    self._take(entry)
        self._end_life()
        if self._body.error is not None:
            self._root.set_status(Status(StatusCode.ERROR))
            self._root.set_attribute("error.type", str(self._body.status))
        self._root.end(_ns(self._body.ended or self._at))
        return self._count

    def _take(self, entry: Entry) -> None:
        match entry:
            case Started():
                self._at = entry.at
                self._begin_life({})
            case Resumed() if entry.facts is not None:
                self._end_life()
                self._at = entry.at
                self._begin_life(self._recovery(entry))
                for told in self._open:
                    self._call(told, is_replayed=True)
            case Answer() | Happened() | Raised() | Declined():
                self._at = entry.at
                self._steps += 1
                self._open.append(entry)
                self._call(entry, is_replayed=False)
            case TurnEnded() | Saved() | Kept():
                self._point(entry)
            case Decided():
                self._at, self._decided = entry.at, entry
            case Finished() | Failed():
                self._at = entry.at
                self._end_life(entry if isinstance(entry, Failed) else None)
            case _:
                pass

    def _begin_life(self, attributes: Mapping[str, Value]) -> None:
        links = [] if self._before is None else [Link(self._before)]
        self._life = self._begin("invoke_agent", self._body.agent, attributes, self._root, links)
        self._lives += 1
        self._count += 1

    def _end_life(self, failed: Failed | None = None) -> None:
        if self._life is None:
            return
        if failed is not None:
            self._life.set_status(Status(StatusCode.ERROR))
            self._life.set_attribute("error.type", failed.error.name)
        self._before = self._life.get_span_context()
        self._life.end(_ns(self._at))
        self._life = None

    def _recovery(self, entry: Resumed) -> dict[str, Value]:
        found: dict[str, Value] = {"holdfast.recovery.attempt": entry.epoch - 1}
        if self._decided is not None:
            found["holdfast.recovery.class"] = str(self._decided.failure.kind)
            found["holdfast.recovery.action"] = str(self._decided.decision.action)
        self._decided = None
        return found

    def _call(self, entry: Told, *, is_replayed: bool) -> None:
        usage = entry.usage if isinstance(entry, Answer | Happened) else None
        is_chat = isinstance(entry, Answer) and usage is not None
        operation = "chat" if is_chat else "execute_tool"
        name = (usage.model if is_chat and usage is not None else None) or entry.call.name
        attributes: dict[str, Value] = {
            **_place(entry.call),
            "holdfast.branch.id": self._branch,
            "holdfast.step.index": self._steps,
            "holdfast.replayed": is_replayed,
        }
        if is_chat and usage is not None and usage.model is not None:
            attributes["gen_ai.request.model"] = usage.model
            attributes["gen_ai.response.model"] = usage.model
        if not is_chat:
            attributes["gen_ai.tool.name"] = entry.call.name
        if isinstance(entry, Happened | Declined):
            attributes["gen_ai.tool.call.id"] = entry.key
            is_done = isinstance(entry, Happened)
            attributes["holdfast.effect.state"] = "happened" if is_done else "not done"
        if usage is not None and not is_replayed:
            for key, count in (("input", usage.tokens_in), ("output", usage.tokens_out)):
                if count is not None:
                    attributes[f"gen_ai.usage.{key}_tokens"] = count
        took_s = 0.0 if is_replayed else entry.took_s
        self._finish(operation, name, attributes, entry, took_s)

    def _finish(
        self,
        operation: str,
        name: str,
        attributes: dict[str, Value],
        entry: Told,
        took_s: float,
    ) -> None:
        span = self._begin(operation, name, attributes, self._life, begun=self._at - took_s)
        if isinstance(entry, Raised | Declined) and entry.error is not None:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", entry.error.name)
        span.end(_ns(self._at))
        self._count += 1

    def _point(self, entry: TurnEnded | Saved | Kept) -> None:
        if isinstance(entry, TurnEnded):
            self._open = []  # A restart begins behind it: nothing before is replayed.
        if entry.mark is not None and self._life is not None:
            told: dict[str, Value] = {
                "holdfast.turn.index": entry.turn,
                "holdfast.checkpoint.kind": "snapshot"
                if getattr(entry, "only", None)
                else "checkpoint",
            }
            self._life.add_event("holdfast.checkpoint", told, _ns(entry.at))

    def _begin(
        self,
        operation: str,
        name: str,
        attributes: Mapping[str, Value],
        parent: Span | None = None,
        links: Sequence[Link] = (),
        *,
        begun: float | None = None,
    ) -> Span:
        context = None if parent is None else trace.set_span_in_context(parent)
        own: dict[str, Value] = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._body.id,
            "holdfast.run.id": self._body.id,
            **attributes,
        }
        if parent is None and self._body.origin is not None:
            own["holdfast.fork.parent"] = self._body.origin.run
        return self._tracer.start_span(
            f"{operation} {name}",
            context=context,
            attributes=own,
            links=list(links),
            start_time=_ns(self._at if begun is None else begun),
        )


def _place(call: Call) -> dict[str, Value]:
    if isinstance(call.scope, int) and call.scope >= 0:
        return {"holdfast.turn.index": call.scope}
    return {}


def _ns(at: float) -> int:
    return int(at * NS)
