"""The page of commands says what the parser says."""

from holdfast.cli.reference import render
from tests.docs.blocks import ROOT


def test_the_page_of_commands_is_made_from_the_parser_of_today() -> None:
    written = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    assert render() == written, "renew it: python -m holdfast.cli.reference > docs/reference/cli.md"
