"""The inbox: questions, approvals and effects in doubt in one list, answered in one place."""

import getpass
from pathlib import Path

import pytest

import holdfast
from holdfast.model.journal import Declined, Entry, Happened
from holdfast.policy.retention import Retention
from holdfast.store.verify import verify
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Stage, text


@holdfast.effect(approve=True)
def pay(order: str, qty: int) -> str:
    return f"{qty} of {order}"


@holdfast.effect
def mail(to: str) -> str:
    raise ConnectionError(to)


@holdfast.agent
def asker(run: holdfast.Run) -> object:
    return run.ask("Ship it?", ["yes", "no"], expires="1h", default="no")


@holdfast.agent
def payer(run: holdfast.Run) -> object:  # noqa: ARG001 every agent takes it
    return pay("kelp", 3)


@holdfast.agent
def mailer(run: holdfast.Run) -> object:  # noqa: ARG001 every agent takes it
    return mail("ann")


class Odd(Exception):
    """What no rule knows."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def full(stage: Stage, clock: ManualClock) -> Stage:
    """A store in which one of each kind waits."""
    timed = Stage(stage.path, clock)
    for agent in (asker, payer, mailer):
        clock.advance(1)
        assert isinstance(timed.fault(agent, id=agent.name), holdfast.RunStopped)
    return timed


def test_all_that_waits_is_in_one_list_oldest_first(full: Stage) -> None:
    with full.open() as store:
        question, approval, doubt = store.inbox()

    assert ("question", "asker", "Ship it?") == (question.kind, question.run, question.text)
    assert (["yes", "no"], "no") == (question.options, question.default)
    assert question.expires == question.since + 3600
    assert ("approval", "payer") == (approval.kind, approval.run)
    assert {"order": "kelp", "qty": 3} == approval.arguments
    assert ("doubt", "mailer", {"to": "ann"}) == (doubt.kind, doubt.run, doubt.arguments)
    assert ["happened", "not done"] == doubt.options


def test_what_was_answered_is_listed_only_on_demand(full: Stage) -> None:
    with full.open() as store:
        store.answer(store.inbox()[0].id, "yes", by="ann")

        assert ["approval", "doubt"] == [item.kind for item in store.inbox()]
        [told] = [item for item in store.inbox(all=True) if item.kind == "question"]
    assert ("answered", "yes", "ann") == (told.state, told.answer, told.by)


def test_an_item_is_named_by_the_start_of_its_id(full: Stage) -> None:
    with full.open() as store:
        question = store.inbox()[0]
        assert question.id == store.answer(question.id[:8], "yes").id
        with pytest.raises(holdfast.UnknownQuestion, match="nothing with id 'zz'"):
            store.answer("zz", "yes")
        with pytest.raises(holdfast.UnknownQuestion):
            store.answer("", "yes")


def test_what_waits_is_named_by_its_run_too(full: Stage) -> None:
    with full.open() as store:
        assert "question" == store.answer("asker", "yes").kind
        assert "approval" == store.approve("payer").kind
        assert ["doubt"] == [item.kind for item in store.inbox()]
        with pytest.raises(holdfast.AlreadyAnswered, match="was answered by"):
            store.answer("asker", "no")


def test_the_id_of_a_run_never_means_an_item_of_another_one(
    full: Stage, clock: ManualClock
) -> None:
    with full.open() as store:
        question, approval, _ = store.inbox()
    same = approval.id[:4]
    assert isinstance(full.fault(asker, id=same), holdfast.Waiting)
    clock.advance(3600)

    with full.open() as store:
        with pytest.raises(holdfast.AlreadyAnswered, match="expired"):
            store.answer(same, "yes")
        with pytest.raises(holdfast.AlreadyAnswered, match="expired"):
            store.answer(question.id, "yes")
        assert "open" == store.inbox()[1].state

    @holdfast.agent
    def quiet(run: holdfast.Run) -> str:
        return run.id

    quieter = approval.id[:3]
    full.live(quiet, id=quieter)
    with full.open() as store, pytest.raises(holdfast.UnknownQuestion, match="nothing waits in"):
        store.approve(quieter)


def test_whoever_answers_is_told_how_the_item_stands_now(full: Stage) -> None:
    with full.open() as store:
        said = store.answer("asker", "yes", by="ann")
        allowed = store.approve("payer", by="bob", note="go on")
        settled = store.answer("mailer", "not done", by="cay")

        told = {item.id: item for item in store.inbox(all=True)}
    assert ("answered", "yes", "ann") == (said.state, said.answer, said.by)
    assert ("approved", "bob", "go on") == (allowed.state, allowed.by, allowed.note)
    assert ("answered", "not done", "cay") == (settled.state, settled.answer, settled.by)
    for each in (said, allowed, settled):
        assert (each.state, each.answer, each.by, each.at) == (
            told[each.id].state,
            told[each.id].answer,
            told[each.id].by,
            told[each.id].at,
        )


def test_an_ambiguous_start_is_refused(stage: Stage) -> None:
    for n in range(17):
        assert isinstance(stage.fault(asker, id=f"run-{n}"), holdfast.Waiting)
    with stage.open() as store:
        starts = [item.id[0] for item in store.inbox()]
        alike = next(start for start in starts if starts.count(start) > 1)

        with pytest.raises(holdfast.UnknownQuestion, match="more than one thing is meant"):
            store.answer(alike, "yes")


def test_an_effect_in_doubt_is_settled_from_the_inbox_and_by_whom_is_recorded(full: Stage) -> None:
    with full.open() as store:
        doubt = store.inbox()[-1]
        store.answer(doubt.id, "happened", outcome="sent", by="ann")
        for name in (doubt.id, doubt.id[:8], "mailer"):
            with pytest.raises(holdfast.AlreadyAnswered, match="settled as happened by ann at"):
                store.answer(name, "not done", by="bob")
        with pytest.raises(holdfast.AlreadyAnswered, match="settled as happened by ann"):
            store.resolve("mailer", doubt.id, happened=False)

    assert "sent" == full.live(mailer, id="mailer")
    [told] = [entry for entry in full.journal("mailer") if isinstance(entry, Happened)]
    assert ("person", "ann") == (told.how, told.by)


def test_an_effect_that_was_not_done_is_done_anew(full: Stage) -> None:
    with full.open() as store:
        store.answer(store.inbox()[-1].id, "not done", by="ann")

    assert isinstance(full.fault(mailer, id="mailer"), holdfast.InDoubt)
    [told] = [entry for entry in full.journal("mailer") if isinstance(entry, Declined)]
    assert "ann" == told.by


def test_whoever_does_not_say_who_they_are_is_the_user_of_the_system(full: Stage) -> None:
    with full.open() as store:
        store.answer(store.inbox()[0].id, "yes")

        [told] = [item for item in store.inbox(all=True) if item.kind == "question"]
    assert getpass.getuser() == told.by


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda store, items: store.approve(items[0].id), "is a question: answer 'yes' or 'no'"),
        (lambda store, items: store.reject(items[0].id), "is a question: "),
        (lambda store, items: store.answer(items[1].id, "yes"), "is an approval: approve or"),
        (lambda store, items: store.approve(items[2].id), "is a doubt: answer 'happened' or"),
        (lambda store, items: store.answer(items[2].id, "perhaps"), "it takes 'happened'"),
        (
            lambda store, items: store.answer(items[2].id, "not done", outcome=1),
            "only an effect that happened has an outcome",
        ),
        (lambda store, items: store.answer(items[0].id, "yes", by=" "), "a name is printable"),
        (lambda store, items: store.answer(items[0].id, "yes", by="x" * 201), "a name is"),
    ],
)
def test_a_word_that_does_not_fit_is_refused_and_nothing_changes(
    full: Stage, act: object, why: str
) -> None:
    with full.open() as store:
        before = store.inbox()
        with pytest.raises(holdfast.UsageError, match=why):
            act(store, before)  # type: ignore[operator]  # one of the above

        assert before == store.inbox()


def test_an_expired_question_is_no_longer_open(full: Stage, clock: ManualClock) -> None:
    clock.advance(3600)

    with full.open() as store:
        assert ["expired", "open", "open"] == [item.state for item in store.inbox()]
    assert "no" == full.live(asker, id="asker")
    with full.open() as store:
        assert ["approval", "doubt"] == [item.kind for item in store.inbox()]


def test_a_run_that_nothing_may_recover_is_listed_until_it_goes_on_or_is_dismissed(
    stage: Stage,
) -> None:
    is_mended: list[bool] = []

    @holdfast.agent
    def odd(run: holdfast.Run) -> str:
        if not is_mended:
            raise Odd("never seen")
        return run.id

    for id_ in ("one", "two"):
        assert isinstance(stage.fault(odd, id=id_), holdfast.RunFailed)
    with stage.open() as store:
        one, two = store.inbox()
        assert ("escalation", "one", ["dismiss"]) == (one.kind, one.run, one.options)
        assert "Odd: never seen" in one.text
        store.answer(two.id, "dismiss", by="ann")
        assert ["one"] == [item.run for item in store.inbox()]
        assert ["answered by ann"] == [
            f"{item.state} by {item.by}" for item in store.inbox(all=True) if item.by
        ]

        is_mended.append(True)
        assert "one" == store.restart("one", agent=odd)
        assert [] == store.inbox()


def test_a_decision_that_was_committed_before_the_end_is_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    @holdfast.agent
    def odd(run: holdfast.Run) -> str:
        session = run._session  # noqa: SLF001 as slow as a busy machine makes it
        pend = session.pend

        def pend_and_flush(*entries: Entry) -> None:
            pend(*entries)
            session.flush()

        monkeypatch.setattr(session, "pend", pend_and_flush)
        raise Odd

    assert isinstance(stage.fault(odd), holdfast.RunFailed)
    assert ["Started", "Decided", "Failed"] == stage.kinds()
    with stage.open() as store:
        assert ["escalation"] == [item.kind for item in store.inbox()]


def test_an_effect_that_the_fence_stopped_is_allowed_from_the_inbox(stage: Stage) -> None:
    sums = [100]

    @holdfast.effect(key="order")
    def pay(order: str, usd: int) -> str:
        return f"{usd} for {order}"

    @holdfast.agent
    def payer(run: holdfast.Run) -> str:
        for turn in run.turns():
            if turn == 1:
                return pay("A-17", sums[0])
        return ""

    assert "100 for A-17" == stage.live(payer)
    sums[0] = 50
    with stage.open() as store:
        store.fork(RUN, at=f"{RUN}@0", new_id="fork")
    assert isinstance(stage.fault(payer, id="fork"), holdfast.Blocked)
    with stage.open() as store:
        [item] = store.inbox()
        assert ("block", "fork", ["allow"]) == (item.kind, item.run, item.options)
        store.answer("fork", "allow", by="ann")

    assert "50 for A-17" == stage.live(payer, id="fork")
    with stage.open() as store:
        assert [] == store.inbox()


def test_a_large_answer_survives_garbage_collection(stage: Stage) -> None:
    @holdfast.agent
    def reader(run: holdfast.Run) -> int:
        return len(run.ask("Read?"))

    assert isinstance(stage.fault(reader), holdfast.Waiting)
    with stage.open() as store:
        store.answer(RUN, text("large", 100_000))
        store.gc(Retention(last=1))

    assert 100_000 == stage.live(reader)


def test_an_encrypted_store_keeps_words_and_spendings_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_KEY", "aa" * 32)

    @holdfast.agent
    def spender(run: holdfast.Run) -> list[object]:
        spent = [run.budget("secret-budget", 100).spend(1, "x" * 900) for _ in range(60)]
        return [spent[-1], run.ask("secret-question")]

    def live() -> object:
        with holdfast.open(tmp_path / "store", key="env:STORE_KEY") as store:
            try:
                return store.run(spender, id=RUN)
            except holdfast.Waiting:
                return store.answer(RUN, "secret-answer").kind

    assert "question" == live()
    assert [40, "secret-answer"] == live()
    with holdfast.open(tmp_path / "store", key="env:STORE_KEY") as store:
        assert ["answered"] == [item.state for item in store.inbox(all=True)]
        assert [] == verify(store._opened, deep=True).findings  # noqa: SLF001 the store itself
    written = b"".join(p.read_bytes() for p in (tmp_path / "store").rglob("*") if p.is_file())
    assert b"secret" not in written


def test_a_finished_run_waits_for_nobody(stage: Stage) -> None:
    @holdfast.agent
    def done(run: holdfast.Run) -> str:
        return run.id

    assert RUN == stage.live(done)
    with stage.open() as store:
        assert [] == store.inbox(all=True)
