"""What a run cannot do by itself, and what a call says of itself."""

from holdfast.errors.base import HoldfastError


class RunStopped(HoldfastError):
    """The run cannot go on by itself."""


class RunFailed(RunStopped):
    """The run ended with an error; its `__cause__` is that error where it is known."""

    remedy = "fix the cause, then `store.restart(id)` or `holdfast restart ID`"

    def __init__(self, run: str, kind: str, message: str) -> None:
        super().__init__(run, kind, message)
        self.run, self.kind, self.message = run, kind, message

    def __str__(self) -> str:
        so = f"{StepError.remedy}; {self.remedy}" if self.kind == "StepError" else self.remedy
        return f"run {self.run} failed with {self.kind}: {self.message}; {so}"


class InDoubt(RunStopped):
    """An effect may or may not have happened, and nothing here can tell."""

    remedy = (
        "look in the outside world, then `holdfast restart ID --happened KEY` or `--not-done KEY`; "
        "a `probe=` that can tell answers this by itself, at every restart"
    )

    def __init__(self, run: str, effect: str, key: str, why: str) -> None:
        super().__init__(run, effect, key, why)
        self.run, self.effect, self.key, self.why = run, effect, key, why

    def __str__(self) -> str:
        return (
            f"run {self.run}: effect {self.effect} (key {self.key}) is in doubt: {self.why}; "
            f"it is not done again; {self.remedy}"
        )


class Cancelled(RunStopped):
    """A person cancelled the run; what it recorded and did stays as it is."""

    remedy = "`store.restart(id, revive=True)` or `holdfast restart ID --revive` goes on with it"

    def __init__(self, run: str, reason: str = "") -> None:
        super().__init__(run, reason)
        self.run, self.reason = run, reason

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"run {self.run} was cancelled{why}; {self.remedy}"


class Paused(RunStopped):
    """Somebody had the run paused, to roll it back; nothing failed, and what it did is recorded."""

    remedy = "run or restart it once that is over; a supervised or watched run goes on by itself"

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run

    def __str__(self) -> str:
        return f"run {self.run} was paused for a rollback; {self.remedy}"


