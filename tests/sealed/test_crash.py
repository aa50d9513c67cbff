"""A run in an encrypted store, killed at every failpoint, continues like any other."""

import os
import random
from collections.abc import Callable, Iterator

import pytest

from holdfast.testing.kill import Failpoint
from tests.crash.conftest import count
from tests.crash.trial import Tally
from tests.crash.ward import Ward

pytestmark = pytest.mark.crash

AGENT = "large"
DEATHS = 24
"""How many of all deaths are drawn; the plain suite tries them all."""

__all__ = ["count"]


@pytest.fixture(scope="module")
def sealed_ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    """A ward whose children, and whose judge, find the key in their environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "THE_KEY", "5e" * 32)
        patch.setitem(os.environ, "HOLDFAST_KEY", "env:THE_KEY")
        ward = Ward(tmp_path_factory.mktemp("sealed"))
        yield ward
        ward.close()


def test_a_run_in_an_encrypted_store_killed_at_a_failpoint_continues(
    sealed_ward: Ward, count: Callable[[Tally], None]
) -> None:
    reached = sealed_ward.known(AGENT).reached
    chance = random.Random("sealed deaths")  # noqa: S311 a seed, not a secret
    deaths = [
        Failpoint(name=name, nth=nth)
        for name, times in sorted(reached.items())
        for nth in sorted({1, times})
    ]

    tally = sealed_ward.try_all(AGENT, [[each] for each in chance.sample(deaths, DEATHS)])

    count(tally)
    assert [] == tally.findings
    assert DEATHS // 2 < len(tally.killed_at)
