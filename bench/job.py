"""What a measured process is asked to do, and how it hands back what it saw."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter_ns

# Not role and content: LangGraph would turn such dicts into its own, slower message objects.
Message = dict[str, str]
Value = int | float | str | list[int]
Seen = dict[str, Value]

FIRST_STEP = b"bench: first step"
LAST_STEP = b"bench: last step"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One measurement: the directory is the measured system's own and holds nothing else."""

    what: str
    directory: str
    texts: str
    result: str
    turns: int = 0
    runs: int = 1
    first_run: int = 0

    def task(self, run: int) -> Message:
        """The message a run begins with: it gives every run texts of its own."""
        return {"author": "user", "text": str((self.first_run + run) * self.turns)}

    def to_argument(self) -> str:
        """The job as one command-line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_argument(cls) -> "Job":
        """The job this process was started with."""
        return cls(**json.loads(sys.argv[1]))

    def report(self, seen: Seen) -> None:
        """Hand `seen` to the process that started this one."""
        Path(self.result).write_text(json.dumps(seen))


@dataclass(kw_only=True)
class Model:
    """A model that answers at once with the next text and notes when it was asked.

    From one question to the next lies one whole durable turn, whatever the system does in it.
    """

    texts: list[str]
    asked: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, job: Job) -> "Model":
        """The model whose texts the job names."""
        return cls(texts=json.loads(Path(job.texts).read_text()))

    def reply(self, messages: Sequence[Mapping[str, str]]) -> Message:
        """The answer to a conversation."""
        self.asked.append(perf_counter_ns())
        return {"author": "model", "text": self.text(messages)}

    def text(self, messages: Sequence[Mapping[str, str]]) -> str:
        """What comes next in a conversation; its first message says with which text to begin."""
        return self.texts[(int(messages[0]["text"]) + len(messages)) % len(self.texts)]

    def turn_ns(self) -> list[int]:
        """How long each turn took, but for the last, whose end is not seen."""
        return [after - before for before, after in zip(self.asked, self.asked[1:], strict=False)]


@contextmanager
def timed(seen: Seen) -> Iterator[None]:
    """Put the duration of the block into `seen`, and marks around it into the system call trace."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.write(null, FIRST_STEP)
    begin = perf_counter_ns()
    yield
    seen["begin_ns"] = begin
    seen["wall_ns"] = perf_counter_ns() - begin
    os.write(null, LAST_STEP)
    os.close(null)
