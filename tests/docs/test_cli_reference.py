"""The page of commands says what the parser says."""

from holdfast.cli.reference import render
from tests.docs.blocks import ROOT


def test_the_page_of_commands_is_made_from_the_parser_of_today() -> None:
    written = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    assert render() == written, "renew it: python -m holdfast.cli.reference > docs/reference/cli.md"


def test_each_command_on_a_store_says_how_it_ends_where_the_store_cannot_be_opened() -> None:
    sections = [part for part in render().split("```text\n") if "  --store PATH" in part]

    assert len(sections) > 20
    for section in sections:
        usage = section.splitlines()[0]
        told = section.partition("Exit status:")[2]
        if "keys" not in usage and "doctor" not in usage and "config" not in usage:
            assert "\n    1    unexpected error, or the store cannot be written" in told, usage
            assert "\n    7    damage was found" in told, usage
