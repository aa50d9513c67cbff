"""Values that are nearly those before cost what changed, and stay whole in all that is done."""

import copy
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import holdfast
from holdfast.engine.parcel import Header, Parcel, from_bytes, to_bytes
from holdfast.engine.transfer import admit
from holdfast.model.journal import Answer
from holdfast.store.codec.frame import seal
from holdfast.store.reference import is_patch, is_reference
from holdfast.store.verify import verify
from tests.engine.kit import RUN, Crash, Stage, text
from tests.engine.test_transfer import is_whole, opened, parcel, states

Messages = list[dict[str, Any]]

TURNS, BEGIN = 24, 80
SIZE = 1_000
WHOLE_BYTES = sum(SIZE * (BEGIN + 2 * turn) for turn in range(TURNS))
"""What the answers of a talk have together."""


dies_in: set[int] = set()


@holdfast.step
def reply(messages: Messages) -> Messages:
    """As many libraries do it: the whole conversation comes back, as copies."""
    said = {"role": "assistant", "content": text(len(messages), SIZE)}
    return [*copy.deepcopy(messages), said]


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def talk(run: holdfast.Run, turns: int = TURNS) -> int:
    if "messages" not in run.state:
        run.state["messages"] = [{"content": text(("begin", n), SIZE)} for n in range(BEGIN)]
    for turn in run.turns():
        run.state["messages"].append({"role": "user", "content": text(("asked", turn), SIZE)})
        run.state["messages"] = reply(run.state["messages"])
        if turn in dies_in:
            raise Crash
        if turn + 1 == turns:
            break
    return len(run.state["messages"])


def said_by(turn: int) -> Messages:
    """The conversation as it must be at the end of a turn."""
    messages: Messages = [{"content": text(("begin", n), SIZE)} for n in range(BEGIN)]
    for each in range(turn + 1):
        messages.append({"role": "user", "content": text(("asked", each), SIZE)})
        said = text(len(messages), SIZE)
        messages.append({"role": "assistant", "content": said})
    return messages


