"""Holdfast: checkpoint, restart and roll back AI agents without losing or repeating work.

Errors are here at once; everything else is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from holdfast.errors import (
    AgentMismatch,
    AlreadyAnswered,
    BadConfig,
    Blocked,
    BudgetSpent,
    CallTimedOut,
    Cancelled,
    ChangedInCall,
    ChangedOutside,
    Damaged,
    Diverged,
    Escalated,
    Expired,
    Fenced,
    HoldfastError,
    InDoubt,
    InvalidState,
    KeyNeeded,
    KeyUnusable,
    NestedCall,
    NewerFormat,
    NotDone,
    NotEncrypted,
    NotInRun,
    NotStorable,
    Rejected,
    RestoreFailed,
    RollbackUnfinished,
    RunFailed,
    RunHeld,
    RunShared,
    RunStopped,
    SecretFound,
    SecretMissing,
    StepError,
    StoreBusy,
    StoreChanged,
    StoreClosed,
    StoreError,
    StoreInUse,
    StoreNotFound,
    StoreUnwritable,
    UnknownAgent,
    UnknownCheckpoint,
    UnknownQuestion,
    UnknownRun,
    Unsupported,
    UsageError,
    Waiting,
    WrongKey,
    WrongLoop,
)
from holdfast.ondemand import later
from holdfast.version import VERSION as __version__  # noqa: N811 the usual name

if TYPE_CHECKING:
    from holdfast.capture.tracked import plain
    from holdfast.engine.agents import Agent
    from holdfast.engine.context import Current, current
    from holdfast.engine.declare import agent, effect, step
    from holdfast.engine.handle import Store, open  # noqa: A004 holdfast.open is the public name
    from holdfast.engine.notify import Notify
    from holdfast.engine.plan import RollbackPlan
    from holdfast.engine.register import register
    from holdfast.engine.repair import Repair, plan_repair
    from holdfast.engine.run import Run
    from holdfast.engine.secrets import Secret, redact, secret
    from holdfast.engine.validate import validate
    from holdfast.model.decision import Action, Decision
    from holdfast.model.failure import Ended, Failure, FailureKind
    from holdfast.model.journal import Usage
    from holdfast.model.limits import SLA, Every, Retry, every
    from holdfast.model.rollback import Rolled, Taken
    from holdfast.model.run import RunInfo, Status
    from holdfast.model.secrets import SecretRules
    from holdfast.policy.retention import Retention
    from holdfast.store.codec.values import migrate
    from holdfast.store.keys.passphrase import Passphrase
    from holdfast.store.seal.provider import KeyProvider
else:
    __getattr__ = later(
        {
            "plain": "holdfast.capture.tracked",
            "Agent": "holdfast.engine.agents",
            "Current": "holdfast.engine.context",
            "current": "holdfast.engine.context",
            "agent": "holdfast.engine.declare",
            "effect": "holdfast.engine.declare",
            "step": "holdfast.engine.declare",
            "Store": "holdfast.engine.handle",
            "open": "holdfast.engine.handle",
            "Notify": "holdfast.engine.notify",
            "register": "holdfast.engine.register",
            "Repair": "holdfast.engine.repair",
            "plan_repair": "holdfast.engine.repair",
            "RollbackPlan": "holdfast.engine.plan",
            "Rolled": "holdfast.model.rollback",
            "Taken": "holdfast.model.rollback",
            "Run": "holdfast.engine.run",
            "Secret": "holdfast.engine.secrets",
            "redact": "holdfast.engine.secrets",
            "secret": "holdfast.engine.secrets",
            "validate": "holdfast.engine.validate",
            "Action": "holdfast.model.decision",
            "Decision": "holdfast.model.decision",
            "Ended": "holdfast.model.failure",
            "Failure": "holdfast.model.failure",
            "FailureKind": "holdfast.model.failure",
            "Usage": "holdfast.model.journal",
            "SLA": "holdfast.model.limits",
            "Every": "holdfast.model.limits",
            "Retry": "holdfast.model.limits",
            "every": "holdfast.model.limits",
            "RunInfo": "holdfast.model.run",
            "Status": "holdfast.model.run",
            "SecretRules": "holdfast.model.secrets",
            "migrate": "holdfast.store.codec.values",
            "Passphrase": "holdfast.store.keys.passphrase",
            "KeyProvider": "holdfast.store.seal.provider",
            "Retention": "holdfast.policy.retention",
        }
    )

__all__ = [
    "SLA",
    "Action",
    "Agent",
    "AgentMismatch",
    "AlreadyAnswered",
    "BadConfig",
    "Blocked",
    "BudgetSpent",
    "CallTimedOut",
    "Cancelled",
    "ChangedInCall",
    "ChangedOutside",
    "Current",
    "Damaged",
    "Decision",
    "Diverged",
    "Ended",
    "Escalated",
    "Every",
    "Expired",
    "Failure",
    "FailureKind",
    "Fenced",
    "HoldfastError",
    "InDoubt",
    "InvalidState",
    "KeyNeeded",
    "KeyProvider",
    "KeyUnusable",
    "NestedCall",
    "NewerFormat",
    "NotDone",
    "NotEncrypted",
    "NotInRun",
    "NotStorable",
    "Notify",
    "Passphrase",
    "Rejected",
    "Repair",
    "RestoreFailed",
    "Retention",
    "Retry",
    "RollbackPlan",
    "RollbackUnfinished",
    "Rolled",
    "Run",
    "RunFailed",
    "RunHeld",
    "RunInfo",
    "RunShared",
    "RunStopped",
    "Secret",
    "SecretFound",
    "SecretMissing",
    "SecretRules",
    "Status",
    "StepError",
    "Store",
    "StoreBusy",
    "StoreChanged",
    "StoreClosed",
    "StoreError",
    "StoreInUse",
    "StoreNotFound",
    "StoreUnwritable",
    "Taken",
    "UnknownAgent",
    "UnknownCheckpoint",
    "UnknownQuestion",
    "UnknownRun",
    "Unsupported",
    "Usage",
    "UsageError",
    "Waiting",
    "WrongKey",
    "WrongLoop",
    "__version__",
    "agent",
    "current",
    "effect",
    "every",
    "migrate",
    "open",
    "plain",
    "plan_repair",
    "redact",
    "register",
    "secret",
    "step",
    "validate",
]
