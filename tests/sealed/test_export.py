"""A run exported out of an encrypted store: sealed, each part in its place."""

import contextlib
import hashlib
from pathlib import Path

import pytest

from holdfast.engine.parcel import MAGIC, Parcel, from_bytes, to_bytes
from holdfast.engine.transfer import admit, collect
from holdfast.errors import Damaged, HoldfastError, KeyUnusable, WrongKey
from holdfast.store.keys.passphrase import Passphrase
from tests.sealed import kit

RUN = "planted-run-0"


@pytest.fixture(scope="module")
def parcel(tmp_path_factory: pytest.TempPathFactory) -> Parcel:
    path = tmp_path_factory.mktemp("made") / "store"
    kit.fill(path, runs=1)
    with contextlib.closing(kit.opened(path)) as found:
        run = found.reader.find(RUN)
        assert run is not None
        return collect(found, run)


def test_a_sealed_file_says_nothing_and_comes_back_with_its_key(
    parcel: Parcel, tmp_path: Path
) -> None:
    data = to_bytes(parcel, kit.KEY)
    kit.fill(tmp_path / "open", None, runs=0)

    assert [] == [word for word in kit.WORDS if word.encode() in data]
    assert parcel == from_bytes(data, "file", kit.KEY)
    with contextlib.closing(kit.opened(tmp_path / "open", None)) as found:
        assert RUN == admit(found, from_bytes(data, "file", kit.KEY)).body.id


def test_without_the_right_key_a_sealed_file_is_refused(parcel: Parcel) -> None:
    data = to_bytes(parcel, kit.KEY)

    with pytest.raises(KeyUnusable, match=r"^file is sealed"):
        from_bytes(data, "file")
    with pytest.raises(WrongKey, match="does not open file"):
        from_bytes(data, "file", kit.OTHER)
    with pytest.raises(WrongKey, match="the key from passphrase does not open file"):
        from_bytes(data, "file", Passphrase("kelp holds fast"))


def test_parts_that_are_changed_swapped_left_out_or_in_clear_are_refused(parcel: Parcel) -> None:
    head, parts = _split(to_bytes(parcel, kit.KEY))
    _, clear = _split(to_bytes(parcel))

    given = [
        [parts[0], parts[2], parts[1], *parts[3:]],
        [parts[0], parts[1], *parts[3:]],
        [*parts, parts[-1]],
        [parts[0], clear[0], *parts[2:]],
        [parts[0], *clear],
        parts[1:],
        [],
        [*parts[:-1], parts[-1][:-1] + bytes([parts[-1][-1] ^ 1])],
    ]
    for each in given:
        with pytest.raises((Damaged, WrongKey)):
            from_bytes(_joined(head, each), "file", kit.KEY)
    assert parcel == from_bytes(_joined(head, parts), "file", kit.KEY)
    # The version says whether it is sealed: made to say the other, it is refused too.
    for version, each in ((1, parts), (2, clear)):
        with pytest.raises(HoldfastError):
            from_bytes(_joined(MAGIC + version.to_bytes(2, "big"), each), "file", kit.KEY)


def _split(data: bytes) -> tuple[bytes, list[bytes]]:
    parts, at = [], len(MAGIC) + 2
    while at < len(data) - 32:
        length = int.from_bytes(data[at : at + 4], "big")
        parts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return data[: len(MAGIC) + 2], parts


def _joined(head: bytes, parts: list[bytes]) -> bytes:
    data = head + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return data + hashlib.sha256(data).digest()
