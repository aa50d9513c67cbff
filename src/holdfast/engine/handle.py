"""`open` and `Store`: what a user holds. Real clock, chance and environment come in here."""

import os
import random
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.engine import agents, context
from holdfast.engine.agents import Agent
from holdfast.engine.errand import Errand, Go
from holdfast.engine.given import (
    given_key,
    given_notify,
    given_pace,
    lasting_key,
    open_path,
    refuse_other,
    told_key,
)
from holdfast.engine.life import Lives
from holdfast.engine.naming import run_id
from holdfast.engine.order import Order
from holdfast.engine.patience import limit_of
from holdfast.engine.pulse import Pulse
from holdfast.engine.retain import collect_when_due
from holdfast.engine.secrets import refuse_secret_values, rules_of
from holdfast.engine.verbs import Verbs
from holdfast.errors import UsageError
from holdfast.model.cadence import Cadence, Pace, Snapshots, pace_of
from holdfast.model.secrets import SecretRules
from holdfast.ondemand import OnDemand
from holdfast.policy.retention import Retention
from holdfast.store.codec import values
from holdfast.store.leases import STALL_S
from holdfast.store.open import Opened, open_store

if TYPE_CHECKING:
    from holdfast.engine import notify as notifying
    from holdfast.engine import supervise as supervising
    from holdfast.engine import watch as watching
    from holdfast.engine.notify import Notify
    from holdfast.store.seal.provider import KeyProvider
else:
    notifying = OnDemand("holdfast.engine.notify")
    watching = OnDemand("holdfast.engine.watch")
    supervising = OnDemand("holdfast.engine.supervise")  # It loads subprocess.

T = TypeVar("T")

CHECK = "HOLDFAST_CHECK"
RUNS_MAX = 100_000

_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


def open(  # noqa: A001 the public name is holdfast.open
    path: str | os.PathLike[str] | None = None,
    *,
    key: "str | KeyProvider | None" = None,
    must_exist: bool = False,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    stall: float = STALL_S,
    environment: Iterable[str] = (),
    secrets: str | SecretRules | None = None,
    check: bool | None = None,
    notify: "Notify | None" = None,
    retention: Retention | None = None,
    checkpoint: Cadence | str | None = None,
    snapshot: Snapshots | None = None,
    durability: str | None = None,
) -> "Store":
    """Open the store at `path`, `$HOLDFAST_STORE` or `./.holdfast`, making it if it is new.

    With a `key` (`file:PATH`, `env:NAME`, `passphrase`, `cmd:COMMAND`, `vault:…` or a provider;
    else `$HOLDFAST_KEY`) a new store is encrypted, and one that is not encrypted is refused.
    `stall` is how many seconds a holder of a run may show no sign of life before another process
    may take the run; `environment` names the variables whose values are recorded with runs;
    `secrets` says what to do with values that look secret and that nobody declared: `"redact"`
    (or what `$HOLDFAST_SECRETS` says), `"strict"`, or `SecretRules`. `notify` says who is told of
    what waits in the inbox (else `$HOLDFAST_NOTIFY_WEBHOOK`, `…_COMMAND` and `…_APPRISE` do);
    by the rules of `retention` garbage is collected when the store is closed, at most once an hour;
    `checkpoint`, `snapshot` and `durability` (else `$HOLDFAST_CHECKPOINT`, `$HOLDFAST_SNAPSHOT`,
    `$HOLDFAST_DURABILITY`) say how runs are saved whose agents do not;
    `clock` and `chance` are for tests, and so is `check` (else `$HOLDFAST_CHECK`): each save is
    read back and compared, so that a change made around the methods of the state is an error.
    """
    rules = rules_of(secrets or os.environ.get("HOLDFAST_SECRETS") or "redact")
    names = [environment] if isinstance(environment, str) else environment
    allowed = {name: os.environ[name] for name in names if name in os.environ}
    refuse_secret_values(allowed, rules)
    refuse_other(retention, Retention, "retention= takes holdfast.Retention(last=…)")
    clock, chance = clock or SystemClock(), chance or random.SystemRandom()
    pace = given_pace(checkpoint, snapshot, durability)
    opened = open_store(
        open_path(path), clock, key=given_key(key), must_exist=must_exist, stall_s=stall
    )
    is_checked = os.environ.get(CHECK, "") not in ("", "0") if check is None else check
    try:
        asked = given_notify(notify)
        return Store(
            opened,
            clock,
            chance,
            allowed,
            rules=rules,
            pace=pace,
            is_checked=is_checked,
            notify=asked,
            key=lasting_key(key),
            retention=retention,
        )
    except BaseException:
        opened.close()
        raise


