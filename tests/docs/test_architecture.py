"""The map of the code is current."""

import re

from tests.docs.modules_page import PACKAGE, PAGE, listing, written


def test_every_module_is_listed_with_its_own_first_line() -> None:
    assert listing() == written(), "renew it: python -m tests.docs.modules_page"


def test_the_places_to_change_things_are_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Where do I change") : text.index("## Modules")]
    paths = re.findall(
        r"`((?:model|policy|store|capture|engine|report|testing|drill|cli)/[\w/]+)`", table
    )

    assert paths
    assert [] == [path for path in paths if not (PACKAGE / f"{path}.py").exists()]
