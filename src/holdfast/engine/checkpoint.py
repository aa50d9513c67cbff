"""`Checkpoint`: a point of a run as the API shows it. Loads pydantic: import it on demand."""

import datetime as dt
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.model.journal import Scalar


class Checkpoint(BaseModel):
    """A point of a run whose state can be restored; what is not known there is None or empty.

    A *checkpoint* was marked by the cadence or asked for, a *snapshot* holds some sections only, a
    *recovery point* is any other turn's end, or the run's. `parent` is the point before it; `bytes`
    is what it added to the store, `blocked_ms` how long the agent stood still until it was queued.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    run: str
    kind: Literal["checkpoint", "snapshot", "recovery point"]
    at: dt.datetime
    turn: int | None
    step: int
    parent: str | None
    branch: int
    root: str | None = Field(description="SHA-256 of the content, in hex")
    sections: list[str] | None = Field(description="what a snapshot holds; None is everything")
    tokens_in: int | None
    tokens_out: int | None
    model: str | None
    parameters: dict[str, Scalar]
    environment: dict[str, str]
    error: str | None
    code: str | None
    tools: str | None
    prompts: str | None = None
    libraries: dict[str, str]
    python: str | None
    platform: str | None
    holdfast: str | None
    bytes: int
    blocked_ms: float | None
    label: str | None
    degraded: dict[str, str] = Field(
        default_factory=dict, description="sections that are not as they should be, and why"
    )
