"""What one durable turn costs: milliseconds, syncs and bytes, beside the peers and the disk."""

from dataclasses import dataclass, field

from bench import child, trace
from bench.figures import Numbers, Result, Table, Target, middle, percentile, ratio, show, times
from bench.session import Session, rotated
from bench.systems.catalog import ALONE, COMMIT_GROWN, DBOS, LANGGRAPH, OURS

NS_PER_MS = 1e6
SYNCS_MAX = 1.1


@dataclass(kw_only=True)
class Seen:
    """One system's numbers, one of each per block."""

    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    mean_ms: list[float] = field(default_factory=list)
    bytes_left: list[float] = field(default_factory=list)
    syncs: list[float] = field(default_factory=list)
    syncs_in_loop: list[float] = field(default_factory=list)

    def add(self, measured: child.Measured, turns: int) -> None:
        """Take in one timed block."""
        turn_ns = measured.series("turn_ns")
        assert len(turn_ns) == turns - 1, "every turn asks the model once"
        self.p50_ms.append(percentile(turn_ns, 0.5) / NS_PER_MS)
        self.p99_ms.append(percentile(turn_ns, 0.99) / NS_PER_MS)
        self.mean_ms.append(measured.number("wall_ns") / turns / NS_PER_MS)
        self.bytes_left.append(measured.bytes_left)

    def count(self, syncs: trace.Syncs, turns: int) -> None:
        """Take in one traced block."""
        self.syncs.append(syncs.total / turns)
        self.syncs_in_loop.append(syncs.in_loop / turns)

    def numbers(self) -> Numbers:
        """Everything, for the record."""
        return {
            "p50_ms": middle(self.p50_ms),
            "p99_ms": middle(self.p99_ms),
            "mean_ms": middle(self.mean_ms),
            "syncs_per_turn": middle(self.syncs),
            "syncs_per_turn_in_loop": middle(self.syncs_in_loop),
            "bytes_on_disk": middle(self.bytes_left),
            "p50_ms_of_blocks": self.p50_ms,
        }


def measure(session: Session) -> Result:
    """Run the loop on every system, block after block, timed; then once more, traced."""
    scale = session.scale
    systems = session.installed(ALONE)
    seen = {system.name: Seen() for system in systems}
    for block in range(scale.turn_blocks):
        for system in rotated(systems, block):
            job = session.job(system.what, turns=scale.turns)
            seen[system.name].add(child.measure_fresh(system.module, job), scale.turns)
        p50 = ", ".join(f"{name} {show(one.p50_ms[-1])}" for name, one in seen.items())
        session.say(f"block {block + 1} of {scale.turn_blocks}, p50 ms: {p50}")
    for block in range(scale.traced_blocks if trace.is_available() else 0):
        session.say(f"counting syncs, block {block + 1} of {scale.traced_blocks}")
        for system in systems:
            job = session.job(system.what, turns=scale.turns)
            syncs = child.measure_fresh(system.module, job, traced=True).syncs
            assert syncs is not None
            seen[system.name].count(syncs, scale.turns)
    return _result(session, seen)


def _result(session: Session, seen: dict[str, Seen]) -> Result:
    turns = session.scale.turns
    ours, floor = seen[OURS], seen[COMMIT_GROWN]
    rows = [
        [
            name,
            show(middle(one.p50_ms), ".3f"),
            show(middle(one.p99_ms), ".3f"),
            times(ratio(one.p50_ms, floor.p50_ms)),
            times(ratio(one.p50_ms, ours.p50_ms)),
            show(middle(one.syncs)),
            show((middle(one.bytes_left) or 0) / 1000, ",.0f"),
            times(ratio(one.bytes_left, ours.bytes_left)),
        ]
        for name, one in seen.items()
    ]
    return Result(
        subject="turn",
        title=f"One durable turn ({turns} turns, each adds a 1 KB message to the list it takes)",
        table=Table(
            columns=(
                "system",
                "p50 ms",
                "p99 ms",
                "p50 / floor",
                "p50 / holdfast",
                "syncs per turn",
                "kB on disk",
                "kB / holdfast",
            ),
            rows=rows,
        ),
        targets=_targets(seen),
        numbers={name: one.numbers() for name, one in seen.items()},
        note=f"Medians of {session.scale.turn_blocks} blocks; in a block every system runs once, "
        "in a process and a directory of its own, and ratios are taken inside a block. A turn is "
        "timed from one question to the model to the next. Syncs are those of the whole process, "
        "set-up and close included, counted in separate runs under strace.",
    )


def _targets(seen: dict[str, Seen]) -> list[Target]:
    ours = seen[OURS]
    peers = [
        Target(
            promise=f"p50 of a turn against {peer}",
            measured=ratio(ours.p50_ms, seen[peer].p50_ms) if peer in seen else None,
            limit=1,
            unit="x",
        )
        for peer in (LANGGRAPH, DBOS)
    ]
    return [Target(promise="syncs per turn", measured=middle(ours.syncs), limit=SYNCS_MAX), *peers]
