"""What the environment says of a store where its caller does not."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.model.cadence import Cadence, Pace, Snapshots, pace_of
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    from holdfast.engine import notify as notifying
    from holdfast.engine.notify import Notify
    from holdfast.store.keys import spec
    from holdfast.store.seal.provider import KeyProvider
else:
    notifying = OnDemand("holdfast.engine.notify")
    spec = OnDemand("holdfast.store.keys.spec")  # It loads cryptography.

DIRECTORY = ".holdfast"
KEY = "HOLDFAST_KEY"
FILE, TYPED = "file:", "passphrase"
"""Keys that mean something else in a child process: by its directory, by its terminal."""
NOTIFY = "HOLDFAST_NOTIFY_"
CHECKPOINT = "HOLDFAST_CHECKPOINT"
SNAPSHOT = "HOLDFAST_SNAPSHOT"
DURABILITY = "HOLDFAST_DURABILITY"


def open_path(path: str | os.PathLike[str] | None = None) -> Path:
    """The path a store is opened at: the given one, else `$HOLDFAST_STORE`, else `./.holdfast`."""
    return Path(path or os.environ.get("HOLDFAST_STORE") or DIRECTORY).expanduser()


def given_key(key: "str | KeyProvider | None" = None) -> "KeyProvider | None":
    """The given key, else `$HOLDFAST_KEY`, else none; an empty text is none too."""
    asked = os.environ.get(KEY, "") if key is None else key
    return (
        (spec.provider_of(asked, os.environ) if asked else None)
        if isinstance(asked, str)
        else asked
    )


def lasting_key(key: "str | KeyProvider | None") -> "str | KeyProvider | None":
    """The given key as it is told later: a file is found wherever the program has gone by then."""
    asked = os.environ.get(KEY) if key is None else key
    if isinstance(asked, str) and asked.startswith(FILE):
        return f"{FILE}{Path(asked.removeprefix(FILE)).expanduser().absolute()}"
    return asked


def told_key(key: "str | KeyProvider | None") -> str | None:
    """The key as a child process is told of it; `UsageError` where it could not come by it."""
    if key is not None and not isinstance(key, str):
        msg = "a child process needs the key as text: open the store with key='env:NAME' or so"
        raise UsageError(msg)
    if key == TYPED and not os.environ.get(spec.PASSPHRASE):
        msg = f"a child process cannot ask for the passphrase: set ${spec.PASSPHRASE}"
        raise UsageError(msg)
    return key


def given_pace(
    checkpoint: Cadence | str | None, snapshot: Snapshots | None, durability: str | None
) -> Pace:
    """How runs are saved: as given, else as the environment says; an empty text says nothing."""
    said = os.environ.get
    return pace_of(
        checkpoint or said(CHECKPOINT) or None,
        snapshot or said(SNAPSHOT) or None,
        durability or said(DURABILITY) or None,
    )


def given_notify(notify: "Notify | None") -> "Notify | None":
    """Who is told: as given, else as the environment says; asks without loading what tells."""
    if notify is not None:
        refuse_other(notify, notifying.Notify, "notify= takes holdfast.Notify(webhook=…)")
        return notify
    if not any(name.startswith(NOTIFY) for name in os.environ):
        return None
    return notifying.from_environment(os.environ)


def refuse_other(given: object, kind: type, takes: str) -> None:
    """`UsageError` where something else was given than what is taken, or nothing."""
    if given is not None and not isinstance(given, kind):
        raise UsageError(f"{takes}, not {given!r:.80}")
