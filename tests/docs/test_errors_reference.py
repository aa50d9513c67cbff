"""The page of errors says what the classes say."""

import holdfast
from holdfast import errors
from tests.docs.blocks import ROOT
from tests.docs.errors_page import classes, page


def test_the_page_of_errors_is_made_from_the_classes_of_today() -> None:
    written = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")

    assert page() == written, (
        "renew it: python -m tests.docs.errors_page > docs/reference/errors.md"
    )


def test_each_error_is_public_and_drawn_in_the_tree_of_its_module() -> None:
    names = [cls.__name__ for cls in classes()]

    assert [] == [name for name in names if not hasattr(holdfast, name)]
    assert [] == [name for name in names if name not in (errors.__doc__ or "")]


def test_each_error_that_is_raised_says_what_to_do_next() -> None:
    bases = {"HoldfastError", "UsageError", "RunStopped", "StoreError"}
    said_by_the_user = {"NotDone"}

    silent = {cls.__name__ for cls in classes() if not cls.remedy}

    assert bases | said_by_the_user == silent
