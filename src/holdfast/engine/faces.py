"""What a session is given by those who know it: who saves it, and the streams that it reads."""

from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.model.journal import Call
from holdfast.store.committer import Ticket


class Saving(Protocol):
    """Makes the checkpoints that the cadence of a run asks for (`pace`)."""

    is_given: bool
    is_lazy: bool
    is_timed: bool

    def end_turn(self, turn: int) -> bool:
        """A turn ends: whether that is a checkpoint."""

    def marked(self, took_s: float, only: list[str] | None = None) -> None:
        """A checkpoint was made, or a snapshot, and held the agent up for so long."""

    def after_call(self) -> None:
        """A call of the agent has been answered."""

    def before_effect(self, *, is_reversible: bool) -> None:
        """An effect is about to be meant."""

    def after_child(self) -> None:
        """A child of the run has ended."""

    def tick(self) -> None:
        """A moment has passed."""

    def standing_still(self) -> AbstractContextManager[None]:
        """A call of the agent's own line runs inside."""

    def waits_for(self, ticket: Ticket) -> bool:
        """Whether an answer is given only once its row is durable."""


class Flowing(Protocol):
    """A stream that the run reads (`stream`)."""

    call: Call

    def spill(self, how: str = "", *, is_due: bool = False) -> None:
        """Let what has arrived ride along with the next commit; if it is due, also nothing."""

    def leave(self) -> None:
        """The agent goes on without the rest."""

    def is_old(self, now: float) -> bool:
        """Whether items wait for a record too long."""

    def refuse_deed(self, deed: str) -> None:
        """Raise where the code that reads the stream calls an effect or begins a child."""
