"""The inbox: questions, approvals and effects in doubt that wait for a person, and the answers."""

from collections.abc import Callable, Iterator

from holdfast.clock import Clock
from holdfast.engine.ask import About, is_expired, open_questions, question_key, word
from holdfast.engine.item import (
    APPROVAL,
    DOUBT,
    HAPPENED,
    NOT_DONE,
    Item,
    Word,
    check,
    moment,
    name_of,
)
from holdfast.engine.naming import text_of
from holdfast.engine.outcomes import Fates
from holdfast.engine.question import show
from holdfast.engine.resolve import Verdict, doubts, verdicts
from holdfast.engine.trouble import STOPPED, trouble
from holdfast.errors import AlreadyAnswered, NotStorable, UnknownQuestion
from holdfast.model.journal import Call, Happened, Intended, Questioned
from holdfast.model.ledger import Said
from holdfast.model.run import Status
from holdfast.policy.standing import Standing
from holdfast.store.codec import values
from holdfast.store.codec.veil import redact
from holdfast.store.ledger import Ledger
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import of_each, steadily


class Inbox:
    """What waits in one store."""

    def __init__(self, opened: Opened, clock: Clock) -> None:
        self._opened, self._clock = opened, clock

    def items(self, *, is_all: bool = False) -> list[Item]:
        """What waits, oldest first; `is_all` adds what was said before."""

        def look(run: Run) -> list[Item]:
            if not is_all:
                return list(self._open(run))
            return [*self._open(run), *self._closed(run), *self._settled(run)]

        reader = self._opened.reader
        found = [item for items in of_each(reader, reader.runs(), look) for item in items]
        return sorted(found, key=lambda item: item.since)

    def of(self, run: Run) -> list[Item]:
        """What waits, or waited, in one run."""
        return [*self._open(run), *(item for item in self._said(run) if item.run == run.body.id)]

    def find(self, text: str) -> Item:
        """What waits, or waited, in the run `text`; else the item whose id begins so.

        An effect that is in doubt in a run and in its forks is one: any of them is given.
        """
        return steadily(lambda: self._find(text))

    def _find(self, text: str) -> Item:
        run = self._opened.reader.find(text_of(text)) if text else None
        if run is not None:
            return self._in(run)
        alike = next(filter(None, (self._alike(text, look) for look in self._looks())), [])
        if not alike or any((each.id, each.kind) != (alike[0].id, DOUBT) for each in alike[1:]):
            why = f"more than one thing is meant by {text!r}" if alike else ""
            raise UnknownQuestion(text, str(self._opened.path), why)
        return alike[0]

    def _in(self, run: Run) -> Item:
        """The one thing that waits in a run; else the one that did, so that it is told who spoke.

        An item of another run is never meant, even if its id begins as this run's.
        """
        items, name = [*self.of(run), *self._settled(run)], run.body.id
        waiting = [item for item in items if item.state == "open"]
        if len(waiting or items) == 1:
            return (waiting or items)[0]
        why = f"nothing waits in run {name!r}"
        if waiting:
            why = f"more than one thing is meant by {name!r}"
        raise UnknownQuestion(name, str(self._opened.path), why)

    def _looks(self) -> Iterator[Callable[[Run], Iterator[Item]]]:
        """Where an item may be found: what waits, what was said, what is left of several doubts.

        Last, as whole runs are read for it, what was said of doubts.
        """
        yield from (self._open, self._closed, self._doubted, self._settled)

    def _doubted(self, run: Run) -> Iterator[Item]:
        """Effects in doubt of a run that a word on another of them has let go on."""
        if self._is_left(run):
            for intended in doubts(self._opened.reader.history(run)).values():
                yield self._doubt(run, intended)

    def _alike(self, text: str, look: Callable[[Run], Iterator[Item]]) -> list[Item]:
        reader = self._opened.reader
        runs = reader.runs() if text else ()
        found = of_each(reader, runs, lambda run: list(look(run)))
        return [item for items in found for item in items if item.id.startswith(text)]

    def _open(self, run: Run) -> Iterator[Item]:
        """What of a run waits: looked for only where its status says that something may."""
        reader = self._opened.reader
        if run.body.status is Status.IN_DOUBT:
            for intended in doubts(reader.history(run)).values():
                yield self._doubt(run, intended)
        if run.body.status is Status.WAITING or self._is_left(run):
            asked = open_questions(reader.history(run))
            words = self._ledger(run).read().words if asked else {}
            for each in asked:
                if self._key(run, each.id) not in words:
                    yield self._question(run, each)
        if run.body.status in STOPPED or run.body.undos_left:
            for item in trouble(reader, run):
                if self._key(run, item.id) not in self._ledger(run).read().words:
                    yield item

    def _is_left(self, run: Run) -> bool:
        """Whether a process that is gone may have left a question behind without its end."""
        return run.body.status is Status.RUNNING and not self._opened.leases.is_held(run.row.no)

    def _question(self, run: Run, asked: Questioned) -> Item:
        return Item(
            id=asked.id,
            kind=asked.kind,
            run=run.body.id,
            text=asked.text,
            state="expired" if is_expired(asked, self._clock.now()) else "open",
            options=asked.options,
            arguments=None if asked.args is None else self._arguments(asked.args, asked.call),
            default=self._shown(asked.default),
            since=asked.at,
            expires=asked.expires,
        )

    def _doubt(self, run: Run, intended: Intended) -> Item:
        call = intended.call
        text = f"did {show(call.name, call.asked)} happen?"
        if Fates(self._opened.reader, run.ledger).undoing(intended.key) is not None:
            text = f"{text[:-1]}, and does it still stand? a rollback may have taken it back"
        return Item(
            id=intended.key,
            kind=DOUBT,
            run=run.body.id,
            text=text,
            options=[HAPPENED, NOT_DONE],
            arguments=self._arguments(intended.args, call),
            since=intended.at,
        )

    def _closed(self, run: Run) -> Iterator[Item]:
        """What people have said of questions of a run and of its forks, listed with the first."""
        if self._opened.reader.ledger(run) is not None:
            yield from self._said(run)

    def _said(self, run: Run) -> Iterator[Item]:
        for said in self._ledger(run).read().words.values():
            yield Item(
                id=said.id,
                kind=said.kind,
                run=said.run,
                text=said.text,
                state=said.word,
                since=said.asked,
                answer=self._shown(said.value),
                by=said.by,
                note=said.note,
                at=said.at,
            )

    def _settled(self, run: Run) -> Iterator[Item]:
        """What people have said of effects in doubt of a run, the newest word first."""
        for meant, entry in verdicts(self._opened.reader, run):
            call = entry.call
            brief: dict[str, object] = {each.name: each.brief for each in call.asked}
            yield Item(
                id=entry.key,
                kind=DOUBT,
                run=run.body.id,
                text=f"did {show(call.name, call.asked)} happen?",
                state="answered",
                arguments=brief if meant is None else self._arguments(meant.args, call),
                since=entry.at if meant is None else meant.at,
                answer=HAPPENED if isinstance(entry, Happened) else NOT_DONE,
                by=entry.by,
                at=entry.at,
            )

    def say(self, run: Run, item: Item, said: Word) -> None:
        """Record a person's word on what waits; the first one stands."""
        if item.at is not None:
            raise AlreadyAnswered(item.id, item.state, item.by or "", moment(item.at))
        check(item, said)
        value = None if item.kind == APPROVAL else values.encode(said.value, path="the answer")
        kept = None if value is None else self._opened.chunks.keep(value)
        key, now, by = self._key(run, item.id), self._clock.now(), name_of(said.by)
        note = said.note and redact(said.note)

        def make(standing: Standing) -> Said:
            known = standing.words.get(key)
            if known is not None:
                raise AlreadyAnswered(item.id, known.word, known.by or "", moment(known.at))
            if item.expires is not None and now >= item.expires:
                raise AlreadyAnswered(item.id, "expired", "", moment(item.expires))
            about = About(
                run=run.body.id, id=item.id, kind=item.kind, text=item.text, asked=item.since
            )
            return word(about, key, said.what, at=now, value=kept, by=by, note=note)

        self._ledger(run).add(now, make)

    def _arguments(self, data: bytes, call: Call) -> dict[str, object]:
        """Arguments by name; in short where a class of theirs is not known here."""
        try:
            found = self._opened.reader.value(data)
        except NotStorable:
            found = {each.name: each.brief for each in call.asked}
        assert isinstance(found, dict)
        return found

    def _shown(self, data: bytes | None) -> object:
        try:
            return None if data is None else self._opened.reader.value(data)
        except NotStorable as unknown:
            return f"<{unknown.type_name}>"

    def _ledger(self, run: Run) -> Ledger:
        return Ledger(self._opened.committer, self._opened.reader, run)

    def _key(self, run: Run, id_: str) -> bytes:
        return question_key(self._opened.reader.store_id, run.body.id, id_)


def verdict_of(item: Item, said: Word, outcome: object) -> Verdict:
    """What an answer says of an effect in doubt; the first one stands."""
    if item.at is not None:
        raise AlreadyAnswered(item.id, f"settled as {item.answer}", item.by or "", moment(item.at))
    check(item, said, outcome)
    happened = said.value == HAPPENED
    return Verdict(key=item.id, happened=happened, outcome=outcome, by=name_of(said.by))
