"""Files of an encrypted store that are not sealed: what an encryption cut off left in clear."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.store.codec.frame import HEADER_BYTES, is_sealed


def in_clear(path: Path) -> Iterator[bytes]:
    """The ids of large values of the store at `path` whose files are not sealed.

    One that is cut off in its header holds nothing of a value.
    """
    for file in sorted((path / "objects").glob("??/*")):
        if "." not in file.name:
            with file.open("rb") as stream:
                header = stream.read(HEADER_BYTES)
            if len(header) == HEADER_BYTES and not is_sealed(header):
                yield bytes.fromhex(file.name)
