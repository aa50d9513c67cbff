"""What each run of a store came to, read once: time, tokens, failures, bytes."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from holdfast.model.decision import Action
from holdfast.model.ids import branch_of
from holdfast.model.journal import (
    Answer,
    Call,
    Decided,
    Declined,
    Entry,
    Failed,
    Happened,
    Intended,
    Redone,
    Resumed,
    Spawned,
    Started,
    Streamed,
    Usage,
)
from holdfast.model.limits import SLA
from holdfast.model.run import Status
from holdfast.policy.parameters import used_by
from holdfast.report.episodes import Episode, Line, copied_in, entries_of, episodes, lines_of
from holdfast.report.gaps import gaps_of, worked_s
from holdfast.report.held import Held, bytes_of, held_of
from holdfast.report.replays import replayed
from holdfast.report.rests import rested_s
from holdfast.report.sizes import large, sizes
from holdfast.store.open import Opened
from holdfast.store.reader import ALL, Reader, Run
from holdfast.store.steady import left_of, of_each

WATCHERS = ("supervise", "watch")


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """From when to when, in seconds since the epoch; None is open.

    A run belongs to the moment at which it ended or, if it has not, gave its last sign of life. So
    windows that follow each other share no run, and one that works for weeks is in the newest.
    """

    since: float | None = None
    until: float | None = None

    def holds(self, run: Run, reader: Reader) -> bool:
        """Whether a run belongs to it."""
        if self.since is self.until is None:
            return True
        ended = run.body.ended
        at = _newest(reader, run) if ended is None else ended
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


ALWAYS = Window()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    `worked_s` is the time for which some call was under way, `between_s` that between calls:
    saving, and the agent's own code. `spent` is what its answers used, `saved` what restarts did
    not ask for again, `lost` what stands on branches that were left. `at_risk_s` is, for each
    life that was cut off and gone on with, the work that would be done again without records.
    `saves` are its checkpoints and snapshots, `state_bytes` what they recorded, `replayed` the
    calls that restarts found recorded. `children` are those on the line that goes on, and
    `spared` those whose end a restart found recorded, once for each restart. `last_at` is when it
    recorded something last, `rested_s` for how long it lay at rest before it was gone on with.
    """

    id: str
    agent: str
    status: Status
    is_ended: bool
    began: float
    ended: float | None
    last_at: float
    worked_s: float
    between_s: float
    bytes: int
    episodes: list[Episode]
    sla: SLA | None
    is_watched: bool
    spent: list[Usage]
    saved: list[Usage]
    lost: list[Usage]
    at_risk_s: list[float]
    lives: int
    saves: list[Held]
    state_bytes: dict[str, int]
    replayed: dict[str, int]
    effects: int
    not_done: int
    in_doubt: int
    rested_s: float = 0.0
    children: list[str] = []
    spared: list[str] = []

    @property
    def is_left_alone(self) -> bool:
        """Whether it failed with nobody there to take it up; one that failed never tells."""
        ended = any(each.action is not Action.RETRY for each in self.episodes)
        return ended and not self.is_watched

    @property
    def is_down(self) -> bool:
        """Whether it failed and nobody has taken it up since, or given it up for good."""
        is_open = bool(self.episodes) and self.episodes[-1].resumed_at is None
        return is_open and self.status is not Status.CANCELLED

    @property
    def time_s(self) -> float:
        """How long it took from its start to its end, or until it was last heard of; less rests."""
        return self.until_s(self.last_at if self.ended is None else self.ended)

    def until_s(self, moment: float) -> float:
        """How long it has taken by a moment, without its rests."""
        return max(0.0, moment - self.began - self.rested_s)


def facts_of(
    opened: Opened, *, window: Window = ALWAYS, only: str | None = None
) -> Iterator[Facts]:
    """Every run that belongs to the window, newest first; or one run.

    A large value that several of them hold is counted once.
    """
    seen: set[bytes] = set()
    used = {each.run: each.bytes for each in sizes(opened).runs}
    runs = (run for run in opened.reader.runs() if only is None or run.body.id == only)

    def look(run: Run) -> tuple[Run, bool, list[Line]] | None:
        if not window.holds(run, opened.reader):
            return None
        return run, opened.leases.is_held(run.row.no), lines_of(opened.reader, run)

    for run, is_held, lines in filter(None, of_each(opened.reader, runs, look)):
        size = used.get(run.body.id, 0) + large(opened, entries_of(lines), seen)
        yield _facts(run, lines, size, is_held=is_held)


