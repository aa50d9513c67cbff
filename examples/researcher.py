"""An async agent that searches in parallel. What was found before a crash is not searched again.

Play it with `python examples/researcher.py`.
"""

import asyncio

import holdfast

TOPICS = {"kelp": ["forest", "farming", "trade"], "rock": ["basalt", "granite"]}


@holdfast.step
async def search(topic: str, question: str) -> str:
    """Ask a search engine: here, at once and always the same."""
    await asyncio.sleep(0)
    print("searched", topic, question)
    return f"{topic} {question}: found"


@holdfast.step(raises=[TimeoutError])
async def summarise(findings: list[str]) -> str:
    """Ask a model for a summary."""
    await asyncio.sleep(0)
    return f"{len(findings)} findings"


@holdfast.agent
async def researcher(run: holdfast.Run) -> str:
    """One topic a turn, its questions side by side."""
    findings = run.state.setdefault("findings", [])
    todo = run.state.setdefault("todo", list(TOPICS))
    async for _ in run.turns():
        topic = todo[0]
        # They may finish in any order: each is known by its function and its arguments.
        findings += await asyncio.gather(*(search(topic, q) for q in TOPICS[topic]))
        del todo[0]
        if not todo:
            break
    try:
        async with asyncio.timeout(30):
            return await summarise(findings)
    except TimeoutError:
        return f"{len(findings)} findings, not summarised"


async def main() -> None:
    """Run it as part of an async program, which may run many at once."""
    with holdfast.open() as store:
        print(await store.arun(researcher, id="research-1"))


if __name__ == "__main__":
    asyncio.run(main())
