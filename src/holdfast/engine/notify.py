"""People are told of what waits in the inbox: after the commit, again until it arrived, once.

Whatever goes wrong is logged and never stops a run; `holdfast inbox notify` tries again.
"""

import datetime as dt
import functools
import hashlib
import importlib.util
import json
import random
import shlex
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.clock import Clock
from holdfast.engine.inbox import Inbox
from holdfast.engine.item import Item
from holdfast.engine.logs import log
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.ledger import Notified
from holdfast.ondemand import OnDemand
from holdfast.policy.decide import backoff_s
from holdfast.policy.standing import Standing
from holdfast.store.ledger import Ledger
from holdfast.store.open import Opened

if TYPE_CHECKING:
    from holdfast.engine import announce, deliver
else:
    announce = OnDemand("holdfast.engine.announce")  # It loads Apprise.
    deliver = OnDemand("holdfast.engine.deliver")  # It loads the network.

ATTEMPTS = 3
BASE_S, CAP_S = 0.2, 2.0
WEBHOOK, COMMAND, APPRISE, KEY = (
    f"HOLDFAST_NOTIFY_{name}" for name in ("WEBHOOK", "COMMAND", "APPRISE", "KEY")
)
_ENV = "env:"


class Notify(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told of what waits for a person: a webhook, a command, addresses of Apprise, or all.

    `command` is a list of words, or a text that is split as a shell would, without a shell; it
    gets the message as JSON on its standard input. `key` names the variable that holds the key
    with which webhooks are signed, as `env:NAME`. `apprise` are addresses as Apprise takes them,
    such as `mailto://…` or `slack://…`: a list, or a text with spaces between; it needs
    `pip install holdfast[apprise]`.
    """

    webhook: str | None = None
    command: str | Sequence[str] | None = None
    key: str | None = None
    apprise: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, at the line where it was written."""
        if self.webhook is not None:
            parts = urllib.parse.urlsplit(self.webhook)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
                msg = "a webhook is an http or https address without a user name in it"
                raise ValueError(msg)
        if self.command is not None and not self.words:
            msg = "a command is at least one word"
            raise ValueError(msg)
        if self.apprise is not None and not all("://" in each for each in self.addresses or "-"):
            msg = "an address of Apprise is a URL such as mailto://… or slack://…"
            raise ValueError(msg)
        if self.key is not None and not self.key.removeprefix(_ENV).isidentifier():
            msg = "the key of a webhook is named as env:NAME, the variable that holds it"
            raise ValueError(msg)

    @property
    def words(self) -> list[str]:
        """The command as words."""
        command = self.command or ()
        return shlex.split(command) if isinstance(command, str) else list(command)

    @property
    def addresses(self) -> list[str]:
        """The addresses of Apprise."""
        given = self.apprise or ()
        return given.split() if isinstance(given, str) else list(given)


def from_environment(environ: Mapping[str, str]) -> Notify | None:
    """What `$HOLDFAST_NOTIFY_WEBHOOK`, `…_COMMAND`, `…_APPRISE` and `…_KEY` say; None: nobody."""
    webhook, command, apprise, key = (
        environ.get(name) or None for name in (WEBHOOK, COMMAND, APPRISE, KEY)
    )
    if webhook is None and command is None and apprise is None:
        return None
    try:
        return Notify(webhook=webhook, command=command, apprise=apprise, key=key)
    except ValueError as error:
        raise UsageError(f"$HOLDFAST_NOTIFY_…: {error}") from None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What came of telling people of an item; `why` it did not arrive, or None if it did."""

    item: Item
    how: str
    delivery: str
    why: str | None = None


class Notifier:
    """Tells people of the items of one store."""

    def __init__(
        self,
        opened: Opened,
        clock: Clock,
        chance: random.Random,
        notify: Notify,
        environ: Mapping[str, str],
    ) -> None:
        self._opened, self._clock, self._chance, self._notify = opened, clock, chance, notify
        self._key: str | None = None
        if notify.apprise is not None and importlib.util.find_spec("apprise") is None:
            msg = "Apprise is not installed: pip install 'holdfast[apprise]', or do without it"
            raise UsageError(msg)
        if notify.key is not None:
            name = notify.key.removeprefix(_ENV)
            self._key = environ.get(name)
            if not self._key:
                raise UsageError(f"webhooks are to be signed with ${name}, which is not set")

    def tell_of(self, run: str) -> None:
        """Tell people of what waits in a run; what fails is logged."""
        try:
            found = self._opened.reader.find(run)
            items = [] if found is None else Inbox(self._opened, self._clock).of(found)
            for told in self.tell(items):
                if told.why is not None:
                    log.warning(
                        "nobody was told by %s that run %s waits (%s); "
                        "`holdfast inbox notify` tries again",
                        told.how,
                        run,
                        told.why,
                    )
        except HoldfastError as error:
            log.warning("nobody was told that run %s waits: %s", run, error)

    def tell(self, items: Iterable[Item]) -> Iterator[Told]:
        """Tell people of each open item that they were not told of yet."""
        for item in items:
            run = self._opened.reader.find(item.run)
            if item.state != "open" or run is None:
                continue
            ledger = Ledger(self._opened.committer, self._opened.reader, run)
            for how in self._ways():
                id_ = _delivery(item, how)
                if id_ not in ledger.read().deliveries:
                    yield self._deliver(item, how, id_, ledger)

    def _ways(self) -> Iterator[str]:
        if self._notify.webhook is not None:
            yield "webhook"
        if self._notify.command is not None:
            yield "command"
        if self._notify.apprise is not None:
            yield "apprise"

    def _deliver(self, item: Item, how: str, id_: str, ledger: Ledger) -> Told:
        """Try a few times; once it arrived, that is recorded, and it is not sent again."""
        why = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._send(item, how, id_)
            except deliver.Undelivered as error:
                why = str(error)
                if attempt < ATTEMPTS:
                    chance = self._chance.random()
                    self._clock.sleep(backoff_s(attempt, BASE_S, CAP_S, chance))
                continue
            now = self._clock.now()
            done = Notified(id_, item.id, item.run, how, attempt, now)
            ledger.add(now, functools.partial(_unless_known, done))
            return Told(item=item, how=how, delivery=id_)
        return Told(item=item, how=how, delivery=id_, why=why)

    def _send(self, item: Item, how: str, id_: str) -> None:
        now, body = self._clock.now(), message(item, id_)
        if how == "webhook":
            assert self._notify.webhook is not None
            deliver.post(self._notify.webhook, body, id_=id_, at=int(now), key=self._key)
        elif how == "command":
            deliver.call(self._notify.words, body)
        else:
            announce.announce(self._notify.addresses, *words(item, id_))


def message(item: Item, delivery: str) -> bytes:
    """What people are told, as JSON: enough to decide where to look, and no arguments in full."""
    data = {
        "id": item.id,
        "kind": item.kind,
        "run": item.run,
        "question": item.text,
        "options": item.options,
        "since": _moment(item.since),
        "expires": None if item.expires is None else _moment(item.expires),
        "show": f"holdfast inbox show {item.id}",
    }
    whole = {"type": "inbox.waiting", "delivery": delivery, "data": data}
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "backslashreplace")


def words(item: Item, delivery: str) -> tuple[str, str]:
    """What people are told, as title and text; the delivery is the same for every attempt."""
    options = f" ({', '.join(item.options)})" if item.options else ""
    text = f"{item.text}{options}\nholdfast inbox show {item.id}\ndelivery {delivery}"
    return f"run {item.run} waits: {item.kind}", text


def _delivery(item: Item, how: str) -> str:
    """The same for every attempt to tell the same people of the same thing."""
    named = repr((item.run, item.id, item.since, how)).encode("utf-8", "backslashreplace")
    return hashlib.sha256(b"delivery" + named).hexdigest()[:32]


def _unless_known(done: Notified, standing: Standing) -> Notified | None:
    return None if done.id in standing.deliveries else done


def _moment(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()
