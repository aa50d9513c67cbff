"""A seeded part of every soak, small enough for `make test`; `make soak` goes on from there.

And that each of them has teeth: with a flush left out, or a hash not looked at, it finds something.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

import holdfast
from holdfast.store.backends import schema
from holdfast.store.backends.directory import Directory
from holdfast.testing.kill import can_trace
from tests.crash.outside import Line
from tests.engine import test_fence
from tests.engine.kit import RUN
from tests.property.test_store_model import Model, Run
from tests.soak import (
    crowd,
    cuts,
    flips,
    fuzz,
    golden,
    io_errors,
    kills,
    model,
    power,
    simulated,
    stalls,
    together,
)
from tests.soak.disk import Disk
from tests.soak.page import PAGE, text
from tests.soak.part import Outcome, Part, Record, Trial, drive
from tests.soak.simfs import Known, Name, SimFs
from tests.soak.trace import Act

Counted = Callable[[str], None]

CHANCE = random.Random(1)  # noqa: S311 a seed, not a secret


def small(part: Part, count: int, seconds: float = 8.0) -> Record:
    """A part of a part, kept nowhere."""
    reason = part.missing()
    if reason:
        pytest.skip(reason)
    return drive(part, count=count, folder=None, seconds=seconds)


@pytest.mark.parametrize(
    ("part", "count"),
    [
        (simulated.PART, 5_000),
        (kills.PART, 6),
        (fuzz.PART, 31_000),
        (flips.PART, 4_096),
        (model.PART, 1_000),
        (golden.PART, golden.PART.goal),
    ],
    ids=lambda each: each.name if isinstance(each, Part) else "",
)
def test_a_part_of_each_soak_finds_nothing(part: Part, count: int, counted: Counted) -> None:
    record = small(part, count)

    counted(f"{record.reached:,} {record.counted}")
    assert [] == record.findings
    assert record.reached


@pytest.mark.crash
@pytest.mark.strace
@pytest.mark.parametrize("workload", [("large", "durable"), ("probed", "async")])
def test_no_state_after_a_power_cut_loses_what_a_traced_run_acknowledged(
    tmp_path: Path, counted: Counted, workload: tuple[str, str]
) -> None:
    if not can_trace():
        pytest.skip("strace is missing, or may not trace here")
    with power.trials("kelp", tmp_path) as trial:
        outcome = trial(power.WORKLOADS.index(workload)) or Outcome()

    counted(f"{outcome.counts['states']:,} states")
    assert [] == outcome.findings
    assert outcome.counts["states"]


@pytest.mark.crash
@pytest.mark.strace
def test_a_flush_of_the_tail_that_is_left_out_is_found(tmp_path: Path) -> None:
    if not can_trace():
        pytest.skip("strace is missing, or may not trace here")
    acts = power.recorded("one_step", "durable", tmp_path)
    unflushed = [act for act in acts if (act.kind, act.path) != ("flush", "store/tail")]
    assert unflushed != acts
    replay = power.Replay(unflushed, power.Lab(tmp_path), is_lazy=False)

    assert any(
        "answers were handed out and are lost" in each
        for slice_ in range(power.SLICES)
        for each in replay.look(CHANCE, is_strict=True, slice_=slice_, is_drawn=False).findings
    )


@pytest.mark.crash
def test_power_cuts_of_real_file_systems_lose_nothing(counted: Counted) -> None:
    record = small(cuts.PART, 4)

    counted(f"{record.reached} power cuts")
    assert [] == record.findings


@pytest.mark.crash
@pytest.mark.parametrize(("name", "count"), [("io_errors", 16), ("stalls", len(stalls.TROUBLES))])
def test_failed_and_slow_calls_lose_nothing(
    tmp_path: Path, counted: Counted, name: str, count: int
) -> None:
    if reason := io_errors.missing():
        pytest.skip(reason)

    asked = ["--count", str(count), "--folder", str(tmp_path / "soak")]
    status = io_errors.run_loaded(asked, name)

    kept = (tmp_path / "soak" / f"{name}.json").read_bytes()
    record = msgspec.json.decode(kept, type=Record)
    told = record.counts["told by the library"]
    counted(f"{record.reached} {record.counted}, {told} told by the library")
    assert (0, []) == (status, record.findings)
    assert told


@pytest.mark.crash
def test_processes_that_are_stopped_and_killed_beside_each_other_lose_nothing(
    counted: Counted,
) -> None:
    record = small(together.PART, 1)

    counted(f"{record.counts['stops']} stops, {record.counts['writes refused']} writes refused")
    assert [] == record.findings
    assert record.counts["stops"]
    assert 1 == record.counts["woken too late"]


@pytest.mark.crash
def test_a_late_process_that_is_not_refused_is_found_in_every_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfenced = schema.APPEND.replace("(SELECT epoch FROM run WHERE no=?)=?", "(? + ?) IS NOT NULL")
    assert unfenced != schema.APPEND
    monkeypatch.setattr(schema, "APPEND", unfenced)
    monkeypatch.setattr(together, "ROUND_S", 0.0)
    monkeypatch.setattr(crowd, "RUNS", ())
    monkeypatch.setattr(crowd, "TURNS", 2)

    outcome = together.Round(tmp_path, CHANCE, "a seed").run()

    assert "a process that woke up after its run had ended was not refused" in outcome.findings
    assert outcome.counts["two holders wrote"]


@pytest.mark.parametrize(
    ("kind", "what", "token", "found"),
    [
        ("got", "think ann 1", "late", "two holders wrote"),
        ("got", "think ann 99", "late", "acknowledged work lost"),
        ("result", "ann", "[]", "acknowledged work lost"),
        ("done", "ann 1", "late", "effects doubled"),
    ],
)
def test_a_history_that_the_model_does_not_allow_is_found(
    kind: str, what: str, token: str, found: str
) -> None:
    answers = [
        {"what": f"{do} ann {turn}", "token": "first"}
        for turn in range(crowd.TURNS)
        for do in ("think", "book")
    ]
    log = [Line("got", each["what"], each["token"]) for each in answers]
    world = [Line(f"key {turn}", f"ann {turn}", "first") for turn in range(crowd.TURNS)]
    sound = together.judged(log, world, {"ann": answers})

    (world if kind == "done" else log).append(Line(kind, what, token))
    broken = together.judged(log, world, {"ann": answers})

    assert not any(sound.values())
    assert [found] == [name for name, each in broken.items() if each]


def test_a_store_that_differs_from_the_dicts_is_found() -> None:
    def forgetful(self: Run) -> list[object]:
        return seen(self)[:-1]

    seen = Run.seen
    with patch.object(Run, "seen", forgetful):
        # What is drawn depends on the constants in the source, too: some lives may not read.
        assert any(model.live(Model, seed, is_shrunk=False).findings for seed in range(40))


def test_a_payment_that_is_made_again_after_a_restore_is_found(tmp_path: Path) -> None:
    def unfenced(store: holdfast.Store, _way: str) -> str:
        return store.fork(RUN, at=0, fork_effects=True).id

    with patch.object(test_fence, "restored", unfenced):
        outcome = golden.restored("word for word", "fork", tmp_path)

    assert outcome.findings
    assert 1 == outcome.counts["effects doubled"]


@pytest.mark.parametrize(
    ("left_out", "found"),
    [
        ("flush", "is there and torn"),
        ("flush_directory", "is named by a row and not there"),
    ],
)
def test_a_flush_that_is_left_out_is_found(tmp_path: Path, left_out: str, found: str) -> None:
    with patch.object(SimFs, left_out, lambda self, _what: self.after()):
        outcome = in_order(tmp_path, ["_save"])

    assert any(found in each for each in outcome.findings)


def test_what_was_removed_before_an_encryption_cannot_come_back_in_clear(tmp_path: Path) -> None:
    outcome = in_order(tmp_path, ["_save", "_save", "_gc", "_rekey"])

    assert [] == outcome.findings
    assert outcome.counts["disks"]


def test_a_removal_that_is_not_settled_before_an_encryption_ends_is_found(tmp_path: Path) -> None:
    with patch.object(Directory, "settle", lambda _self: None):
        outcome = in_order(tmp_path, ["_save", "_save", "_gc", "_rekey"])

    assert any("is in clear in an encrypted store" in each for each in outcome.findings)


def in_order(folder: Path, acts: list[str]) -> Outcome:
    """What a simulation finds that does just this."""
    simulation = simulated.Simulation(folder, "in order")

    def live() -> None:
        simulation._open()  # noqa: SLF001 as it begins
        for act in acts:
            getattr(simulation, act)()
        simulation._leave()  # noqa: SLF001 as it ends

    with patch.object(simulation, "_live", live):
        return simulation.run()


def test_a_folder_whose_maker_died_does_not_take_a_later_object_with_it(tmp_path: Path) -> None:
    # The seed by which the soak found it: killed between making a folder and flushing that.
    outcome = simulated.Simulation(tmp_path, "kelp 231").run()

    assert [] == outcome.findings
    assert outcome.counts["kills"]


def test_a_pending_name_and_pending_bytes_are_there_or_not_each_by_itself() -> None:
    name = Name(Path("a"), None, Path("a/b"), 0)
    known = Known(folders={Path("a")}, pending=[name], loose=[0])

    disks = list(known.disks(CHANCE))

    assert 10 == len(disks)
    assert {0, 1} == {len(disk.files) for disk in disks}


@pytest.mark.parametrize("is_strict", [True, False], ids=["strictly", "as on ext4"])
def test_a_disk_keeps_what_was_flushed_and_may_lose_the_rest(is_strict: bool) -> None:
    disk = Disk(is_strict=is_strict)
    for act in (
        Act("make", "a"),
        Act("write", "a", data=b"one"),
        Act("flush", "a"),
        Act("flush", ""),
        Act("make", "b"),
        Act("write", "b", data=b"two"),
    ):
        disk.do(act)

    states = list(disk.states(CHANCE, is_drawn=False))

    assert all(b"one" == state["a"] for state in states)
    assert {1, 2} == {len(state) for state in states}
    assert {b"", b"two"} <= {state.get("b", b"") for state in states}


def test_a_part_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    part = Part(id="P0", name="made_up", what="Counts.", counted="things", goal=5, trials=_made_up)

    first = drive(part, count=2, folder=tmp_path)
    second = drive(part, folder=tmp_path)

    assert (2, 2) == (first.next, first.reached)
    assert (5, 5, ["made_up --seed kelp --only 3: odd"]) == (
        second.next,
        second.reached,
        second.findings,
    )


def _made_up(_seed: str) -> AbstractContextManager[Trial]:
    def trial(number: int) -> Outcome:
        return Outcome(counts=Counter(things=1), findings=["odd"] if number == 3 else [])

    return contextlib.nullcontext(trial)


def test_the_page_says_the_true_numbers_and_why_something_was_skipped() -> None:
    record = Record(
        id="P5",
        name="cuts",
        what="Cuts.",
        counted="power cuts",
        goal=600,
        seed="kelp",
        counts={"power cuts": 17, "ext4": 9},
        found=2,
    )
    skipped = Record(
        id="P8", name="io_errors", what="Fails.", counted="x", goal=1, seed="s", skipped="no cc"
    )

    page = text([skipped, record])

    assert "| P5 | **17** power cuts | 600 | **2** | ext4 9 |" in page
    assert "| P8 | skipped: no cc |" in page
    assert "Skipped here: 1." in page


def test_the_page_of_this_repository_was_made_by_machine() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page.startswith("# Proof\n\nMade by machine")
    parts = (simulated, power, kills, cuts, io_errors, stalls, flips, model, together, fuzz, golden)
    for part in parts:
        assert f"| {part.PART.id} |" in page
