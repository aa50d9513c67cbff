"""A call that failed: judged, and asked again in place where that was declared and is worth it."""

from holdfast.engine.session import Session
from holdfast.errors import UsageError
from holdfast.model.decision import Action
from holdfast.model.journal import Call, Retried
from holdfast.model.limits import Retry, seconds
from holdfast.policy.classify import classify
from holdfast.policy.decide import Situation, decide
from holdfast.policy.estimate import Seen


class Tries:
    """The attempts at one call in this life of the run."""

    def __init__(self, session: Session, call: Call, retry: Retry) -> None:
        self._session, self._call, self._retry = session, call, retry
        self.count = 0
        self._first_s: float | None = None

    def covers(self, error: Exception) -> bool:
        """Whether the declaration speaks of this failure at all."""
        retry, care = self._retry, self._session.care
        if isinstance(error, retry.classes):
            return True
        return classify(error, rules=care.rules).kind in retry.kinds

    def again_s(self, error: Exception, took_s: float) -> float | None:
        """How long to wait before the call is made again; None if it is not, and `error` counts.

        The decision is journaled with its numbers; it rides along with the next commit.
        """
        if not self.covers(error):
            return None
        session, care = self._session, self._session.care
        self.count += 1
        now, mono = session.clock.now(), session.clock.monotonic()
        self._first_s = mono if self._first_s is None else self._first_s
        failure = classify(error, rules=care.rules, now=now)
        situation = Situation(
            retry=self._retry,
            attempt=self.count,
            elapsed_s=mono - self._first_s,
            age_s=max(0.0, now - session.writer.run.body.created),
            seen={Action.RETRY: Seen(failed=self.count - 1, times_s=[took_s])},
            chance=care.chance.random(),
        )
        decision = decide(failure, situation, care.sla)
        if decision.action is not Action.RETRY:
            return None
        attempt = session.count_attempt(self._call)
        session.pend(Retried(self._call, now, took_s, attempt, failure, decision))
        session.log.info("%s: %s, %s", self._call.name, failure.what, decision.reason)
        return decision.wait_s


def limit_of(timeout: float | str | None, name: str = "timeout") -> float | None:
    """`timeout=` in seconds; refused where it is declared if it cannot be meant."""
    if timeout is None:
        return None
    try:
        limit_s = seconds(timeout)
    except ValueError as error:
        raise UsageError(f"{name}=: {error}") from None
    if limit_s == 0:
        msg = f"{name}=0 leaves a call no time; leave it out for no limit"
        raise UsageError(msg)
    return limit_s


def retry_of(retry: Retry | None) -> Retry | None:
    """`retry=` as declared."""
    if retry is not None and not isinstance(retry, Retry):
        msg = f"retry= takes holdfast.Retry(attempts=...), not {type(retry).__name__}"
        raise UsageError(msg)
    return retry
