"""What to do about an effect in doubt."""

import pytest

from holdfast.policy.effects import Move, next_move


@pytest.mark.parametrize(
    ("has_probe", "is_idempotent", "is_repeated", "move"),
    [
        (True, False, False, Move.PROBE),
        (True, True, False, Move.PROBE),
        (True, True, True, Move.PROBE),
        (False, True, False, Move.REPEAT),
        (False, True, True, Move.STOP),
        (False, False, False, Move.STOP),
        (False, False, True, Move.STOP),
    ],
)
def test_the_world_is_asked_first_and_nothing_is_repeated_twice(
    has_probe: bool, is_idempotent: bool, is_repeated: bool, move: Move
) -> None:
    assert move is next_move(
        has_probe=has_probe, is_idempotent=is_idempotent, is_repeated=is_repeated
    )
