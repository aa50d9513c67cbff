"""What is left of an erased run: a hash of its name, when it was erased, and by what."""

import datetime as dt
import hashlib

import msgspec

from holdfast.errors import Damaged, RunErased
from holdfast.store.backends.base import Records
from holdfast.store.chain import Hashed
from holdfast.store.seal.base import Seals

_PREFIX = "erased/"
_NAME_BYTES = 16


class Grave(msgspec.Struct, frozen=True, array_like=True):
    """When a run was erased, in seconds since 1970, and by which command."""

    at: float
    by: str


def note_of(kid: bytes, grave: Grave) -> tuple[str, bytes]:
    """Key and value under which the store notes that the run of a keyed id was erased."""
    return _key(kid), msgspec.msgpack.encode(grave)


def refuse_erased(records: Records, seals: Seals, run: str) -> None:
    """Raise `RunErased` if a run of that id was erased from this store."""
    # A run may have been erased before the store was encrypted, when ids were named openly.
    for kid in {seals.kid(run), Hashed(seals.store_id).kid(run)}:
        found = records.note(_key(kid))
        if found is not None:
            grave = _read(found)
            when = dt.datetime.fromtimestamp(grave.at, dt.UTC)
            raise RunErased(run, f"{when:%Y-%m-%d %H:%M} UTC", grave.by)


def _key(kid: bytes) -> str:
    # Not the keyed id itself: no byte of the run is to be found in the store.
    return _PREFIX + hashlib.sha256(b"erased" + kid).hexdigest()[: 2 * _NAME_BYTES]


def _read(data: bytes) -> Grave:
    try:
        return msgspec.msgpack.decode(data, type=Grave)
    except (msgspec.MsgspecError, TypeError) as error:
        raise Damaged("the note of an erased run", str(error)) from error
