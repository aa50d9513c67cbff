"""A budget: what a run, its branches and its forks may spend in all, counted for good.

Spendings stand in the ledger. They are gross: a rollback gives nothing back, and a turn that is run
anew spends anew. What would pass the limit is refused.
"""

import hashlib
from decimal import Decimal

import msgspec

from holdfast.capture.digest import digest
from holdfast.engine import context
from holdfast.engine.ask import ledger_of
from holdfast.engine.brief import brief
from holdfast.engine.faults import to_exception
from holdfast.engine.here import own
from holdfast.engine.question import DIGEST_BYTES, Question
from holdfast.engine.reading import key_of
from holdfast.engine.session import Frame, Session
from holdfast.errors import BudgetSpent, UsageError
from holdfast.model.journal import Asked, Call, Noted, Raised
from holdfast.model.ledger import Spent
from holdfast.policy.standing import Standing
from holdfast.store.codec import values
from holdfast.store.codec.veil import redact

NAME_CHARS_MAX = 100
Number = int | float | Decimal


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget has spent, and the limit it had when it spent last."""

    name: str
    spent: Decimal
    limit: Decimal


class Budget:
    """A limit on what the run may spend, in tokens, dollars or anything that is counted.

    Numbers come back as the limit was given: as int, float or Decimal; sums are exact decimals.
    """

    def __init__(self, session: Session, name: str, limit: Number) -> None:
        is_text = type(name) is str and 0 < len(name) <= NAME_CHARS_MAX and name.isprintable()
        if not is_text or redact(name) != name:
            msg = f"a budget's name is printable text of at most {NAME_CHARS_MAX} characters"
            raise UsageError(msg)
        self._session, self.name = session, name
        self._kind = type(limit)
        self._limit = _number(f"the limit of budget {name}", limit)

    @property
    def left(self) -> Number:
        """What is left now, recorded: a replay sees the same."""
        left = self._limit - ledger_of(self._session).read().spent(self.name)
        noted = self._session.note(self._frame(), f"budget {self.name} left", str(left))
        return self._given(Decimal(str(noted)))

    def spend(self, amount: Number, what: str | None = None, *, done: bool = False) -> Number:
        """Spend `amount` and return what is left; `BudgetSpent` where that is too little.

        Durable when this returns, and done once however often the run is interrupted. `what` says
        for people what it is for. `done` says that it is spent already, as tokens are: it counts
        in any case, and `BudgetSpent` is raised once the limit is passed.
        """
        frame, session = self._frame(), self._session
        exact = _number(f"what is spent from budget {self.name}", amount)
        if self._kind is int and type(amount) is not int:
            msg = f"budget {self.name} counts whole numbers, not {amount!r}; give a limit as float"
            raise UsageError(msg)
        call, record = session.ask(_question(self.name, exact, what), frame)
        if record is None:
            return self._given(self._spend(call, exact, what, is_done=done))
        if isinstance(record.entry, Raised):
            session.book.received(call.scope)
            error = to_exception(record.entry.error)
            session.mark(error, record.entry)
            raise error
        return self._given(Decimal(str(session.replay(record))))

    def _frame(self) -> Frame:
        return own(self._session, context.frame.get(), f"budget {self.name}")

    def _spend(self, call: Call, amount: Decimal, what: str | None, *, is_done: bool) -> Decimal:
        session, now = self._session, self._session.clock.now()
        id_ = _id(session, call)

        def make(standing: Standing) -> Spent | None:
            if id_ in standing.spendings:
                return None  # An earlier life of the run spent it, and was cut off.
            total = standing.spent(self.name) + amount
            if total > self._limit and not is_done:
                raise self._refused(amount, standing.spent(self.name))
            limit, reason = str(self._limit), what and redact(what)
            return Spent(id_, self.name, session.id, str(amount), str(total), limit, reason, now)

        began = session.clock.monotonic()
        try:
            spent = ledger_of(session).add(now, make).spendings[id_]
            left = self._limit - Decimal(spent.total)
            if left < 0:
                raise self._refused(amount, Decimal(spent.total) - amount)
        except BudgetSpent as error:
            session.raised(call, error, session.clock.monotonic() - began, ())
            raise
        session.pend(Noted(call, values.encode(str(left))))
        session.book.received(call.scope)
        return left

    def _refused(self, amount: Decimal, spent: Decimal) -> BudgetSpent:
        left = max(Decimal(0), self._limit - spent)
        return BudgetSpent(self._session.id, self.name, f"{amount:f}", f"{left:f}")

    def _given(self, exact: Decimal) -> Number:
        return exact if self._kind is Decimal else self._kind(exact)

    def __repr__(self) -> str:
        return f"<Budget {self.name!r}, limit {self._limit:f}>"


def _number(what: str, given: object) -> Decimal:
    """An amount as an exact decimal; a float is what Python prints of it."""
    if type(given) is not int and type(given) is not float and type(given) is not Decimal:
        raise UsageError(f"{what} is an int, a float or a Decimal, not {type(given).__name__}")
    exact = Decimal(repr(given)) if type(given) is float else Decimal(given)
    if not exact.is_finite() or exact < 0:
        raise UsageError(f"{what} is a finite number from 0, not {given!r}; nothing is given back")
    return exact


def _question(name: str, amount: Decimal, what: str | None) -> Question:
    given = {"amount": str(amount), "what": what}
    marks = {each: digest(value) for each, value in given.items()}
    asked = [Asked(each, redact(brief(value)), marks[each][:4]) for each, value in given.items()]
    whole = hashlib.sha256(b"".join(marks.values())).digest()[:DIGEST_BYTES]
    return Question(f"budget {name}", whole, asked, given)


def _id(session: Session, call: Call) -> bytes:
    """What binds a spending to one call of one run of one store."""
    where = repr((session.writer.run.row.head, key_of(call))).encode()
    lineage = session.reader.store_id + session.id.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"spend" + lineage + where).digest()[:16]


def balances(standing: Standing) -> list[Balance]:
    """The budgets of a lineage, in the order in which they were first spent from."""
    return [
        Balance(name=name, spent=Decimal(newest.total), limit=Decimal(newest.limit))
        for name, newest in standing.budgets.items()
    ]
