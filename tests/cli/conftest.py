"""Shops to run the command line in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.kit import Shop, new_shop, warm


@pytest.fixture(scope="session", autouse=True)
def _warm() -> Iterator[None]:
    yield
    warm.close()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return new_shop(tmp_path / "shop")


@pytest.fixture(scope="session")
def _history(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A store with a run of every kind; never changed."""
    made = new_shop(tmp_path_factory.mktemp("history") / "shop")
    made("run", "shop:trader", "--id", "run-42", "--input", '{"symbol": "KELP"}')
    made("run", "shop:trader", "--id", "run-43", "--input", '["WRACK", 0]')
    made.put("down")
    made("run", "shop:payer", "--id", "doubtful", "--input", '"o-1"')
    made("run", "shop:broken", "--id", "failed")
    killed = made(
        "run",
        "shop:sleeper",
        *("--id", "killed", "--input", "0"),
        HOLDFAST_FAILPOINT="step.recorded:1",
    )
    assert -9 == killed.status
    return made


@pytest.fixture
def history(_history: Shop, tmp_path: Path) -> Shop:
    """A copy of that store, to be read or changed."""
    return _history.copy(tmp_path / "shop")