def kin_of(opened: Opened, facts: Iterable[Facts]) -> Iterator[Facts]:
    """The children that restarts of these runs spared, with theirs, where they are not among them.

    Their bytes are not looked at.
    """
    known = {run.id: run for run in facts}
    todo, seen = [child for run in known.values() for child in run.spared], set[str]()
    while todo:
        if (id_ := todo.pop()) in seen:
            continue
        seen.add(id_)
        if (child := known.get(id_)) is None:
            child = next(_unsized(opened, id_), None)
            if child is None:
                continue
            yield child
        todo += child.children


def _unsized(opened: Opened, id_: str) -> Iterator[Facts]:
    found = filter(None, [left_of(opened.reader, id_)])
    for run, lines in of_each(
        opened.reader, found, lambda run: (run, lines_of(opened.reader, run))
    ):
        yield _facts(run, lines, 0, is_held=opened.leases.is_held(run.row.no))


def _facts(run: Run, lines: Sequence[Line], size: int, *, is_held: bool) -> Facts:
    entries = list(entries_of(lines))
    copies = copies_in(lines)
    own = [entry for entry in entries if id(entry) not in copies]
    settled = {entry.key for entry in entries if isinstance(entry, Happened)}
    declined = {entry.key for entry in entries if isinstance(entry, Declined)}
    doubted = _doubted(entries)
    saved, spared, at_risk_s = _spared(lines, copies)
    started = next((entry for entry in entries if isinstance(entry, Started)), None)
    line = list(lineage(lines, run.row.head))
    kept = {id(entry) for entry in line} - _superseded(line)
    stand = {entry.key for entry in line if isinstance(entry, Happened)}
    is_fork = run.body.origin is not None and not run.body.origin.is_child
    failures = episodes(lines, is_held=is_held)
    return Facts(
        id=run.body.id,
        agent=run.body.agent,
        status=run.body.status,
        is_ended=run.body.ended is not None and run.body.status is not Status.WAITING,
        began=run.body.created,
        ended=run.body.ended,
        last_at=max((at for entry in entries if (at := _at(entry)) is not None), default=0.0),
        worked_s=worked_s(own),
        between_s=math.fsum(gaps_of(own)),
        bytes=size,
        episodes=failures,
        sla=None if started is None else started.sla,
        is_watched=any(isinstance(e, Decided) and e.by in WATCHERS for e in entries),
        spent=[usage for entry in own for usage in _used(entry)],
        saved=saved,
        lost=[
            usage
            for entry in own
            if id(entry) not in kept and getattr(entry, "key", None) not in stand
            for usage in _used(entry)
        ],
        at_risk_s=at_risk_s,
        lives=max(1, sum(map(_is_life, entries)) + (not is_fork)),
        saves=list(held_of(entries)),
        state_bytes=bytes_of(entries),
        replayed=replayed(entries),
        effects=len(settled),
        not_done=len(declined - settled - doubted),
        in_doubt=len(doubted) if run.body.status is Status.IN_DOUBT else 0,
        rested_s=rested_s(own, failures),
        children=list(dict.fromkeys(children_of(line).values())),
        spared=spared,
    )


def _newest(reader: Reader, run: Run) -> float:
    """When a run recorded something last."""
    rows = reader.back(run.row.head)
    told = (_at(entry) for placed in rows for entry in reversed(placed.row.entries))
    return next((at for at in told if at is not None), run.body.created)


def _at(entry: Entry) -> float | None:
    at = getattr(entry, "at", None)
    return at if isinstance(at, float) else None


def copies_in(lines: Sequence[Line]) -> set[int]:
    """What stands there a second time: a turn run anew takes its effects along."""
    return {id(entry) for line in lines for placed in line.rows for entry in copied_in(placed)}


def _used(entry: Entry) -> list[Usage]:
    """What an entry says that was used."""
    if isinstance(entry, Streamed):
        return [used_by(entry)]
    usage = entry.usage if isinstance(entry, Answer | Happened) else None
    return [] if usage is None else [usage]


