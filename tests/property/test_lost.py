"""Whatever recorded answer cannot be read, every section without it is restored as it was."""

from typing import Any

from hypothesis import example, given, settings

from holdfast.capture.state import State
from holdfast.capture.tracked import plain
from holdfast.errors import Damaged, NotStorable
from tests.property.test_attach import TURNS, Machine, alike, change, is_endless


class Sectioned(Machine):
    """Each field of the object is a section of its own."""

    def capture(self) -> None:
        self.twins.capture(self.state.root, dict(self.fields))

    def read_without(self, row: int) -> State:
        def answer(at: tuple[int, int]) -> Any:  # noqa: ANN401 whatever was recorded
            if at[0] == row:
                raise Damaged(f"row {row}", "a bit flipped")
            return self.journal[at]

        return State.restore(
            self.saves[0], self.saves[1:], answer, places=self.places, goes_on=True
        )


@given(TURNS)
@example(
    [
        ([(0, 1, 32), (0, 1, 14), (0, 4, 28), (5, 20, 21)], ""),
        ([(4, 30, 0), (0, 1, 19), (5, 38, 5)], ""),
    ]
)
@settings(max_examples=150, deadline=None)
def test_what_is_not_lost_is_as_it_was_and_can_be_changed_and_saved(
    turns: list[tuple[list[tuple[int, int, int]], str]],
) -> None:
    machine = Sectioned()
    for changes, then in turns:
        for what, where, at in changes:
            change(machine, what, where, at)
        try:
            machine.capture()
            delta = machine.state.delta()
        except NotStorable:
            assert is_endless(machine.fields)  # As in the tests of attached objects.
            return
        if delta is not None:
            machine.keep(delta)
        if then == "base":
            machine.base()
    whole = plain(machine.read().root)
    answers = [at[0] for at, kept in machine.journal.items() if not isinstance(kept, bytes)]
    for row in answers:
        state = machine.read_without(row)
        left = {key: value for key, value in whole.items() if key not in state.lost}

        assert whole.keys() == {*state.root, *state.lost}
        assert alike(left, state.root)

        state.root["new"] = [1]
        change_ = state.delta()
        assert change_ is not None
        again = State.restore(
            machine.saves[0], [*machine.saves[1:], change_], machine.journal.__getitem__
        )
        assert alike(left | {"new": [1]}, again.root)
