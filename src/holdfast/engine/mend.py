"""What becomes of one damaged run: its healthy beginning, and the newest state beyond it.

Where a later point still restores, its whole state is written anew behind the healthy beginning,
with the effects that are known and what the open turn had recorded. Where effects may have
happened of which nothing is known any more, the run does not go on by itself: a person restarts it.
"""

import contextlib
from collections.abc import Sequence
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from holdfast.capture.state import State
from holdfast.engine.anew import Tail
from holdfast.engine.cutoff import CutOff, end_rollback
from holdfast.engine.fates import Act, Fate, Patient, fate_of, nothing_left
from holdfast.engine.forgotten import done_in, is_ledger, lost_besides, told, unsure_of
from holdfast.engine.good import newest_good
from holdfast.engine.outside import is_outside
from holdfast.engine.points import Points
from holdfast.engine.restore import is_pruned
from holdfast.errors import Damaged, NotStorable, UnknownCheckpoint
from holdfast.model.branches import Retaken, Retaking, RolledBack, Settled, Undoing
from holdfast.model.failure import REPAIRED
from holdfast.model.ids import Point, branch_of, ranges
from holdfast.model.journal import (
    Answer,
    Based,
    Declined,
    Entry,
    Error,
    Failed,
    Finished,
    Happened,
    Intended,
    Mark,
    Noted,
    Raised,
    Resumed,
    Row,
    Saved,
    Spawned,
    Started,
    Streamed,
    TurnEnded,
    Undone,
)
from holdfast.model.rollback import Take
from holdfast.model.run import Holder, RunBody, Status
from holdfast.store.backends.base import JournalRow, RunRow
from holdfast.store.codec import values
from holdfast.store.inside import references_of
from holdfast.store.reader import Placed, Reader, Run
from holdfast.store.repair.rebuild import Keep
from holdfast.store.repair.sift import Sifted
from holdfast.store.verify.lines import Lines
from holdfast.store.writer import make_run

_LEDGER = (Intended, Happened, Declined)
_BACK = (Retaking, Undoing, Undone, Retaken)
_RECORDED = (Answer, Streamed, Spawned, Raised, Noted, Saved, *_LEDGER)


