"""What can be done to a run that is not under way: the recovery verbs of `Store`."""

from typing import Any

from holdfast.engine import agents
from holdfast.engine.agents import Agent
from holdfast.engine.launch import Order
from holdfast.engine.life import Lives
from holdfast.engine.readings import Readings
from holdfast.engine.resolve import Verdict
from holdfast.store.open import Opened


class Verbs(Readings):
    """Restart a run, settle a doubt."""

    def __init__(self, opened: Opened, lives: Lives) -> None:
        super().__init__(opened)
        self._lives = lives

    def restart(
        self,
        id: str,  # noqa: A002 the public word
        *,
        agent: Agent[..., Any] | None = None,
        redo_turn: bool = False,
        reason: str | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """Continue a run from its newest point with its recorded arguments.

        The agent is found by its recorded name among those this process declares.
        `redo_turn` runs the unfinished turn anew with today's code: recorded steps of that turn
        are dropped (kept on the old branch), effects stand.
        """
        return self._lives.carry_out(self._restart_order(id, agent, reason, is_redo=redo_turn))

    async def arestart(
        self,
        id: str,  # noqa: A002 the public word
        *,
        agent: Agent[..., Any] | None = None,
        redo_turn: bool = False,
        reason: str | None = None,
    ) -> Any:  # noqa: ANN401 the agent's own result
        """`restart`, for code under an event loop."""
        return await self._lives.acarry_out(
            self._restart_order(id, agent, reason, is_redo=redo_turn)
        )

    def resolve(self, id: str, key: str, *, happened: bool, outcome: object = None) -> None:  # noqa: A002 the public word
        """Say of an effect in doubt, by its key, whether it happened, and with which outcome."""
        self._refuse_if_closed()
        self._lives.resolve(self._found(id), Verdict(key=key, happened=happened, outcome=outcome))

    def _restart_order(
        self, id_: str, agent: Agent[..., Any] | None, reason: str | None, *, is_redo: bool
    ) -> Order:
        self._refuse_if_closed()
        body = self._found(id_).body
        return Order(
            agent=agent or agents.find(body.agent, body.module),
            run=id_,
            is_restart=True,
            is_redo=is_redo,
            reason=reason,
        )
