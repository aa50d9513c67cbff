"""What it takes to read a state back: time for the newest, bytes for an old one."""

from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import child
from bench.figures import Result, Table, Target, ratio, show, times
from bench.session import Session

BUILD, READ = "bench.systems.chat_ours", "bench.systems.restore_ours"
NS_PER_MS = 1e6
TIME_RATIO_MAX = 2
READ_RATIO_MAX = 1.5


def measure(session: Session) -> Result:
    """Build a long conversation and one of half its length; read the first in new processes."""
    turns = session.scale.long_chat_turns
    half = turns // 2
    with child.scratch() as place:
        for name, count in (("long", turns), ("half", half + 1)):
            _do(session, place / name, BUILD, "one", turns=count)
        session.say(f"built conversations of {turns:,} and {half + 1:,} turns")
        runs = session.scale.restores
        newest = _do(session, place / "long", READ, "newest", turns=turns, runs=runs)
        earlier = _do(session, place / "long", READ, "earlier", turns=half)
        stored = child.bytes_under(place / "half")
    restore_ns, frame_ns = newest.series("restore_ns"), newest.series("frame_ns")
    read = earlier.seen.get("bytes_read")
    times_read = read / stored if isinstance(read, int) else None
    session.say(f"restored in {median(restore_ns) / NS_PER_MS:.1f} ms")
    return Result(
        subject="restore",
        title=f"Restoring states of a conversation of {turns:,} turns",
        table=Table(
            columns=("what", "measured", "against", "ratio"),
            rows=[
                [
                    "the newest state, really read",
                    f"{show(median(restore_ns) / NS_PER_MS)} ms",
                    f"{show(median(frame_ns) / NS_PER_MS)} ms",
                    times(ratio(restore_ns, frame_ns)),
                ],
                [
                    f"bytes read for the state of turn {half:,}",
                    f"{show(read / 1000 if isinstance(read, int) else None, ',.0f')} kB",
                    f"{stored / 1000:,.0f} kB",
                    times(times_read),
                ],
            ],
        ),
        targets=[
            Target(
                promise="restore against decompress, hash and decode of one zstd frame",
                measured=ratio(restore_ns, frame_ns),
                limit=TIME_RATIO_MAX,
                unit="x",
            ),
            Target(
                promise=f"bytes read for turn {half:,} against what that state stores",
                measured=times_read,
                limit=READ_RATIO_MAX,
                unit="x",
            ),
        ],
        numbers={
            "restore_ns": restore_ns,
            "frame_ns": frame_ns,
            "state_bytes": newest.number("state_bytes"),
            "bytes_read": read,
            "bytes_stored": stored,
        },
        note=f"Medians of {runs} restores, each by a store just opened, in turn with the frame: "
        "the msgpack of the same state, its bytes at hand. Files are in the page cache. Bytes "
        "read are those of all read calls; what the state of that turn stores is the whole store "
        "of a run that ended there.",
    )


def _do(
    session: Session, place: Path, module: str, what: str, *, turns: int, runs: int = 1
) -> child.Measured:
    job = session.long_job(what, turns=turns, runs=runs)
    own = replace(job, directory=str(place / "data"), result=str(place / "seen.json"))
    return child.measure(module, own)
