"""Holdfast: checkpoint, restart and roll back AI agents without losing or repeating work."""

from holdfast.capture.tracked import plain
from holdfast.engine.agents import Agent
from holdfast.engine.context import Current, current
from holdfast.engine.declare import agent, effect, step
from holdfast.engine.handle import Store, open  # noqa: A004 holdfast.open is the public name
from holdfast.engine.register import register
from holdfast.engine.run import Run
from holdfast.errors import (
    AgentMismatch,
    BadConfig,
    ChangedInCall,
    ChangedOutside,
    Damaged,
    Diverged,
    Fenced,
    HoldfastError,
    InDoubt,
    NestedCall,
    NewerFormat,
    NotDone,
    NotInRun,
    NotStorable,
    RunFailed,
    RunHeld,
    RunStopped,
    StepError,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreNotFound,
    StoreUnwritable,
    UnknownAgent,
    UnknownCheckpoint,
    UnknownRun,
    Unsupported,
    UsageError,
    WrongLoop,
)
from holdfast.model.journal import Usage
from holdfast.model.limits import SLA, Every, every
from holdfast.model.run import RunInfo, Status
from holdfast.store.codec.values import migrate
from holdfast.version import VERSION as __version__  # noqa: N811 the usual name

__all__ = [
    "SLA",
    "Agent",
    "AgentMismatch",
    "BadConfig",
    "ChangedInCall",
    "ChangedOutside",
    "Current",
    "Damaged",
    "Diverged",
    "Every",
    "Fenced",
    "HoldfastError",
    "InDoubt",
    "NestedCall",
    "NewerFormat",
    "NotDone",
    "NotInRun",
    "NotStorable",
    "Run",
    "RunFailed",
    "RunHeld",
    "RunInfo",
    "RunStopped",
    "Status",
    "StepError",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreNotFound",
    "StoreUnwritable",
    "UnknownAgent",
    "UnknownCheckpoint",
    "UnknownRun",
    "Unsupported",
    "Usage",
    "UsageError",
    "WrongLoop",
    "__version__",
    "agent",
    "current",
    "effect",
    "every",
    "migrate",
    "open",
    "plain",
    "register",
    "step",
]