def taken(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def patches(stage: Stage, id_: str = RUN) -> int:
    answers = [entry.value for entry in stage.journal(id_) if isinstance(entry, Answer)]
    return sum(is_reference(value) and is_patch(value) for value in answers)


def test_a_conversation_that_comes_back_whole_is_stored_by_what_was_said(stage: Stage) -> None:
    assert BEGIN + 2 * TURNS == stage.live(talk)

    assert TURNS - 1 == patches(stage)
    assert taken(stage.path / "objects") < WHOLE_BYTES / 8
    assert [said_by(turn) for turn in range(TURNS)] == [
        state["messages"] for turn, _, state in states(stage.path, RUN) if turn >= 0
    ]
    assert is_whole(stage.path)


def test_a_killed_run_goes_on_from_patches(stage: Stage) -> None:
    dies_in.add(13)
    stage.die(talk)
    dies_in.clear()

    assert BEGIN + 2 * TURNS == stage.restart(talk)
    assert said_by(TURNS - 1) == states(stage.path, RUN)[-1][2]["messages"]
    assert TURNS - 2 == patches(stage)
    assert is_whole(stage.path)


def test_a_text_and_an_attached_object_that_change_a_little_cost_the_change(stage: Stage) -> None:
    class Notes:
        def __init__(self) -> None:
            self.table = bytearray.fromhex(text("table", 400_000))

        def capture(self) -> bytes:
            return bytes(self.table)

        def restore(self, kept: bytes) -> None:
            self.table[:] = kept

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def editor(run: holdfast.Run) -> None:
        notes = Notes()
        run.attach("notes", notes)
        run.state.setdefault("draft", text("draft", 300_000))
        for turn in run.turns():
            run.state["draft"] += text(turn, 200)
            notes.table[turn * 2_000 : turn * 2_000 + 100] = bytes(100)
            if turn + 1 == TURNS:
                break

    stage.live(editor)

    assert taken(stage.path) < 3 * 700_000 < TURNS * 500_000 / 5
    grown, expected = states(stage.path, RUN), text("draft", 300_000)
    for turn in range(TURNS):
        expected += text(turn, 200)
        assert expected == grown[turn][2]["draft"]
    assert is_whole(stage.path)


def test_what_a_kept_point_is_a_patch_on_stays_when_others_go(stage: Stage) -> None:
    stage.live(talk)
    before = {root: state for _, root, state in states(stage.path, RUN)}
    with stage.open() as store:
        store.gc(holdfast.Retention(last=2))

    after = states(stage.path, RUN)
    assert 0 < len(after) < TURNS
    assert all(before[root] == state for _, root, state in after)
    assert is_whole(stage.path)
    with stage.open() as store:
        store.fork(RUN, new_id="fork")
        store.gc(holdfast.Retention(runs_within=0.001))
    assert [] == list((stage.path / "objects").rglob("*/*")) or is_whole(stage.path)


def test_a_run_with_patches_is_carried_to_another_store(stage: Stage, tmp_path: Path) -> None:
    stage.live(talk)
    carried = parcel(stage.path)
    with opened(tmp_path / "other") as found:
        admit(found, carried)

    assert states(stage.path, RUN) == states(tmp_path / "other", RUN)
    assert is_whole(tmp_path / "other")
    assert taken(tmp_path / "other" / "objects") < WHOLE_BYTES / 8
    assert patches(Stage(tmp_path / "other")) == patches(stage)
    with opened(tmp_path / "other") as found:
        admit(found, carried, "again")
    assert states(stage.path, RUN) == states(tmp_path / "other", "again")


def test_a_patch_in_a_file_that_is_not_what_it_is_named_is_refused(
    stage: Stage, tmp_path: Path
) -> None:
    stage.live(talk, 4)
    whole = parcel(stage.path)
    first, other, *_, last = whole.large
    odd = {
        "bytes do not match|no zstd frame|states": whole.large | {last: whole.large[other]},
        "not the patch": whole.large | {last: seal(said_by(1)[0]["content"].encode())},
        "named but not there": {n: data for n, data in whole.large.items() if n != first},
        "no name": whole.large | {b"": b""},
    }

    for words, large in odd.items():
        file = to_bytes(replace(whole, header=header_of(whole, large), large=large))
        with opened(tmp_path / "other") as found:
            with pytest.raises(holdfast.Damaged, match=words):
                admit(found, from_bytes(file, "file"))
            assert [] == list(found.objects.ids())


def header_of(whole: Parcel, large: dict[bytes, bytes]) -> Header:
    return replace(whole.header, chunks=len(large))


def test_a_store_of_an_older_holdfast_gets_no_patches(stage: Stage, tmp_path: Path) -> None:
    stage.live(talk, 6)
    carried = parcel(stage.path)
    holdfast.open(tmp_path / "old").close()
    with closing(sqlite3.connect(tmp_path / "old" / "store.db")) as link, link:
        link.execute(
            "UPDATE meta SET value=CAST(replace(CAST(value AS TEXT), 'patches ', '') AS BLOB) "
            "WHERE key='incompat'"
        )

    refused = pytest.raises(holdfast.UsageError, match="import it into a new store")
    with opened(tmp_path / "old") as found, refused:
        admit(found, carried)
    old = Stage(tmp_path / "old")
    old.live(talk, 6)

    assert 0 == patches(old)
    assert 5 == patches(stage)
    assert states(stage.path, RUN) == states(old.path, RUN)


def flip(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:-9] + bytes([data[-9] ^ 4]) + data[-8:])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stage = Stage(tmp_path_factory.mktemp("told") / "store")
    stage.live(talk)
    return stage.path


@pytest.mark.parametrize("harm", [flip, Path.unlink], ids=["flipped", "gone"])
@pytest.mark.parametrize("which", [0, 3, 16, -1])
def test_damage_takes_what_stands_on_it_and_nothing_else(
    told: Path, tmp_path: Path, harm: Callable[[Path], None], which: int
) -> None:
    path = Path(shutil.copytree(told, tmp_path / "store"))
    known = {turn: state for turn, _, state in states(path, RUN)}
    files = sorted((path / "objects").glob("??/*"), key=lambda file: file.stat().st_mtime_ns)
    harm(files[which])

    lost = {}
    with holdfast.open(path) as store:
        for point in store.checkpoints(RUN, every_turn=True):
            try:
                assert known[point.turn] == store.restore(point)[1]
            except holdfast.Damaged as damaged:
                lost[point.turn] = str(damaged)

    assert lost
    assert all(files[which].name in words for words in lost.values())
    assert not which or len(lost) <= TURNS // 2
    with opened(path) as found:
        report = verify(found, deep=True)
    assert {f"chunk {files[which].name}"} <= {finding.where for finding in report.findings}
