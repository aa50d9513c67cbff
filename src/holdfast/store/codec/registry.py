"""Which classes may be stored, under which name and version, and how old versions are read."""

import dataclasses
import threading
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

from holdfast import errors
from holdfast.model.ids import MAIN, module_of
from holdfast.store.codec import shapes
from holdfast.store.codec.hints import classes_named
from holdfast.store.codec.script import imported
from holdfast.store.codec.wire import Refusal, name_of, told

Change = Callable[[Any], Any]
C = TypeVar("C", bound=Change)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A class that may be stored."""

    cls: type[Any]
    name: str
    version: int
    shape: shapes.Shape
    is_declared: bool
    """Registered by the user, not only found in an annotation."""
    canonical: str
    """The name it is hashed under: of a script's class, the one that it has when imported."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    to: int
    change: Change


class Registry:
    """Names and classes, each way; nothing is ever imported to find one."""

    def __init__(self) -> None:
        self._by_name: dict[str, Entry] = {}
        self._by_class: dict[type, Entry] = {}
        self._steps: dict[tuple[str | type, int], _Step] = {}
        self._unread: list[Callable[..., object]] = []
        self._lock = threading.RLock()
        self._counted = threading.local()
        self.has_scripts = False  # Whether it knows classes that a script declares.

    def register(
        self,
        cls: type[Any],
        *,
        name: str | None = None,
        version: int = 1,
        encode: Callable[[Any], object] | None = None,
        decode: Callable[[Any], object] | None = None,
    ) -> None:
        """Let instances of `cls` be stored as `name` in `version`."""
        if (encode is None) != (decode is None):
            raise errors.UsageError(f"{name_of(cls)}: give encode= and decode= together")
        if encode is not None and decode is not None:
            shape: shapes.Shape | None = shapes.custom(encode, decode)
        else:
            shape = shapes.shape_of(cls)
        if shape is None:
            raise errors.UsageError(
                f"{name_of(cls)} is no dataclass, Enum, named tuple, Pydantic model or msgspec "
                "Struct: register it with encode= and decode="
            )
        if not _is_version(version):
            raise errors.UsageError(f"{name_of(cls)}: version= counts from 1, not {version!r}")
        if not isinstance(name, str | None):
            raise errors.UsageError(f"{name_of(cls)}: name= is a text, not {name!r}")
        full = name or default_name(cls)
        if encode is None:
            self.learn(cls)  # The classes of its fields are needed with it.
        self._enter(_entry(cls, full, version, shape, is_declared=True))

    def migrate(self, kind: object, *, from_: int, to: int) -> Callable[[C], C]:
        """Decorate the function that turns stored fields of version `from_` into those of `to`."""
        if not isinstance(kind, str | type) or kind == "":
            msg = f"a migration is of a class, or of the name it is registered under, not {kind!r}"
            raise errors.UsageError(msg)
        if not (_is_version(from_) and _is_version(to) and from_ < to):
            msg = f"a migration leads upwards between whole numbers, not from {from_!r} to {to!r}"
            raise errors.UsageError(msg)

        def keep(change: C) -> C:
            with self._lock:
                if (kind, from_) in self._steps:
                    raise errors.UsageError(f"{kind}: version {from_} has a migration already")
                self._steps[kind, from_] = _Step(to, change)
            return change

        return keep

    def learn(self, owner: Callable[..., object]) -> None:
        """Remember `owner`: the classes in its annotations may be stored."""
        with self._lock:
            self._unread.append(owner)

    def of_class(self, cls: type) -> Entry | None:
        """The entry of exactly this class."""
        if cls not in self._by_class:
            self._read_annotations()
        return self._by_class.get(cls)

    def of_name(self, name: str) -> Entry | None:
        """The entry that is stored under `name`."""
        if name not in self._by_name:
            self._read_annotations()
        return self._by_name.get(name) or self._of_script(name)

    def _of_script(self, name: str) -> Entry | None:
        """A class of a script is `__main__:X` when it is run and `script:X` when imported."""
        module, _, qualname = name.partition(":")
        if module != "__main__":
            return self._by_name.get(f"__main__:{qualname}")
        alike = [e for n, e in self._by_name.items() if n.partition(":")[2] == qualname]
        return alike[0] if len(alike) == 1 else None

    @property
    def upgrades(self) -> int:
        """How many values this thread has read that an older version of their class had stored."""
        return getattr(self._counted, "upgrades", 0)

    def upgrade(self, entry: Entry, version: int, payload: object) -> object:
        """What was stored in `version`, as today's version has it."""
        at = version
        if at < entry.version:
            self._counted.upgrades = self.upgrades + 1
        while at < entry.version:
            step = self._steps.get((entry.name, at)) or self._steps.get((entry.cls, at))
            if step is None:
                raise Refusal(
                    entry.name,
                    f"stored in version {version}, known here in version {entry.version}; add "
                    f"`@holdfast.migrate({entry.name!r}, from_={at}, to={at + 1})`",
                )
            if step.to > entry.version:
                raise Refusal(
                    entry.name,
                    f"its migration from version {at} leads to {step.to}, but the class is "
                    f"registered with version={entry.version}; make the two agree",
                )
            payload, at = _changed(entry, step, at, payload), step.to
            if at == entry.version and entry.shape.has_fields and type(payload) is not dict:
                raise Refusal(
                    entry.name,
                    f"its migration to version {at} returned a {name_of(type(payload))}; return "
                    "the fields as a dict",
                )
        if at > entry.version:
            raise Refusal(
                entry.name,
                f"stored in version {version}, newer than version {entry.version} which this "
                "program knows; run the newer program",
            )
        return payload

    def _read_annotations(self) -> None:
        with self._lock:
            waiting, self._unread = self._unread, []
            for owner in waiting:
                found, whole = classes_named(owner)
                for cls in found:
                    self._enter_found(cls)
                if not whole:
                    # A name may be defined by the time the next unknown class is met.
                    self._unread.append(owner)

    def _enter_found(self, cls: type) -> None:
        shape, name = shapes.shape_of(cls), default_name(cls)
        known = self._by_name.get(name)
        if shape is None or cls in self._by_class or (known is not None and known.is_declared):
            return
        self._enter(_entry(cls, name, 1, shape, is_declared=False))

    def _enter(self, entry: Entry) -> None:
        with self._lock:
            known = self._by_name.get(entry.name)
            if known is not None and known.cls is not entry.cls:
                if default_name(known.cls) != default_name(entry.cls):
                    raise errors.UsageError(
                        f"the name {entry.name!r} stands for {name_of(known.cls)} already; "
                        f"register {name_of(entry.cls)} with another name="
                    )
                # The same declaration run again, as in a notebook: the newest class counts.
                del self._by_class[known.cls]
            before = self._by_class.get(entry.cls)
            if before is not None:
                # What was stored under an earlier name of the class is still found.
                self._by_name[before.name] = entry
            self.has_scripts = self.has_scripts or entry.name != entry.canonical
            self._by_name[entry.name] = entry
            self._by_class[entry.cls] = entry


def _is_version(said: object) -> TypeGuard[int]:
    return isinstance(said, int) and not isinstance(said, bool) and said >= 1


def _entry(
    cls: type[Any], name: str, version: int, shape: shapes.Shape, *, is_declared: bool
) -> Entry:
    module, _, rest = name.partition(":")
    canonical = f"{imported(cls)}:{rest}" if module == MAIN else name
    return Entry(
        cls=cls,
        name=name,
        version=version,
        shape=shape,
        is_declared=is_declared,
        canonical=canonical,
    )


def _changed(entry: Entry, step: _Step, at: int, payload: object) -> object:
    """What one migration makes of the stored fields."""
    try:
        made = step.change(payload)
    except Refusal:
        raise
    except Exception as error:
        why = f"its migration from version {at} to {step.to} raised {told(error)}"
        raise Refusal(entry.name, f"{why}; correct it and read again") from error
    if made is None and payload is not None:
        why = f"its migration from version {at} to {step.to} returned None; return the fields"
        raise Refusal(entry.name, why)
    return made


def default_name(cls: type) -> str:
    """The name of a class that was given none."""
    return f"{module_of(cls)}:{cls.__qualname__}"
