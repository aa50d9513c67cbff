"""A run at work is rolled back: its process lets it go at the next call, and may go on after it."""

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.model.journal import Interrupted
from holdfast.store import wishes
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from tests.engine.kit import RUN, Crash, Stage, reaching

HERE = Path(__file__).parent
TURNS = 5


class Desk:
    """An agent whose second turn waits inside a step until it is let on."""

    def __init__(self) -> None:
        self.began, self.may_go_on = threading.Event(), threading.Event()
        self.log: list[str] = []
        self.is_over = False

        def uncharge(outcome: str, turn: int) -> None:  # noqa: ARG001 as handlers are called
            self.log.append(f"uncharge {turn}")

        @holdfast.effect(undo=uncharge, key="turn")
        def charge(turn: int) -> str:
            self.log.append(f"charge {turn}")
            if turn == 2 and not self.is_over:
                self.began.set()
                self.may_go_on.wait(30)
            if "not done" in self.log and turn == 2 and not self.is_over:
                raise holdfast.NotDone("the line was busy")
            return f"charged {turn}"

        @holdfast.agent(checkpoint=holdfast.every(turns=1))
        def agent(run: holdfast.Run) -> list[int]:
            run.state["turns"] = []
            for turn in run.turns():
                charge(turn)
                run.state["turns"].append(turn)
                if turn == TURNS - 1:
                    return holdfast.plain(run.state["turns"])  # type: ignore[no-any-return]
            raise AssertionError

        self.agent = agent

    def work(self, stage: Stage) -> "Worker":
        return Worker(stage, self.agent)


class Worker(threading.Thread):
    """Another holder of the run: a handle of its own, in a thread of its own."""

    def __init__(self, stage: Stage, agent: Any) -> None:  # noqa: ANN401 any agent
        super().__init__()
        self.stage, self.agent = stage, agent
        self.result: object = None
        self.error: BaseException | None = None
        self.store: holdfast.Store | None = None
        self.start()

    def run(self) -> None:
        try:
            with self.stage.open() as self.store:
                self.result = self.store.run(self.agent, id=RUN)
        except BaseException as error:  # noqa: BLE001 the test says which it must be
            self.error = error

    def then(self, act: Callable[[], None]) -> None:
        """Do something once it knows that it is to let go."""

        def wait() -> None:
            assert self.store is not None
            while not self.store._lives._housekeeper.sessions()[0].stopped:  # noqa: SLF001 there is no other way to see it
                SystemClock().sleep(0.01)
            act()

        threading.Thread(target=wait).start()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def check(stage: Stage) -> None:
    opened = open_store(stage.path, SystemClock())
    try:
        assert {} == wishes.pauses(opened)
        assert [] == list(verify(opened, deep=True).findings)
    finally:
        opened.close()


def test_a_run_at_work_is_refused_unless_it_may_be_paused(stage: Stage, desk: Desk) -> None:
    worker = desk.work(stage)
    desk.began.wait(30)
    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0)
        with pytest.raises(holdfast.RunHeld, match=r"apply\(pause=True\)"):
            plan.apply()
        desk.may_go_on.set()
        worker.join()

    assert [0, 1, 2, 3, 4] == worker.result
    assert "uncharge 1" not in desk.log


def test_its_process_lets_go_at_the_next_call_and_all_it_did_by_then_is_taken_back(
    stage: Stage, desk: Desk
) -> None:
    worker = desk.work(stage)
    desk.began.wait(30)
    worker.then(desk.may_go_on.set)

    with stage.open() as store:
        planned = store.plan_rollback(RUN, to=0)
        rolled = planned.apply(pause=True, reason="wrong price")
        desk.is_over = True
        worker.join()

        assert isinstance(worker.error, holdfast.Paused)
        assert ["undone", "undone"] == [each.how for each in rolled.effects]
        assert holdfast.Status.RUNNING is store.get(RUN).status
        assert [0, 1, 2, 3, 4] == store.run(desk.agent, id=RUN)
    undone = ["charge 0", "charge 1", "charge 2", "uncharge 2", "uncharge 1"]
    assert [*undone, "charge 1", "charge 2", "charge 3", "charge 4"] == desk.log
    check(stage)


def test_nothing_failed_in_a_paused_run(stage: Stage, desk: Desk) -> None:
    worker = desk.work(stage)
    desk.began.wait(30)
    worker.then(desk.may_go_on.set)

    with stage.open() as store, store.paused(RUN) as info:
        assert info.is_held
        worker.join()
        assert isinstance(worker.error, holdfast.Paused)
        with pytest.raises(holdfast.RunHeld):
            stage.live(desk.agent)

    [end] = [entry for entry in stage.journal() if isinstance(entry, Interrupted)]
    assert "Paused" == end.why
    assert not {"Failed", "Decided"} & set(stage.kinds())
    desk.is_over = True
    assert [0, 1, 2, 3, 4] == stage.live(desk.agent)
    assert 5 == len(desk.log), "what it had recorded stands"
    check(stage)


