"""What people see while the demo runs: a live picture on a terminal, lines elsewhere."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.demo.killer import Death
from holdfast.cli.demo.process import Event
from holdfast.cli.demo.proof import Look

SETTLED = {
    "probe": "the probe found that it had happened",
    "call": "the probe found that it had not: done now",
    "repeat": "sent again under the same key",
}


class View(Protocol):
    """Told what happens, as it happens."""

    def begin(self, *, turns: int, kills: int, seed: int) -> None:
        """The demo begins."""

    def born(self, life: int) -> None:
        """A process starts."""

    def hear(self, event: Event) -> None:
        """It does something that can be seen outside."""

    def ended(self, death: Death | None, looks: Sequence[Look]) -> None:
        """It was killed, or came to the run's end; `looks` are what stood after each life."""

    def twin(self) -> None:
        """The undisturbed run begins."""


class Lines:
    """A line for each life."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._life = 0

    def begin(self, *, turns: int, kills: int, seed: int) -> None:
        """Say what is going to happen."""
        self._write(opening(turns=turns, kills=kills, seed=seed))

    def born(self, life: int) -> None:
        """Remember which life it is."""
        self._life = life

    def hear(self, event: Event) -> None:
        """A line for each event would be too many."""

    def ended(self, death: Death | None, looks: Sequence[Look]) -> None:
        """Say how the life ended and what it settled of the doubts it found."""
        self._write(f"life {self._life:2}  {ending(death)}")
        for note in notes(looks):
            self._write(f"         {note}")

    def twin(self) -> None:
        """Say why there is a wait."""
        self._write("the same run once more, undisturbed, to compare")


class Picture:
    """A table of lives that grows, and what the present one does."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=20, transient=False)
        self._lives = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("life", "how it ended", "effects in doubt"):
            self._lives.add_column(name)
        self._title, self._now = Text(), Text()
        self._turns, self._done, self._life = 1, 0, 0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.update(Group(self._title, Text(), self._lives))
        self._live.stop()

    def begin(self, *, turns: int, kills: int, seed: int) -> None:
        """Say what is going to happen."""
        self._turns = turns
        self._title = Text(opening(turns=turns, kills=kills, seed=seed))
        self._draw()

    def born(self, life: int) -> None:
        """Show that a process starts."""
        self._life = life
        self._show("starting", "")

    def hear(self, event: Event) -> None:
        """Show what it does."""
        if event.what == "turn":
            self._done = event.about
        self._show(event.what, event.about if event.what != "done" else "")

    def ended(self, death: Death | None, looks: Sequence[Look]) -> None:
        """Add the life to the table."""
        style = "green" if death is None else "red"
        found = "\n".join(notes(looks))
        self._lives.add_row(str(self._life), Text(ending(death), style=style), found)
        self._draw()

    def twin(self) -> None:
        """Show why there is a wait."""
        self._now = Text("the same run once more, undisturbed, to compare", style="dim")
        self._draw()

    def _show(self, what: str, about: object) -> None:
        self._now = Text(f"life {self._life}: {what} {about}", style="dim")
        self._draw()

    def _draw(self) -> None:
        bar = ProgressBar(total=self._turns, completed=self._done, width=40)
        parts: list[RenderableType] = [self._title, Text(), self._lives, Text(), bar, self._now]
        self._live.update(Group(*parts))


def opening(*, turns: int, kills: int, seed: int) -> str:
    """What is going to happen, in a sentence."""
    return (
        f"A support agent answers {turns} tickets; its process is killed {kills} times with "
        f"SIGKILL (--seed {seed}) and started again each time."
    )


def ending(death: Death | None) -> str:
    """How a life ended, in words."""
    if death is None:
        return "came to the end of the run"
    if death.turn < 0:
        return "killed while it started"
    where = f"turn {death.turn:2}: killed {death.after_ms:.0f} ms after"
    match death.last:
        case Event("turn", _):
            return f"{where} the turn began"
        case Event(what, about):
            return f"{where} {what} {about}"


def notes(looks: Sequence[Look]) -> list[str]:
    """What became of the doubts the last life found, and which it left."""
    now = looks[-1]
    before = looks[-2].doubts if len(looks) > 1 else ()
    said = [
        f"{doubt.effect} {doubt.ticket}: {SETTLED[now.known_by[doubt.key]]}"
        for doubt in before
        if doubt.key in now.known_by
    ]
    return [*said, *(f"{doubt.effect} {doubt.ticket}: left in doubt" for doubt in now.doubts)]
