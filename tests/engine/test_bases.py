"""When the whole state is written: often enough to be read and freed, seldom enough to be cheap."""

import random
from typing import Any
from unittest.mock import patch

import holdfast
from holdfast.engine import turns
from holdfast.model.journal import Based
from tests.engine.kit import Stage

TURNS = 40


@holdfast.step
def read(turn: int) -> list[dict[str, Any]]:
    """An answer that is large enough to be put aside, in many small parts."""
    chance = random.Random(turn)  # noqa: S311 a seed
    return [{"number": n, "text": chance.randbytes(400).hex()} for n in range(100)]


def test_large_answers_that_the_state_only_names_bring_fewer_bases_as_it_grows(
    stage: Stage,
) -> None:
    @holdfast.agent
    def gather(run: holdfast.Run) -> int:
        found = run.state.setdefault("found", [])
        for turn in run.turns():
            found.extend(read(turn))
            if turn + 1 == TURNS:
                break
        return len(found)

    with patch.object(turns, "BASE_BYTES_ASIDE_MIN", 1000):
        assert 100 * TURNS == stage.live(gather)

    ends = [entry.turn for entry in stage.journal() if isinstance(entry, Based)]
    assert len([turn for turn in ends if turn < TURNS / 2]) > 2
    assert len([turn for turn in ends if turn >= TURNS / 2]) < 5