def _doubted(entries: Sequence[Entry]) -> set[str]:
    """The effects that were meant, and of which nobody has said since whether they happened."""
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry, Intended):
            found.add(entry.key)
        elif isinstance(entry, Happened | Declined):
            found.discard(entry.key)
    return found


def _superseded(line: Sequence[Entry]) -> set[int]:
    """Records of streams that were begun anew later: paid for, and no part of an answer.

    Attempts are counted along a line of history: a branch that grows before a stream begins again.
    """
    parts = [entry for entry in line if isinstance(entry, Streamed)]
    newest: dict[str, int] = {}
    for each in parts:
        newest[place_of(each.call)] = max(newest.get(place_of(each.call), 0), each.attempt)
    return {id(each) for each in parts if each.attempt < newest[place_of(each.call)]}


def children_of(line: Iterable[Entry]) -> dict[str, str]:
    """The ids of the children that were begun, by the place of their call."""
    return {place_of(entry.call): entry.id for entry in line if isinstance(entry, Spawned)}


def _ended(entries: Iterable[Entry], children: Mapping[str, str]) -> list[str]:
    """Of these children those whose result is among the entries."""
    answers = (entry for entry in entries if children and isinstance(entry, Answer))
    return [children[place] for each in answers if (place := place_of(each.call)) in children]


def place_of(call: Call) -> str:
    """By what a call is known among those of its run."""
    return repr((call.scope, call.name, call.digest, call.ordinal))


def lineage(lines: Sequence[Line], head: int) -> Iterator[Entry]:
    """What the run goes on from: its head, and what that grew from, up to there."""
    by_branch = {branch_of(line.rows[0].id): line for line in lines if line.rows}
    branch, last, count = head, None, ALL
    while (line := by_branch.pop(branch, None)) is not None:
        for placed in line.rows:
            if last is None or placed.id < last:
                yield from placed.row.entries
            elif placed.id == last:
                yield from placed.row.entries[:count]
        if line.grown_from is None:
            return
        last, count = line.grown_from
        branch = branch_of(last)


def _spared(lines: Sequence[Line], copies: set[int]) -> tuple[list[Usage], list[str], list[float]]:
    """What every restart found recorded: without records it would have been done again.

    That is what its branch grew from, up to there, and what the branch itself holds by then: what
    was used, the children that had ended, the time it took.
    """
    saved: list[Usage] = []
    spared: list[str] = []
    at_risk_s: list[float] = []
    lives = _lives(lines)
    for line in lines:
        own = [entry for placed in line.rows for entry in placed.row.entries]
        known = list(lineage(lines, branch_of(line.rows[0].id))) if line.rows else []
        left = _superseded(known)
        # Effects that a turn run anew takes along stand in its row, and in none of these.
        before = [*known[len(own) :], *(entry for entry in own if id(entry) in copies)]
        before = [entry for entry in before if id(entry) not in left]
        used, done_s = [usage for entry in before for usage in _used(entry)], worked_s(before)
        children = children_of(known)
        ended = _ended(before, children)
        life: list[Entry] = []
        for entry in own:
            if id(entry) in copies or id(entry) in left:
                continue
            if id(entry) in lives:
                saved += used
                ended += _ended(life, children)
                spared += ended
                done_s += worked_s(life)
                at_risk_s += [done_s] if lives[id(entry)] else []
                life.clear()
            used += _used(entry)
            life.append(entry)
    return saved, spared, at_risk_s


def _lives(lines: Sequence[Line]) -> dict[int, bool]:
    """Where lives begin, and whether the one before was cut off, not waiting for a person.

    One that runs a turn anew finds what the branch for it keeps.
    """
    begun: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for line in lines:
        is_cut = True
        for placed in line.rows:
            for entry in placed.row.entries:
                if _is_life(entry):
                    begun[placed.id].append((id(entry), is_cut))
                    is_cut = True
                elif isinstance(entry, Failed):
                    is_cut = entry.status != Status.WAITING
    for each in entries_of(lines):
        if isinstance(each, Redone) and each.of in begun:
            begun[each.of] = [(id(each), begun[each.of][-1][1])]
    return {life: is_cut for them in begun.values() for life, is_cut in them}


def _is_life(entry: Entry) -> bool:
    """Whether a process took the run up here; a person's word is no life."""
    return isinstance(entry, Resumed) and entry.facts is not None
