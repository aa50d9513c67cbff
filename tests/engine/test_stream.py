"""A stream is recorded as it arrives, continued from what is recorded, and final at its end."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.engine.stream import SPILL_S
from holdfast.model.journal import Raised, Streamed
from holdfast.policy.usage import total
from holdfast.report.facts import facts_of
from holdfast.report.timeline import timeline
from holdfast.store.open import open_store
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, World, moments

WORDS = [f"w{n} " for n in range(10)]


class Model:
    """Yields words; dies before the n-th, and counts what was really generated."""

    def __init__(self) -> None:
        self.generated: list[str] = []
        self.calls: list[int] = []
        self.dies_at: int | None = None
        self.raises_at: int | None = None

    def go_on(self, prompt: str, prefix: Sequence[str] = ()) -> Iterator[str]:
        assert prompt == "hello"
        yield from self._from(len(prefix))

    def anew(self, prompt: str) -> Iterator[str]:
        assert prompt == "hello"
        yield from self._from(0)

    async def ago_on(self, prompt: str, prefix: Sequence[str] = ()) -> AsyncIterator[str]:
        for word in self.go_on(prompt, prefix):
            await asyncio.sleep(0)
            yield word

    def _from(self, start: int) -> Iterator[str]:
        self.calls.append(start)
        for at in range(start, len(WORDS)):
            if at == self.dies_at:
                self.dies_at = None
                raise Crash
            if at == self.raises_at:
                self.raises_at = None
                raise ConnectionResetError
            self.generated.append(WORDS[at])
            yield WORDS[at]


@pytest.fixture
def model() -> Model:
    return Model()


def reader(fn: Any, every: int = 3, **how: Any) -> holdfast.Agent[..., Any]:  # noqa: ANN401 any stream
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return "".join(run.stream(fn, "hello", every=every, name="chat", **how))

    return agent


def parts(stage: Stage) -> list[tuple[int, int, str]]:
    """Of each record of a stream: the attempt, how many items it holds, how it is over."""
    return [(e.attempt, e.count, e.how) for e in stage.journal() if isinstance(e, Streamed)]


def test_records_reach_the_journal_while_the_stream_is_open(stage: Stage, model: Model) -> None:
    seen: list[int] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        words = []
        for word in run.stream(model.anew, "hello", every=4):
            words.append(word)
            seen.append(sum(count for _, count, _ in parts(stage)))
        return words

    assert WORDS == stage.live(agent)
    assert [0, 0, 0, 4, 4, 4, 4, 8, 8, 8] == seen
    assert [(1, 4, ""), (1, 4, ""), (1, 2, "ended")] == parts(stage)


@pytest.mark.parametrize("dies_at", range(10))
def test_a_stream_goes_on_from_its_recorded_prefix(
    stage: Stage, model: Model, dies_at: int
) -> None:
    model.dies_at = dies_at
    stage.die(reader(model.go_on))

    assert "".join(WORDS) == stage.live(reader(model.go_on))

    # An error leaves time to record what has arrived.
    assert [0, dies_at] == model.calls
    assert WORDS == model.generated


def test_one_that_takes_no_prefix_is_called_anew_and_the_partial_answer_is_kept(
    stage: Stage, model: Model
) -> None:
    model.dies_at = 8
    stage.die(reader(model.anew))

    assert "".join(WORDS) == stage.live(reader(model.anew))

    assert [0, 0] == model.calls
    first, second = [(1, 3, ""), (1, 3, ""), (1, 2, "")], [(2, 3, "")] * 3
    assert [*first, *second, (2, 1, "ended")] == parts(stage)


def test_a_stream_that_is_over_is_replayed_without_a_call(stage: Stage, model: Model) -> None:
    lives: list[list[str]] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        lives.append(list(run.stream(model.anew, "hello", every=3)))
        if len(lives) == 1:
            raise Crash

    stage.die(agent)
    stage.live(agent)

    assert [WORDS, WORDS] == lives
    assert [0] == model.calls


def test_killed_after_each_record_nothing_recorded_is_generated_again(
    stage: Stage, model: Model
) -> None:
    taken = list(moments(stage, reader(model.go_on, every=1), outside=lambda: len(model.generated)))

    for name, moment, before in taken:
        survivor = Model()
        assert "".join(WORDS) == moment.live(reader(survivor.go_on, every=1))
        again = before + len(survivor.generated) - len(WORDS)
        assert 0 <= again <= 1, name
    names = [name for name, _, _ in taken]
    assert len(WORDS) == names.count("stream.recorded")
    assert 1 == names.count("stream.ended")


@pytest.mark.parametrize("retry", [None, holdfast.Retry(base=0)])
def test_what_the_agent_changes_in_an_item_is_not_in_the_record_nor_in_the_prefix(
    stage: Stage, retry: holdfast.Retry | None
) -> None:
    faults = [ConnectionResetError, Crash] if retry else [Crash]

    def count(prefix: Sequence[dict[str, int]] = ()) -> Iterator[dict[str, int]]:
        assert [{"n": at} for at in range(len(prefix))] == list(prefix)
        for at in range(len(prefix), 6):
            if at >= 4 and faults:
                raise faults.pop(0)
            yield {"n": at}

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[int]:
        got = []
        for item in run.stream(count, every=3, retry=retry):
            item["n"] += 100
            got.append(item["n"])
        return got

    stage.die(agent)

    assert list(range(100, 106)) == stage.live(agent)
    with stage.open() as store:
        assert [{"n": at} for at in range(6)] == list(store.stream(RUN))


def test_an_asynchronous_stream_goes_on_alike(stage: Stage, model: Model) -> None:
    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        words = []
        async for word in run.stream(model.ago_on, "hello", every=3):
            words.append(word)  # noqa: PERF401 the loop is what is tried
        return "".join(words)

    model.dies_at = 7
    stage.die(agent)

    assert "".join(WORDS) == stage.live(agent)
    assert [0, 7] == model.calls


def test_a_token_is_what_tokens_counts(stage: Stage) -> None:
    def chunks() -> Iterator[dict[str, Any]]:
        for size in (5, 5, 1, 9):
            yield {"text": "x" * size, "n": size}

    @holdfast.agent
    def agent(run: holdfast.Run) -> int | None:
        for _ in run.stream(chunks, every=10, tokens=lambda chunk: chunk["n"]):
            pass
        return run.usage().tokens_out

    assert 20 == stage.live(agent)
    assert [(1, 2, ""), (1, 2, ""), (1, 0, "ended")] == parts(stage)


def test_what_the_agent_read_stands_before_what_it_does_next(
    stage: Stage, model: Model, world: World
) -> None:
    @holdfast.step
    def look(word: str) -> str:
        return world.ask(word)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [look(word) for word in run.stream(model.go_on, "hello", every=1000)]

    world.dies_at = WORDS[6]
    stage.die(agent)
    world.dies_at = None

    assert [f"{word}#{1 + (at == 6)}" for at, word in enumerate(WORDS)] == stage.live(agent)
    assert [0, 7] == model.calls


def test_no_effect_is_done_on_a_partial_answer(stage: Stage, model: Model) -> None:
    done: list[str] = []

    @holdfast.effect
    def pay(word: str) -> None:
        done.append(word)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for word in run.stream(model.anew, "hello"):
            pay(word)

    error = stage.fault(agent)

    assert isinstance(error, holdfast.StreamOpen)
    assert "effect test_no" in str(error)
    assert [] == done


def test_no_child_is_begun_on_a_partial_answer(stage: Stage, model: Model) -> None:
    done: list[str] = []

    @holdfast.effect
    def pay(word: str) -> None:
        done.append(word)

    @holdfast.agent
    def payer(_run: holdfast.Run, word: str) -> None:
        pay(word)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for word in run.stream(model.anew, "hello"):
            with pytest.raises(holdfast.StreamOpen, match=r"^child .*payer was called while"):
                run.child(payer, word)
            with pytest.raises(holdfast.StreamOpen):
                run.children([(payer, word)])
        run.child(payer, word)

    stage.live(agent)

    assert [WORDS[-1]] == done


@pytest.mark.parametrize("is_child", [False, True])
def test_what_was_refused_on_a_partial_answer_is_refused_by_the_replay_too(
    stage: Stage, model: Model, world: World, is_child: bool
) -> None:
    done: list[str] = []

    @holdfast.effect
    def pay(word: str) -> None:
        done.append(word)

    @holdfast.agent
    def payer(_run: holdfast.Run, word: str) -> None:
        pay(word)

    @holdfast.step
    def look() -> None:
        world.ask("look")

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        refused = 0
        for word in run.stream(model.anew, "hello"):
            try:
                run.child(payer, word) if is_child else pay(word)
            except holdfast.StreamOpen:
                refused += 1
        run.child(payer, word) if is_child else pay(word)
        look()
        return refused

    world.dies_at = "look"
    stage.die(agent)
    world.dies_at = None

    assert len(WORDS) == stage.live(agent)
    assert [WORDS[-1]] == done


@pytest.mark.parametrize("how", ["task", "gather", "thread"])
def test_what_a_reader_has_others_do_with_a_partial_answer_is_refused_too(
    stage: Stage, how: str
) -> None:
    done: list[str] = []

    @holdfast.effect
    def pay(word: str) -> None:
        done.append(word)

    @holdfast.effect
    async def apay(word: str) -> None:
        done.append(word)

    async def words() -> AsyncIterator[str]:
        for word in WORDS:
            yield word

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        others: dict[str, Callable[[str], Awaitable[object]]] = {
            "task": lambda word: asyncio.create_task(apay(word)),
            "gather": lambda word: asyncio.gather(apay(word)),
            "thread": lambda word: asyncio.to_thread(pay, word),
        }
        before = asyncio.create_task(apay("before"))  # It has heard of nothing.
        async for word in run.stream(words):
            await before
            with pytest.raises(holdfast.StreamOpen):
                await others[how](word)
        await asyncio.create_task(apay(word))
        return word

    with stage.open() as store:
        assert WORDS[-1] == asyncio.run(store.arun(agent, id=RUN))
    assert ["before", WORDS[-1]] == done


def test_an_effect_is_done_once_the_answer_is_final_or_left(stage: Stage, model: Model) -> None:
    done: list[str] = []

    @holdfast.effect
    def pay(word: str) -> None:
        done.append(word)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for word in run.stream(model.anew, "hello"):
            if word == WORDS[4]:
                break
        pay(word)
        *_, last = run.stream(model.anew, "hello")
        pay(last)

    stage.live(agent)

    assert [WORDS[4], WORDS[9]] == done
    assert [(1, 5, "left"), (1, 10, "ended")] == parts(stage)


def test_a_stream_in_a_variable_is_left_when_it_is_closed(stage: Stage) -> None:
    done: list[str] = []
    closed: list[str] = []
    lives: list[str] = []

    def speak() -> Iterator[str]:
        try:
            yield from WORDS
        finally:
            closed.append("by the agent")

    @holdfast.effect
    def pay(word: str) -> None:
        done.append(word)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        with contextlib.closing(run.stream(speak, every=1, name="chat")) as words:
            for word in words:
                if word == WORDS[4]:
                    break
        lives.append(word)
        pay(word)
        if len(lives) == 1:
            raise Crash
        return list(words)

    stage.die(agent)

    assert (["by the agent"], [WORDS[4]]) == (closed, done)
    assert [] == stage.live(agent)
    assert [WORDS[4]] == done
    assert [(1, 1, "")] * 5 + [(1, 0, "left")] == parts(stage)


def test_an_asynchronous_stream_is_closed_alike(stage: Stage) -> None:
    closed: list[int] = []

    async def speak() -> AsyncIterator[int]:
        try:
            for n in range(9):
                yield n
        finally:
            closed.append(n)

    @holdfast.effect
    async def pay(n: int) -> int:
        return n

    @holdfast.agent
    async def agent(run: holdfast.Run) -> int:
        async with contextlib.aclosing(run.stream(speak, name="chat")) as numbers:
            async for n in numbers:
                if n == 3:
                    break
        assert [3] == closed
        return await pay(n)

    assert 3 == stage.live(agent)
    assert [(1, 4, "left")] == parts(stage)


def test_a_stream_that_was_left_is_left_again_on_a_replay(stage: Stage, model: Model) -> None:
    lives: list[int] = []

    @holdfast.agent
    def agent(run: holdfast.Run, more: int = 0) -> str:
        lives.append(more)
        words = []
        for word in run.stream(model.anew, "hello"):
            words.append(word)
            if len(words) == 5 + (len(lives) == 3):
                break
        answer = run.call("-".join, words)
        if len(lives) < 3:
            raise Crash
        return answer

    stage.die(agent)
    stage.die(agent)

    assert [0] == model.calls
    error = stage.fault(agent)
    assert isinstance(error, holdfast.Diverged)
    assert "left after 5 items" in str(error)


def test_an_error_in_a_stream_that_the_agent_went_past_is_raised_again(
    stage: Stage, model: Model
) -> None:
    lives: list[list[str]] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        words: list[str] = []
        lives.append(words)
        try:
            words.extend(run.stream(model.anew, "hello"))
        except ConnectionResetError:
            words.append("cut")
        run.call("-".join, words)
        if len(lives) == 1:
            raise Crash

    model.raises_at = 4
    stage.die(agent)
    stage.live(agent)

    assert [[*WORDS[:4], "cut"]] * 2 == lives
    assert [0] == model.calls


def test_a_cut_stream_that_ended_the_run_goes_on_from_what_it_gave(
    stage: Stage, model: Model
) -> None:
    model.raises_at = 4
    error = stage.fault(reader(model.go_on, every=1000))

    assert isinstance(error.__cause__, ConnectionResetError)
    assert "".join(WORDS) == stage.restart(reader(model.go_on, every=1000))
    assert [0, 4] == model.calls
    assert ["Raised"] == [type(e).__name__ for e in stage.journal() if isinstance(e, Raised)]


def test_an_item_that_comes_too_late_is_a_timeout(stage: Stage) -> None:
    gate = threading.Event()

    def hangs() -> Iterator[int]:
        yield 1
        gate.wait(30)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return sum(run.stream(hangs, timeout="100ms"))

    error = stage.fault(agent)
    gate.set()

    assert isinstance(error.__cause__, holdfast.CallTimedOut)


def test_items_that_wait_for_their_record_are_recorded_after_a_second(tmp_path: Any) -> None:  # noqa: ANN401 a path
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)
    seen: list[int] = []

    def slow() -> Iterator[int]:
        yield 1
        clock.advance(SPILL_S)
        until = time.monotonic() + 20
        while not parts(stage) and time.monotonic() < until:
            time.sleep(0.02)
        seen.append(len(parts(stage)))

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return sum(run.stream(slow))

    assert 1 == stage.live(agent)
    assert [1] == seen


def test_others_read_a_stream_while_it_is_written(stage: Stage, model: Model) -> None:
    read: list[str] = []
    offsets: list[str] = []

    def follow() -> None:
        with stage.open() as store:
            read.extend(store.stream(RUN, "chat"))
            offsets.extend(store.stream(RUN, offset=8, follow=False))

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for word in run.stream(model.anew, "hello", every=1, name="chat"):
            if word == WORDS[2]:
                thread.start()
            until = time.monotonic() + 20
            while word == WORDS[6] and len(read) < 3 and time.monotonic() < until:
                time.sleep(0.01)

    thread = threading.Thread(target=follow)
    stage.live(agent)
    thread.join()

    assert WORDS == read
    assert WORDS[8:] == offsets


def test_whoever_reads_a_stream_is_told_that_it_was_begun_anew(stage: Stage, model: Model) -> None:
    model.dies_at = 5
    stage.die(reader(model.anew, every=1))
    with stage.open() as store:
        assert WORDS[:5] == list(store.stream(RUN, "chat"))
        following = store.stream(RUN, "chat")
        first = next(following)
        stage.live(reader(model.anew, every=1))

        with pytest.raises(holdfast.StreamReset, match="begun anew after"):
            list(following)
        assert WORDS[0] == first
        assert WORDS == list(store.stream(RUN, "chat"))


def test_a_stream_is_read_to_its_end_although_another_of_its_name_has_begun(
    stage: Stage, model: Model
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        words = list(run.stream(model.go_on, "hello", every=1, name="chat"))
        return words + list(run.stream(str.split, "and on", every=1, name="chat"))

    model.dies_at = 5
    stage.die(agent)
    with stage.open() as store:
        following = store.stream(RUN, "chat")
        first = next(following)
        assert [*WORDS, "and", "on"] == stage.live(agent)

        assert WORDS == [first, *following]


def test_of_streams_of_one_name_side_by_side_the_newest_is_read_whole(
    stage: Stage, model: Model
) -> None:
    read: list[int] = []

    def follow() -> None:
        with stage.open() as store:
            for item in store.stream(RUN, "chat"):
                read.append(item)  # noqa: PERF402 others look at it meanwhile

    def count() -> Iterator[int]:
        yield from range(len(WORDS))

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        words = run.stream(model.anew, "hello", every=1, name="chat")
        numbers = run.stream(count, every=1, name="chat")
        for word, _ in zip(words, numbers, strict=True):
            if word == WORDS[1]:
                thread.start()
                until = time.monotonic() + 20
                while not read and time.monotonic() < until:
                    time.sleep(0.01)

    thread = threading.Thread(target=follow)
    stage.live(agent)
    thread.join()

    assert list(range(len(WORDS))) == read
    with stage.open() as store:
        assert read == list(store.stream(RUN, "chat", follow=False))


def test_a_stream_that_raised_is_over_for_those_who_read_it(stage: Stage, model: Model) -> None:
    read: list[list[str]] = []

    def follow() -> None:
        with stage.open() as store:
            read.append(list(store.stream(RUN, "chat")))

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        with contextlib.suppress(ConnectionResetError):
            list(run.stream(model.anew, "hello", every=1, name="chat"))
        run.call(abs, -1)
        thread = threading.Thread(target=follow)
        thread.start()
        thread.join(20)

    model.raises_at = 4
    stage.live(agent)

    assert [WORDS[:4]] == read


def test_whoever_reads_a_stream_is_told_that_a_rollback_took_it(stage: Stage, model: Model) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 1:
                list(run.stream(model.go_on, "hello", every=1, name="chat"))
            run.call(abs, turn)
            if turn == 2:
                break

    model.dies_at = 5
    stage.die(agent)
    with stage.open() as store:
        following = store.stream(RUN, "chat")
        assert WORDS[0] == next(following)
        store.plan_rollback(RUN, to=store.checkpoints(RUN)[0]).apply()

        with pytest.raises(holdfast.StreamReset):
            list(following)


def test_a_name_that_no_stream_has_is_refused_with_those_there_are(
    stage: Stage, model: Model
) -> None:
    stage.live(reader(model.anew))

    with stage.open() as store, pytest.raises(holdfast.UnknownStream, match="it has: chat"):
        list(store.stream(RUN, "talk"))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"every": 0}, "whole number of tokens from 1"),
        ({"name": ""}, "a text of at most"),
        ({"tokens": len, "prefix": []}, "leave it out"),
        ({"tokens": 5}, "is a function that counts an item's tokens, not 5"),
        ({"tokens": lambda _: 10**30}, "gave a number of so many digits"),
        ({"tokens": lambda _: -1}, "gave -1; it counts an item's tokens"),
        ({"timeout": "soon"}, "is not a duration"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    stage: Stage, model: Model, wrong: dict[str, Any], why: str
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return list(run.stream(model.go_on, "hello", **wrong))

    with pytest.raises(holdfast.UsageError, match=why):
        stage.live(agent)


def test_a_secret_that_comes_in_pieces_does_not_reach_the_disk(stage: Stage) -> None:
    secret = "sk-ant-api03-" + "Zx9" * 30
    pieces = [secret[at : at + 5] for at in range(0, len(secret), 5)]

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return len("".join(run.stream(lambda: iter(pieces), name="leak")))

    assert len(secret) == stage.live(agent)
    assert "Redacted" in stage.kinds()
    stored = b"".join(file.read_bytes() for file in stage.path.rglob("*") if file.is_file())
    assert secret[20:40].encode() not in stored


def test_a_stream_counts_as_tokens_for_the_cadence(stage: Stage, model: Model) -> None:
    @holdfast.agent(checkpoint=holdfast.every(tokens=6))
    def agent(run: holdfast.Run) -> None:
        run.state["text"] = ""
        for word in run.stream(model.go_on, "hello", every=2):
            run.state["text"] += word

    stage.live(agent)

    with stage.open() as store:
        [point, *_] = store.checkpoints(RUN)
        assert "".join(WORDS[:5]) == store.restore(point)[1]["text"]
        fork = store.fork(RUN, at=point)
        store.run(agent, id=fork.id)
        assert [0, 6] == model.calls


def test_a_stream_that_turns_end_inside_of_is_left_there(stage: Stage, model: Model) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            words = run.stream(model.anew, "hello", name=f"chat {turn}")
            next(words)
            if turn == 1:
                break

    stage.live(agent)

    assert [(1, 1, "left"), (1, 1, "left")] == parts(stage)


def test_what_a_partial_answer_cost_is_told(stage: Stage, model: Model) -> None:
    model.dies_at = 8
    stage.die(reader(model.anew))
    stage.live(reader(model.anew))

    opened = open_store(stage.path, SystemClock(), key=given_key())
    with contextlib.closing(opened):
        [told] = facts_of(opened)
        run = opened.reader.find(RUN)
        assert run is not None
        story = timeline(opened.reader, run)

    streams = [event for event in story.events if event.kind == "stream"]
    assert [("partial; was begun anew", 8), ("answered", 10)] == [
        (event.outcome, event.tokens_out) for event in streams
    ]
    assert (18, 8) == (total(told.spent).tokens_out, total(told.lost).tokens_out)
    assert 18 == story.tokens_out


AGAIN = holdfast.Retry(attempts=3, base="1ms")


@pytest.mark.parametrize("every", [1, 3, 1000])
def test_a_cut_stream_with_retry_is_asked_for_the_rest_in_place(
    stage: Stage, model: Model, every: int
) -> None:
    model.raises_at = 4

    assert "".join(WORDS) == stage.live(reader(model.go_on, every=every, retry=AGAIN))
    assert [0, 4] == model.calls
    assert WORDS == model.generated
    kinds = stage.kinds()
    assert (1, 0) == (kinds.count("Retried"), kinds.count("Raised"))
    assert {1} == {attempt for attempt, _, _ in parts(stage)}


def test_killed_after_a_retry_in_place_a_stream_goes_on_from_all_that_was_recorded(
    stage: Stage, model: Model
) -> None:
    agent = reader(model.go_on, every=1, retry=AGAIN)
    model.raises_at, model.dies_at = 4, 7
    stage.die(agent)

    assert "".join(WORDS) == stage.live(agent)
    assert [0, 4, 7] == model.calls
    assert "".join(WORDS) == stage.live(agent)
    assert [0, 4, 7] == model.calls


def test_without_a_prefix_only_a_stream_that_gave_nothing_yet_is_asked_again(
    stage: Stage, model: Model
) -> None:
    model.raises_at = 0
    assert "".join(WORDS) == stage.live(reader(model.anew, retry=AGAIN))
    assert [0, 0] == model.calls

    model.raises_at = 4
    error = stage.fault(reader(model.anew, retry=AGAIN), id="other")
    assert isinstance(error.__cause__, ConnectionResetError)
    assert [0, 0, 0] == model.calls


def test_a_stream_that_fails_more_often_than_retry_says_fails(stage: Stage) -> None:
    calls: list[int] = []

    def broken(prefix: Sequence[int] = ()) -> Iterator[int]:
        calls.append(len(prefix))
        yield len(prefix)
        raise ConnectionResetError

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[int]:
        return list(run.stream(broken, retry=AGAIN))

    error = stage.fault(agent)

    assert isinstance(error.__cause__, ConnectionResetError)
    assert [0, 1, 2] == calls


def test_an_item_that_comes_too_late_is_asked_for_again(stage: Stage) -> None:
    gate = threading.Event()
    calls: list[int] = []

    def slow(prefix: Sequence[int] = ()) -> Iterator[int]:
        calls.append(len(prefix))
        if len(calls) == 1:
            yield 0
            gate.wait(30)
        yield from range(len(prefix), 3)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[int]:
        return list(run.stream(slow, timeout="200ms", retry=AGAIN))

    found = stage.live(agent)
    gate.set()

    assert [0, 1, 2] == found
    assert [0, 1] == calls


def test_an_asynchronous_stream_is_asked_again_alike(stage: Stage, model: Model) -> None:
    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        stream = run.stream(model.ago_on, "hello", every=3, retry=AGAIN)
        return "".join([word async for word in stream])

    model.raises_at = 5

    assert "".join(WORDS) == stage.live(agent)
    assert [0, 5] == model.calls


def test_what_is_no_retry_is_refused_at_the_line_of_the_stream(stage: Stage, model: Model) -> None:
    error = stage.fault(reader(model.go_on, retry=3))

    assert isinstance(error, holdfast.UsageError)
    assert "retry= takes holdfast.Retry" in str(error)


def test_tokens_of_a_stream_are_of_the_model_that_its_call_names(stage: Stage) -> None:
    def generate(model: str) -> Iterator[str]:
        yield from ("a", "b", model)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return len(list(run.stream(generate, "gpt-5")))

    stage.live(agent)

    opened = open_store(stage.path, SystemClock(), key=given_key())
    with contextlib.closing(opened):
        [told] = facts_of(opened)
    assert ("gpt-5", 3) == (total(told.spent).model, total(told.spent).tokens_out)