class Mender:
    """Decides for one run after the other what is kept of it."""

    def __init__(self, reader: Reader, points: Points, holder: Holder, now: float) -> None:
        self._reader, self._points = reader, points
        self._holder, self._now = holder, now
        self._carried: set[str] = set()

    def mend(self, patient: Patient, every: dict[int, Sifted]) -> tuple[Keep | None, Fate | None]:
        """What the new database holds of a run, and its fate if it was damaged.

        `every` are the branches of all runs: a fork grows from one of another run.
        """
        kept = [each for each in patient.branches if each.kept]
        first = _line(kept[0], every)[:1] if kept else []
        started = first[0].row.entries[0] if first else None
        if not isinstance(started, Started):
            return None, nothing_left(patient)
        seals = self._reader.seals.of(patient.no)
        body = patient.body or _body_of(patient, started)
        head = _head(patient, kept)
        branches = [each for each in patient.branches if each.kept or each is head]
        unsure, done = lost_besides(patient, head, self._carried)
        if patient.is_sound and patient.row is not None and not (unsure or done):
            return self._keep(Run(row=patient.row, body=body), branches, [], every), None
        epoch = _epoch(kept)
        row = patient.row or RunRow(
            no=patient.no, kid=b"", epoch=epoch, head=head.branch.no, mac=b"", body=b""
        )
        row = replace(row, kid=self._reader.seals.kid(body.id), head=head.branch.no)
        line = _line(head, every)
        tail = Tail(seals, head)
        is_short = any(each.lost for each in patient.branches)
        act: Act = "cut" if unsure or done or is_short else "filed"
        is_ended = bool(head.kept) and isinstance(head.kept[-1].row.entries[-1], Finished)
        is_lost = any(each.lost and is_ledger(each) for each in kept) or unsure or done
        is_cut = head.lost or not head.kept or (is_lost and not is_ended)
        if is_cut or patient.gone or row.epoch != epoch:
            row = replace(row, epoch=row.epoch + 1)
            good = self._good(Run(row=row, body=body), head)
            act = "cut" if good is None else "carried"
            ended = self._add(tail, Run(row=row, body=body), head, line, good)
            body = replace(body, undos_left=body.undos_left + len(ended.unknown))
            self._carried.update(e.key for e in tail.entries if isinstance(e, Intended))
            unsure += [*unsure_of(patient, head, tail.entries, every), *ended.told]
            done += done_in(head, tail.entries)
            is_over = good is None and not _goes_on(line)
            if (unsure or done or is_over) and not isinstance(tail.last, Finished | Failed):
                tail.add([self._stop(body.id, unsure, done, is_over=is_over)], tail.base)
        last = tail.last or head.kept[-1].row.entries[-1]
        body = _as_told_by(last, body)
        run = Run(row=make_run(seals, row, body), body=body)
        left = [*line, *tail.placed]
        point = self._newest(run, line, tail)
        fate = fate_of(patient, body, act, left, point, effects=(unsure, done))
        return self._keep(run, branches, tail.rows, every), fate

    def _keep(
        self,
        run: Run,
        branches: list[Sifted],
        added: list[JournalRow],
        every: dict[int, Sifted],
    ) -> Keep:
        """What is kept of a run, with the marks of its rows in the ledger that it shares."""
        seals, ledger = self._reader.seals.of(run.row.no), self._reader.seals.of(run.ledger)
        lines = Lines()
        intents: list[tuple[bytes, int]] = []
        decode = msgspec.msgpack.Decoder(Row).decode
        for each in branches:
            inherited = None if lines.knows(each.branch.parent) else _inherited(each, every)
            lines.grow(each.branch, inherited)
            rows = [(placed.id, placed.row) for placed in each.kept]
            if each.branch.no == run.row.head:
                mac = each.mac
                for new in added:
                    rows.append((new.id, decode(seals.open_row(new, mac))))
                    mac = new.mac
            for id_, content in rows:
                list(lines.read(each.branch, id_, content))
                found = lines.new_intents(each.branch, id_, content)
                intents += [(ledger.mark(intent), id_) for intent in found]
        return Keep(
            run=run.row,
            body=run.body,
            branches=[each.branch for each in branches],
            ends={each.branch.no: each.as_it_is for each in branches},
            added=[*(row for each in branches for row in each.made), *added],
            intents=intents,
            ledger=run.ledger,
        )

    def _good(self, run: Run, head: Sifted) -> Point | None:
        """The newest end of a turn or run behind the healthy beginning that restores."""
        if not head.rest:
            return None
        good = newest_good(self._reader, run, self._points.at, is_at_end=True)
        is_beyond = good and branch_of(good[0]) == head.branch.no and good > head.until
        return good if is_beyond else None

    def _newest(self, run: Run, line: Sequence[Placed], tail: Tail) -> Point | None:
        """The newest end of a turn or run in what is left; not one that was pruned away."""
        if added := _ends(tail.placed):
            return added[-1]
        is_any_pruned = any(is_pruned(placed.row) for placed in line)
        for point in reversed(_ends(line)):
            try:
                if is_any_pruned:
                    self._points.at(run, point)
            except UnknownCheckpoint:
                continue
            except (Damaged, NotStorable):
                pass  # What is damaged around it is mended; what is unknown here may be known.
            return point
        return None

    def _add(
        self, tail: Tail, run: Run, head: Sifted, line: Sequence[Placed], good: Point | None
    ) -> CutOff:
        """A new life under the next epoch; then what is known beyond the healthy beginning.

        A rollback that damage cut off is over then; how is returned.
        """
        resumed = Resumed(self._now, run.row.epoch, self._holder, run.body.version)
        base = line[-1].row.base if line else -1
        life = tail.next
        before = [] if good is None else self._before(head, line, good)
        own = [entry for placed in head.kept for entry in placed.row.entries]
        ended = end_rollback([*own, *before], self._named, self._now)
        tail.add([resumed, *before, *ended.entries], base)
        if good is None:
            return ended
        outside = [p.id for p in line if is_outside(p.row.turn, p.row.entries)]
        entries = self._standing(run, good, life)
        entries[-1:] = [
            replace(e, outside=ranges(iter(outside))) if isinstance(e, Based) else e
            for e in entries[-1:]
        ]
        left = takewhile(lambda each: self._is_there(each[1]), _open_turn(head.rest, good))
        whole = [self._whole(run, e, at, life) if isinstance(e, Saved) else e for at, e in left]
        tail.add([*entries, *whole], tail.next)
        return ended

    def _before(self, head: Sifted, line: Sequence[Placed], good: Point) -> list[Entry]:
        """What became of effects between the healthy beginning and a point beyond it."""
        known = {
            (type(e), e.key)
            for placed in line
            for e in placed.row.entries
            if isinstance(e, _LEDGER)
        }
        found: list[Entry] = []
        for placed in head.rest:
            for index, entry in enumerate(placed.row.entries):
                if not head.until < (placed.id, index) < good or not self._is_there(entry):
                    continue
                if isinstance(entry, Settled):
                    found.append(replace(entry, delta=None, turn=-1))  # A whole state follows.
                elif isinstance(entry, _BACK) or (
                    isinstance(entry, _LEDGER) and (type(entry), entry.key) not in known
                ):
                    found.append(entry)
        return found

    def _is_there(self, entry: Entry) -> bool:
        """Whether every large value is there that an entry names."""
        fetch = self._reader.chunks.fetch
        try:
            for reference in references_of(entry, fetch):
                fetch(reference)
        except (Damaged, ValueError):
            return False
        return True

    def _named(self, take: Take) -> str:
        """An effect as people read it; its key, where its intent is damaged."""
        with contextlib.suppress(Damaged):
            entries = self._reader.row(take.row).row.entries
            meant = entries[take.index] if take.index < len(entries) else None
            if isinstance(meant, Intended):
                return told(meant)
        return f"the effect {take.key}"

    def _whole(self, run: Run, entry: Saved, at: Point, life: int) -> Entry:
        """A checkpoint with all that it holds: what its change was made to is not there any more.

        Where that cannot be read it is no point any more, only what the agent asked.
        """
        mark = _by(entry.mark, life)
        if entry.state is not None:
            return replace(entry, mark=mark)
        try:
            data = values.encode(self._points.at(run, at)[1], path="state")
        except (Damaged, NotStorable):
            return Noted(entry.call, values.encode(None))
        return replace(entry, state=data, delta=None, mark=mark)

    def _standing(self, run: Run, good: Point, life: int) -> list[Entry]:
        """The state at a point, whole and in itself, under the entry that ended there."""
        placed = self._reader.row(good[0])
        entry = placed.row.entries[good[1]]
        state = State(self._points.at(run, good)[1]).base()
        if isinstance(entry, Finished):
            based = Based(max(placed.row.turn, 0), 1, state, [])
            return [based, replace(entry, delta=None)]
        assert isinstance(entry, TurnEnded)
        ended = replace(entry, delta=None, mark=entry.mark and _by(entry.mark, life))
        return [ended, Based(entry.turn, entry.loop + entry.is_loop_over, state, [])]

    def _stop(self, run: str, unsure: list[str], done: list[str], *, is_over: bool) -> Failed:
        told = {"these effects were done after what is left": done}
        told["of these effects it is not known whether they are done"] = unsure
        parts = [f"{what}: {', '.join(names)}" for what, names in told.items() if names]
        if is_over:
            parts.append("nothing is left that it could go on from: begin it anew under another id")
        else:
            parts.append(f"look, then `holdfast restart {run}` goes on and may do them again")
        message = f"repaired; {'; '.join(parts)}"
        return Failed(self._now, str(Status.FAILED), Error("holdfast", REPAIRED, message))


