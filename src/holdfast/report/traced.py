"""What spans say: names and attributes by the conventions for generative AI, and our own.

`gen_ai.*` is theirs, `holdfast.*` ours. What was replayed is no usage and no cost, so it carries
neither. Messages and arguments are not told.
"""

from typing import TypeAlias

import msgspec

from holdfast.model.branches import Forked, Settled
from holdfast.model.ids import Point, point_id
from holdfast.model.journal import (
    LEFT,
    Answer,
    Call,
    Decided,
    Declined,
    Entry,
    Error,
    Finished,
    Happened,
    Kept,
    Raised,
    Retried,
    Saved,
    Streamed,
    TurnEnded,
    Usage,
)
from holdfast.policy.parameters import used_by
from holdfast.policy.provider import provider_of
from holdfast.store.reference import length

Value: TypeAlias = str | bool | int | float
Told: TypeAlias = Answer | Happened | Raised | Declined
Save: TypeAlias = TurnEnded | Saved | Kept

WORKFLOW, AGENT, CHAT, TOOL = "invoke_workflow", "invoke_agent", "chat", "execute_tool"
CHILD = "child "
CUT_OFF = "cut off"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a span tells it; `times` are its begin and its end, in seconds since the epoch."""

    operation: str
    name: str
    attributes: dict[str, Value]
    times: tuple[float, float]
    error: Error | None = None


def asked_of(entry: Told) -> Asked:
    """A step, an effect, or a child, by what came of it."""
    usage = entry.usage if isinstance(entry, Answer | Happened) else None
    call, error = entry.call, entry.error if isinstance(entry, Raised | Declined) else None
    times = entry.at - entry.took_s, entry.at
    if call.name.startswith(CHILD):
        name = call.name.removeprefix(CHILD)
        told: dict[str, Value] = {"gen_ai.agent.name": name}
        return Asked(operation=AGENT, name=name, attributes=told, times=times, error=error)
    if isinstance(entry, Answer) and usage is not None:
        told, name = _chat(usage), usage.model or call.name
        return Asked(operation=CHAT, name=name, attributes=told, times=times, error=error)
    told = _tool(call) | ({} if usage is None else _used(usage))
    if isinstance(entry, Happened | Declined):
        state = "happened" if isinstance(entry, Happened) else "not done"
        told |= {"gen_ai.tool.call.id": entry.key, "holdfast.effect.state": state}
    return Asked(operation=TOOL, name=call.name, attributes=told, times=times, error=error)


def doubtful(call: Call, key: str, times: tuple[float, float]) -> Asked:
    """An effect that was meant and of which nobody knows whether it happened."""
    told = _tool(call) | {"gen_ai.tool.call.id": key, "holdfast.effect.state": "in doubt"}
    return Asked(operation=TOOL, name=call.name, attributes=told, times=times)


class Stream(msgspec.Struct, kw_only=True):
    """One call of a stream in one life: its records so far.

    `before` counts the items that were recorded in earlier lives, and that it went on from.
    """

    call: Call
    attempt: int
    before: int
    began: float
    at: float = 0.0
    items: int = 0
    tokens: int = 0
    records: int = 0
    how: str = ""
    model: str | None = None

    def take(self, part: Streamed) -> None:
        """One more record of it."""
        self.at, self.how, self.model = part.at, part.how, used_by(part).model
        self.items += part.count
        self.tokens += part.tokens
        self.records += 1


def streamed(stream: Stream, error: Error | None = None) -> Asked:
    """A stream, as far as it came in this life."""
    usage = Usage(model=stream.model, tokens_out=stream.tokens)
    how = {"": CUT_OFF if error is None else "raised", LEFT: "left"}.get(stream.how, stream.how)
    told: dict[str, Value] = _chat(usage) | {
        "gen_ai.request.stream": True,
        "holdfast.stream.name": stream.call.name,
        "holdfast.stream.attempt": stream.attempt,
        "holdfast.stream.items": stream.items,
        "holdfast.stream.records": stream.records,
        "holdfast.stream.continued_after": stream.before,
        "holdfast.stream.outcome": how,
    }
    times, name = (stream.began, stream.at), stream.model or stream.call.name
    return Asked(operation=CHAT, name=name, attributes=told, times=times, error=error)


def again(asked: Asked, at: float) -> Asked:
    """The same, answered from the record: it takes no time and uses nothing."""
    kept = {
        name: value
        for name, value in asked.attributes.items()
        if not name.startswith(("gen_ai.usage.", "holdfast.usage."))
    }
    return msgspec.structs.replace(asked, attributes=kept, times=(at, at))


def checkpointed(run: str, entry: Save, at: Point, parent: Point | None) -> dict[str, Value]:
    """What is told of a checkpoint or snapshot."""
    mark = entry.mark
    assert mark is not None, "only what has a name is told"
    only = None if isinstance(entry, TurnEnded) else entry.only
    held = entry.delta
    if isinstance(entry, Saved | Kept):
        held = entry.state or entry.delta
    told: dict[str, Value] = {
        "holdfast.checkpoint.id": point_id(run, at),
        "holdfast.checkpoint.kind": "checkpoint" if only is None else "snapshot",
        "holdfast.checkpoint.bytes": length(held or b""),
        "holdfast.checkpoint.blocked_ms": round(mark.blocked_s * 1000, 3),
    }
    if entry.turn >= 0:
        told["holdfast.turn.index"] = entry.turn
    if parent is not None:
        told["holdfast.checkpoint.parent.id"] = point_id(run, parent)
    if mark.label is not None:
        told["holdfast.checkpoint.label"] = mark.label
    if isinstance(entry, Kept):
        told["holdfast.checkpoint.cadence"] = entry.why
    return told


def turn_of(call: Call) -> dict[str, Value]:
    """The turn that a call is of, where it is of one."""
    is_turn = isinstance(call.scope, int) and call.scope >= 0
    return {"holdfast.turn.index": call.scope} if is_turn else {}  # type: ignore[dict-item]  # `is_turn` says that it is an int


def decided(entry: Decided | Retried) -> dict[str, Value]:
    """What a failure was taken for, and what was done about it."""
    return {
        "holdfast.recovery.class": str(entry.failure.kind),
        "holdfast.recovery.action": str(entry.decision.action),
    }


def retried(entry: Retried) -> dict[str, Value]:
    """A call that failed and was made again in place."""
    return {
        **decided(entry),
        "error.type": entry.failure.sign.rpartition(".")[2],
        "holdfast.recovery.attempt": entry.attempt,
        "gen_ai.tool.name": entry.call.name,
    }


def is_point(entry: Entry) -> bool:
    """Whether the next checkpoint has it as its parent."""
    if isinstance(entry, Forked | Settled):
        return entry.turn >= 0
    is_whole = isinstance(entry, Saved | Kept) and entry.only is None
    return is_whole or isinstance(entry, TurnEnded | Finished)


def _tool(call: Call) -> dict[str, Value]:
    return {"gen_ai.tool.name": call.name, "gen_ai.tool.type": "function"}


def _chat(usage: Usage) -> dict[str, Value]:
    named: dict[str, Value] = {"gen_ai.provider.name": provider_of(usage.model, usage.provider)}
    if usage.model is not None:
        named |= {"gen_ai.request.model": usage.model, "gen_ai.response.model": usage.model}
    return named | _used(usage)


def _used(usage: Usage) -> dict[str, Value]:
    told: dict[str, Value] = {}
    if usage.tokens_in is not None:
        told["gen_ai.usage.input_tokens"] = usage.tokens_in
    if usage.tokens_out is not None:
        told["gen_ai.usage.output_tokens"] = usage.tokens_out
    if usage.usd is not None:
        told["holdfast.usage.usd"] = usage.usd
    return told
