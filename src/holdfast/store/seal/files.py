"""Files of an encrypted store that are not sealed: what an encryption cut off left in clear."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.store.codec.frame import HEADER_BYTES, is_sealed


def in_clear(path: Path) -> Iterator[bytes]:
    """The ids of large values of the store at `path` whose files are not sealed."""
    for file in sorted((path / "objects").glob("??/*")):
        if "." not in file.name:
            with file.open("rb") as stream:
                if not is_sealed(stream.read(HEADER_BYTES)):
                    yield bytes.fromhex(file.name)
