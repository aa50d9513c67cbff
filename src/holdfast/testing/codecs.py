"""CodecContract: what every class of values that is taught to Holdfast is held to.

A class joins by a class of three lines:

    class TestMoney(CodecContract):
        def examples(self) -> list[object]:
            return [Money(3, "usd"), Money(0, "eur")]
"""

from collections.abc import Sequence

import pytest

from holdfast.capture.digest import digest
from holdfast.engine.declare import agent
from holdfast.engine.handle import Store
from holdfast.engine.run import Run
from holdfast.errors import HoldfastError
from holdfast.store.codec import values


class CodecContract:
    """Values come back equal and of the same type: from bytes, from answers, from the state."""

    def examples(self) -> Sequence[object]:
        """Values of the class, no two of them equal; the subclass gives them."""
        raise AssertionError(f"{type(self).__name__} says which values it is about")

    def test_a_value_comes_back_equal_and_of_the_same_type(self) -> None:
        """Also inside a list and a dict."""
        examples = self.examples()
        assert examples, f"{type(self).__name__} gives no example, so nothing is tried"
        for value in examples:
            back = values.decode(values.encode([value, {"in": value}]))

            assert [value, {"in": value}] == back
            assert isinstance(back, list)
            assert type(value) is type(back[0]) is type(back[1]["in"])

    def test_equal_values_have_equal_hashes_and_others_have_others(self) -> None:
        """A value that came back is the same value, so a replay takes it for the same argument."""
        before = [digest(value) for value in self.examples()]
        after = [digest(values.decode(values.encode(value))) for value in self.examples()]

        assert before == after
        assert len(before) == len(set(before)), "two of the examples have one hash"

    def test_a_value_is_a_recorded_answer_and_part_of_a_state(self, store: Store) -> None:
        """As a run keeps it, saves it and restores it."""
        examples = self.examples()

        def give(place: int) -> object:
            return examples[place]

        @agent
        def keeper(run: Run) -> object:
            for turn in run.turns():
                run.state[str(turn)] = run.call(give, turn)
                if turn == len(examples) - 1:
                    break
            return list(run.state.values())

        result = store.run(keeper, id="run")
        _, state = store.restore("run")

        assert list(examples) == result == list(state.values())
        assert result == store.run(keeper, id="run")

    def test_bytes_that_are_cut_short_are_refused(self) -> None:
        """With an error of Holdfast: no half of a value is ever used."""
        for value in self.examples():
            data = values.encode(value)
            for size in range(len(data)):
                with pytest.raises(HoldfastError):
                    values.decode(data[:size])
