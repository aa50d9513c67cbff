"""The fence: what stands in the ledger of a run, its branches and forks is not done again.

After a rollback or a fork the agent may ask again for what was done on another line of history,
perhaps in other words. The same intent gets the recorded outcome; the same scope with another
intent is blocked while an effect stands there that this line does not know of.
"""

import threading
from collections.abc import Callable, Iterable

import msgspec

from holdfast.engine.bare import is_migrated
from holdfast.engine.intent import Aim, Meaning, idempotency_key
from holdfast.engine.item import UNDO
from holdfast.engine.outcomes import Entered, Fates, Outcome
from holdfast.engine.question import Question, show
from holdfast.engine.reading import Record
from holdfast.errors import Blocked, Damaged
from holdfast.model.branches import Allowed, Forked, RolledBack
from holdfast.model.ids import branch_of, parse_point, point_id
from holdfast.model.journal import Declined, Happened, Intended, Undone
from holdfast.store.ledger import Ledger
from holdfast.store.marks import SPLIT, intent_mark, key_mark
from holdfast.store.reader import Reader, Run, first_row
from holdfast.store.steady import left_of
from holdfast.store.writer import RunWriter


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger says of a call: its aim, and the effect elsewhere that it is, if it is one.

    `outcome` is that effect's, None if it is in doubt; `seen` are the rows that were looked at.
    """

    aim: Aim
    standing: Entered | None = None
    outcome: Happened | None = None
    seen: tuple[int, ...] = ()


class _Scope(msgspec.Struct):
    """What this line of history holds of a scope: keys, and how often each intent was meant."""

    keys: set[str] = msgspec.field(default_factory=set)
    nth: dict[bytes, int] = msgspec.field(default_factory=dict)


class _Others(msgspec.Struct, kw_only=True):
    """Effects of a scope elsewhere: with the intent of a call, and with others.

    `nth` is the highest number of that intent anywhere, `seen` are the rows looked at.
    """

    seen: tuple[int, ...]
    nth: int
    same: list[Entered] = msgspec.field(default_factory=list)
    different: list[Entered] = msgspec.field(default_factory=list)


class Fence:
    """The fence of one life of a run, which stands on its own line of history."""

    def __init__(self, reader: Reader, writer: RunWriter, is_held: Callable[[int], bool]) -> None:
        run = writer.run
        self._reader, self._run, self._is_held = reader, run, is_held
        self._committer = writer.committer
        self._fates = Fates(reader, run.ledger)
        root = run.body.id if run.body.origin is None else run.body.origin.root
        self._elders: list[Run] | None = None
        self._lineage = reader.store_id + root.encode("utf-8", "surrogatepass")
        self._nth: dict[bytes, int] = {}
        self._taken: set[str] = set()
        self._scopes: dict[bytes, _Scope] = {}
        self._ends: dict[int, int] = {}
        self._free = -1
        self._has_left: bool | None = None
        self._single: set[int] = set()  # branches of which it is known that nothing grew there
        self._lock = threading.Lock()

    def look(
        self,
        meaning: Meaning,
        question: Question,
        elsewhere: str | None = None,
        again: Aim | None = None,
    ) -> Look:
        """What the ledger says of a new call; `Blocked` where the fence stops it.

        `elsewhere` is the key of an effect that stands at the same place on another line. What was
        not done here and is tried `again` keeps its key, unless that was done and undone since.
        """
        with self._lock:
            rows = [] if meaning.intent in self._nth else self._fates.rows(meaning.intent)
            if not self._is_split(rows):
                return Look(aim=again or self._new(meaning, self._meant(meaning, rows)))
            return self._look(meaning, question, again.key if again else elsewhere, again)

    def settled(self, aim: Aim, question: Question) -> Look | None:
        """The outcome that another line knows of an effect in doubt here; `Blocked` if it is at it.

        One that another line took back is surely not done, and its key is used up: it is looked at
        as a new one. None: nobody knows more.
        """
        with self._lock:
            if not self._fates.rows(SPLIT):
                return None
            if self._fates.taken_back(aim.key) is not None:
                return self._look(aim.meaning, question, aim.key, aim)
            seen = self._off(aim.meaning)
            for each in self._fates.entered(seen):
                if each.meant.key != aim.key:
                    continue
                outcome = self._outcome(each)
                if isinstance(outcome, Happened):
                    return Look(aim=aim, standing=each, outcome=outcome, seen=seen)
                if outcome is None:
                    self._refuse_under_way(each, question)
        return None

    def beside(self, look: Look, question: Question, carried: list[Record]) -> Look:
        """The same; `Blocked` if what stands of a turn that is run anew is about the same thing.

        `carried` are the effects of it that nobody has asked for yet: it may word them otherwise.
        """
        for record in carried if look.standing is None else ():
            meant = record.entry
            if not isinstance(meant, Intended) or isinstance(record.outcome, Declined):
                continue
            if meant.about == look.aim.meaning.about and not self._is_allowed(look.aim.key):
                other = Entered(meant=meant, at=(record.row, record.index))
                raise self._blocked(look.aim.key, question, other, "stands")
        return look

    def unknown(self, key: str) -> str:
        """Why nobody can tell whether an effect stands."""
        if self._fates.undoing(key) is not None:
            return "taking it back was begun, and nobody recorded what came of that"
        return "nobody recorded what came of it"

    def has_changed(self, look: Look) -> bool:
        """Whether another line of history wrote into the scope since it was looked at."""
        if not self._fates.rows(SPLIT):
            return False
        return look.seen != self._off(look.aim.meaning)

    def stands(self, meaning: Meaning, question: Question) -> bool:
        """Whether a new call would get the outcome of an effect that stands elsewhere."""
        with self._lock:
            if not self._is_split(self._fates.rows(meaning.intent)):
                return False
            return self._same(self._others(meaning, question, None)) is not None

    def _is_split(self, rows: Iterable[int]) -> bool:
        """Whether the ledger has more than one line of history.

        The index says so, but a damaged one may not, and effects would be done again: so it is
        held against the run's own branches, and those with `rows` that are of interest.
        """
        if self._fates.rows(SPLIT):
            return True
        branches = {branch_of(row) for row in rows}
        if not self._single:
            branches.update(branch.no for branch in self._reader.branches(self._run))
        return any(map(self._is_grown, branches - self._single)) or self._is_redone()

    def _is_redone(self) -> bool:
        """Whether a turn was run anew, here or above: a child begun before that is on a line left.

        The index does not say so.
        """
        if self._has_left is None:
            lines = [self._reader.line(each.row.head) for each in (self._run, *self._above())]
            self._has_left = any(branch.parent for line in lines for branch in line)
        return self._has_left

    def _is_grown(self, branch: int) -> bool:
        """Whether a fork or rollback began the line of a branch; then the index must say so."""
        grown = {first_row(each) for each in self._reader.line(branch) if each.parent}
        is_grown = any(
            isinstance(entry, Forked | RolledBack)
            for placed in self._reader.some(grown)
            if placed.id in grown
            for entry in placed.row.entries
        )
        if is_grown and not self._fates.rows(SPLIT):  # Asked again: it may be new.
            why = f"it hides that the history of run {self._run.body.id} has several lines"
            raise Damaged("the index of effects", why)
        if not is_grown:
            self._single.add(branch)
        return is_grown

    def _look(
        self, meaning: Meaning, question: Question, elsewhere: str | None, again: Aim | None
    ) -> Look:
        others = self._others(meaning, question, elsewhere)
        found = self._same(others)
        if found is not None:
            each, outcome = found
            if outcome is None:
                self._refuse_under_way(each, question)
            self._taken.add(each.meant.key)
            aim = Aim(meaning=meaning, nth=each.meant.nth, key=each.meant.key)
            return Look(aim=aim, standing=each, outcome=outcome, seen=others.seen)
        is_kept = again is not None and not self._is_undone(again.key, others)
        aim = again if again is not None and is_kept else self._new(meaning, 1 + others.nth)
        for each in others.different:
            if self._stands(each) and not self._is_allowed(aim.key):
                raise self._blocked(aim.key, question, each, "stands")
        return Look(aim=aim, seen=others.seen)

    def _others(self, meaning: Meaning, question: Question, elsewhere: str | None) -> _Others:
        """The effects of the scope that this line of history does not know of."""
        seen = self._off(meaning)
        scope = self._scope(meaning)
        mine = (scope.keys | self._taken | self._keys_of_kin(meaning)) - {elsewhere}
        found = _Others(seen=seen, nth=scope.nth.get(meaning.intent, -1))
        entered = self._fates.entered([*seen, *self._rows_of(meaning, elsewhere)])
        for each in sorted(entered, key=lambda other: other.meant.nth):
            is_same = self._is_same(each, meaning, question)
            if is_same:
                found.nth = max(found.nth, each.meant.nth)
            if branch_of(each.at[0]) < self._free_from():
                continue
            if each.meant.key not in mine and (is_same or each.meant.about == meaning.about):
                mine.add(each.meant.key)  # Once, however often it is recorded.
                (found.same if is_same else found.different).append(each)
        return found

    def _is_same(self, each: Entered, meaning: Meaning, question: Question) -> bool:
        """Whether an effect has the intent of a call; the oldest records name no module."""
        meant, call = each.meant, each.meant.call
        if not meant.module:
            return (call.name, call.digest) == (question.name, question.digest)
        if intent_mark(call, meant.module) == meaning.intent:
            return True
        return meant.module == meaning.module and is_migrated(self._reader.value, meant, question)

    def _free_from(self) -> int:
        """The branch from which on the fence holds: a rollback may have lifted it for its line."""
        if self._free < 0:
            line = self._reader.line(self._run.row.head)
            firsts = self._reader.some(first_row(branch) for branch in line if branch.parent)
            free = [
                branch_of(placed.id)
                for placed in firsts
                for entry in placed.row.entries
                if isinstance(entry, RolledBack) and entry.is_free
            ]
            self._free = max(free, default=0)
        return self._free

    def _same(self, others: _Others) -> tuple[Entered, Happened | None] | None:
        """The first effect with the intent of a call that stands, or is in doubt."""
        for each in others.same:
            outcome = self._outcome(each)
            if outcome is None or isinstance(outcome, Happened):
                return each, outcome
        return None

    def _outcome(self, each: Entered) -> Outcome | None:
        """What became of an effect that is asked for again, as far as anybody knows."""
        found = self._fates.asked_again(each)
        if found is not None or not self._is_said_to_stand(each.meant.key):
            return found
        return self._fates.of(each)

    def _is_said_to_stand(self, key: str) -> bool:
        """Whether a person let an effect stand that could not be taken back."""
        words = Ledger(self._committer, self._reader, self._run).read().words
        return any(said.kind == UNDO and said.id == key for said in words.values())

    def _is_undone(self, key: str, others: _Others) -> bool:
        found = (each for each in others.same if each.meant.key == key)
        return any(isinstance(self._fates.of(each), Undone) for each in found)

    def _refuse_under_way(self, each: Entered, question: Question) -> None:
        owner = self._reader.owner(branch_of(each.at[0])).row.no
        if owner != self._run.row.no and self._is_held(owner):
            raise self._blocked(each.meant.key, question, each, "is under way")

    def _stands(self, each: Entered) -> bool:
        outcome = self._fates.of(each)
        return outcome is None or isinstance(outcome, Happened)

    def _blocked(self, key: str, question: Question, other: Entered, how: str) -> Blocked:
        meant = other.meant
        owner = self._reader.owner(branch_of(other.at[0]))
        return Blocked(
            self._run.body.id,
            show(question.name, question.asked),
            key,
            f"{show(meant.call.name, meant.call.asked)} (key {meant.key})",
            f"{how} at {point_id(owner.body.id, other.at)}",
        )

    def _is_allowed(self, key: str) -> bool:
        """Whether a person let it through, in this run: a fork inherits no approval."""
        own = {branch.no for branch in self._reader.branches(self._run)}
        rows = [id_ for id_ in self._on(self._fates.rows(key_mark(key))) if branch_of(id_) in own]
        return any(
            isinstance(entry, Allowed) and entry.key == key
            for placed in self._reader.some(rows)
            for entry in placed.row.entries
        )

    def _new(self, meaning: Meaning, nth: int) -> Aim:
        """The next effect with this intent; threads of this life may have more on their way."""
        nth = max(nth, self._nth.get(meaning.intent, 0))
        self._nth[meaning.intent] = nth + 1
        key = idempotency_key(self._lineage, meaning.intent, nth)
        return Aim(meaning=meaning, nth=nth, key=key)

    def _meant(self, meaning: Meaning, rows: Iterable[int]) -> int:
        """How often this was meant before, where there is one line: one more than its newest."""
        if meaning.intent in self._nth:
            return 0
        own = self._on(rows)  # Children have keys of their own.
        return 1 + _most(self._fates.entered(own[-1:]), meaning.intent)

    def _off(self, meaning: Meaning) -> tuple[int, ...]:
        """The rows of the scope that are not on this line of history, nor of its family."""
        return tuple(sorted(row for row in self._beside(meaning) if not self._is_kin(row)))

    def _keys_of_kin(self, meaning: Meaning) -> set[str]:
        """The effects of the scope that the family knows of already; each stands for one."""
        kin = [row for row in self._beside(meaning) if self._is_kin(row)]
        return {each.meant.key for each in self._fates.entered(kin)}

    def _beside(self, meaning: Meaning) -> set[int]:
        rows = self._marked(meaning)
        return rows.difference(self._on(rows))

    def _is_kin(self, row: int) -> bool:
        """Whether a row is of a parent or child as this line of history has it.

        Siblings do what they do on purpose. One that was begun on a line that was left is no kin.
        """
        owner = self._reader.owner(branch_of(row))
        is_head = row in self._reader.on_line([row], owner.row.head)
        if any(owner.row.no == elder.row.no for elder in self._above()):
            return is_head
        origin = owner.body.origin
        if origin is None or not origin.is_child or not is_head:
            return False
        begun = parse_point(origin.point)
        return begun is not None and (bool(self._on([begun[1][0]])) or self._is_kin(begun[1][0]))

    def _above(self) -> "list[Run]":
        """The run's parent, its parent, and so on."""
        if self._elders is None:
            self._elders, origin = [], self._run.body.origin
            while origin is not None and origin.is_child:
                elder = left_of(self._reader, origin.run)
                if elder is None:
                    break
                self._elders.append(elder)
                origin = elder.body.origin
        return self._elders

    def _marked(self, meaning: Meaning) -> set[int]:
        marks = (meaning.intent, meaning.about, meaning.old)
        return {row for mark in marks for row in self._fates.rows(mark)}

    def _rows_of(self, meaning: Meaning, key: str | None) -> list[int]:
        if key is None:
            return []
        entered = self._fates.entered(self._on(self._fates.rows(meaning.intent)))
        return [each.at[0] for each in entered if each.meant.key == key]

    def _on(self, rows: Iterable[int]) -> list[int]:
        if not self._ends:
            self._ends = self._reader.ends(self._run.row.head)
        return [id_ for id_ in rows if id_ <= self._ends.get(branch_of(id_), -1)]

    def _scope(self, meaning: Meaning) -> _Scope:
        """What stands on this line of history; read once, since later ones are this life's own."""
        known = self._scopes.get(meaning.about)
        if known is None:
            known = self._scopes[meaning.about] = _Scope()
            for each in self._fates.entered(self._on(self._marked(meaning))):
                mark = intent_mark(each.meant.call, each.meant.module)
                known.keys.add(each.meant.key)
                known.nth[mark] = max(known.nth.get(mark, -1), each.meant.nth)
        return known


def _most(entered: Iterable[Entered], intent: bytes) -> int:
    """The highest number among effects of one intent; -1: there is none."""
    same = (each.meant for each in entered)
    return max((e.nth for e in same if intent_mark(e.call, e.module) == intent), default=-1)
