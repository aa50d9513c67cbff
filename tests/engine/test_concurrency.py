"""Tasks and threads of one run finish in any order; a restart asks exactly what is missing."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from holdfast.engine import context
from tests.engine.kit import RUN, Crash, Stage, World, moments

N = 5

Way = Callable[[World, "Gate"], holdfast.Agent[[], Any]]


class Gate:
    """Lets calls answer in a chosen order, and kills the run after some of them."""

    def __init__(self, order: list[int], deaths_after: int) -> None:
        self.order, self.deaths_after = order, deaths_after
        self.answered: list[int] = []
        self._changed = threading.Condition()

    def has_come(self, n: int) -> bool:
        rank = self.order.index(n)
        return len(self.answered) >= rank or len(self.answered) >= self.deaths_after

    def wait(self, n: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.has_come(n), 30)
        self._die_if_due()

    async def await_(self, n: int) -> None:
        while not self.has_come(n):  # noqa: ASYNC110 threads may open it
            await asyncio.sleep(0.001)
        self._die_if_due()

    def _die_if_due(self) -> None:
        if len(self.answered) >= self.deaths_after:
            raise Crash

    def got(self, n: int) -> None:
        """The agent was handed the answer: it is recorded."""
        with self._changed:
            self.answered.append(n)
            self._changed.notify_all()


def tasks(world: World, gate: Gate, *, is_group: bool) -> holdfast.Agent[[], Any]:
    @holdfast.step
    async def search(n: int) -> str:
        await gate.await_(n)
        return world.ask(f"search {n}")

    async def one(n: int) -> str:
        found = await search(n)
        gate.got(n)
        return found

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        if not is_group:
            return list(await asyncio.gather(*(one(n) for n in range(N))))
        async with asyncio.TaskGroup() as group:
            made = [group.create_task(one(n)) for n in range(N)]
        return [task.result() for task in made]

    return agent


def by_loop_of_its_own(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    @holdfast.step
    async def search(n: int) -> str:
        await gate.await_(n)
        return world.ask(f"search {n}")

    async def one(n: int) -> str:
        found = await search(n)
        gate.got(n)
        return found

    async def all_() -> list[str]:
        return list(await asyncio.gather(*(one(n) for n in range(N))))

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return asyncio.run(all_())

    return agent


def by_gather(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    return tasks(world, gate, is_group=False)


def by_group(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    return tasks(world, gate, is_group=True)


def threaded(world: World, gate: Gate) -> Callable[[int], str]:
    @holdfast.step
    def search(n: int) -> str:
        gate.wait(n)
        return world.ask(f"search {n}")

    def one(n: int) -> str:
        found = search(n)
        gate.got(n)
        return found

    return one


def by_threads(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    one = threaded(world, gate)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found: dict[int, str] = {}
        crashes: list[Crash] = []

        def work(n: int) -> None:
            try:
                found[n] = one(n)
            except Crash as crash:
                crashes.append(crash)

        threads = [threading.Thread(target=run.wrap(work), args=(n,)) for n in range(N)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if crashes:
            raise crashes[0]
        return [found[n] for n in range(N)]

    return agent


def by_pool(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    one = threaded(world, gate)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        with ThreadPoolExecutor(N) as pool:
            return list(pool.map(run.wrap(one), range(N)))

    return agent


def by_executor(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    one = threaded(world, gate)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(N) as pool:
            made = [loop.run_in_executor(pool, run.wrap(one), n) for n in range(N)]
            return list(await asyncio.gather(*made))

    return agent


def by_to_thread(world: World, gate: Gate) -> holdfast.Agent[[], Any]:
    one = threaded(world, gate)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        return list(await asyncio.gather(*(asyncio.to_thread(one, n) for n in range(N))))

    return agent


WAYS = [
    by_gather,
    by_group,
    by_loop_of_its_own,
    by_threads,
    by_pool,
    by_executor,
    by_to_thread,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3]], ids=str)
@pytest.mark.parametrize("answers", range(N))
def test_killed_after_some_answers_exactly_the_others_are_asked_again(
    stage: Stage, world: World, way: Way, order: list[int], answers: int
) -> None:
    def died(agent: holdfast.Agent[[], Any]) -> None:
        with pytest.raises((Crash, BaseExceptionGroup)):
            stage.live(agent)

    died(way(world, Gate(order, deaths_after=answers)))
    recorded = set(world.asked)
    assert answers <= len(recorded)
    world.asked.clear()

    result = way(world, Gate(order, deaths_after=N))
    found = stage.live(result)

    assert [f"search {n}#1" for n in range(N)] == found
    assert {f"search {n}" for n in range(N)} - recorded == set(world.asked)
    assert [] == world.repeated


@pytest.mark.parametrize("answers", range(N))
def test_equal_questions_in_gather_are_one_each(stage: Stage, world: World, answers: int) -> None:
    count = itertools.count()

    @holdfast.step
    async def draw(of: str) -> int:
        n = next(count)
        if n == dies_at:
            raise Crash
        return n

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[int]:
        async for turn in run.turns():
            got = await asyncio.gather(*(draw("card") for _ in range(N)))
            run.state["got"] = [*run.state.get("got", []), *got]
            if turn == 1:
                return list(run.state["got"])
        raise AssertionError

    dies_at = N + answers
    stage.die(agent)
    dies_at = -1
    result = stage.live(agent)

    # Five in the first turn, some of the second, the one that died, and the rest.
    assert N * 2 == len(set(result))
    assert [n for n in range(2 * N + 1) if n != N + answers] == sorted(result)


def test_tasks_with_steps_of_their_own_are_replayed_each_in_its_order(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    async def ask(who: str, n: int) -> str:
        await asyncio.sleep(0)
        return world.ask(f"{who} {n}")

    async def talk(who: str) -> list[str]:
        return [await ask(who, n) for n in range(3)]

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        first = await ask("first", 0)
        both = await asyncio.gather(talk("ann"), talk("bob"))
        return [first, *both, await ask("last", 0)]

    taken = list(moments(stage, agent, outside=lambda: list(world.asked)))
    expected = stage.live(agent)

    assert 20 < len(taken)
    for _, at, asked in taken:
        world.asked = asked
        result = at.live(agent)
        assert [len(part) for part in expected] == [len(part) for part in result]
        assert len(world.repeated) <= 2
        assert 8 + len(world.repeated) == len(world.asked)


@pytest.mark.parametrize("way", ["gather", "group"])
def test_an_error_that_ended_a_concurrent_run_is_asked_again(
    stage: Stage, world: World, way: str
) -> None:
    is_fixed = False

    @holdfast.step
    async def ask(who: str, n: int) -> str:
        await asyncio.sleep(0)
        said = world.ask(f"{who} {n}")
        if who == "bad" and not is_fixed:
            raise ConnectionError(said)
        return said

    async def talk(who: str, times: int) -> list[str]:
        return [await ask(who, n) for n in range(times)]

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        if way == "gather":
            good = asyncio.create_task(talk("good", 4))
            bad = await asyncio.gather(talk("bad", 1), return_exceptions=True)
            await good
            if isinstance(bad[0], BaseException):
                raise bad[0]
            return [good.result(), bad[0]]
        async with asyncio.TaskGroup() as group:
            made = [group.create_task(talk("good", 4)), group.create_task(talk("bad", 1))]
        return [task.result() for task in made]

    assert isinstance(stage.fault(agent), holdfast.RunFailed)
    is_fixed = True
    good, bad = stage.restart(agent)

    assert ["bad 0#2"] == bad
    assert 4 == len(good)
    assert 2 == world.asked.count("bad 0")
    if way == "gather":
        assert ["bad 0"] == world.repeated


def test_an_error_that_ended_the_run_is_asked_again_though_an_answer_came_after_it(
    stage: Stage, world: World
) -> None:
    is_failing, is_recorded = threading.Event(), threading.Event()
    is_fixed = False

    @holdfast.step
    async def ask(who: str) -> str:
        world.ask(who)
        if who == "bad" and not is_fixed:
            raise ConnectionError
        while not is_failing.is_set():  # noqa: ASYNC110 a thread sets it
            await asyncio.sleep(0.001)
        return who

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        # The first fails before the second has asked: that one asks after the error was received.
        return list(await asyncio.gather(ask("bad"), ask("good")))

    def fail() -> None:
        is_failing.set()
        assert is_recorded.wait(30)

    failpoint.arm("run.failing", fail)
    failpoint.arm("step.recorded", is_recorded.set)
    assert isinstance(stage.fault(agent), holdfast.RunFailed)
    failpoint.disarm()
    is_fixed = True

    assert ["bad", "good"] == stage.restart(agent)
    assert ["bad", "good", "bad"] == world.asked


def test_an_error_in_gather_that_the_agent_went_past_is_raised_again(
    stage: Stage, world: World
) -> None:
    is_dying = True

    @holdfast.step
    async def ask(n: int) -> str:
        world.ask(f"ask {n}")
        if n == 1:
            raise ConnectionError
        return str(n)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        found = await asyncio.gather(*(ask(n) for n in range(3)), return_exceptions=True)
        last = await ask(3)
        if is_dying:
            raise Crash
        return [type(each).__name__ for each in found] + [last]

    stage.die(agent)
    is_dying = False

    assert ["str", "ConnectionError", "str", "3"] == stage.live(agent)
    assert [] == world.repeated


def test_a_thread_that_outlives_the_run_cannot_write_into_it(stage: Stage, world: World) -> None:
    go_on = threading.Event()
    said: list[str] = []

    @holdfast.step
    def slow() -> str:
        go_on.wait(30)
        return "too late"

    def work() -> None:
        for _ in range(2):
            with pytest.raises(holdfast.UsageError) as caught:
                slow()
            said.append(str(caught.value))

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        threads.append(threading.Thread(target=run.wrap(work)))
        threads[-1].start()
        return "done"

    threads: list[threading.Thread] = []
    with stage.open() as store:
        assert "done" == store.run(agent, id="run-1")
        go_on.set()
        threads[0].join()
        assert "done" == store.run(agent, id="run-1")

    assert ["Started", "Finished"] == [kind for kind in stage.kinds() if kind != "Raised"]
    assert 2 == len(said)
    assert all("run-1 has ended" in text for text in said)


def test_turns_of_threads_are_refused(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with ThreadPoolExecutor(1) as pool:
            with pytest.raises(holdfast.UsageError) as caught:
                pool.submit(run.wrap(run.turns)).result()
            return str(caught.value)

    assert "run.turns() belongs to the agent's own code" in stage.live(agent)


@pytest.mark.parametrize(("how", "kept", "refused"), [("bare", [0, 1, 2], 0), ("wrap", [], 3)])
def test_a_change_by_a_thread_of_a_step_is_saved_with_its_turn_or_refused(
    stage: Stage, how: str, kept: list[int], refused: int
) -> None:
    faults: list[holdfast.ChangedInCall] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state["notes"] = []

        def change(turn: int) -> None:
            try:
                run.state["notes"].append(turn)
            except holdfast.ChangedInCall as fault:
                faults.append(fault)

        def begin(turn: int) -> None:
            target = run.wrap(change) if how == "wrap" else change
            thread = threading.Thread(target=target, args=(turn,))
            thread.start()
            thread.join()

        for turn in run.turns():
            run.call(begin, turn)
            if turn == 2:
                return

    stage.live(agent)

    with stage.open() as store:
        seen = [store.restore(f"{RUN}@{turn}")[1]["notes"] for turn in range(2)]
        assert [kept[:1], kept[:2]] == seen
        assert {"notes": kept} == store.restore(RUN)[1]
    assert refused == len(faults)


def test_a_flush_waits_for_what_another_thread_has_queued(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> bool:
        run.uuid()
        here = context.frame.get()
        assert here is not None
        ticket = here.session.queue()  # As the thread does that looks after runs.
        assert ticket is not None
        here.session.flush()
        return ticket.is_over

    assert stage.live(agent) is True
