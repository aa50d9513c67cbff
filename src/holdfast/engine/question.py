"""What a call asks: a function's arguments, bound by name, digested and shortened."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from holdfast import native
from holdfast.capture.digest import digest
from holdfast.capture.flats import Flats
from holdfast.capture.node import where
from holdfast.capture.tracked import TrackedDict, TrackedList
from holdfast.engine.brief import brief
from holdfast.errors import ChangedInCall, NotStorable, UsageError
from holdfast.model.journal import Asked
from holdfast.native import sha256
from holdfast.store.codec.vault import vault
from holdfast.store.codec.veil import redact

KEY = "idempotency_key"
OBJECTS = ("self", "cls")
DIGEST_BYTES = 16
_STEADY = (str, int, float, bool, bytes, type(None), TrackedDict, TrackedList)


class Question(msgspec.Struct, frozen=True):
    """A bound call: `digest` is the same for `f(1)` and `f(x=1)`."""

    name: str
    digest: bytes
    asked: list[Asked]
    bound: dict[str, Any]


class Given(msgspec.Struct, frozen=True):
    """Arguments as their function takes them: by name, in its order, and what is in `*`, in `**`.

    `whole` are those two by the names of their parameters.
    """

    named: dict[str, Any]
    rest: tuple[Any, ...] = ()
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)
    whole: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Shape:
    """A function's parameters, looked at once, so that binding a call is cheap."""

    def __init__(self, name: str, fn: Callable[..., Any], ignore: Iterable[str] = ()) -> None:
        self.name = name
        self._signature = signature_of(name, fn)
        parameters = self._signature.parameters
        self.names = frozenset(parameters)
        self.takes_key = KEY in parameters
        self._ignore = frozenset(ignore) | ({KEY} if self.takes_key else set())
        self.check("ignore", frozenset(ignore))
        simple = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        self._is_simple = all(p.kind in simple for p in parameters.values())
        self._order = tuple(
            n for n, p in parameters.items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        self._defaults = {
            n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty
        }
        self._is_plain = len(self._order) == len(parameters)

    def check(self, option: str, names: frozenset[str]) -> None:
        """Refuse names that the function does not take, at the line that declares it."""
        if unknown := names - self.names:
            msg = f"{option}= of {self.name} names {min(unknown)!r}, which it does not take"
            raise UsageError(msg)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, defaults filled in; `TypeError` as Python itself would raise it."""
        if not kwargs and self._is_plain and len(args) == len(self._order):
            return dict(zip(self._order, args, strict=True))
        if self._is_simple and len(args) <= len(self._order):
            bound = dict(zip(self._order, args, strict=False))
            if bound.keys().isdisjoint(kwargs) and self.names.issuperset(kwargs):
                bound.update(kwargs)
                for name, value in self._defaults.items():
                    bound.setdefault(name, value)
                if len(bound) == len(self.names) - (self.takes_key and KEY not in bound):
                    return bound
        given = dict(kwargs)
        if self.takes_key:
            given.setdefault(KEY, None)
        try:
            found = self._signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        found.apply_defaults()
        return found.arguments

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Arguments by name without any default; None where some have no name of their own."""
        if not self._is_simple or len(args) > len(self._order):
            return None
        return {**dict(zip(self._order, args, strict=False)), **kwargs}

    def sample(self, *, is_live: bool) -> Given | None:
        """What a handler is given, without the values; None where some have no names.

        One that `is_live` is called beside the effect, and given also what is ignored.
        """
        left_out = {KEY} if is_live else self._ignore
        if not self._is_simple:
            return None
        return Given({name: None for name in self._signature.parameters if name not in left_out})

    def spread(self, bound: Mapping[str, Any]) -> Given:
        """What was bound once, in the order of today's parameters, whatever the call's was."""
        known = self._signature.parameters
        named = {name: bound[name] for name in known if name in bound}
        named |= bound
        whole: dict[str, Any] = {}
        rest: tuple[Any, ...] = ()
        extra: Mapping[str, Any] = {}
        for name, each in known.items():
            if each.kind is each.VAR_POSITIONAL and name in bound:
                whole[name], rest = named.pop(name), tuple(bound[name])
            elif each.kind is each.VAR_KEYWORD and name in bound:
                whole[name], extra = named.pop(name), bound[name]
        named.pop(KEY, None)
        return Given(named, rest, extra, whole)

    def question(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], flats: Flats | None = None
    ) -> Question:
        """The call as a question; raises `NotStorable` naming the argument that cannot be kept."""
        bound = self.bind(args, kwargs)
        if self._ignore:
            bound = {name: value for name, value in bound.items() if name not in self._ignore}
        marks: list[tuple[str, bytes]] = []
        asked: list[Asked] = []
        for name, value in bound.items():
            try:
                mark = digest(value, flats=flats)
            except NotStorable:
                mark = self._mark_by_place(name, value)
            marks.append((name, mark))
            asked.append(Asked(name, _told(value), mark[:4]))
        return Question(self.name, _whole(marks), asked, bound)

    def _mark_by_place(self, name: str, value: object) -> bytes:
        """Refuse an argument that cannot be stored, named by its place in the state."""
        try:
            return digest(value, path=f"{self.name}({name})")
        except NotStorable as refused:
            place = where(value)
            if name in OBJECTS:
                why = f"it is the object of a method; say ignore={name!r} where that is declared"
                raise NotStorable(refused.path, refused.type_name, why) from None
            if not place.startswith("state"):
                raise
            return digest(value, path=place)

    def check_unchanged(self, question: Question, flats: Flats | None = None) -> None:
        """Refuse a call that changed a plain argument; tracked ones refuse by themselves."""
        for asked in question.asked:
            value = question.bound[asked.name]
            if type(value) in _STEADY:
                continue
            if digest(value, path=asked.name, flats=flats)[:4] != asked.mark:
                beside = "or a thread or task beside it did: give the call a copy then"
                raise ChangedInCall(self.name, f"its argument {asked.name} ({beside})")


