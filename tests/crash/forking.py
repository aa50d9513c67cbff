"""Programs that fork around an open store, for `test_fork`; each prints what it saw as JSON."""

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

import holdfast

WORKERS = 3


@holdfast.step
def think(turn: int) -> int:
    return turn


@holdfast.agent
def counting(run: holdfast.Run, turns: int = 2) -> list[int]:
    run.state.setdefault("seen", [])
    for turn in run.turns():
        run.state["seen"].append(think(turn))
        if turn == turns - 1:
            break
    seen: list[int] = holdfast.plain(run.state["seen"])
    return seen


def _error_of(use: Callable[[], object]) -> str:
    try:
        return f"no error, but {use()!r}"
    except Exception as error:  # noqa: BLE001 its name is what is asked for
        return type(error).__name__


def _uses(store: holdfast.Store) -> list[str]:
    """What each use of the store raises here."""
    return [
        _error_of(lambda: store.run(counting, id="new")),
        _error_of(lambda: store.run(counting, id="before")),
        _error_of(lambda: store.restart("before", agent=counting)),
        _error_of(lambda: store.resolve("before", "key", happened=True)),
        _error_of(lambda: store.get("before")),
        _error_of(store.runs),
    ]


def _fork(child: Callable[[], object]) -> object:
    """What `child` returns in a process forked from this one, which then ends as usual."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(child()).encode())
        sys.exit(0)
    os.wait()
    return json.loads(os.read(reading, 65536))


def forked_by_os(path: Path) -> object:
    with holdfast.open(path) as store:
        store.run(counting, id="before")
        child = _fork(lambda: _uses(store))
        return child, store.run(counting, id="after")


def forked_while_runs_are_looked_after(path: Path) -> object:
    with holdfast.open(path) as store:
        store.run(counting, id="before")
        with store._lives._housekeeper._lock:  # noqa: SLF001 as its thread may hold it
            child = _fork(lambda: _error_of(store.close))
        return child, store.run(counting, id="after")


def forked_by_multiprocessing(path: Path) -> object:
    with holdfast.open(path) as store:
        store.run(counting, id="before")
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        process = context.Process(target=lambda: queue.put(_uses(store)))
        process.start()
        process.join()
        assert 0 == process.exitcode
        return queue.get(), store.run(counting, id="after")


def forked_inside_a_run(path: Path) -> object:
    seen: list[object] = []

    @holdfast.agent
    def forking(run: holdfast.Run) -> list[int]:
        first = think(0)
        seen.append(_fork(lambda: [_error_of(lambda: think(1)), _error_of(run.checkpoint)]))
        return [first, think(1)]

    with holdfast.open(path) as store:
        result = store.run(forking, id="before")
        return seen[0], result


def opened_again_after_the_fork(path: Path) -> object:
    def child() -> object:
        with holdfast.open(path) as store:
            return store.run(counting, id="after")

    with holdfast.open(path) as store:
        store.run(counting, id="before")
        return _fork(child), store.run(counting, id="after")


def opened_by_each_worker(path: Path) -> object:
    context = multiprocessing.get_context("fork")
    with context.Pool(WORKERS) as pool:
        return pool.starmap(_work, [(path, number) for number in range(2 * WORKERS)])


def _work(path: Path, number: int) -> list[int]:
    with holdfast.open(path) as store:
        return store.run(counting, number + 1, id=f"run-{number}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
