"""The first page a stranger reads: short, true, and current."""

import dataclasses

from holdfast.cli.demo.proof import Proof
from holdfast.cli.demo.table import grid
from holdfast.cli.grid import aligned
from holdfast.version import VERSION
from tests.docs.blocks import ROOT, blocks, commands

README = ROOT / "README.md"
LINES_MAX = 150


def test_the_page_can_be_read_in_five_minutes() -> None:
    assert LINES_MAX >= len(README.read_text(encoding="utf-8").splitlines())


def test_the_proof_of_the_demo_is_shown_as_the_demo_prints_it() -> None:
    [shown] = [block.text for block in blocks(README) if "PROMISED" in block.text]
    zero = {field.name: 0 for field in dataclasses.fields(Proof)}
    printed = aligned(grid(Proof(**zero | {"turns": 1})))  # type: ignore[arg-type]  # every number is 0

    def labels(text: str) -> list[str]:
        table = text.splitlines()
        head = next(n for n, line in enumerate(table) if "PROMISED" in line)
        width = table[head].index("PROMISED")
        return [line[:width].strip() for line in table[head:]]

    assert labels(printed) == labels(shown)


def test_the_commands_to_look_at_a_store_are_shown_with_their_output() -> None:
    shown = {
        command.line.split()[1]: command.prints
        for block in blocks(README)
        if block.kind == "console"
        for command in commands(block)
        if command.line.startswith("holdfast ")
    }

    assert f"holdfast {VERSION}\n" == shown["--version"]
    assert "run-42" in shown["runs"]
    assert "known by probe" in shown["show"]


def test_the_place_for_measured_numbers_is_marked() -> None:
    text = README.read_text(encoding="utf-8")

    assert 1 == text.count("<!-- bench:start -->")
    assert text.index("<!-- bench:start -->") < text.index("<!-- bench:end -->")
