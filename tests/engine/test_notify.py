"""People are told of what waits: signed, again until it arrived, once; never in a run's way."""

import base64
import hashlib
import hmac
import json
import logging
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import holdfast
from holdfast.engine import deliver
from holdfast.engine.notify import Told
from holdfast.model.ledger import Notified
from holdfast.store.ledger import Ledger
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Stage

KEY = "HOOK_KEY"


class Hook:
    """A real server on this machine that keeps what was posted, and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                headers = {name.lower(): value for name, value in self.headers.items()}
                hook.got.append((headers, self.rfile.read(size)))
                self.send_response(hook.statuses.pop(0) if hook.statuses else 204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Be silent."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?of=store"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@holdfast.agent
def asker(run: holdfast.Run) -> object:
    return run.ask("Ship it?", ["yes", "no"], expires="1h")


@holdfast.agent
async def aasker(run: holdfast.Run) -> object:
    return run.ask("Ship it?")


def wait(
    stage: Stage,
    notify: holdfast.Notify | None,
    clock: ManualClock | None = None,
    agent: holdfast.Agent[..., object] = asker,
) -> str:
    """Let a run begin to wait, or find it waiting; gives the id of its question."""
    with holdfast.open(stage.path, notify=notify, clock=clock) as store:
        with pytest.raises(holdfast.Waiting) as waiting:
            store.run(agent, id=RUN)
        return waiting.value.question


def told(stage: Stage, notify: holdfast.Notify, clock: ManualClock) -> list[str | None]:
    with holdfast.open(stage.path, notify=notify, clock=clock) as store:
        return [each.why for each in store.notify()]


def test_a_run_that_begins_to_wait_tells_it_signed(
    stage: Stage, hook: Hook, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "s3cret")

    id_ = wait(stage, holdfast.Notify(webhook=hook.url, key=f"env:{KEY}"), clock)

    [(headers, body)] = hook.got
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    made = hmac.new(b"s3cret", signed, hashlib.sha256).digest()
    message = json.loads(body)
    assert f"v1,{base64.b64encode(made).decode()}" == headers["webhook-signature"]
    assert "1750000000" == headers["webhook-timestamp"]
    assert (id_, "question", RUN) == tuple(message["data"][name] for name in ("id", "kind", "run"))
    assert ("Ship it?", ["yes", "no"]) == (message["data"]["question"], message["data"]["options"])
    assert f"holdfast inbox show {id_}" == message["data"]["show"]
    assert headers["webhook-id"] == message["delivery"]
    assert b"s3cret" not in b"".join(each.read_bytes() for each in stage.path.glob("store.db*"))


def test_a_key_as_services_hand_it_out_is_base64() -> None:
    plain = deliver.sign(b"{}", id_="a", at=1, key="whsec_" + base64.b64encode(b"key").decode())

    assert deliver.sign(b"{}", id_="a", at=1, key="key") == plain
    with pytest.raises(deliver.Undelivered, match="no base64"):
        deliver.sign(b"{}", id_="a", at=1, key="whsec_!")


def test_what_arrived_is_not_sent_again(stage: Stage, hook: Hook, clock: ManualClock) -> None:
    notify = holdfast.Notify(webhook=hook.url)
    wait(stage, notify, clock)
    wait(stage, notify, clock)

    assert [] == told(stage, notify, clock)
    assert 1 == len(hook.got)


def test_what_fails_is_tried_again_under_the_same_id(
    stage: Stage, hook: Hook, clock: ManualClock
) -> None:
    hook.statuses = [503, 302]

    wait(stage, holdfast.Notify(webhook=hook.url), clock)

    assert 3 == len(hook.got)
    assert 1 == len({headers["webhook-id"] for headers, _ in hook.got})
    assert 2 == len([each for each in clock.slept if each <= 0.4])


def test_a_webhook_that_is_down_stops_nothing_and_is_made_up_for(
    stage: Stage, hook: Hook, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    hook.statuses = [500] * 3
    notify = holdfast.Notify(webhook=hook.url)

    with caplog.at_level(logging.WARNING, "holdfast"):
        wait(stage, notify, clock)

    assert "it answered with status 500" in caplog.text
    assert "`holdfast inbox notify` tries again" in caplog.text
    assert [None] == told(stage, notify, clock)
    assert 4 == len(hook.got)
    assert 1 == len({headers["webhook-id"] for headers, _ in hook.got})


def test_a_webhook_that_nobody_serves_says_why(stage: Stage, clock: ManualClock) -> None:
    notify = holdfast.Notify(webhook="http://127.0.0.1:9/")
    wait(stage, notify, clock)

    [why] = told(stage, notify, clock)

    assert "ConnectionRefusedError" in (why or "")


def test_a_command_gets_the_message_on_its_standard_input(
    stage: Stage, tmp_path: Path, clock: ManualClock
) -> None:
    program = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    command = [sys.executable, "-c", program, str(tmp_path / "said")]

    id_ = wait(stage, holdfast.Notify(command=command), clock)

    message = json.loads((tmp_path / "said").read_text(encoding="utf-8"))
    assert (id_, "inbox.waiting") == (message["data"]["id"], message["type"])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (f"{sys.executable} -c \"import sys; sys.exit('no bell')\"", "status 1: no bell"),
        ("/no/such/bell", "FileNotFoundError"),
    ],
)
def test_a_command_that_fails_is_tried_again_later(
    stage: Stage, clock: ManualClock, command: str, why: str
) -> None:
    notify = holdfast.Notify(command=command)
    wait(stage, notify, clock)

    [said] = told(stage, notify, clock)

    assert why in (said or "")


def test_both_are_told_and_each_by_itself(stage: Stage, hook: Hook, clock: ManualClock) -> None:
    notify = holdfast.Notify(webhook=hook.url, command="/no/such/bell")
    wait(stage, notify, clock)

    assert ["command"] == [
        each.how for each in _again(stage, notify, clock) if each.why is not None
    ]
    assert 1 == len(hook.got)


def _again(stage: Stage, notify: holdfast.Notify, clock: ManualClock) -> list[Told]:
    with holdfast.open(stage.path, notify=notify, clock=clock) as store:
        return store.notify()


def test_an_async_agent_tells_too(stage: Stage, hook: Hook) -> None:
    wait(stage, holdfast.Notify(webhook=hook.url), agent=aasker)

    assert 1 == len(hook.got)


def test_an_effect_in_doubt_is_told(stage: Stage, hook: Hook) -> None:
    @holdfast.effect
    def mail(to: str) -> None:
        raise ConnectionError(to)

    @holdfast.agent
    def mailer(run: holdfast.Run) -> None:  # noqa: ARG001 every agent takes it
        mail("ann")

    notify = holdfast.Notify(webhook=hook.url)
    with holdfast.open(stage.path, notify=notify) as store, pytest.raises(holdfast.InDoubt):
        store.run(mailer, id=RUN)

    [(_, body)] = hook.got
    assert "doubt" == json.loads(body)["data"]["kind"]


def test_what_was_answered_or_has_expired_is_told_to_nobody(
    stage: Stage, hook: Hook, clock: ManualClock
) -> None:
    wait(stage, None, clock)
    clock.advance(3600)

    assert [] == told(stage, holdfast.Notify(webhook=hook.url), clock)
    assert [] == hook.got


def test_the_delivery_is_recorded_in_the_ledger(
    stage: Stage, hook: Hook, clock: ManualClock
) -> None:
    hook.statuses = [500]
    wait(stage, holdfast.Notify(webhook=hook.url), clock)

    with stage.open() as store:
        opened = store._opened  # noqa: SLF001 there is no other way to see it
        run = opened.reader.find(RUN)
        assert run is not None
        deliveries = Ledger(opened.committer, opened.reader, run).read().deliveries
        branch = opened.reader.ledger(run)
        assert branch is not None
        [entry] = opened.reader.row(opened.reader.end(branch.no)).row.entries
    assert isinstance(entry, Notified)
    assert {hook.got[0][0]["webhook-id"]} == {entry.id} == deliveries
    assert ("webhook", 2) == (entry.how, entry.attempts)


def test_the_environment_says_who_is_told(
    stage: Stage, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_NOTIFY_WEBHOOK", hook.url)

    wait(stage, None)

    assert 1 == len(hook.got)


def test_without_anybody_to_tell_it_is_said(stage: Stage) -> None:
    with stage.open() as store, pytest.raises(holdfast.UsageError, match="nobody is to be told"):
        store.notify()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"webhook": "ftp://example.com"}, "http or https"),
        ({"webhook": "http://user:word@example.com"}, "without a user name"),
        ({"command": " "}, "at least one word"),
        ({"webhook": "http://example.com", "key": "s3cret!"}, "env:NAME"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        holdfast.Notify(**options)

    assert "s3cret" not in str(error.value)


def test_a_key_that_is_not_set_is_refused_when_the_store_is_opened(stage: Stage) -> None:
    notify = holdfast.Notify(webhook="http://example.com", key="env:NO_SUCH_KEY")

    with pytest.raises(holdfast.UsageError, match=r"\$NO_SUCH_KEY, which is not set"):
        holdfast.open(stage.path, notify=notify)


def test_a_wrong_variable_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NOTIFY_WEBHOOK", "example.com")

    with pytest.raises(holdfast.UsageError, match="HOLDFAST_NOTIFY_"):
        stage.open()


@pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")  # of a plugin of Apprise
def test_people_are_told_through_apprise_once(stage: Stage, hook: Hook, clock: ManualClock) -> None:
    address = hook.url.replace("http://", "json://")
    hook.statuses[:] = [500]

    id_ = wait(stage, holdfast.Notify(apprise=[address]), clock)

    assert 2 == len(hook.got), "tried again, then taken"
    message = json.loads(hook.got[-1][1])
    assert f"run {RUN} waits: question" == message["title"]
    assert message["message"].startswith(f"Ship it? (yes, no)\nholdfast inbox show {id_}\n")
    assert hook.got[0][1] == hook.got[1][1], "each attempt names the same delivery"
    assert [] == told(stage, holdfast.Notify(apprise=address), clock)


@pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")  # of a plugin of Apprise
def test_what_apprise_cannot_send_is_said_without_the_address(
    stage: Stage, hook: Hook, clock: ManualClock
) -> None:
    wait(stage, None, clock)
    hook.statuses[:] = [500] * 3
    address = hook.url.replace("http://", "json://ann:s3cret@")

    [refused] = told(stage, holdfast.Notify(apprise=address), clock)
    [unknown] = told(stage, holdfast.Notify(apprise="nowhere://s3cret"), clock)

    assert refused is not None
    assert refused.startswith("Apprise could not send it: ")
    assert "s3cret" not in refused
    assert "Apprise knows no service for address 1 (see its list of URLs)" == unknown


def test_without_apprise_its_addresses_are_refused_with_what_to_install(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)

    with pytest.raises(holdfast.UsageError, match=r"pip install 'holdfast\[apprise\]'"):
        holdfast.open(stage.path, notify=holdfast.Notify(apprise="json://localhost"))


@pytest.mark.parametrize("wrong", ["", "ann@example.com", ["json://localhost", "x"]])
def test_what_is_no_address_of_apprise_is_refused_at_once(wrong: str | list[str]) -> None:
    with pytest.raises(ValueError, match="an address of Apprise is a URL"):
        holdfast.Notify(apprise=wrong)


def test_a_watch_tells_what_a_dead_process_did_not_and_again_until_it_arrives(
    stage: Stage, hook: Hook
) -> None:
    wait(stage, None)  # It was not told, as by a process that died right after its last commit.
    hook.statuses[:] = [503] * 3

    with holdfast.open(stage.path, notify=holdfast.Notify(webhook=hook.url)) as store:
        for _ in range(3):
            assert {} == store.watch(once=True)

    assert 4 <= len(hook.got) <= 5, "three refused, one taken, and never again"
    assert 1 == len({headers["webhook-id"] for headers, _ in hook.got})
    with stage.open() as store:
        opened = store._opened  # noqa: SLF001 there is no other way to see it
        run = opened.reader.find(RUN)
        assert run is not None
        assert 1 == len(Ledger(opened.committer, opened.reader, run).read().deliveries)
