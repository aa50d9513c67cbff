"""What the program or the operator asked for cannot be done as asked."""

from holdfast.errors.base import HoldfastError, shown_at


class UsageError(HoldfastError):
    """What was asked for cannot be done as asked; nothing was changed."""


class NotInRun(UsageError):
    """An effect was called outside a run while one is active, or a run's method from elsewhere."""

    remedy = "start the thread with `run.wrap(fn)`, which carries the run into it"

    def __init__(self, function: str, run: str | None = None, is_over: bool = False) -> None:  # noqa: FBT001, FBT002 facts travel in `args`
        super().__init__(function, run, is_over)
        self.function, self.run, self.is_over = function, run, is_over

    def __str__(self) -> str:
        if self.is_over:
            return (
                f"{self.function} was called when run {self.run} had ended; "
                "call it from the agent, while that runs"
            )
        if self.run is None:
            return (
                f"effect {self.function} was called from a thread that belongs to no run "
                f"while a run is active in this process; {self.remedy}; "
                "or call `.bare(...)` to do the effect on purpose without a record"
            )
        return (
            f"{self.function} was called from a thread or from code that does not belong "
            f"to run {self.run}; {self.remedy}"
        )


class NestedCall(UsageError):
    """An effect was called inside a step or effect, or a run inside a run."""

    remedy = "make the outer function a plain one, so that each recorded call stands by itself"

    def __init__(self, inner: str, outer: str, instead: str = "") -> None:
        super().__init__(inner, outer, instead)
        self.inner, self.outer, self.instead = inner, outer, instead

    def __str__(self) -> str:
        return f"{self.inner} was called inside {self.outer}; {self.instead or self.remedy}"


class StateReplaced(UsageError, AttributeError):
    """`run.state` was assigned or deleted, but it is one object from the run's start to its end."""

    remedy = "change what it holds: `run.state.clear(); run.state.update(...)`"

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run

    def __str__(self) -> str:
        return f"the state of run {self.run} cannot be replaced or deleted; {self.remedy}"


class StreamOpen(UsageError):
    """An effect or a child was called by code that reads a stream which is not over."""

    remedy = (
        "read the stream to its end first, since a partial answer is none; or leave it: `close()`"
    )

    def __init__(self, deed: str, stream: str) -> None:
        super().__init__(deed, stream)
        self.deed, self.stream = deed, stream

    def __str__(self) -> str:
        return f"{self.deed} was called while stream {self.stream} is open; {self.remedy}"


class StreamReset(UsageError):
    """A stream that somebody reads was begun anew: what was read is no part of its answer."""

    remedy = "read it again with offset=0"

    def __init__(self, run: str, stream: str, offset: int) -> None:
        super().__init__(run, stream, offset)
        self.run, self.stream, self.offset = run, stream, offset

    def __str__(self) -> str:
        return (
            f"stream {self.stream} of run {self.run} was begun anew after {self.offset} items; "
            f"{self.remedy}"
        )


class UnknownStream(UsageError):
    """A run has no stream of that name."""

    remedy = "`holdfast show RUN` lists what the run asked for"

    def __init__(self, run: str, stream: str, known: str) -> None:
        super().__init__(run, stream, known)
        self.run, self.stream, self.known = run, stream, known

    def __str__(self) -> str:
        return f"run {self.run} has no stream {self.stream} (it has: {self.known}); {self.remedy}"


class WrongLoop(UsageError):
    """A synchronous call where an event loop runs, or the other way round."""

    remedy = "use `await store.arun(...)`"

    def __init__(self, call: str, why: str) -> None:
        super().__init__(call, why)
        self.call, self.why = call, why

    def __str__(self) -> str:
        return f"{self.call}: {self.why}; {self.remedy}"


class NotStorable(UsageError):
    """A value cannot be stored so that it comes back equal and of the same type.

    Of a stored one that this program cannot read, `good` is a point of the run that it can.
    """

    remedy = "add `holdfast.register(TheClass)`, name the class in an annotation, or leave it out"

    def __init__(self, path: str, type_name: str, why: str = "", good: str | None = None) -> None:
        super().__init__(path, type_name, why, good)
        self.path, self.type_name, self.why, self.good = path, type_name, why, good

    def __str__(self) -> str:
        reason = self.why or f"Holdfast does not know this type; {self.remedy}"
        text = f"{self.path}: {self.type_name}: {reason}"
        if self.good is None:
            return text
        return f"{text}; this program can read {self.good}: {shown_at(self.good)}"


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
    """An object was changed through a name, or in a way, that the state does not see."""

    remedy = (
        "take the object from the state after putting it in: `x = run.state[...]`; for C code such "
        "as heapq change `holdfast.plain(x)` and put it back"
    )

    def __init__(self, path: str, how: str = "through the object that was put in") -> None:
        super().__init__(path, how)
        self.path, self.how = path, how

    def __str__(self) -> str:
        return f"{self.path} was changed {self.how}; {self.remedy}"