class Blocked(RunStopped):
    """The fence: an effect about the same thing stands on another branch, or in a fork."""

    remedy = (
        "if it shall be done all the same: `holdfast restart ID --allow KEY` or "
        "`store.allow(id, key)`; `fork_effects=True` on a fork or rollback lifts the fence for all"
    )

    def __init__(self, run: str, effect: str, key: str, standing: str, how: str) -> None:
        super().__init__(run, effect, key, standing, how)
        self.run, self.effect, self.key = run, effect, key
        self.standing, self.how = standing, how

    def __str__(self) -> str:
        return (
            f"run {self.run}: effect {self.effect} (key {self.key}) is blocked: "
            f"{self.standing}, about the same thing, {self.how}; {self.remedy}"
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


class Waiting(RunStopped):
    """The run waits for a person; its question is in the inbox, and no process is needed."""

    remedy = "answer it with `holdfast inbox`, then restart the run"

    def __init__(self, run: str, question: str, kind: str, text: str) -> None:
        super().__init__(run, question, kind, text)
        self.run, self.question, self.kind, self.text = run, question, kind, text

    @property
    def command(self) -> str:
        """What to type to answer it."""
        act = "approve" if self.kind == "approval" else "answer"
        rest = "" if self.kind == "approval" else " ANSWER"
        return f"holdfast inbox {act} {self.question}{rest}"

    def __str__(self) -> str:
        asks = "an approval" if self.kind == "approval" else "an answer"
        return f"run {self.run} waits for {asks}: {self.text} (`{self.command}`); {self.remedy}"


class InvalidState(RunStopped):
    """A validator refuses the state; nothing of it was published."""

    remedy = (
        "fix what makes the state so, then restart (`--redo-turn` where the code now differs); "
        "or roll the run back to a checkpoint that passes"
    )

    def __init__(self, run: str, validator: str, why: str, when: str) -> None:
        super().__init__(run, validator, why, when)
        self.run, self.validator, self.why, self.when = run, validator, why, when

    def __str__(self) -> str:
        return (
            f"run {self.run}: the state {self.when} is invalid: {self.validator}: {self.why}; "
            f"{self.remedy}"
        )


class Escalated(RunStopped):
    """Nothing may recover the run by itself any more; a person has to look at it."""

    remedy = "see `holdfast show ID`, mend the cause, then `holdfast restart ID`"

    def __init__(self, run: str, failure: str, reason: str) -> None:
        super().__init__(run, failure, reason)
        self.run, self.failure, self.reason = run, failure, reason

    def __str__(self) -> str:
        return f"run {self.run}: {self.failure}: {self.reason}; {self.remedy}"


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

    remedy = (
        "wait for it, or stop that process; a dead one's run is taken over at once "
        "(a rollback can pause it: `plan.apply(pause=True)`, `holdfast rollback`)"
    )

    def __init__(self, run: str, holder: str, since: str) -> None:
        super().__init__(run, holder, since)
        self.run, self.holder, self.since = run, holder, since

    def __str__(self) -> str:
        return f"run {self.run} is held by {self.holder} since {self.since}; {self.remedy}"


class NotPaused(HoldfastError):
    """Whoever works on the run did not let it go in time; nothing was changed."""

    remedy = (
        "it stops between calls only: give it longer (`--wait 10m`, `wait=`), or end that process; "
        "a dead one's run is taken over at once"
    )

    def __init__(self, run: str, holder: str, wait_s: float) -> None:
        super().__init__(run, holder, wait_s)
        self.run, self.holder, self.wait_s = run, holder, wait_s

    def __str__(self) -> str:
        return (
            f"run {self.run} was not paused: {self.holder} did not let it go within "
            f"{self.wait_s:g} s; nothing was changed; {self.remedy}"
        )


class Expired(HoldfastError):
    """Nobody answered a question in time; an answer that comes later is refused."""

    remedy = "`holdfast restart ID --redo-turn` runs the turn anew and asks again"

    def __init__(self, run: str, question: str, text: str) -> None:
        super().__init__(run, question, text)
        self.run, self.question, self.text = run, question, text

    def __str__(self) -> str:
        return f"run {self.run}: nobody answered in time: {self.text}; {self.remedy}"


class Rejected(HoldfastError):
    """A person refused the effect; it was not done."""

    remedy = "let the agent do something else, or `holdfast restart ID --redo-turn` to ask again"

    def __init__(self, run: str, effect: str, by: str, note: str = "") -> None:
        super().__init__(run, effect, by, note)
        self.run, self.effect, self.by, self.note = run, effect, by, note

    def __str__(self) -> str:
        why = f" ({self.note})" if self.note else ""
        said = f"{self.by} rejected {self.effect}{why}; it was not done"
        return f"run {self.run}: {said}; {self.remedy}"


class BudgetSpent(HoldfastError):
    """A budget does not allow this spending; what was spent stays spent, also after a rollback."""

    remedy = "raise the limit in `run.budget(name, limit)`, then restart the run"

    def __init__(self, run: str, budget: str, amount: str, left: str) -> None:
        super().__init__(run, budget, amount, left)
        self.run, self.budget, self.amount, self.left = run, budget, amount, left

    def __str__(self) -> str:
        return (
            f"run {self.run}: budget {self.budget} has {self.left} left and {self.amount} "
            f"is to be spent; {self.remedy}"
        )


class NotDone(HoldfastError):
    """Raise it inside an effect to say that surely nothing happened in the world."""


class CallTimedOut(HoldfastError, TimeoutError):
    """A step or effect took longer than its `timeout=`."""

    remedy = "give it more time, or let it be asked again with `retry=holdfast.Retry(...)`"

    def __init__(self, function: str, limit_s: float) -> None:
        super().__init__(function, limit_s)
        self.function, self.limit_s = function, limit_s

    def __str__(self) -> str:
        return f"{self.function} did not end within {self.limit_s:g} s; {self.remedy}"


class ChildFailed(HoldfastError):
    """A child of the run failed for good; that is recorded as what came of it."""

    remedy = "catch it where the run can do without; else see `holdfast show` of the child"

    def __init__(self, run: str, child: str, error: str) -> None:
        super().__init__(run, child, error)
        self.run, self.child, self.error = run, child, error

    def __str__(self) -> str:
        return f"child {self.child} of run {self.run} failed: {self.error}; {self.remedy}"


class StepError(HoldfastError):
    """A recorded error whose class is not known here; `kind` is the name it had."""

    remedy = (
        "name the class in `raises=` of the step or critical section that raised it, "
        "to get it back as it was"
    )

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"
