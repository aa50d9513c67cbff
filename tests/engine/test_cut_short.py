"""Ctrl-C while changes are saved: nothing that cannot be read is kept where the agent goes on."""

from typing import Any

import pytest

import holdfast
from holdfast.capture.tracked import inside
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
