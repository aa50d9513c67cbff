"""An encoded value in one short line, also where its class is not known."""

import reprlib

from holdfast.errors import Damaged, NotStorable
from holdfast.store.codec import values
from holdfast.store.codec.vault import Guard, guarded
from holdfast.store.reference import is_reference, length

SHOWN_BYTES_MAX = 64 * 1024
"""A larger value is not decoded to be shown; its size is."""

_short = reprlib.Repr()
_short.maxlevel = 3
_short.maxdict = _short.maxlist = _short.maxtuple = _short.maxset = _short.maxfrozenset = 4
_short.maxstring = _short.maxother = _short.maxlong = 60


def shown(value: bytes) -> str:
    """An encoded value in one short line, or its name and size where it is not known here."""
    size = length(value)
    if size > SHOWN_BYTES_MAX or is_reference(value):
        return f"<{size} bytes>"
    try:
        with guarded(Guard(resolves=False)):
            return _short.repr(values.decode(value))
    except NotStorable as unknown:
        return f"<{unknown.type_name}, {size} bytes>"
    except Damaged:
        return f"<{size} bytes that no value can be read from>"
    except ValueError:  # Python refuses to print integers of more than some thousand digits.
        return f"<{size} bytes>"
