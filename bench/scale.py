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
    chat_blocks: int
    chat_turns: int
    long_chat_blocks: int
    long_chat_turns: int
    flat_blocks: int
    flat_turns: int
    large_turns: int
    tasks: int
    restores: int
    fork_mb: int
    forks: int
    crowd_blocks: int
    crowd_runs: int
    crowd_turns: int
    blocked_turns: int
    pairs: int
    paired_steps: int


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
    chat_blocks=9,
    chat_turns=200,
    long_chat_blocks=3,
    long_chat_turns=2_000,
    flat_blocks=3,
    flat_turns=10_000,
    large_turns=10_000,
    tasks=1_000,
    restores=15,
    fork_mb=100,
    forks=5,
    crowd_blocks=3,
    crowd_runs=100,
    crowd_turns=20,
    blocked_turns=100,
    pairs=40,
    paired_steps=18,
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
    chat_blocks=2,
    chat_turns=200,
    long_chat_blocks=1,
    long_chat_turns=500,
    flat_blocks=1,
    flat_turns=1_000,
    large_turns=300,
    tasks=100,
    restores=5,
    fork_mb=10,
    forks=3,
    crowd_blocks=1,
    crowd_runs=100,
    crowd_turns=5,
    blocked_turns=20,
    pairs=6,
    paired_steps=5,
)
