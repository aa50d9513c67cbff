"""What the disk itself costs: the turn's bytes and nothing else, made durable."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.job import Job, Message, Model, Seen, timed

GROW_PAGES = 256
CHECKPOINT_PAGES = 200
INSERT = "INSERT INTO turn (body) VALUES (?)"


def append(job: Job) -> Callable[[bytes], None]:
    """One write to the end of a file and one fdatasync."""
    file = os.open(Path(job.directory) / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def keep(body: bytes) -> None:
        os.write(file, body)
        os.fdatasync(file)

    return keep


def commit(job: Job) -> Callable[[bytes], None]:
    """One row in WAL mode with synchronous=FULL, everything else as SQLite comes."""
    database = _database(job)

    def keep(body: bytes) -> None:
        database.execute(INSERT, (body,))

    return keep


def commit_grown(job: Job) -> Callable[[bytes], None]:
    """The same into a write-ahead log that was grown beforehand and is kept that size."""
    database = _database(job)
    database.execute("PRAGMA synchronous=OFF")
    database.execute("INSERT INTO turn (id, body) VALUES (0, x'00')")
    for _ in range(GROW_PAGES):
        database.execute("UPDATE turn SET body = randomblob(8) WHERE id = 0")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("PRAGMA wal_checkpoint(RESTART)")
    database.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")

    def keep(body: bytes) -> None:
        database.execute(INSERT, (body,))

    return keep


def _database(job: Job) -> sqlite3.Connection:
    database = sqlite3.connect(Path(job.directory) / "floor.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE turn (id INTEGER PRIMARY KEY, body BLOB)")
    return database


FLOORS = {"append": append, "commit": commit, "commit_grown": commit_grown}


def main() -> None:
    """Run the loop on the floor the job names."""
    job = Job.from_argument()
    model = Model.of(job)
    keep = FLOORS[job.what](job)
    encode = msgspec.msgpack.Encoder().encode
    seen: Seen = {}
    messages: list[Message] = [job.task(0)]
    with timed(seen):
        for _ in range(job.turns):
            reply = model.reply(messages)
            keep(encode(reply))
            messages.append(reply)
    job.report(seen | {"turn_ns": model.turn_ns()})


if __name__ == "__main__":
    main()
