"""Tasks beside the agent's own: before a turn ends, they ask for what is recorded of them.

A replay waits for nothing, so the agent's own code comes to the end of a turn before tasks that it
began and does not await have run at all.
"""

from typing import TYPE_CHECKING

from holdfast.engine.drive import PAUSE_S
from holdfast.engine.session import Session
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

OTHERS_S_MAX = 10.0


async def let_others_ask(session: Session) -> None:
    """Wait until tasks beside this one have asked for all that they recorded; 10 s at most.

    Where no other task is left, nobody will. After the last loop its turn comes first.
    """
    last = session.scope
    for scope in dict.fromkeys((session.turn, last)):
        session.scope = scope
        try:
            await _until_asked(session, scope)
        finally:
            session.scope = last


async def _until_asked(session: Session, scope: int) -> None:
    began = session.clock.monotonic()
    while session.book.awaits_others(scope):
        await asyncio.sleep(PAUSE_S)  # The end of a generator that was left is a task only then.
        is_late = session.clock.monotonic() - began > OTHERS_S_MAX
        if is_late or session.stopped is not None or len(asyncio.all_tasks()) == 1:
            return