class RestoreFailed(UsageError):
    """An attached object could not be filled from its section; nothing was changed."""

    remedy = (
        "fix the object's class and restart; or attach it with `optional=True` to go on without "
        "what it held"
    )

    def __init__(self, section: str, why: str) -> None:
        super().__init__(section, why)
        self.section, self.why = section, why

    def __str__(self) -> str:
        return f"the object attached as {self.section!r} is not restored: {self.why}; {self.remedy}"


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

    remedy = (
        "choose another id, or call with what was recorded; if the agent's parameters changed, "
        "bring them back: a new one needs a default, an old one its name and place"
    )

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


class RunErased(UnknownRun):
    """There was a run of that id, and it was erased; its id is not given to another one."""

    remedy = "nothing of it can be read any more, by anybody; choose another id for a new run"

    def __init__(self, run: str, when: str, by: str) -> None:
        UsageError.__init__(self, run, when, by)
        self.run, self.when, self.by = run, when, by

    def __str__(self) -> str:
        return f"run {self.run!r} was erased on {self.when} by {self.by}; {self.remedy}"


class RollbackUnfinished(UsageError):
    """A rollback of the run was cut off; effects may still have to be taken back."""

    remedy = "`holdfast rollback ID` or `store.plan_rollback(id).apply()` goes on where it was"

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run

    def __str__(self) -> str:
        return f"a rollback of run {self.run} was cut off before its end; {self.remedy}"


class UnknownCheckpoint(UsageError):
    """There is no checkpoint, snapshot or recovery point of that name in the store."""

    remedy = "`holdfast show RUN --checkpoints` lists those of a run"

    def __init__(self, checkpoint: str, store: str, why: str = "") -> None:
        super().__init__(checkpoint, store, why)
        self.checkpoint, self.store, self.why = checkpoint, store, why

    def __str__(self) -> str:
        why = self.why or f"no checkpoint {self.checkpoint!r}"
        return f"{why} in the store at {self.store}; {self.remedy}"


class UnknownQuestion(UsageError):
    """Nothing of that id waits in the inbox of the store."""

    remedy = "`holdfast inbox --all` lists what waits, and what was answered"

    def __init__(self, question: str, store: str, why: str = "") -> None:
        super().__init__(question, store, why)
        self.question, self.store, self.why = question, store, why

    def __str__(self) -> str:
        why = self.why or f"nothing with id {self.question!r}"
        return f"{why} in the inbox of the store at {self.store}; {self.remedy}"


class AlreadyAnswered(UsageError):
    """Somebody else was first, or the time ran out; what was said then stands."""

    remedy = "`holdfast inbox show ID`, or of an effect `holdfast show RUN`, prints what was said"

    def __init__(self, question: str, word: str, by: str, at: str) -> None:
        super().__init__(question, word, by, at)
        self.question, self.word, self.by, self.at = question, word, by, at

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        was = "" if self.word == "expired" else "was "
        return f"{self.question} {was}{self.word}{by} at {self.at}; {self.remedy}"


class BadConfig(UsageError):
    """A configuration value cannot be read."""

    remedy = "correct it there; `holdfast config show` then prints every value with its origin"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.remedy}"


class BadCase(UsageError):
    """A case for the advisor cannot be meant as it is written, or says too little."""

    remedy = "`holdfast advise --example` prints a case with every key"

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


class SecretFound(NotStorable):
    """Something looks secret, nobody declared it, and the store is strict."""

    remedy = (
        "name it with `holdfast.secret(...)`, keep it out of what is stored, or, if it is none, "
        "allow its place with `open(secrets=holdfast.SecretRules(strict=True, allow=(...,)))`"
    )

    def __init__(self, path: str, kind: str) -> None:
        UsageError.__init__(self, path, kind)
        self.path, self.kind = path, kind
        self.type_name, self.why = "str", f"it looks like a secret ({kind})"

    def __str__(self) -> str:
        return f"{self.path}: {self.why}, and would be stored in clear; {self.remedy}"


class SecretMissing(UsageError):
    """A reference to a secret has no value here: not set, not declared, expired."""

    remedy = "set it where it is looked for, or declare it with `holdfast.secret(...)`; then go on"

    def __init__(self, reference: str, why: str) -> None:
        super().__init__(reference, why)
        self.reference, self.why = reference, why

    def __str__(self) -> str:
        return f"secret {self.reference}: {self.why}; {self.remedy}"
