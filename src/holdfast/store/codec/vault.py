"""Which secrets this process knows, where their values turn up, and what a reference stands for.

A reference that a store names is resolved only if this program declared the same one; a variable of
the environment is looked up. So nothing is run or read from a file because stored bytes say so.
"""

import contextlib
import hashlib
import itertools
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast import native
from holdfast.clock import Clock, SystemClock
from holdfast.errors import SecretFound, SecretMissing, UsageError
from holdfast.model.secrets import SecretRules
from holdfast.ondemand import OnDemand
from holdfast.store.codec import leaks
from holdfast.store.codec.secret import Secret, fetch, shown, split

if TYPE_CHECKING:
    from holdfast.store.codec import forms
else:
    forms = OnDemand("holdfast.store.codec.forms")

VALUES_MAX: Final = 8
"""How many older values of one secret are still looked for, after it was rotated."""

SEEN_MAX: Final = 1024
"""How many redacted values a process remembers, so that its own run still reads them."""

LOOKED_FOR_MAX: Final = 256
"""How many of them are looked for in other forms too."""

GRAMS_MAX: Final = 500
"""How many beginnings are compared before every needle is simply looked for."""

TOLD_MAX: Final = 1000
"""How many places of redacted values one life of a run tells."""

_REDACTED: Final = "redacted"
_PRINT_CHARS: Final = 8


class Part(NamedTuple):
    """Stands for a secret inside text or bytes: which, in what form, until when it is good."""

    reference: str
    form: int = 0
    shift: int = 0
    expires: float | None = None


class _Known(NamedTuple):
    value: str
    expires: float | None


