"""The sections of a run's state: objects attached as sections, and what is declared of each."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from weakref import proxy

from msgspec.structs import replace

from holdfast.capture.digest import digest
from holdfast.capture.node import step
from holdfast.capture.objects import Beside, Form, form_of
from holdfast.capture.state import State
from holdfast.capture.twins import Twins
from holdfast.clock import Clock
from holdfast.engine.restore import optional_in
from holdfast.errors import (
    ChangedInCall,
    HoldfastError,
    NotStorable,
    RestoreFailed,
    UsageError,
)
from holdfast.model.journal import Entry
from holdfast.model.rollback import ROLLBACKS, RUNTIME
from holdfast.model.sections import Declared, Degraded, Outcome, Part, Section, is_name
from holdfast.store.codec import values


class Life(Protocol):
    """The life of a run that the sections belong to."""

    state: State
    turn: int
    clock: Clock
    log: "logging.LoggerAdapter[logging.Logger]"

    def pend(self, *entries: Entry) -> None:
        """Let entries ride along with the next commit."""


class Sections:
    """What one life of a run knows of its sections."""

    def __init__(self, life: Life) -> None:
        self.declared: dict[str, Section] = {}
        self.report: dict[str, Part] = {}
        self._life: Life = proxy(life)  # It holds us: what has ended is to go without a search.
        self._state = life.state
        self._forms: dict[str, Form] = {}
        self._objects: dict[int, tuple[object, str]] = {}
        self._twins = Twins()
        self._is_restored = False

    def attach(
        self, section: str, obj: object, only: Sequence[str] | None, *, is_optional: bool
    ) -> None:
        """Make `obj` a section: captured into the state now, or filled from a restored one."""
        self._refuse_misuse(section, obj)
        values.learn(type(obj))
        form = form_of(obj, only)
        if section == RUNTIME:
            form = Beside(form, ROLLBACKS)
        may_lack = is_optional or section in self.optional
        is_standing = section in self._state.root
        self._forms[section], self._objects[id(obj)] = form, (obj, section)
        try:
            if is_standing:
                self._fill(section, form, is_optional=may_lack)
                self._tell([section], self._life.turn)
            else:
                self.capture()
        except BaseException:
            del self._forms[section], self._objects[id(obj)]
            raise
        self._declare(section, Section(is_attached=True, is_optional=may_lack))

    def _refuse_misuse(self, section: object, obj: object) -> None:
        why = None
        if not is_name(section) or not section:
            why = f"a section's name is text, not {section!r}"
        elif section in self._forms:
            why = f"an object is attached as {section!r} already"
        elif id(obj) in self._objects:
            why = f"this object is attached as {self._objects[id(obj)][1]!r} already"
        elif section in self._state.root and not self._was_attached(section):
            why = f"the state holds a section {section!r} that is no attached object"
        if why is not None:
            msg = f"run.attach: {why}"
            raise UsageError(msg)

    def _was_attached(self, section: object) -> bool:
        """Whether a section of a restored state came from an object of an earlier life."""
        known = self.declared.get(str(section))
        return self._is_restored and known is not None and known.is_attached

    def _declare(self, section: str, said: Section) -> None:
        if self.declared.get(section) != said:
            self.declared[section] = said
            self._life.pend(Declared(dict(self.declared)))

    def allow_missing(self, sections: Iterable[str]) -> None:
        """Declare sections that a restart may go on without."""
        for section in sections:
            known = self.declared.get(section, Section())
            self._declare(section, replace(known, is_optional=True))

    @property
    def optional(self) -> list[str]:
        """The sections that a restart may go on without."""
        return optional_in(self.declared)

    def capture(self, inside: str = "") -> None:
        """Bring the sections up to what their objects hold now.

        `inside` names a step or effect that has just run, and must not have changed any.
        """
        if self._forms:
            taken = {section: _take(section, form) for section, form in self._forms.items()}
            try:
                with self._state.lock:
                    self._twins.capture(self._state.root, taken, inside)
            except ChangedInCall:
                for section, form in self._forms.items():
                    _refuse_unsteady(section, form)
                raise

    def restore(self, lost: Mapping[Any, HoldfastError], turn: int) -> None:
        """Fill the objects from the state that was just put in place, without what is `lost`."""
        self._is_restored = True
        self._twins.forget()
        self.report = {str(name): Part(Outcome.RESTORED) for name in self._state.root}
        self.report |= {name: Part(Outcome.DEGRADED, str(error)) for name, error in lost.items()}
        for section, form in self._forms.items():
            if section in self._state.root:
                self._fill(section, form, is_optional=section in self.optional)
        self._tell(self.report, turn)
        self.capture()

    def lack(self, gaps: Mapping[str, str]) -> None:
        """Say which sections came back without a part that looked secret: by place, its section."""
        for place, section in gaps.items():
            why = f"{place}: a part that looked secret was not stored"
            self.report[section] = Part(Outcome.DEGRADED, why)

    def _fill(self, section: str, form: Form, *, is_optional: bool) -> None:
        """Fill one object; one that cannot be filled stays as it is, if it may."""
        with self._state.lock:
            value = self._twins.unfold(section, self._state.root[section])
        try:
            form.put(value)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            outcome = Outcome.DEGRADED if is_optional else Outcome.FAILED
            self.report[section] = Part(outcome, why)
            if not is_optional:
                raise RestoreFailed(section, why) from error

    def _tell(self, sections: Iterable[str], turn: int) -> None:
        """Say what the run goes on without: in the log and in the journal."""
        degraded = {
            name: self.report[name].why or ""
            for name in sections
            if self.report[name].outcome is Outcome.DEGRADED
        }
        for name, why in degraded.items():
            self._life.log.warning("goes on without the optional section %s: %s", name, why)
        if degraded:
            self._life.pend(Degraded(self._life.clock.now(), turn, degraded))

    @property
    def has_objects(self) -> bool:
        """Whether any object is attached."""
        return bool(self._forms)


def _take(section: str, form: Form) -> Any:  # noqa: ANN401 the user's own value
    try:
        return form.take()
    except NotStorable as error:
        path = f"state{step(section)}{error.path}"
        raise NotStorable(path, error.type_name, error.why) from None


def _refuse_unsteady(section: str, form: Form) -> None:
    """Raise `UsageError` where what an object says it holds differs though nothing has changed."""
    path = f"state{step(section)}"
    first, then = (digest(_take(section, form), path=path) for _ in range(2))
    if first != then:
        msg = (
            f"{path}: what the attached object captures differs each time it is asked, though "
            "nothing ran in between; let `capture()` change nothing and leave out the time, new "
            "ids and the like"
        )
        raise UsageError(msg)
