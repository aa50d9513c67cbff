"""How many bytes a closed store has for what its runs added, every turn restorable."""

from bench import child, conversation
from bench.figures import Result, Table, Target, show
from bench.job import Job, Model
from bench.session import Session

MODULE = "bench.systems.chat_ours"
PART_MAX = 0.7
TASK_TURNS = 18
TASK_KB_MAX = 20


def measure(session: Session) -> Result:
    """A short and a long conversation, and many tasks in one store; then the files' sizes."""
    scale = session.scale
    rows: list[list[str]] = []
    targets: list[Target] = []
    numbers: dict[str, object] = {}
    for turns in (scale.chat_turns, scale.long_chat_turns):
        job = session.long_job("one", turns=turns)
        stored, raw = child.measure_fresh(MODULE, job).bytes_left, _raw(job)
        session.say(f"{turns:,} turns: {stored / raw:.3f} of what they added")
        rows.append(
            [f"a conversation of {turns:,} turns", *_kb(stored, raw), f"{stored / raw:.3f}"]
        )
        targets.append(
            Target(
                promise=f"bytes after close against what {turns:,} turns added",
                measured=stored / raw,
                limit=PART_MAX,
                unit="x",
            )
        )
        numbers[f"conversation of {turns} turns"] = {"bytes": stored, "bytes_added": raw}
    job = session.long_job("tasks", turns=TASK_TURNS, runs=scale.tasks)
    stored = child.measure_fresh(MODULE, job).bytes_left
    per_task = stored / scale.tasks / 1000
    session.say(f"{scale.tasks:,} tasks: {per_task:.1f} kB each")
    raw = scale.tasks * TASK_TURNS * 1000
    name = f"{scale.tasks:,} tasks of {TASK_TURNS} turns"
    rows.append([name, *_kb(stored, raw), f"{stored / raw:.3f}"])
    targets.append(
        Target(
            promise=f"kB a task, {name} with one 1 KB message each",
            measured=per_task,
            limit=TASK_KB_MAX,
            unit=" kB",
        )
    )
    numbers["tasks"] = {"bytes": stored, "tasks": scale.tasks}
    return Result(
        subject="size",
        title="Bytes of a closed store, every turn restorable",
        table=Table(columns=("what", "kB added", "kB stored", "stored / added"), rows=rows),
        targets=targets,
        numbers=numbers,
        note="All files below the store's directory after `store.close()`. Added is the msgpack of "
        "each turn's two messages and two variables; for tasks, the text of their messages. No "
        "dictionary is used.",
    )


def _raw(job: Job) -> int:
    return sum(map(len, conversation.added(Model.of(job), job.task(0), job.turns)))


def _kb(stored: int, raw: int) -> list[str]:
    return [show(raw / 1000, ",.0f"), show(stored / 1000, ",.0f")]
