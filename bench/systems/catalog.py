"""The systems by name, and which of them are installed here."""

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True, kw_only=True)
class System:
    """A way to run the loop; `what` chooses among the ways its module knows."""

    name: str
    module: str
    what: str
    needs: str

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported here."""
        return find_spec(self.needs) is not None


OURS = "holdfast"
LANGGRAPH = "LangGraph SqliteSaver, sync"
LANGGRAPH_DELTA = "LangGraph SqliteSaver, sync, DeltaChannel (beta)"
LANGGRAPH_DEFAULT = "LangGraph SqliteSaver, default durability"
DBOS = "DBOS SQLite"
COMMIT_GROWN = "floor: SQLite commit, WAL grown"

_OURS, _FLOOR = "bench.systems.ours", "bench.systems.floor"
_LANGGRAPH, _DBOS = "bench.systems.langgraph_sqlite", "bench.systems.dbos_sqlite"

ALONE = (
    System(name="floor: append + fdatasync", module=_FLOOR, what="append", needs="msgspec"),
    System(name="floor: SQLite commit, fresh WAL", module=_FLOOR, what="commit", needs="msgspec"),
    System(name=COMMIT_GROWN, module=_FLOOR, what="commit_grown", needs="msgspec"),
    System(name=OURS, module=_OURS, what="one", needs="holdfast"),
    System(name=LANGGRAPH, module=_LANGGRAPH, what="sync", needs="langgraph"),
    System(name=LANGGRAPH_DELTA, module=_LANGGRAPH, what="delta", needs="langgraph"),
    System(name=DBOS, module=_DBOS, what="sync", needs="dbos"),
)

OURS_ASYNC = "holdfast, asyncio"
OURS_THREADS = "holdfast, threads"

TOGETHER = (
    System(name=OURS_ASYNC, module=_OURS, what="asyncio", needs="holdfast"),
    System(name=OURS_THREADS, module=_OURS, what="threads", needs="holdfast"),
    System(
        name="LangGraph AsyncSqliteSaver, sync, asyncio",
        module=_LANGGRAPH,
        what="asyncio",
        needs="langgraph",
    ),
    System(
        name="LangGraph SqliteSaver, sync, threads",
        module=_LANGGRAPH,
        what="threads",
        needs="langgraph",
    ),
    System(name="DBOS SQLite, workflows", module=_DBOS, what="threads", needs="dbos"),
)

_CHAT_OURS, _CHAT_LANGGRAPH = "bench.systems.chat_ours", "bench.systems.chat_langgraph"

CHAT = (
    System(name=OURS, module=_CHAT_OURS, what="one", needs="holdfast"),
    System(name=LANGGRAPH, module=_CHAT_LANGGRAPH, what="sync", needs="langgraph"),
    System(name=LANGGRAPH_DELTA, module=_CHAT_LANGGRAPH, what="delta", needs="langgraph"),
    System(name=DBOS, module="bench.systems.chat_dbos", what="one", needs="dbos"),
)

LONG_CHAT = (
    System(name=OURS, module=_CHAT_OURS, what="one", needs="holdfast"),
    System(name=LANGGRAPH_DEFAULT, module=_CHAT_LANGGRAPH, what="default", needs="langgraph"),
)

OURS_CROWDS = (
    System(name=OURS_ASYNC, module=_CHAT_OURS, what="asyncio", needs="holdfast"),
    System(name=OURS_THREADS, module=_CHAT_OURS, what="threads", needs="holdfast"),
)

LANGGRAPH_CROWDS = (
    System(
        name="LangGraph AsyncSqliteSaver, sync, asyncio",
        module=_CHAT_LANGGRAPH,
        what="asyncio",
        needs="langgraph",
    ),
    System(
        name="LangGraph SqliteSaver, sync, threads",
        module=_CHAT_LANGGRAPH,
        what="threads",
        needs="langgraph",
    ),
)
