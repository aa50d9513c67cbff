"""What crash tests share: the ward, and the numbers printed at the end."""

import os
from collections.abc import Callable, Iterator

import pytest

from tests.crash.trial import Tally
from tests.crash.ward import Ward

_counted: dict[str, Tally] = {}


@pytest.fixture(scope="session")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    folder = tmp_path_factory.mktemp("ward")
    # Processes of pytest-xdist have their folders side by side in one that they share.
    is_alone = os.environ.get("PYTEST_XDIST_WORKER") is None
    shared = folder if is_alone else tmp_path_factory.getbasetemp().parent
    ward = Ward(folder, shared=shared)
    yield ward
    ward.close()


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Callable[[Tally], None]:
    """Add what a test found to the numbers of its file."""

    def add(tally: Tally) -> None:
        request.node.user_properties.append(("crash", str(tally)))
        _counted.setdefault(request.path.stem.removeprefix("test_"), Tally()).add(tally)

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _counted:
        terminalreporter.section("crash tests, counted outside the store")
    for title, tally in _counted.items():
        terminalreporter.write_line(f"{title}: {tally}")
