"""Every error Holdfast raises: the fact, its facts, and what to do next.

HoldfastError
├── UsageError                 what the program or the operator asked for cannot be done as asked
│   ├── NotInRun               an effect was called outside a run while a run is active
│   ├── NestedCall             an effect inside a step or effect, or a run inside a run
│   ├── WrongLoop              `store.run` under a running event loop, or an async agent run as sync
│   ├── NotStorable            a value whose type Holdfast does not know
│   ├── ChangedInCall          a step or effect changed its arguments or the state
│   ├── ChangedOutside         a value was changed through a name the state does not see
│   ├── UnknownAgent           no agent of that name in the modules the operator named
│   ├── AgentMismatch          another agent, or other arguments, under a used run id
│   ├── UnknownRun             no run of that id in the store
│   ├── UnknownCheckpoint      no point of that name in the store
│   ├── BadConfig              a configuration value that cannot be read
│   └── Unsupported            this platform or file system is refused
├── RunStopped                 a run cannot go on by itself; sticky: the run raises it until it ends
│   ├── RunFailed              the run ended with an error
│   ├── InDoubt                an effect may or may not have happened
│   ├── Diverged               the code asks something else than the journal recorded
│   └── Fenced                 another process took the run over
├── RunHeld                    another process works on the run now
├── NotDone                    raised by an effect: surely nothing happened
├── StepError                  a recorded error whose class is not known here
└── StoreError                 the store could not do its part
    ├── StoreNotFound          there is no store at that path
    ├── StoreBusy              another process held the store's lock for too long
    ├── StoreClosed            the handle was closed, or crossed a fork
    ├── StoreUnwritable        the disk is full, read-only, or failing
    ├── NewerFormat            written by a newer Holdfast
    └── Damaged                stored bytes are not what was written

Facts travel in `args`, so an error survives a process boundary; `remedy` says what to do next.
"""

from typing import ClassVar


class HoldfastError(Exception):
    """Base of every error of Holdfast."""

    remedy: ClassVar[str] = ""


class UsageError(HoldfastError):
    """What was asked for cannot be done as asked; nothing was changed."""


class NotInRun(UsageError):
    """An effect was called outside a run while a run is active in this process."""

    remedy = (
        "carry the run into the thread with `run.wrap(fn)`, "
        "or call `.bare(...)` to do the effect on purpose without a record"
    )

    def __init__(self, function: str) -> None:
        super().__init__(function)
        self.function = function

    def __str__(self) -> str:
        return (
            f"effect {self.function} was called from a thread that belongs to no run "
            f"while a run is active in this process; {self.remedy}"
        )


class NestedCall(UsageError):
    """An effect was called inside a step or effect, or a run inside a run."""

    remedy = "make the outer function a plain one, so that each recorded call stands by itself"

    def __init__(self, inner: str, outer: str) -> None:
        super().__init__(inner, outer)
        self.inner, self.outer = inner, outer

    def __str__(self) -> str:
        return f"{self.inner} was called inside {self.outer}; {self.remedy}"


class WrongLoop(UsageError):
    """A synchronous call where an event loop runs, or the other way round."""

    remedy = "use `await store.arun(...)`"

    def __init__(self, call: str, why: str) -> None:
        super().__init__(call, why)
        self.call, self.why = call, why

    def __str__(self) -> str:
        return f"{self.call}: {self.why}; {self.remedy}"


class NotStorable(UsageError):
    """A value cannot be stored so that it comes back equal and of the same type."""

    remedy = "add `holdfast.register(TheClass)`, name the class in an annotation, or leave it out"

    def __init__(self, path: str, type_name: str, why: str = "") -> None:
        super().__init__(path, type_name, why)
        self.path, self.type_name, self.why = path, type_name, why

    def __str__(self) -> str:
        reason = self.why or f"Holdfast does not know this type; {self.remedy}"
        return f"{self.path}: {self.type_name}: {reason}"


