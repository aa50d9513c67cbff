"""An agent that does not end undisturbed: the sentence names the cause, no store that is gone."""

import pytest

from holdfast.drill.unfit import unfit
from holdfast.errors import Escalated, InDoubt, RunErased, RunFailed, Waiting


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RunFailed("drill--1", "ValueError", "no kelp"), "it fails with ValueError: no kelp;"),
        (Waiting("drill--1", "q-1", "question", "go on?"), "waits for a person: go on?; a drill"),
        (
            InDoubt("drill--1", "pay", "k", "it raised"),
            "effect pay is in doubt: it raised; a stand",
        ),
        (Escalated("drill--1", "SystemExit: 3", "no progress"), "SystemExit: 3: no progress;"),
        (RunErased("drill--1", "Monday", "ann"), "RunErased: run 'drill--1' was"),
    ],
)
def test_the_cause_is_told_and_no_run_to_restart(error: Exception, said: str) -> None:
    told = str(unfit("shop:trader", error))

    assert told.startswith("shop:trader does not come to its end with no fault injected")
    assert said in told
    assert "holdfast restart" not in told
