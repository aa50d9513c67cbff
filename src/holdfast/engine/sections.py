"""The sections of a run's state: objects attached as sections, and what is declared of each."""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.capture.node import step
from holdfast.capture.objects import Form, form_of
from holdfast.capture.state import State
from holdfast.capture.twins import Twins
from holdfast.errors import NotStorable, UsageError
from holdfast.model.sections import Declared, Section
from holdfast.store.codec import values


class Sections:
    """What one life of a run knows of its sections."""

    def __init__(self, state: State, pend: Callable[[Declared], None]) -> None:
        self.declared: dict[str, Section] = {}
        self._state, self._pend = state, pend
        self._forms: dict[str, Form] = {}
        self._objects: dict[int, tuple[object, str]] = {}
        self._twins = Twins()
        self._is_restored = False

    def attach(
        self, section: str, obj: object, only: Sequence[str] | None, *, is_optional: bool
    ) -> None:
        """Make `obj` a section: captured into the state now, or filled from a restored one."""
        self._refuse_misuse(section, obj)
        form = form_of(obj, only)
        values.learn(type(obj))
        is_standing = section in self._state.root
        self._forms[section], self._objects[id(obj)] = form, (obj, section)
        try:
            if is_standing:
                self._fill(section, form)
            else:
                self.capture()
        except BaseException:
            del self._forms[section], self._objects[id(obj)]
            raise
        self._declare(section, Section(is_attached=True, is_optional=is_optional))

    def _refuse_misuse(self, section: object, obj: object) -> None:
        why = None
        if not isinstance(section, str) or not section:
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
            self._pend(Declared(dict(self.declared)))

    def capture(self, inside: str = "") -> None:
        """Bring the sections up to what their objects hold now.

        `inside` names a step or effect that has just run, and must not have changed any.
        """
        if self._forms:
            taken = {section: _take(section, form) for section, form in self._forms.items()}
            with self._state.lock:
                self._twins.capture(self._state.root, taken, inside)

    def restore(self) -> None:
        """Fill the objects from the state that was just put in place."""
        self._is_restored = True
        self._twins.forget()
        for section, form in self._forms.items():
            if section in self._state.root:
                self._fill(section, form)
        self.capture()

    def _fill(self, section: str, form: Form) -> None:
        with self._state.lock:
            value = self._twins.unfold(section, self._state.root[section])
        form.put(value)

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