def test_an_effect_that_surely_did_not_happen_is_not_left_in_doubt_by_a_pause(
    stage: Stage, desk: Desk
) -> None:
    desk.log.append("not done")
    worker = desk.work(stage)
    desk.began.wait(30)
    with stage.open() as store:
        worker.then(desk.may_go_on.set)
        with store.paused(RUN):
            worker.join()

    assert isinstance(worker.error, holdfast.Paused)
    assert "Declined" == [k for k in stage.kinds() if k in ("Happened", "Declined")][-1]
    check(stage)


def test_who_does_not_let_go_in_time_keeps_the_run_and_nothing_is_changed(
    stage: Stage, desk: Desk
) -> None:
    worker = desk.work(stage)
    desk.began.wait(30)
    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0)
        with pytest.raises(holdfast.NotPaused, match=r"within 0.2 s; nothing was changed"):
            plan.apply(pause=True, wait=0.2)
        with pytest.raises(holdfast.UsageError, match="wait="):
            plan.apply(pause=True, wait="soon")
        before = store.get(RUN)
        assert before.is_held
    check(stage)
    desk.is_over = True
    desk.may_go_on.set()
    worker.join()

    assert isinstance(worker.error, holdfast.Paused) or [0, 1, 2, 3, 4] == worker.result
    assert not [line for line in desk.log if line.startswith("uncharge")]


def test_a_wish_of_somebody_who_died_does_not_hold_the_run_for_long(
    stage: Stage, desk: Desk
) -> None:
    desk.is_over = True

    def die(at: str) -> None:
        if at == "turn.ending":
            raise Crash(at)

    with reaching(die):
        stage.die(desk.agent)
    opened = open_store(stage.path, SystemClock())
    wishes.pause(opened, 1, SystemClock().now() + 0.3)
    opened.close()

    first = desk.work(stage)
    first.join()
    assert isinstance(first.error, holdfast.Paused)
    SystemClock().sleep(0.4)

    assert [0, 1, 2, 3, 4] == stage.live(desk.agent)


def test_a_run_that_nobody_holds_needs_no_pause(stage: Stage, desk: Desk) -> None:
    desk.is_over = True
    stage.live(desk.agent)
    with stage.open() as store:
        assert "undone" == store.plan_rollback(RUN, to=3).apply(pause=True).effects[0].how
        with store.paused(RUN):
            store.undo_rollback(RUN)
    check(stage)


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(HERE))
    yield importlib.import_module("supervised")
    sys.modules.pop("supervised", None)


ROLLING = """
import sys
import holdfast
sys.path.insert(0, sys.argv[2])
import supervised
with holdfast.open(sys.argv[1]) as store:
    store.plan_rollback("run-1", to=0).apply(pause=True, reason="by hand")
"""


def roll_back(stage: Stage, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ROLLING, str(stage.path), str(HERE)],
        env={"HOLDFAST_FAILPOINT": failpoint, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("killed_at", "anew"),
    [
        ("", ["order 1", "order 2"]),
        ("wish.written:1", []),
        ("undo.called:1", ["order 1"]),  # Whether the other undo was done, a person says.
    ],
)
def test_a_supervised_run_goes_on_by_itself_from_where_it_was_rolled_back_to(
    stage: Stage, agents: ModuleType, tmp_path: Path, killed_at: str, anew: list[str]
) -> None:
    told: list[str] = []
    ended: list[subprocess.CompletedProcess[str]] = []

    def meddle() -> None:
        while not (tmp_path / "waits").exists():
            SystemClock().sleep(0.05)
        ended.append(roll_back(stage, killed_at))
        (tmp_path / "go").touch()

    meddler = threading.Thread(target=meddle)
    meddler.start()
    with stage.open() as store:
        terms = store.terms(happening=lambda what, _facts: told.append(what))
        order = store._order(agents.slowly, RUN, (str(tmp_path),), {})  # noqa: SLF001 to hear what happens
        if killed_at == "undo.called:1":
            with pytest.raises(holdfast.InDoubt) as caught:
                store._lives.supervise(order, terms)  # noqa: SLF001 to hear what happens
            store.resolve(RUN, caught.value.key, happened=True)
        result = store._lives.supervise(order, terms)  # noqa: SLF001 to hear what happens
    meddler.join()

    assert (-9 if killed_at else 0) == ended[0].returncode, ended[0].stderr
    assert [0, 1, 2, 3] == result
    said = (tmp_path / "asked").read_text().splitlines()
    orders = [line for line in said if line.startswith("order")]
    cancels = [line for line in said if line.startswith("cancel")]
    assert len(cancels) == len(set(cancels))
    assert sorted([*anew, *(f"order {turn}" for turn in range(4))]) == sorted(orders)
    assert ("RolledBack" in stage.kinds()) == (killed_at != "wish.written:1")
    assert ("Decided" in stage.kinds()) == (killed_at == "undo.called:1")
    assert "start" == told[0]
    check(stage)
