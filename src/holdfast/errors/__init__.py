"""Every error Holdfast raises: the fact, its facts, and what to do next.

HoldfastError
├── UsageError                 what the program or the operator asked for cannot be done as asked
│   ├── NotInRun               an effect or a method of a run was called outside the run
│   ├── NestedCall             an effect inside a step or effect, or a run inside a run
│   ├── WrongLoop              `store.run` under a running event loop, or an async agent run as sync
│   ├── NotStorable            a value whose type Holdfast does not know
│   │   └── SecretFound        a value that looks secret, in a store that is strict
│   ├── ChangedInCall          a step or effect changed its arguments or the state
│   ├── ChangedOutside         a value was changed through a name the state does not see
│   ├── RestoreFailed          an attached object could not be filled from its section
│   ├── StateReplaced          `run.state` was assigned or deleted
│   ├── StreamOpen             an effect or child while its caller reads an unfinished answer
│   ├── StreamReset            a stream that is being read was begun anew
│   ├── UnknownStream          the run has no stream of that name
│   ├── UnknownAgent           no agent of that name in the modules the operator named
│   ├── AgentMismatch          another agent, or other arguments, under a used run id
│   ├── UnknownRun             no run of that id in the store
│   │   └── RunErased          there was one, and it was erased
│   ├── UnknownCheckpoint      no point of that name in the store
│   ├── RollbackUnfinished     a rollback of the run was cut off and has to go on first
│   ├── UnknownQuestion        nothing of that id waits in the inbox
│   ├── AlreadyAnswered        somebody else answered first, or the time ran out
│   ├── RunShared              forks read the run's rows, so it cannot be erased alone
│   ├── KeyUnusable            the place named for a key does not give one
│   ├── SecretMissing          a reference to a secret that has no value here
│   ├── BadConfig              a configuration value that cannot be read
│   ├── BadCase                a case for the advisor that cannot be meant as written
│   └── Unsupported            this platform or file system is refused
├── RunStopped                 a run cannot go on by itself; sticky: the run raises it until it ends
│   ├── RunFailed              the run ended with an error
│   ├── InDoubt                an effect may or may not have happened
│   ├── Cancelled              a person cancelled the run
│   ├── Paused                 somebody had the run paused, to roll it back
│   ├── Blocked                an effect about the same thing stands on another branch or fork
│   ├── InvalidState           a validator refuses the state
│   ├── Diverged               the code asks something else than the journal recorded
│   ├── Waiting                the run waits for a person
│   ├── Escalated              nothing may recover it by itself; a person has to look
│   └── Fenced                 another process took the run over
├── RunHeld                    another process works on the run now
├── NotPaused                  whoever works on the run did not let it go in time
├── Expired                    nobody answered a question in time
├── Rejected                   a person refused an effect
├── BudgetSpent                a budget does not allow this spending
├── NotDone                    raised by an effect: surely nothing happened
├── CallTimedOut               a step or effect took longer than its timeout
├── ChildFailed                a child of the run failed for good
├── StepError                  a recorded error whose class is not known here
└── StoreError                 the store could not do its part
    ├── StoreNotFound          there is no store at that path
    ├── StoreBusy              another process held the store's lock for too long
    ├── StoreInUse             a process uses the store alone, or it must be used alone
    ├── StoreClosed            the handle was closed, or crossed a fork
    ├── StoreUnwritable        the disk is full, read-only, or failing
    ├── StoreChanged           the store is not what a repair was planned for
    ├── NewerFormat            written by a newer Holdfast
    ├── KeyNeeded              the store is encrypted, and no key was given
    ├── WrongKey               the key is not the one this was encrypted with
    ├── NotEncrypted           a key was given for a store that is not encrypted
    └── Damaged                stored bytes are not what was written
        └── ExportDamaged      so are those of a file that holds an exported run

Facts travel in `args`, so an error survives a process boundary; `remedy` says what to do next.
"""

from holdfast.errors.base import (
    HoldfastError,
)
from holdfast.errors.keys import (
    KeyNeeded,
    KeyUnusable,
    NotEncrypted,
    RunShared,
    WrongKey,
)
from holdfast.errors.stopped import (
    Blocked,
    BudgetSpent,
    CallTimedOut,
    Cancelled,
    ChildFailed,
    Diverged,
    Escalated,
    Expired,
    Fenced,
    InDoubt,
    InvalidState,
    NotDone,
    NotPaused,
    Paused,
    Rejected,
    RunFailed,
    RunHeld,
    RunStopped,
    StepError,
    Waiting,
)
from holdfast.errors.storage import (
    Damaged,
    ExportDamaged,
    NewerFormat,
    StoreBusy,
    StoreChanged,
    StoreClosed,
    StoreError,
    StoreInUse,
    StoreNotFound,
    StoreUnwritable,
)
from holdfast.errors.usage import (
    AgentMismatch,
    AlreadyAnswered,
    BadCase,
    BadConfig,
    ChangedInCall,
    ChangedOutside,
    NestedCall,
    NotInRun,
    NotStorable,
    RestoreFailed,
    RollbackUnfinished,
    RunErased,
    SecretFound,
    SecretMissing,
    StateReplaced,
    StreamOpen,
    StreamReset,
    UnknownAgent,
    UnknownCheckpoint,
    UnknownQuestion,
    UnknownRun,
    UnknownStream,
    Unsupported,
    UsageError,
    WrongLoop,
)

__all__ = [
    "AgentMismatch",
    "AlreadyAnswered",
    "BadCase",
    "BadConfig",
    "Blocked",
    "BudgetSpent",
    "CallTimedOut",
    "Cancelled",
    "ChangedInCall",
    "ChangedOutside",
    "ChildFailed",
    "Damaged",
    "Diverged",
    "Escalated",
    "Expired",
    "ExportDamaged",
    "Fenced",
    "HoldfastError",
    "InDoubt",
    "InvalidState",
    "KeyNeeded",
    "KeyUnusable",
    "NestedCall",
    "NewerFormat",
    "NotDone",
    "NotEncrypted",
    "NotInRun",
    "NotPaused",
    "NotStorable",
    "Paused",
    "Rejected",
    "RestoreFailed",
    "RollbackUnfinished",
    "RunErased",
    "RunFailed",
    "RunHeld",
    "RunShared",
    "RunStopped",
    "SecretFound",
    "SecretMissing",
    "StateReplaced",
    "StepError",
    "StoreBusy",
    "StoreChanged",
    "StoreClosed",
    "StoreError",
    "StoreInUse",
    "StoreNotFound",
    "StoreUnwritable",
    "StreamOpen",
    "StreamReset",
    "UnknownAgent",
    "UnknownCheckpoint",
    "UnknownQuestion",
    "UnknownRun",
    "UnknownStream",
    "Unsupported",
    "UsageError",
    "Waiting",
    "WrongKey",
    "WrongLoop",
]
