"""Holdfast reading a state back, beside one zstd frame of the same bytes; and forking a large one.

The store was made by another process, so nothing is remembered from writing it.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import msgspec

import holdfast
from bench.job import Job, Message, Model, Seen

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

JOB = Job.from_argument()
STORE = str(Path(JOB.directory) / "store")
RUN = "run-0"
MB_MESSAGES = 1_000

State = dict[Any, Any]


def newest(seen: Seen) -> None:
    """The newest state of a run, again and again, each time by a store that was just opened."""
    with holdfast.open(STORE) as store:
        state = store.restore(RUN)[1]  # Once unmeasured: modules that are loaded on demand.
    packed = msgspec.msgpack.encode(state)
    frame, root = zstd.compress(packed), hashlib.sha256(packed).digest()
    restore_ns: list[int] = []
    frame_ns: list[int] = []
    for _ in range(JOB.runs):
        with holdfast.open(STORE) as store:
            restore_ns.append(_timed(partial(_from_store, store), state))
        frame_ns.append(_timed(partial(_from_frame, frame, root), state))
    seen |= {"restore_ns": restore_ns, "frame_ns": frame_ns, "state_bytes": len(packed)}


def _from_store(store: holdfast.Store) -> State:
    return store.restore(RUN)[1]


def _from_frame(frame: bytes, root: bytes) -> State:
    """The least that a checked read must do: decompress, hash, decode."""
    packed = zstd.decompress(frame)
    assert hashlib.sha256(packed).digest() == root
    state: State = msgspec.msgpack.decode(packed)
    return state


def _timed(read: Callable[[], State], expected: State) -> int:
    """Nanoseconds until every message of the state was really looked at."""
    begin = perf_counter_ns()
    state = read()
    chars = sum(len(message["text"]) for message in state["messages"])
    taken = perf_counter_ns() - begin
    assert state == expected, "what was read is what was written"
    assert chars > 0
    return taken


def earlier(seen: Seen) -> None:
    """How many bytes are read from files to restore the state at a turn's end, counted by Linux."""
    with holdfast.open(STORE) as store:
        store.restore(f"{RUN}@{JOB.turns}")
    counter = Path("/proc/self/io")
    if not counter.exists():
        return
    with holdfast.open(STORE) as store:
        before = _bytes_read(counter)
        point, state = store.restore(f"{RUN}@{JOB.turns}")
        after = _bytes_read(counter)
        assert point.turn == JOB.turns
        assert len(state["messages"]) == 2 * (JOB.turns + 1) + 1
        seen["bytes_read"] = after - before - _bytes_read_by_looking(counter)


def _bytes_read(counter: Path) -> int:
    return int(counter.read_text().split()[1])


def _bytes_read_by_looking(counter: Path) -> int:
    """Reading the counter counts too."""
    before = _bytes_read(counter)
    return _bytes_read(counter) - before


def build(_seen: Seen) -> None:
    """A run whose state has `turns` MB before its last turn, a thousand 1 KB messages a turn."""
    texts = Model.of(JOB).texts

    @holdfast.step
    def read(turn: int) -> list[Message]:
        first = turn * MB_MESSAGES
        numbers = range(first, first + MB_MESSAGES)
        return [{"author": "tool", "text": f"{n} {texts[n % len(texts)]}"} for n in numbers]

    @holdfast.agent
    def gather(run: holdfast.Run) -> None:
        messages = run.state.setdefault("messages", [])
        for turn in run.turns():
            messages.extend(read(turn))
            if turn == JOB.turns:
                break

    with holdfast.open(STORE) as store:
        store.run(gather, id=RUN)


def fork(seen: Seen) -> None:
    """New runs that begin where the last but one turn of that run ended."""
    fork_ns: list[int] = []
    at = f"{RUN}@{JOB.turns - 1}"
    with holdfast.open(STORE) as store:
        verb: Callable[..., object] | None = getattr(store, "fork", None)
        if verb is not None:
            for number in range(JOB.runs):
                begin = perf_counter_ns()
                verb(RUN, at=at, new_id=f"fork-{number}")
                fork_ns.append(perf_counter_ns() - begin)
            assert store.restore("fork-0")[1] == store.restore(at)[1]
    seen["fork_ns"] = fork_ns


WAYS: dict[str, Callable[[Seen], None]] = {
    "newest": newest,
    "earlier": earlier,
    "build": build,
    "fork": fork,
}


if __name__ == "__main__":
    seen: Seen = {}
    WAYS[JOB.what](seen)
    JOB.report(seen)