def _told(value: object) -> str:
    """A short form of a value, without what must not be shown."""
    told = None if native.brief is None else native.brief(value, vault.signs)
    return redact(brief(value)) if told is None else told


def whole_digest(name: str, bound: Mapping[str, Any]) -> bytes:
    """The digest of all arguments of a call."""
    return _whole([(each, digest(value, path=name)) for each, value in bound.items()])


def _whole(marks: list[tuple[str, bytes]]) -> bytes:
    """The digest of a call, whatever the order of its arguments."""
    whole = b""
    for name, mark in sorted(marks):
        whole += name.encode() + b"=" + mark
    return sha256(whole).digest()[:DIGEST_BYTES]


def signature_of(name: str, fn: Callable[..., Any]) -> inspect.Signature:
    """What a function takes; `UsageError` for what is none, or does not tell, as some in C."""
    try:
        return inspect.signature(fn)
    except TypeError as error:
        raise UsageError(f"{name} takes a function, not {type(fn).__name__}") from error
    except ValueError as error:
        msg = f"{name} does not tell its parameters; call it from a function of your own"
        raise UsageError(msg) from error


def name_of(fn: Callable[..., Any]) -> str:
    """The name a function is known by; that of a partial is its function's."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return cast("str", getattr(fn, "__qualname__", type(fn).__name__))


def unfold(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
    """The function inside a partial, with all of its arguments: they belong to the question."""
    while isinstance(fn, functools.partial):
        args, kwargs = (*fn.args, *args), {**fn.keywords, **kwargs}
        fn = fn.func
    return fn, args, kwargs


def show(name: str, asked: list[Asked]) -> str:
    """A call as people write it, shortened."""
    return f"{name}({', '.join(f'{each.name}={each.brief}' for each in asked)})"
