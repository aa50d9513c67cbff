"""DBOS on its default database, SQLite: a workflow that calls one step per turn."""

from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.job import Job, Message, Model, Seen, timed


def main() -> None:
    """Run the loop as the job says; several runs are workflows started at once."""
    job = Job.from_argument()
    model = Model.of(job)
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{Path(job.directory) / 'dbos.sqlite'}",
        "log_level": "WARNING",
    }
    DBOS(config=config)

    def ask(messages: list[Message]) -> Message:
        return model.reply(messages)

    chat = DBOS.step(name="chat")(ask)

    def chatter(task: Message, turns: int) -> int:
        messages = [task]
        while len(messages) <= turns:
            messages.append(chat(messages))
        return len(messages)

    workflow = DBOS.workflow(name="chatter")(chatter)
    DBOS.launch()
    seen: Seen = {}
    with timed(seen):
        handles = []
        for run in range(job.runs):
            with SetWorkflowID(f"run-{run}"):
                handles.append(DBOS.start_workflow(workflow, job.task(run), job.turns))
        for handle in handles:
            handle.get_result()
    DBOS.destroy()
    job.report(seen | {"turn_ns": model.turn_ns()})


if __name__ == "__main__":
    main()
