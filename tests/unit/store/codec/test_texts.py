"""Structs as they are stored: nothing is written that could not be read."""

import msgspec
import pytest

from holdfast import NotStorable
from holdfast.model.journal import Facts, Finished, Row
from holdfast.store.codec.texts import packed

FACTS = Facts("0.1", "3.11.7", "linux", "c0de", None, {}, {})


def test_what_is_packed_is_read_back_equal() -> None:
    row = Row(-1, 3, [Finished(1.0, b"\x01\xc0", None)])

    assert row == msgspec.msgpack.decode(packed(row), type=Row)


def test_what_could_not_be_read_is_refused_before_it_is_written() -> None:
    wrong = msgspec.structs.replace(FACTS, code=7)

    with pytest.raises(NotStorable, match=r"Facts: it could not be read back .*\$\[3\]"):
        packed(wrong)
