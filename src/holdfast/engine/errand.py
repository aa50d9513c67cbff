"""What a supervisor asks a child process to do, as it travels between them."""

import msgspec

from holdfast.model.cadence import Pace
from holdfast.model.journal import Decided


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """One life of a run: which store, which agent, which arguments.

    `main` is the script of an agent that no module holds, `path` where modules are looked for;
    `args` are the encoded positional and keyword arguments. `pace` is how the store has runs saved,
    `told` what is said of this one.
    """

    store: str
    key: str | None
    run: str
    agent: str
    module: str
    main: str | None
    path: list[str]
    args: bytes
    environment: list[str]
    pace: Pace = Pace()
    told: Pace = Pace()


class Go(msgspec.Struct, frozen=True, kw_only=True):
    """The word to begin; `is_restart` and why, where the run had begun before."""

    is_restart: bool = False
    decided: Decided | None = None