class ChangedInCall(UsageError):
    """A step or effect changed its arguments or the state, which a replay would not repeat."""

    remedy = "return the new value from the call and change the state after it"

    def __init__(self, function: str, path: str) -> None:
        super().__init__(function, path)
        self.function, self.path = function, path

    def __str__(self) -> str:
        return (
            f"{self.function} changed {self.path}; on a replay its recorded answer is used "
            f"and the change would be missing; {self.remedy}"
        )


class ChangedOutside(UsageError):
    """An object was changed through a name that the state does not see."""

    remedy = "take the object from the state after putting it in: `x = run.state[...]`"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} was changed through the object that was put in; {self.remedy}"


class UnknownAgent(UsageError):
    """No agent of that name among the modules the operator named."""

    remedy = "name its module with `--app`, `$HOLDFAST_APP` or `app` in holdfast.toml"

    def __init__(self, agent: str, why: str) -> None:
        super().__init__(agent, why)
        self.agent, self.why = agent, why

    def __str__(self) -> str:
        return f"agent {self.agent}: {self.why}; {self.remedy}"


class AgentMismatch(UsageError):
    """Another agent, or other arguments, under an id that is already used."""

    remedy = "choose another id, or call with what was recorded"

    def __init__(self, run: str, what: str, recorded: str, asked: str) -> None:
        super().__init__(run, what, recorded, asked)
        self.run, self.what, self.recorded, self.asked = run, what, recorded, asked

    def __str__(self) -> str:
        return (
            f"run {self.run} was started with {self.what} {self.recorded}, "
            f"now asked with {self.asked}; {self.remedy}"
        )


class UnknownRun(UsageError):
    """There is no run of that id in the store."""

    remedy = "`holdfast runs` lists the runs of a store"

    def __init__(self, run: str, store: str, why: str = "") -> None:
        super().__init__(run, store, why)
        self.run, self.store, self.why = run, store, why

    def __str__(self) -> str:
        return f"{self.why or f'no run {self.run!r}'} in the store at {self.store}; {self.remedy}"


class UnknownCheckpoint(UsageError):
    """There is no checkpoint, snapshot or recovery point of that name in the store."""

    remedy = "`holdfast show RUN --checkpoints` lists those of a run"

    def __init__(self, checkpoint: str, store: str, why: str = "") -> None:
        super().__init__(checkpoint, store, why)
        self.checkpoint, self.store, self.why = checkpoint, store, why

    def __str__(self) -> str:
        why = self.why or f"no checkpoint {self.checkpoint!r}"
        return f"{why} in the store at {self.store}; {self.remedy}"


class BadConfig(UsageError):
    """A configuration value cannot be read."""

    remedy = "`holdfast config show` prints every value with its origin"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.remedy}"


class Unsupported(UsageError):
    """A platform or file system that cannot keep the promises of the store."""

    remedy = "put the store on a local disk of a Linux or macOS machine"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.remedy}"


class RunStopped(HoldfastError):
    """The run cannot go on by itself."""


class RunFailed(RunStopped):
    """The run ended with an error; its `__cause__` is that error where it is known."""

    remedy = "fix the cause, then `store.restart(id)` or `holdfast restart ID`"

    def __init__(self, run: str, kind: str, message: str) -> None:
        super().__init__(run, kind, message)
        self.run, self.kind, self.message = run, kind, message

    def __str__(self) -> str:
        return f"run {self.run} failed with {self.kind}: {self.message}; {self.remedy}"


class InDoubt(RunStopped):
    """An effect may or may not have happened, and nothing here can tell."""

    remedy = (
        "look in the outside world, then `holdfast restart ID --happened KEY` or `--not-done KEY`; "
        "a `probe=` on the effect answers this by itself"
    )

    def __init__(self, run: str, effect: str, key: str, why: str) -> None:
        super().__init__(run, effect, key, why)
        self.run, self.effect, self.key, self.why = run, effect, key, why

    def __str__(self) -> str:
        return (
            f"run {self.run}: effect {self.effect} (key {self.key}) is in doubt: {self.why}; "
            f"it is not done again; {self.remedy}"
        )


