"""The proof as a table: what was promised, what was measured."""

from holdfast.cli.demo.proof import Proof
from holdfast.cli.grid import Grid
from holdfast.cli.text import plural, size


def grid(proof: Proof) -> Grid:
    """One line for each number; a promise stands beside what came of it."""
    return Grid(columns=("", "promised", "measured", "remarks"), rows=_rows(proof))


def _rows(proof: Proof) -> list[tuple[str, str, str, str]]:
    per_turn = size(round(proof.bytes_stored / proof.turns))
    lost = f"{plural(proof.answers_lost_in_flight, 'answer')} cut off unrecorded, asked again"
    return [
        ("turns done", str(proof.turns), str(proof.turns_done), _lives(proof)),
        ("answers recorded", "", str(proof.answers_recorded), ""),
        ("asked twice", "0", str(proof.answers_asked_twice), lost),
        ("effects done", "", str(proof.effects_done), "counted in the outside ledgers"),
        ("done twice", "0", str(proof.effects_done_twice), ""),
        ("missing", "0", str(proof.effects_missing), "compared with an undisturbed run"),
        ("in doubt", "", str(proof.in_doubt), _doubts(proof)),
        ("left in doubt", "0", str(proof.in_doubt_left), ""),
        ("result", "same", "same" if proof.is_result_same else "another", "as undisturbed"),
        ("cost per turn", "", f"{proof.cost_per_turn_ms:.1f} ms", "median; up to 6 flushes"),
        ("bytes stored", "", size(proof.bytes_stored), f"{per_turn} per turn"),
        ("time", "", f"{proof.seconds:.1f} s", ""),
    ]


def _lives(proof: Proof) -> str:
    return f"{plural(proof.kills, 'kill')}, {proof.lives} lives"


def _doubts(proof: Proof) -> str:
    return (
        f"by probe: {proof.in_doubt_happened} had happened, {proof.in_doubt_did_not} had not; "
        f"by key: {proof.in_doubt_repeated} sent again"
    )
