"""Why an agent cannot be drilled: what stopped it with no fault injected, in a sentence."""

from holdfast.errors import Escalated, InDoubt, RunFailed, UsageError, Waiting


def unfit(agent: str, error: Exception) -> UsageError:
    """What to tell of an undisturbed run that did not come to its end; its store is gone."""
    match error:
        case RunFailed():
            why = f"it fails with {error.kind}: {error.message}"
            remedy = "correct that first"
        case Waiting():
            why = f"it waits for a person: {error.text}"
            remedy = (
                "a drill has nobody who answers: give it an input that asks nobody, or test it "
                "with the fixture `crash_everywhere` and a `crash_person`"
            )
        case InDoubt():
            why = f"effect {error.effect} is in doubt: {error.why}"
            remedy = "a stand-in takes the same arguments, and gives a value that can be stored"
        case Escalated():
            why = f"{error.failure}: {error.reason}"
            remedy = "correct that first"
        case _:
            why, remedy = f"{type(error).__name__}: {error}", "correct that first"
    return UsageError(
        f"{agent} does not come to its end with no fault injected, so there is nothing to drill "
        f"yet: {why}; {remedy}"
    )
