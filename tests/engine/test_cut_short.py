"""Ctrl-C while changes are saved: nothing that cannot be read is kept where the agent goes on."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

import holdfast
from holdfast.capture.tracked import inside
from holdfast.engine import context
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Stage


class Interrupting(ManualClock):
    """A clock at which Ctrl-C is pressed when it is read for the n-th time from now."""

    reads_left = 0

    def monotonic(self) -> float:
        self.reads_left -= 1
        if self.reads_left == 0:
            raise KeyboardInterrupt
        return super().monotonic()


@holdfast.step
def ask(turn: int) -> dict[str, int]:
    return {"turn": turn}


def test_what_ctrl_c_left_of_a_call_does_not_outlive_its_run(stage: Stage) -> None:
    is_pressed = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state["said"] = []
        for turn in run.turns():
            if turn == 1:
                return
            run.state["said"].append(ask(turn))
            if is_pressed:
                inside.set("ask")  # As if it came between that and the call itself.
                raise KeyboardInterrupt

    with stage.open() as store:
        with pytest.raises(KeyboardInterrupt):
            store.run(agent, id=RUN)
        is_pressed = False
        store.run(agent, id=RUN)
        assert {"said": [{"turn": 0}]} == store.restore(RUN)[1]


@pytest.mark.parametrize("at", ["checkpoint", "turn"])
def test_a_save_that_ctrl_c_cut_off_is_not_gone_past(stage: Stage, at: str) -> None:
    kept = 0
    for reads in range(1, 12):
        clock = Interrupting()
        stage.path = stage.path.with_name(f"store-{reads}")
        lives = 0

        @holdfast.agent(checkpoint=holdfast.every(turns=1))
        def agent(run: holdfast.Run) -> list[Any]:
            nonlocal lives
            lives += 1
            run.state["said"] = []
            turns = run.turns()
            while True:
                try:
                    turn = next(turns)
                    run.state["said"].append(ask(turn))
                    is_armed = turn == 1 and lives == 1
                    if at == "checkpoint" and turn == 1:
                        clock.reads_left = reads if is_armed else 0  # noqa: B023 called at once
                        run.checkpoint()
                    clock.reads_left = reads if is_armed and at == "turn" else 0  # noqa: B023 as above
                except KeyboardInterrupt:
                    run.state["said"].append("gone past")
                if len(run.state["said"]) > 3:
                    return list(holdfast.plain(run.state["said"]))

        try:
            stage.clock = clock
            left = stage.live(agent)
        except KeyboardInterrupt:
            kept += 1
            stage.clock = None
            with stage.open() as store:
                store.restore(RUN)
                left = store.restart(RUN, agent=agent)
        with stage.open() as store:
            assert left == store.restore(RUN)[1]["said"]
            for point in store.checkpoints(RUN, every_turn=True):
                store.restore(point.id)

    assert kept > 0


class CutShort:
    """A lock that is taken just as Ctrl-C is pressed, once."""

    def __init__(self, lock: Any) -> None:  # noqa: ANN401 a lock of either kind
        self._lock, self.is_pressed = lock, False

    def acquire(self, *, blocking: bool = True) -> bool:
        taken: bool = self._lock.acquire(blocking=blocking)
        if taken and not self.is_pressed:
            self.is_pressed = True
            raise KeyboardInterrupt
        return taken

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@holdfast.agent
def short(run: holdfast.Run) -> dict[str, int]:
    del run
    return ask(7)


def test_a_commit_that_ctrl_c_cut_off_as_it_began_holds_up_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage.open() as store:
        committer = store._opened.committer  # noqa: SLF001 where Ctrl-C comes
        pressed = CutShort(committer._leading)  # noqa: SLF001 as above
        monkeypatch.setattr(committer, "_leading", pressed)
        with pytest.raises(KeyboardInterrupt):
            store.run(short, id=RUN)

        assert pressed.is_pressed
        assert {"turn": 7} == store.run(short, id="another")
        assert {"turn": 7} == store.run(short, id=RUN)


def test_no_answer_is_acknowledged_in_a_transaction_that_ctrl_c_left_open(stage: Stage) -> None:
    with stage.open() as store, closing(sqlite3.connect(stage.path / "store.db")) as other:
        writer = store._opened.records._writer  # noqa: SLF001 where Ctrl-C comes

        def rows() -> int:
            return int(other.execute("SELECT count(*) FROM j").fetchone()[0])

        @holdfast.agent
        def agent(run: holdfast.Run) -> int:
            del run
            before = rows()
            writer.execute("BEGIN IMMEDIATE")  # As if it came right behind that in a commit.
            ask(1)
            return rows() - before

        assert store.run(agent, id=RUN) == 1


def test_a_life_that_ctrl_c_cut_off_as_it_began_leaves_its_context(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage.open() as store:
        housekeeper = store._lives._housekeeper  # noqa: SLF001 where Ctrl-C comes
        with monkeypatch.context() as patch:

            def press(_session: object) -> None:
                raise KeyboardInterrupt

            patch.setattr(housekeeper, "add", press)
            with pytest.raises(KeyboardInterrupt):
                store.run(short, id=RUN)

        assert context.frame.get() is None
        assert not context.is_any_active()
        assert {"turn": 7} == store.run(short, id=RUN)
