"""How much is measured: the sizes of the targets, or smaller ones for a quick look."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Repetitions and sizes of every subject."""

    name: str
    turn_blocks: int
    traced_blocks: int
    turns: int
    concurrent_blocks: int
    concurrent_runs: int
    concurrent_turns: int
    starts: int
    restarts: int
    long_turns: int
    short_turns: int
    stored_runs: int
    opens: int
    process_blocks: int
    process_turns: int


FULL = Scale(
    name="full",
    turn_blocks=9,
    traced_blocks=3,
    turns=200,
    concurrent_blocks=3,
    concurrent_runs=50,
    concurrent_turns=20,
    starts=15,
    restarts=15,
    long_turns=10_000,
    short_turns=10,
    stored_runs=100_000,
    opens=15,
    process_blocks=5,
    process_turns=1_000,
)

QUICK = Scale(
    name="quick",
    turn_blocks=2,
    traced_blocks=1,
    turns=200,
    concurrent_blocks=1,
    concurrent_runs=50,
    concurrent_turns=6,
    starts=5,
    restarts=5,
    long_turns=1_000,
    short_turns=10,
    stored_runs=3_000,
    opens=5,
    process_blocks=2,
    process_turns=300,
)