class Store(Verbs):
    """Where runs are kept, and the verbs on them. Safe for threads; not for use across a fork."""

    def __init__(
        self,
        opened: Opened,
        clock: Clock,
        chance: random.Random,
        environment: Mapping[str, str],
        *,
        rules: SecretRules,
        pace: Pace,
        is_checked: bool = False,
        notify: "Notify | None" = None,
        key: "str | KeyProvider | None" = None,
        retention: Retention | None = None,
    ) -> None:
        lives = Lives(
            opened, clock, chance, environment, rules=rules, pace=pace, is_checked=is_checked
        )
        super().__init__(opened, lives, clock)
        self._chance, self._retention, self._pace = chance, retention, pace
        self._key, self._names = key, tuple(environment)
        if notify is not None:
            self._lives.notifier = notifying.Notifier(opened, clock, chance, notify, os.environ)
        _stores.add(self)

    @overload
    def run(
        self,
        agent: Agent[..., Coroutine[Any, Any, T]],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    @overload
    def run(
        self,
        agent: Agent[..., T],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    def run(
        self,
        agent: Agent[..., Any],
        /,
        *args: Any,
        id: str | None = None,  # noqa: A002 the public word
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Start the run, continue it where it was, or return its recorded result.

        Without an id a new one is given. A failed run raises `RunFailed`; `restart` tries again.
        `checkpoint`, `snapshot` and `durability` say how this run is saved, whatever its agent
        says; restarts keep to it.
        """
        pace = pace_of(checkpoint, snapshot, durability)
        return self._lives.carry_out(self._order(agent, id, args, kwargs, pace))

    @overload
    async def arun(
        self,
        agent: Agent[..., Coroutine[Any, Any, T]],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    @overload
    async def arun(
        self,
        agent: Agent[..., T],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T: ...
    async def arun(
        self,
        agent: Agent[..., Any],
        /,
        *args: Any,
        id: str | None = None,  # noqa: A002 the public word
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """`run`, for code under an event loop. A synchronous agent runs in a thread."""
        pace = pace_of(checkpoint, snapshot, durability)
        return await self._lives.acarry_out(self._order(agent, id, args, kwargs, pace))

    def supervise(
        self,
        agent: Agent[..., Any],
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,  # noqa: A002 the public word
        stall: float | str | None = None,
        spare: bool = True,
        checkpoint: Cadence | str | None = None,
        snapshot: Snapshots | None = None,
        durability: str | None = None,
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> Any:  # noqa: ANN401 the agent's own result
        """`run`, in a child process that is kept alive: if it dies or hangs, the run goes on.

        How is decided by the kind of the failure and the agent's `sla`; what only a person can
        judge is raised. Hung is what passes its own `timeout=` or, with `stall`, records nothing
        for that long while no such limit runs. Stopping this process stops the child. With a
        `spare`, a second process with everything imported waits to take over at once.
        """
        terms = self.terms(stall=stall, has_spare=spare)
        pace = pace_of(checkpoint, snapshot, durability)
        return self.keep_alive(agent, terms, id, args, kwargs, pace=pace)

    def keep_alive(
        self,
        agent: Agent[..., Any],
        terms: "supervising.Terms",
        id_: str | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        pace: Pace | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """`supervise` on terms of the caller's."""
        return self._lives.supervise(self._order(agent, id_, args, kwargs, pace), terms)

    def watch(
        self,
        *,
        apps: Iterable[str] | None = None,
        workers: int = 4,
        once: bool = False,
        stall: float | str | None = None,
        stopped: Callable[[], bool] = bool,
        happening: Callable[[str, dict[str, object]], None] | None = None,
    ) -> dict[str, str]:
        """Recover every run of this store whose process is gone, each in a child process.

        At most `workers` at a time; goes on until `stopped()` is true (then `KeyboardInterrupt`
        rises) or, with `once`, until none is left. Agents come from those this process declares,
        of the modules `apps` only if given. Gives the runs and what came of each.
        """
        if workers < 1:
            msg = f"workers= is a whole number from 1, not {workers!r}"
            raise UsageError(msg)
        self._refuse_if_closed()
        modules = None if apps is None else frozenset(apps)
        more = {} if happening is None else {"happening": happening}
        return self._lives.watch(
            lambda name, module: agents.find(name, module, modules),
            watching.Plan(workers=workers, is_once=once),
            self.terms(stall=stall, by="watch", is_stopped=stopped, **more),
        )

    def terms(self, *, stall: float | str | None = None, **more: Any) -> "supervising.Terms":  # noqa: ANN401 fields of Terms
        """How runs of this handle are supervised."""
        return supervising.Terms(
            stall_s=limit_of(stall, "stall"),
            key=told_key(self._key),
            environment=self._names,
            pace=self._pace,
            **more,
        )

    def obey(self, agent: Agent[..., Any], errand: Errand, go: Go, pulse: Pulse) -> None:
        """In a child process: carry out what the supervisor orders; the store has the result."""
        args, kwargs = cast("tuple[list[Any], dict[str, Any]]", values.decode(errand.args))
        order = self._order(agent, errand.run, tuple(args), kwargs, errand.told)
        self._lives.carry_out(
            msgspec.structs.replace(
                order, is_restart=go.is_restart, decided=go.decided, pulse=pulse
            )
        )

    def close(self) -> None:
        """Commit what is pending and let go of the store. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._lives.close()
            try:
                if self._retention is not None:
                    collect_when_due(self._opened, self._retention, self._clock.now())
            finally:
                self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce_ex__(self, _protocol: object) -> tuple[object, ...]:
        msg = f"the store at {self.path} is open in this process; open it by its path in the other"
        raise TypeError(msg)

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r}>"

    def _order(
        self,
        agent: Agent[..., Any],
        id_: str | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        pace: Pace | None = None,
    ) -> Order:
        agents.refuse_no_agent("store.run", agent)
        context.refuse_while_read()
        self._refuse_if_closed()
        is_named = id_ is not None
        if id_ is None:
            id_ = self._lives.new_id(agent.name.rpartition(".")[2])
        return Order(
            agent=agent,
            run=run_id(id_),
            args=args,
            kwargs=kwargs,
            pace=pace or Pace(),
            is_named=is_named,
        )

    def _after_fork(self) -> None:
        """In a forked child: the store, its locks and its runs are the parent's."""
        fault = self._opened.abandon()
        self._lives.abandon(fault)


def _forked() -> None:
    context.forget()
    for store in _stores:
        store._after_fork()  # noqa: SLF001 the fork hook is part of the store


os.register_at_fork(after_in_child=_forked)