def _body_of(patient: Patient, started: Started) -> RunBody:
    """The catalog entry that was written with this start, or one made of what the start says."""
    for claim in patient.claims:
        told = claim.created, claim.agent, claim.module
        if told == (started.at, started.agent, started.module):
            return claim
    return RunBody(
        id=patient.name,
        agent=started.agent,
        module=started.module,
        version=started.version,
        created=started.at,
        holder=started.holder,
    )


def _head(patient: Patient, kept: Sequence[Sifted]) -> Sifted:
    """The branch that goes on: the catalog's, or where that is not known the newest."""
    wanted = -1 if patient.row is None else patient.row.head
    known = next((each for each in patient.branches if each.branch.no == wanted), None)
    return known or next(each for each in reversed(kept) if not is_ledger(each))


def _epoch(kept: Sequence[Sifted]) -> int:
    resumed = [
        entry.epoch
        for each in kept
        for placed in each.kept
        for entry in placed.row.entries
        if isinstance(entry, Resumed)
    ]
    return max(resumed, default=1)


def _line(head: Sifted, every: dict[int, Sifted]) -> list[Placed]:
    """The true rows of the line of history that ends in `head`."""
    line: list[Placed] = []
    each, end = head, head.end
    while True:
        line[:0] = [placed for placed in each.kept if placed.id <= end]
        if not each.branch.parent:
            return line
        each, end = every[each.branch.parent], each.branch.at


