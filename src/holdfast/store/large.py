"""A large value, read from what is stored of it: its frame, or patch upon patch on another's."""

import hashlib
from collections.abc import Callable

from holdfast.errors import Damaged
from holdfast.store.codec.frame import open_frame, open_patch
from holdfast.store.reference import is_patch, length, parts, value_id


def read(
    reference: bytes, frame_of: Callable[[bytes], bytes], where_of: Callable[[bytes], str]
) -> bytes:
    """The value that a reference names; `Damaged` if it is not what the reference says.

    `frame_of` gives what is stored under a reference itself, `where_of` says where that is.
    """
    try:
        return _read(reference, frame_of, where_of, is_each_checked=False)
    except Damaged:
        if not is_patch(reference):
            raise
    # Names the first that is not what it should be; the last may only stand on it.
    return _read(reference, frame_of, where_of, is_each_checked=True)


def _read(
    reference: bytes,
    frame_of: Callable[[bytes], bytes],
    where_of: Callable[[bytes], str],
    *,
    is_each_checked: bool,
) -> bytes:
    found = b""
    for part in reversed(parts(reference)):
        frame, where = frame_of(part), where_of(part)
        found = open_patch(frame, found, where) if is_patch(part) else open_frame(frame, where)
        if is_each_checked or part == reference:
            _check(found, part, where)
    return found


def _check(found: bytes, reference: bytes, where: str) -> None:
    digest = hashlib.sha256(found).digest()
    if len(found) != length(reference) or digest != value_id(reference):
        raise Damaged(where, "its bytes do not match its name")