class Vault:
    """The secrets of one process."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        # A value may be asked for wherever one is read, so the vault itself holds its world.
        self._environment = os.environ if environment is None else environment  # noqa: TID251
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._older: dict[str, list[str]] = {}
        self._seen: dict[str, bytes] = {}
        self._parts: dict[bytes, Part] = {}
        self.declared = 0  # values so far; what was hashed before may be hashed otherwise now
        # Needles without a run are looked for one by one; of the others, a few bytes of a run.
        self._loose: tuple[bytes, ...] = ()
        self._grams = leaks.GRAMS
        self.signs = _signs(self._grams, self._loose)
        self._tight: dict[bytes, list[bytes]] = {}

    def declare(self, reference: str, expires: float | None, value: str | None = None) -> Secret:
        """The secret of a reference, with its value of now; known from here on."""
        kind, _ = split(reference)
        if expires is not None and expires <= self._clock.now():
            raise SecretMissing(reference, "it has expired already; give one that is still good")
        known = self._known.get(reference)
        if value is None and kind == "cmd" and known is not None and self._is_good(known.expires):
            value = known.value  # a command is run once, until its answer has expired
            expires = known.expires if expires is None else expires
        found = fetch(reference, self._environment) if value is None else value
        if found in reference:
            msg = f"the reference {shown(kind + ':…')} holds the value itself, and would be stored"
            raise UsageError(msg)
        self._learn(reference, found, expires)
        return Secret(found, reference, expires)

    def resolve(self, reference: str, expires: float | None = None) -> Secret:
        """What a stored reference stands for; `SecretMissing` says why there is nothing."""
        known = self._known.get(reference)
        if known is not None and self._is_good(known.expires):
            return Secret(known.value, reference, known.expires)
        if known is not None or not self._is_good(expires):
            raise SecretMissing(reference, "it has expired and is not brought back to life")
        if split(reference)[0] != "env":
            why = "this program has not declared it, and a store alone cannot have it looked up"
            raise SecretMissing(reference, why)
        value = fetch(reference, self._environment)
        self._learn(reference, value, expires)
        return Secret(value, reference, expires)

    def see(self, kind: str, value: bytes) -> Part:
        """Note a value that looks secret and that nobody declared; gives what stands for it."""
        reference = f"{_REDACTED}:{kind}:{hashlib.sha256(value).hexdigest()[:_PRINT_CHARS]}"
        with self._lock:
            if reference not in self._seen and len(self._seen) < SEEN_MAX:
                self._seen[reference] = value
                if len(self._seen) <= LOOKED_FOR_MAX:
                    self._add(reference, value)
        return Part(reference)

    def seen(self, reference: str) -> bytes | None:
        """The value that was redacted in this process, so that it still reads it."""
        return self._seen.get(reference)

    @property
    def is_empty(self) -> bool:
        """Whether no secret is known, declared or seen."""
        return not self._parts

    def may_hold(self, data: bytes) -> bool:
        """Whether a secret may stand in packed bytes; quick where none does."""
        if native.suspect is not None:
            is_due = native.suspect(data, self.signs)
            return is_due and (self._holds_loose(data) or self._holds_more(data))
        if self._holds_loose(data):
            return True
        marked = data.translate(leaks.TABLE)
        at = marked.find(leaks.WORD)
        if at < 0 and (b"-" not in data or leaks.ARMOUR not in data):
            return False
        is_due = leaks.is_suspect(data, marked, at, self._grams)
        return is_due and self._holds_more(data)

    def _holds_loose(self, data: bytes) -> bool:
        return any(needle in data for needle in self._loose) if self._loose else False

    def _holds_more(self, data: bytes) -> bool:
        return self.holds_known(data) or leaks.looks_secret(data)

    def holds_known(self, data: bytes) -> bool:
        """Whether a known secret stands in bytes."""
        return any(needle in data for needle in self._candidates(data))

    def known_in(self, data: bytes) -> Iterator[tuple[int, int, Part]]:
        """Where known secrets stand in bytes, the longest where two overlap."""
        found = [needle for needle in self._candidates(data) if needle in data]
        if found:
            pattern = b"|".join(map(re.escape, _longest(found)))
            for match in re.finditer(pattern, data):
                part = self._parts[match[0]]
                known = self._known.get(part.reference)
                if known is not None and known.expires is not None:
                    part = part._replace(expires=known.expires)
                yield match.start(), match.end(), part

    def declared_in(self, data: bytes) -> set[str]:
        """The references of declared secrets that stand in bytes."""
        found = {part.reference for _, _, part in self.known_in(data)}
        return {reference for reference in found if not is_redacted(reference)}

    def _candidates(self, data: bytes) -> Iterator[bytes]:
        """The needles that may stand in bytes: of those with a run, where a run begins like it."""
        yield from self._loose
        grams: set[bytes] = set()
        for run in leaks.runs_of(data) if self._tight else ():
            grams.update(
                run[n : n + leaks.GRAM] for n in range(min(len(run), GRAMS_MAX) - leaks.RUN + 1)
            )
            if len(run) > GRAMS_MAX or len(grams) > GRAMS_MAX:
                yield from itertools.chain(*self._tight.values())
                return
        for gram in grams & self._tight.keys():
            yield from self._tight[gram]

    def _is_good(self, expires: float | None) -> bool:
        return expires is None or self._clock.now() < expires

    def _learn(self, reference: str, value: str, expires: float | None) -> None:
        with self._lock:
            before = self._known.get(reference)
            self._known[reference] = _Known(value, expires)
            if before is None or before.value != value:
                older = self._older.setdefault(reference, [])
                older.append(value)
                del older[:-VALUES_MAX]
                self.declared += 1
                self._add(reference, value.encode("utf-8", "surrogatepass"))

    def _add(self, reference: str, value: bytes) -> None:
        fresh: list[bytes] = []
        for needle, form, shift in forms.needles(value):
            known = self._parts.get(needle)
            if known is None:
                fresh.append(needle)
            if known is None or (is_redacted(known.reference) and not is_redacted(reference)):
                self._parts[needle] = Part(reference, int(form), shift)
        runs = {each: next(leaks.runs_of(each), None) for each in fresh}
        self._loose = _longest([*self._loose, *(each for each in fresh if runs[each] is None)])
        for needle, run in runs.items():
            if run is not None:
                self._tight.setdefault(run[: leaks.GRAM], []).append(needle)
        self._grams = leaks.GRAMS.union(self._tight)
        self.signs = _signs(self._grams, self._loose)


def _signs(grams: frozenset[bytes], loose: tuple[bytes, ...]) -> native.Signs:
    return b"".join(sorted(grams)), loose


def _longest(needles: list[bytes]) -> tuple[bytes, ...]:
    return tuple(sorted(needles, key=len, reverse=True))


vault: Final = Vault()
"""The secrets of this process."""


class Guard:
    """How values are read and written now: which secrets are put back, what is told of them.

    One that `demands` refuses to go on without a value; one that does not resolve shows references
    in their place. One that does not `cut` takes values as they are: to hash what is stored, also
    where it was stored before a secret was declared. `gaps` counts what was read without its
    secret, `filled` what was read with it; `redacted` is what was left out of what was written and
    has not been told yet, by place and kind. While `clear` is a set, the references of declared
    secrets are put there that stand in clear in what is read.

    A script's classes are hashed under the names they have when it is imported; with `names`, under
    those, else as they are stored. While `called` is a dict, the names are put there that classes
    were stored under and do not have here.
    """

    def __init__(
        self,
        *,
        resolves: bool = True,
        demands: bool = False,
        cuts: bool = True,
        rules: SecretRules | None = None,
        names: Mapping[type, str] | None = None,
    ) -> None:
        self.resolves, self.demands, self.cuts = resolves, demands, cuts
        self.names = names
        self.called: dict[type, str] | None = None
        self.rules = rules or SecretRules()
        self.gaps = self.filled = 0
        self.clear: set[str] | None = None
        self.redacted: list[tuple[str, str]] = []
        self._told: set[tuple[str, str]] = set()

    def look(self, data: bytes) -> None:
        """Look for secrets in stored bytes that are being read."""
        if self.clear is not None and vault.declared:
            self.clear.update(vault.declared_in(data))

    def judge(self, place: str, kind: str) -> bool:
        """Whether what looks like a secret of that kind may stand at a place."""
        if self.rules.allows(place):
            return True
        if self.rules.strict:
            raise SecretFound(place, kind)
        if (place, kind) not in self._told and len(self._told) < TOLD_MAX:
            self._told.add((place, kind))
            self.redacted.append((place, kind))
        return False


guard: Final[ContextVar[Guard]] = ContextVar("holdfast_guard", default=Guard())  # noqa: B039
"""How the code that runs now reads and writes; who says nothing gets what may be had."""


@contextlib.contextmanager
def guarded(how: Guard) -> Iterator[Guard]:
    """Read and write as `how` says, in the code inside."""
    before = guard.get()
    try:
        guard.set(how)
        yield how
    finally:
        guard.set(before)


def mark_of(reference: str) -> str:
    """What people see in the place of a secret."""
    kind, _, name = reference.partition(":")
    return f"<redacted: {name.replace(':', ' ')}>" if kind == _REDACTED else shown(reference)


def is_redacted(reference: str) -> bool:
    """Whether a reference stands for a value that nobody declared, so that it is gone."""
    return reference.startswith(f"{_REDACTED}:")