def _ends(rows: Sequence[Placed]) -> list[Point]:
    """The ends of turns and of the run in these rows."""
    return [
        (placed.id, index)
        for placed in rows
        for index, entry in enumerate(placed.row.entries)
        if isinstance(entry, TurnEnded | Finished)
    ]


def _goes_on(line: Sequence[Placed]) -> bool:
    """Whether garbage collection has left what a restart needs of a line of history."""
    base = line[-1].row.base if line else -1
    start = next((n for n, placed in enumerate(line) if placed.id == base), 0)
    return not any(is_pruned(placed.row) for placed in line[start:])


def _open_turn(rest: Sequence[Placed], good: Point) -> list[tuple[Point, Entry]]:
    """What was recorded after a point, as far as nothing is missing in between."""
    found: list[tuple[Point, Entry]] = []
    expected = good[0]
    for placed in rest:
        if placed.id < good[0]:
            continue
        if placed.id != expected:
            break
        expected += 1
        for index, entry in enumerate(placed.row.entries):
            at = placed.id, index
            if at > good and isinstance(entry, _RECORDED):
                found.append((at, entry))
    if rest and rest[-1].id == expected - 1 and isinstance(rest[-1].row.entries[-1], Failed):
        found.append(((rest[-1].id, -1), rest[-1].row.entries[-1]))
    return found


def _by(mark: Mark, life: int) -> Mark:
    """The mark of a checkpoint whose life is told by another row now."""
    return replace(mark, life=life)


def _as_told_by(last: Entry, body: RunBody) -> RunBody:
    """The catalog entry that agrees with the newest entry of the journal."""
    match last:
        case Finished():
            return replace(body, status=Status.FINISHED, ended=last.at, error=None)
        case Failed():
            status = next((each for each in Status if each == last.status), Status.FAILED)
            told = f"{last.error.name}: {last.error.message}"
            return replace(body, status=status, ended=last.at, error=body.error or told)
        case RolledBack() | Undoing() | Undone():
            return replace(body, status=Status.ROLLING_BACK, ended=None, error=None)
        case _:
            return replace(body, status=Status.RUNNING, ended=None, error=None)


def _inherited(grown: Sifted, every: dict[int, Sifted]) -> int | None:
    """The newest base at the row of another run from which a fork grew."""
    parent = every.get(grown.branch.parent)
    if parent is None:
        return None
    return next((p.row.base for p in parent.kept if p.id == grown.branch.at), -1)
