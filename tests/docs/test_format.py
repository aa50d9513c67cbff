"""The page of the stored format says what the code writes."""

import inspect
import re
import struct
import typing
import zlib

import msgspec
import pytest

from holdfast.capture import wire as state
from holdfast.model import journal
from holdfast.model.cadence import Cadence, Pace
from holdfast.model.decision import Decision
from holdfast.model.failure import Failure
from holdfast.model.ids import Range
from holdfast.model.limits import SLA
from holdfast.model.rollback import Take
from holdfast.model.run import Holder, Origin, RunBody, Status
from holdfast.model.sections import Section
from holdfast.store.backends import heads, slots, tail
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.connection import APPLICATION
from holdfast.store.backends.schema import FORMAT, SEALED_TABLES, TABLES
from holdfast.store.codec import frame, values, wire
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")

ENTRIES: list[type[msgspec.Struct]] = list(typing.get_args(journal.Entry))
PARTS: list[type[msgspec.Struct]] = [
    journal.Call,
    journal.Asked,
    journal.Usage,
    journal.Error,
    journal.Facts,
    journal.Mark,
    Section,
    Failure,
    Decision,
    Range,
    Holder,
    Origin,
    Take,
    Cadence,
    Pace,
    SLA,
]


def items(struct: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{name}`" for name in struct.__struct_fields__)


@pytest.mark.parametrize("definition", [*TABLES.values(), *SEALED_TABLES.values()])
def test_each_table_is_defined_word_for_word(definition: str) -> None:
    assert definition in PAGE.splitlines()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_each_entry_has_its_tag_and_its_items_in_order(entry: type[msgspec.Struct]) -> None:
    tag = entry.__struct_config__.tag
    [row] = re.findall(rf"^\| {tag} \| `{entry.__name__}`: .* \| (.*) \|$", PAGE, re.MULTILINE)

    assert entry.__struct_config__.array_like
    assert items(entry) == row


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_part_of_an_entry_has_its_items_in_order(part: type[msgspec.Struct]) -> None:
    is_map = "" if part.__struct_config__.array_like else r" \(a map\)"
    [row] = re.findall(rf"^\| `{part.__name__}`{is_map}: .* \| (.*) \|$", PAGE, re.MULTILINE)

    assert items(part) == row


def test_the_catalog_entry_of_a_run_has_each_of_its_keys() -> None:
    section = PAGE[PAGE.index("## 5. ") : PAGE.index("## 6. ")]

    assert [] == [name for name in RunBody.__struct_fields__ if f"`{name}`" not in section]
    assert [] == [status for status in Status if f"`{status}`" not in section]


@pytest.mark.parametrize("module", [values, state], ids=lambda module: module.__name__)
def test_each_line_of_a_table_in_the_code_stands_on_the_page(module: object) -> None:
    rows = re.findall(r"^\| \d.*\|$", inspect.getdoc(module) or "", re.MULTILINE)

    assert rows
    assert [] == [row for row in map(_bare, rows) if row not in {*map(_bare, PAGE.splitlines())}]


def test_each_code_of_an_item_is_explained() -> None:
    codes = {
        code
        for name, code in vars(wire).items()
        if name.isupper() and isinstance(code, int) and not name.startswith(("FORM", "MAX"))
        if not name.endswith("_MAX")
    }
    section = PAGE[PAGE.index("## 8. ") : PAGE.index("## 9. ")]
    explained = {
        int(code)
        for row in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE)
        for code in row.split(", ")
    }

    assert codes == explained


def test_the_header_of_a_frame_has_the_fields_of_the_page() -> None:
    section = PAGE[PAGE.index("## 4. ") : PAGE.index("## 5. ")]
    sizes = [int(size) for size in re.findall(r"^\| (\d) \|", section, re.MULTILINE)]

    assert bytes.fromhex("01 00 0000 00000003") + b"abc" == frame.seal(b"abc")
    assert [1, 1, 2, 4] == sizes


def test_a_record_of_the_tail_has_the_fields_of_the_page() -> None:
    section = PAGE[PAGE.index("## 18. ") :]
    fields = re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \|", section, re.MULTILINE)
    rows = struct.pack(">QBI", 7, 2, 4) + b"mmbody"
    head = b"HFt1" + struct.pack(">QII", 3, 2, len(rows))
    expected = head + zlib.crc32(b"store" + head + rows).to_bytes(4, "big") + rows

    assert [
        ("0", "4", "magic"),
        ("4", "8", "generation"),
        ("12", "4", "slot"),
        ("16", "4", "length"),
        ("20", "4", "checksum"),
        ("24", "length", "rows"),
    ] == fields
    row = JournalRow(id=7, mac=b"mm", body=b"body")
    assert expected == slots.record([row], slots.seed(b"store"), 3, 2 * slots.SLOT)
    assert f"a multiple of {slots.SLOT:,} bytes" in section


def test_the_numbers_that_processes_share_stand_where_the_page_says() -> None:
    section = PAGE[PAGE.index("**What processes tell each other**") :]
    named = re.findall(r"^\| (\d+) \| (\w+) \| .* \|$", section, re.MULTILINE)

    assert ["unsettled", "generation", "end", "fence", "damaged"] == [name for _, name in named]
    for at, name in named:
        assert int(at) == getattr(tail, f"_{name.upper()}") * 8
    assert f"byte 2^{tail.PRESENT.bit_length() - 1} of `leases`" in section


def test_the_numbers_that_name_the_format_are_there() -> None:
    assert f"`{APPLICATION:#010X}`".replace("0X", "0x") in PAGE
    assert f"`user_version` is {FORMAT}" in PAGE
    assert f"`heads` has {heads.SLOTS} slots" in PAGE


def _bare(row: str) -> str:
    """A line of a table without words that point into the code."""
    return re.sub(r" \(see `\w+`\)", "", row)