class Diverged(RunStopped):
    """The code asks something else than the journal recorded; nothing was overwritten."""

    remedy = (
        "bring the old code back, or `holdfast restart ID --redo-turn` to run the unfinished turn "
        "with today's code; for clocks, randomness and ids use run.now(), run.random, run.uuid()"
    )

    def __init__(self, run: str, where: str, recorded: str, asked: str) -> None:
        super().__init__(run, where, recorded, asked)
        self.run, self.where, self.recorded, self.asked = run, where, recorded, asked

    def __str__(self) -> str:
        return (
            f"run {self.run} diverged at {self.where}: recorded {self.recorded}, "
            f"asked {self.asked}; {self.remedy}"
        )


class Fenced(RunStopped):
    """Another process took the run over; this one wrote nothing more."""

    remedy = "let the new holder go on; this process's work on the run is over"

    def __init__(self, run: str, epoch: int) -> None:
        super().__init__(run, epoch)
        self.run, self.epoch = run, epoch

    def __str__(self) -> str:
        return (
            f"run {self.run} was taken over by another process (ours was epoch {self.epoch}); "
            f"{self.remedy}"
        )


class RunHeld(HoldfastError):
    """Another process works on the run now."""

    remedy = "wait for it, or stop that process; a dead one's run is taken over at once"

    def __init__(self, run: str, holder: str, since: str) -> None:
        super().__init__(run, holder, since)
        self.run, self.holder, self.since = run, holder, since

    def __str__(self) -> str:
        return f"run {self.run} is held by {self.holder} since {self.since}; {self.remedy}"


class NotDone(HoldfastError):
    """Raise it inside an effect to say that surely nothing happened in the world."""


class StepError(HoldfastError):
    """A recorded error whose class is not known here; `kind` is the name it had."""

    remedy = "name the class in `raises=` of the step to get it back as it was"

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class StoreError(HoldfastError):
    """The store could not do its part."""


class StoreNotFound(StoreError):
    """There is no store at that path."""

    remedy = "check the path, or `$HOLDFAST_STORE`; `holdfast run` and `holdfast.open()` make one"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"there is no store at {self.path}; {self.remedy}"


class StoreBusy(StoreError):
    """Another process held the store's lock for too long."""

    remedy = "look for a stopped process that has the store open, and continue or end it"

    def __init__(self, path: str, waited_s: float) -> None:
        super().__init__(path, waited_s)
        self.path, self.waited_s = path, waited_s

    def __str__(self) -> str:
        return f"the store at {self.path} was locked for {self.waited_s:.0f} s; {self.remedy}"


class StoreClosed(StoreError):
    """The handle was closed, or belongs to the process this one was forked from."""

    remedy = "open the store again in this process with `holdfast.open(path)`"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"the store at {self.path} {self.why}; {self.remedy}"


class StoreUnwritable(StoreError):
    """The disk is full, read-only or failing; what was acknowledged is kept."""

    remedy = "free space or repair the disk, then restart the run: it continues where it was"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"the store at {self.path} cannot be written: {self.why}; {self.remedy}"


class NewerFormat(StoreError):
    """The store was written by a newer Holdfast."""

    remedy = "upgrade holdfast here; nothing was changed"

    def __init__(self, path: str, found: str, known: str) -> None:
        super().__init__(path, found, known)
        self.path, self.found, self.known = path, found, known

    def __str__(self) -> str:
        known = f"this Holdfast knows {self.known}; {self.remedy}"
        return f"the store at {self.path} has format {self.found}, {known}"


class Damaged(StoreError):
    """Stored bytes are not what was written; the damaged part is named and never used."""

    remedy = "run `holdfast verify`; keep a copy of the store before anything else"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"{self.where} is damaged: {self.why}; {self.remedy}"
