"""Holdfast running the conversation in an open and in an encrypted store, block by block."""

import secrets
import threading
from pathlib import Path
from time import perf_counter_ns

import holdfast
from bench import conversation
from bench.job import Job, Message, Model, Seen
from bench.systems.beside import BLOCK
from holdfast.store.keys.local import RootKey

JOB = Job.from_argument()
MODEL = Model.of(JOB)
OPEN, SEALED = "open", "sealed"


class Baton:
    """Whoever holds it runs a block of turns while the other waits."""

    def __init__(self) -> None:
        self._turn, self._moved = OPEN, threading.Condition()

    def take(self, name: str) -> None:
        """Wait for the baton."""
        with self._moved:
            self._moved.wait_for(lambda: self._turn == name)

    def pass_on(self, name: str) -> None:
        """Give it to the other."""
        with self._moved:
            self._turn = SEALED if name == OPEN else OPEN
            self._moved.notify_all()


@holdfast.step
def chat(messages: list[Message]) -> Message:
    """Ask the model."""
    return MODEL.reply(messages)


def run_in(name: str, baton: Baton, key: RootKey | None, seen: Seen) -> None:
    """The conversation in one of the stores; only turns inside a block are timed."""
    place = Path(JOB.directory) / name
    turn_ns: list[int] = []
    marks: list[int] = []

    @holdfast.agent
    def talk(run: holdfast.Run, task: Message) -> None:
        run.state.setdefault("messages", [task])
        run.state.setdefault("variables", conversation.variables())
        messages, variables = run.state["messages"], run.state["variables"]
        for turn in run.turns():
            if turn % BLOCK == 0:
                if turn:
                    baton.pass_on(name)
                baton.take(name)
                marks.clear()
            marks.append(perf_counter_ns())
            if len(marks) > 1:
                turn_ns.append(marks[-1] - marks[-2])
            messages.append(conversation.user(MODEL, messages))
            messages.append(chat(messages))
            variables.update(conversation.changed(turn))
            if turn + 1 == JOB.turns:
                break

    with holdfast.open(place, key=key or "") as store:
        store.run(talk, JOB.task(0), id="run-0")
        baton.pass_on(name)
    seen[name] = turn_ns
    seen[f"{name}_bytes"] = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def main() -> None:
    """Both at once, one block at a time."""
    seen: Seen = {}
    baton, key = Baton(), RootKey(secrets.token_bytes(32), "file")
    other = threading.Thread(target=run_in, args=(SEALED, baton, key, seen))
    other.start()
    run_in(OPEN, baton, None, seen)
    other.join()
    JOB.report(seen)


if __name__ == "__main__":
    main()
