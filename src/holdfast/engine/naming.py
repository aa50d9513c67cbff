"""Ids of runs and names of points as users give them: checked, and written out in full."""

from typing import TYPE_CHECKING

from holdfast.engine.secrets import refuse_secret_id
from holdfast.errors import UsageError
from holdfast.model.ids import check_run_id

if TYPE_CHECKING:
    from holdfast.engine.checkpoint import Checkpoint


def text_of(id_: object) -> str:
    """The id that names a run; `UsageError` for what is no text."""
    if not isinstance(id_, str):
        raise UsageError(f"a run is named by its id, a text, not by {id_!r:.80}")
    return id_


def run_id(given: object) -> str:
    """`given` if it can name a run; `UsageError` says why it cannot."""
    if not isinstance(given, str):
        msg = f"a run id is a string, not {type(given).__name__} {given!r}"
        raise UsageError(msg)
    refuse_secret_id(given)
    try:
        return check_run_id(given)
    except ValueError as error:
        raise UsageError(str(error)) from None


def point_name(run: str, at: "str | int | Checkpoint | None") -> str | None:
    """A point of a run, whose id need not be said again: a turn, `1.17.0`, or the whole name."""
    if at is None:
        return None
    name = str(at) if isinstance(at, str) or type(at) is int else getattr(at, "id", None)
    if not isinstance(name, str):
        msg = f"a point is a checkpoint, a turn's number or a name such as {run}@7, not {at!r:.80}"
        raise UsageError(msg)
    if name.startswith(f"{run}@"):
        return name
    other = name.rpartition("@")[0]
    if other:
        msg = f"{name} is a point of run {other}, not of {run}; give that run's id with it"
        raise UsageError(msg)
    return f"{run}@{name.removeprefix('@')}"
