"""What can be done to a run that is not under way: the recovery verbs of `Store`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.engine import agents
from holdfast.engine.agents import Agent
from holdfast.engine.fork import Fork
from holdfast.engine.hold import PAUSE_S, patience_s
from holdfast.engine.inbox import Inbox, verdict_of
from holdfast.engine.item import (
    BLOCK,
    BY_HAND,
    DOUBT,
    RETRY,
    STANDS,
    UNDO,
    Item,
    Word,
    check,
    name_of,
)
from holdfast.engine.life import Lives
from holdfast.engine.naming import point_name, run_id, text_of
from holdfast.engine.order import Order
from holdfast.engine.plan import RollbackPlan
from holdfast.engine.readings import Readings
from holdfast.engine.resolve import Permit, Verdict
from holdfast.engine.retain import Collected, Collector, Plan
from holdfast.errors import UsageError
from holdfast.model.decision import Decision
from holdfast.model.failure import Ended, Failure, FailureKind
from holdfast.model.rollback import Taken
from holdfast.model.run import RunInfo
from holdfast.policy.retention import Retention
from holdfast.store import erase as erasing
from holdfast.store.codec.veil import redact
from holdfast.store.gc import pins
from holdfast.store.graves import Grave
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import steadily

if TYPE_CHECKING:
    from holdfast.engine.checkpoint import Checkpoint
    from holdfast.engine.notify import Told


class Verbs(Readings):
    """Restart a run, fork it, settle a doubt, answer a question, let an effect pass the fence."""

    def __init__(self, opened: Opened, lives: Lives, clock: Clock) -> None:
        super().__init__(opened)
        self._lives, self._clock = lives, clock
        self._inbox = Inbox(opened, clock)

    def plan_gc(self, rules: Retention) -> Plan:
        """What garbage collection by these rules would remove, and why everything else stays."""
        self._refuse_if_closed()
        return Collector(self._opened, rules, self._clock.now()).plan()

    def erase(self, id: str, *, with_forks: bool = False) -> list[str]:  # noqa: A002 the public word
        """Make a run unreadable for good, with its forks if asked; gives the ids that are gone.

        In an encrypted store its key is destroyed. `RunShared` names forks that need it. The store
        remembers a hash of the id, so that the run is said to be erased and none gets its id.
        """
        self._refuse_if_closed()
        grave = Grave(self._clock.now(), "`store.erase`")
        return erasing.erase(self._opened, text_of(id), grave, with_forks=with_forks)

    def gc(self, rules: Retention) -> Collected:
        """Remove what no rule keeps: runs, what rows of old points held, values nobody names.

        Others may go on writing meanwhile. A damaged store is refused.
        """
        self._refuse_if_closed()
        return Collector(self._opened, rules, self._clock.now()).collect()

    def pin(self, name: str) -> None:
        """Keep a run, or a checkpoint of it, whatever the rules of garbage collection say."""
        pins.pin(self._opened, self._pinned(name))

    def unpin(self, name: str) -> None:
        """Leave a run or checkpoint to the rules again."""
        pins.unpin(self._opened, self._pinned(name))

    def _pinned(self, name: str) -> pins.Pin:
        self._refuse_if_closed()
        if "@" not in str(name) or self._opened.reader.find(name) is not None:
            return (self._found(name).row.no, *pins.WHOLE_RUN)
        found, point = steadily(lambda: self._points.find(name))
        return (found.row.no, *point)

    def restart(
        self,
        id: str,  # noqa: A002 the public word
        *,
        agent: Agent[..., Any] | None = None,
        redo_turn: bool = False,
        revive: bool = False,
        reason: str | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """Continue a run from its newest point with its recorded arguments.

        The agent is found by its recorded name among those this process declares.
        `redo_turn` runs the unfinished turn anew with today's code: recorded steps of that turn
        are dropped (kept on the old branch), effects stand. `revive` goes on with a cancelled run.
        """
        order = self._restart_order(id, agent, reason, is_redo=redo_turn, is_revived=revive)
        return self._lives.carry_out(order)

    async def arestart(
        self,
        id: str,  # noqa: A002 the public word
        *,
        agent: Agent[..., Any] | None = None,
        redo_turn: bool = False,
        revive: bool = False,
        reason: str | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """`restart`, for code under an event loop."""
        order = self._restart_order(id, agent, reason, is_redo=redo_turn, is_revived=revive)
        return await self._lives.acarry_out(order)

    def cancel(self, id: str, *, reason: str | None = None) -> RunInfo:  # noqa: A002 the public word
        """Cancel a run: at once where nobody holds it, else at the next call of its agent.

        What it recorded and did stays. A cancelled run is not run again; `restart` with `revive`
        goes on with it. Idempotent.
        """
        self._refuse_if_closed()
        with self._kept(id) as run:
            self._lives.cancel(run, reason)
        return self.get(id)

    def fork(
        self,
        id: str,  # noqa: A002 the public word
        *,
        at: "str | int | Checkpoint | None" = None,
        state: Mapping[str, object] | None = None,
        new_id: str | None = None,
        fork_effects: bool = False,
        reason: str | None = None,
    ) -> RunInfo:
        """A new run that shares the history of `id` up to a point, for `run` or `restart` to go on.

        `at` is a checkpoint, a turn's number, or a point as `restore` takes it; by default the
        newest. `state` changes values by their path (`{"notes": [], "messages[-1].content": ""}`),
        at the end of a turn. It inherits no approvals and no effects that are under way; effects
        stand in one ledger with those of `id`, unless `fork_effects` says that they are its own.
        """
        self._refuse_if_closed()
        wanted = Fork(
            id=self._lives.new_id(f"{id}-fork") if new_id is None else run_id(new_id),
            at=point_name(id, at),
            edits=state or {},
            reason=reason,
            has_own_ledger=fork_effects,
        )
        with self._kept(id) as run:
            self._lives.fork(self._points, run, wanted)
        return self.get(wanted.id)

    def plan_rollback(
        self,
        id: str,  # noqa: A002 the public word
        *,
        to: "str | int | Checkpoint | None" = None,
        only: Sequence[str] | str | None = None,
    ) -> RollbackPlan:
        """What a rollback of a run would lose and take back; `plan.apply()` does it.

        `to` is a checkpoint, a turn's number, a point as `restore` takes it, `"newest-valid"`,
        `"before:KEY"` (an effect) or `"start"`. `only` names sections of the state that go back
        while everything else stays. A rollback that was cut off needs no `to`: the plan is what is
        left of it.
        """
        self._refuse_if_closed()
        sections = [only] if isinstance(only, str) else only
        rollbacks = self._lives.rollbacks(self._points)
        with self._kept(id) as run:
            return rollbacks.plan(run, point_name(id, to), sections)

    def paused(
        self,
        id: str,  # noqa: A002 the public word
        *,
        wait: float | str = PAUSE_S,
    ) -> AbstractContextManager[RunInfo]:
        """`with store.paused(id):` holds a run whoever works on it: plan and roll it back inside.

        That process is asked to let the run go at its next call; `NotPaused` says that it did not
        within `wait`. Afterwards a supervised or watched run goes on by itself; a plain
        `store.run` has raised `Paused`.
        """
        self._refuse_if_closed()
        return self._paused(self._found(id), patience_s(wait))

    @contextmanager
    def _paused(self, run: Run, wait_s: float) -> Iterator[RunInfo]:
        with self._lives.paused(run, wait_s):
            yield self.get(run.body.id)

    def undo_rollback(self, id: str, *, reason: str | None = None) -> list[Taken]:  # noqa: A002 the public word
        """Move the head back to the branch that the newest rollback of a run left.

        Returns the effects of that branch that were undone or offset since, and stay so.
        """
        self._refuse_if_closed()
        with self._kept(id) as run:
            return self._lives.rollbacks(self._points).take_back(run, reason)

    def retry_undos(self, id: str, *, key: str | None = None) -> list[Taken]:  # noqa: A002 the public word
        """Try again to take back what rollbacks of a run could not; or the effect with this key.

        Returns what came of each. An effect that the run uses again is left as it is.
        """
        self._refuse_if_closed()
        with self._kept(id) as run:
            return self._lives.rollbacks(self._points).retry(run, key)

    def resolve(
        self,
        id: str,  # noqa: A002 the public word
        key: str,
        *,
        happened: bool,
        outcome: object = None,
        by: str | None = None,
    ) -> None:
        """Say of an effect in doubt, by its key, whether it happened, and with which outcome."""
        self._refuse_if_closed()
        verdict = Verdict(key=key, happened=happened, outcome=outcome, by=by)
        with self._kept(id) as run:
            self._lives.resolve(run, verdict)

    def inbox(self, *, all: bool = False) -> list[Item]:  # noqa: A002 the public word
        """What waits for a person, oldest first: questions, approvals, doubts, escalations.

        `all` lists what was answered too.
        """
        self._refuse_if_closed()
        return self._inbox.items(is_all=all)

    def answer(
        self,
        id: str,  # noqa: A002 the public word
        value: object,
        *,
        outcome: object = None,
        by: str | None = None,
    ) -> Item:
        """Answer what waits in the inbox under `id`, or under an id that begins so.

        A question takes its answer; an effect in doubt takes "happened", with its outcome, or
        "not done"; one that the fence stopped takes "allow", an escalation "dismiss"; one that a
        rollback could not take back "retry", "undone" (by hand) or "stands". The first answer
        stands. `by` is who says it, else the user of this process.
        """
        self._refuse_if_closed()
        return self._said(self._inbox.find(id), Word(what="answered", value=value, by=by), outcome)

    def approve(self, id: str, *, by: str | None = None, note: str | None = None) -> Item:  # noqa: A002 the public word
        """Allow the effect that waits in the inbox under `id`, once, with the arguments shown."""
        self._refuse_if_closed()
        return self._said(self._inbox.find(id), Word(what="approved", by=by, note=note))

    def reject(self, id: str, *, by: str | None = None, note: str | None = None) -> Item:  # noqa: A002 the public word
        """Refuse the effect that waits in the inbox under `id`; the agent gets `Rejected`."""
        self._refuse_if_closed()
        return self._said(self._inbox.find(id), Word(what="rejected", by=by, note=note))

    def notify(self) -> "list[Told]":
        """Tell people of every open item that they were not told of yet.

        `UsageError` where the store was opened without anybody to tell.
        """
        self._refuse_if_closed()
        if self._lives.notifier is None:
            msg = (
                "nobody is to be told; give `notify=` to holdfast.open, `--webhook` or `--command` "
                "to `holdfast inbox notify`, or set notify_webhook"
            )
            raise UsageError(msg)
        return list(self._lives.notifier.tell(self._inbox.items()))

    def _said(self, item: Item, word: Word, outcome: object = None) -> Item:
        with self._kept(item.run) as run:
            self._say(run, item, word, outcome)
        return replace(
            item,
            state=word.what,
            answer=word.value,
            by=redact(name_of(word.by)),
            note=word.note and redact(word.note),
            at=self._clock.now(),
        )

    def _say(self, run: Run, item: Item, word: Word, outcome: object) -> None:
        if item.kind == DOUBT:
            self._lives.resolve(run, verdict_of(item, word, outcome))
        elif item.kind == UNDO:
            check(item, word, outcome)
            if word.value != STANDS:
                by_hand = word.value == BY_HAND
                self._lives.rollbacks(self._points).retry(run, item.id, is_by_hand=by_hand)
            if word.value != RETRY:
                self._inbox.say(run, item, word)
        elif item.kind == BLOCK:
            check(item, word, outcome)
            reason = f"allowed by {name_of(word.by)}"
            self._lives.allow(run, Permit(key=item.id, reason=reason))
        else:
            self._inbox.say(run, item, word)

    def allow(self, id: str, key: str, *, reason: str | None = None) -> None:  # noqa: A002 the public word
        """Let the effect through that the fence stopped, by the key that `Blocked` names.

        It holds for that effect with these arguments, once, in this run; `restart` then does it.
        """
        self._refuse_if_closed()
        with self._kept(id) as run:
            self._lives.allow(run, Permit(key=key, reason=reason))

    def decide(
        self,
        id: str,  # noqa: A002 the public word
        failure: "BaseException | Ended | Failure | FailureKind | str | None" = None,
        *,
        agent: Agent[..., Any] | None = None,
    ) -> Decision:
        """What would be done about a failure of this run now; nothing is done.

        Without a `failure` it is what the journal says ended the run. An exception, the end of a
        process (`holdfast.Ended(signal=9)`) or a kind such as `"corruption"` asks "what if".
        """
        self._refuse_if_closed()
        with self._kept(id) as run:
            return self._lives.decide(run, failure, agent)

    def _restart_order(
        self,
        id_: str,
        agent: Agent[..., Any] | None,
        reason: str | None,
        *,
        is_redo: bool,
        is_revived: bool,
    ) -> Order:
        self._refuse_if_closed()
        if agent is not None:
            agents.refuse_no_agent("store.restart(agent=)", agent)
        found = self._found(id_)
        body = found.body
        if is_revived:
            self._lives.revive(found)
        return Order(
            agent=agent or agents.find(body.agent, body.module),
            run=id_,
            is_restart=True,
            must_exist=True,
            is_redo=is_redo,
            is_revived=is_revived,
            reason=reason,
        )
