"""Whether a restored state is the one whose hash was recorded, whatever secrets are known today.

What is hashed is what is stored: references in the place of secrets. A value that was stored before
its secret was declared was hashed in clear, so with today's secrets its hash would be another.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.capture.clear import clear_in, missing_in, refers
from holdfast.capture.digest import digest
from holdfast.errors import NotStorable, SecretFound, SecretMissing
from holdfast.model.journal import Mark
from holdfast.store.codec.secret import shown
from holdfast.store.codec.vault import Guard, guard, guarded, is_redacted, vault

UNCONFIRMED = (
    "its hash cannot be confirmed here: secrets were declared while it was made, and this program "
    "does not know the same ones; every row that it is made of was checked"
)


class Examined(NamedTuple):
    """A state in plain containers, whether it is the one that was hashed, and what is to be told.

    `notes` are by section: what came without its value, or stands in clear there since it was
    stored before it was declared a secret.
    """

    state: Any
    is_true: bool
    notes: dict[str, str]


def examine(read: Callable[[], Any], mark: Mark | None, run: str) -> Examined:
    """Read a state with its secrets, and compare it with the hash in its mark.

    `read` gives it in plain containers, made anew each time.
    """
    now = guard.get()
    how = Guard(resolves=now.resolves, demands=now.demands, rules=now.rules)
    how.clear, how.called = set(), {}
    with guarded(how):
        state = read()
    # Where no secret was put back, what was read is what is stored.
    is_true = mark is None or any(
        mark.root == _hashed(state, cuts=cuts, names=names)
        for names in (None, how.called)
        for cuts in (how.filled > 0, True)
    )
    lacks = dict(_lacks(state, resolves=now.resolves)) if how.gaps else {}
    if is_true and not how.clear:
        return Examined(state, is_true, lacks)
    with guarded(Guard(resolves=False, cuts=False)):
        stored = read()
    is_true = is_true or any(
        mark is not None and mark.root == _hashed(stored, cuts=False, names=names)
        for names in (None, how.called)
    )
    clear = {section: told(run, place, name) for place, section, name in clear_in(stored)}
    notes = {**lacks, **clear}
    if not is_true and mark is not None and (mark.is_veiled or notes or refers(stored)):
        is_true, notes = True, {**notes, "state": UNCONFIRMED}
    return Examined(state, is_true, notes)


def _lacks(state: Any, *, resolves: bool) -> Iterator[tuple[str, str]]:  # noqa: ANN401 any state
    """Sections that came without a secret, and why; one that was not asked for is not missed."""
    for place, section, part in missing_in(state):
        if is_redacted(part.reference):
            yield section, f"{place}: a part that looked secret was not stored"
        elif resolves:
            try:
                vault.resolve(part.reference, part.expires)
            except SecretMissing as error:
                yield section, f"{place} came without its value: {error}"


def told(run: str, place: str, reference: str) -> str:
    """What people are told of a secret that stands in clear."""
    return (
        f"{place} was stored in clear before {shown(reference)} was declared: renew that secret; "
        f"`holdfast erase {run}` removes the run with it"
    )


def _hashed(state: object, *, cuts: bool, names: Mapping[type, str] | None) -> bytes | None:
    """The hash of a state; None if it cannot be stored as today's secrets would have it.

    Older versions hashed a script's classes under the names that they are stored under.
    """
    with guarded(Guard(cuts=cuts, names=names)):
        try:
            return digest(state)
        except (NotStorable, SecretFound):
            return None
