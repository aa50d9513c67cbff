"""DBOS on its default database, SQLite, running the conversation: one step per turn."""

from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench import conversation
from bench.job import Job, Message, Model, Seen, timed


def main() -> None:
    """Run the conversation once. DBOS does not store variables: it runs the code again."""
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

    def talk(task: Message, turns: int) -> int:
        messages, variables = [task], conversation.variables()
        for turn in range(turns):
            messages.append(conversation.user(model, messages))
            messages.append(chat(messages))
            variables.update(conversation.changed(turn))
        return len(messages)

    workflow = DBOS.workflow(name="talk")(talk)
    DBOS.launch()
    seen: Seen = {}
    with timed(seen), SetWorkflowID("run-0"):
        DBOS.start_workflow(workflow, job.task(0), job.turns).get_result()
    DBOS.destroy()
    job.report(seen | {"turn_ns": model.turn_ns()})


if __name__ == "__main__":
    main()
