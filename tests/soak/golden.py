"""P18: golden stores, and the fence after a restore: `python -m tests.soak.golden`.

Each golden store is opened, verified to the last byte, and every point restored and compared. Each
case of the fence litmus (`tests.engine.test_fence`) is a run that pays, is restored to before that
in one of three ways, and is then asked the same, reworded, or something else: no standing effect is
done again, none that is meant anew is swallowed.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import holdfast
from tests.engine import test_fence as litmus
from tests.engine.kit import RUN, fence
from tests.golden.tell import KEY, KEY_TEXT, contents, findings
from tests.golden.test_golden import STORES, copied
from tests.soak.part import Outcome, Part, Trial, main, memory

CASES: dict[str, tuple[Sequence[litmus.Call], Sequence[litmus.Call], int]] = {
    **{name: (*calls, len(calls[0])) for name, calls in litmus.SAME.items()},
    **{name: (*calls, len(calls[0])) for name, calls in litmus.BLOCKED.items()},
    **litmus.NEW,
}
"""What is said before the restore and after it, and how many effects there are then."""


def whole(place: Path, folder: Path) -> Outcome:
    """Open, verify and restore a golden store."""
    outcome = Outcome()
    path, key = copied(place, folder)
    expected = json.loads((place / "expected.json").read_text(encoding="utf-8"))
    told = json.loads(json.dumps(contents(path, key)))
    outcome.findings += findings(path, key)
    outcome.findings += [
        f"{run} is not what it was"
        for run in expected.keys() | told.keys()
        if expected.get(run) != told.get(run)
    ]
    outcome.counts["golden stores"] += 1
    outcome.counts["points restored"] += sum(len(run.get("states", ())) for run in told.values())
    return outcome


def restored(case: str, way: str, folder: Path) -> Outcome:
    """One case of the litmus, restored in one way."""
    outcome = Outcome()
    first, second, expected = CASES[case]
    for each in (litmus.done, litmus.keys):
        each.clear()
    before = fence["restores"]
    with holdfast.open(folder / "store") as store:
        litmus.say(*first)
        store.run(litmus.payer, id=RUN)
        litmus.say(*second)
        try:
            store.run(litmus.payer, id=litmus.restored(store, way))
            is_blocked = False
        except holdfast.Blocked:
            is_blocked = True
    done = len(litmus.done)
    outcome.counts["restores"] += fence["restores"] - before
    outcome.counts["blocked"] += is_blocked
    outcome.counts["effects doubled"] += max(0, done - expected)
    outcome.counts["effects swallowed"] += max(0, expected - done)
    if done != expected or is_blocked is not (case in litmus.BLOCKED):
        outcome.findings.append(f"{case}, {way}: {litmus.done}, blocked: {is_blocked}")
    return outcome


def plans() -> list[Callable[[Path], Outcome]]:
    """Every store and every case, as what is done in a folder of its own."""
    stores = [lambda folder, place=file.parent: whole(place, folder) for file in STORES]
    cases = [
        lambda folder, case=case, way=way: restored(case, way, folder)
        for case in CASES
        for way in litmus.WAYS
    ]
    return [*stores, *cases]


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:  # noqa: ARG001 all of it is tried; nothing is drawn
    """Each store and each case once."""
    os.environ[KEY.partition(":")[2]] = KEY_TEXT
    known = plans()

    def trial(number: int) -> Outcome | None:
        if number >= len(known):
            return None
        with tempfile.TemporaryDirectory(dir=memory()) as folder:
            try:
                outcome = known[number](Path(folder))
            except Exception as error:  # noqa: BLE001 whatever it is, it is a finding
                outcome = Outcome(findings=[f"{type(error).__name__}: {error}"])
        outcome.counts["stores and cases"] += 1
        return outcome

    yield trial


PART = Part(
    id="P18",
    name="golden",
    what="Golden stores of every format read exactly; restores after which calls are reworded.",
    counted="stores and cases",
    goal=len(STORES) + len(CASES) * len(litmus.WAYS),
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
