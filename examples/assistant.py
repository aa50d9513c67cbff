"""An agent class that knows nothing of Holdfast, made restartable by five added lines.

Lines marked `(added)` are new, those marked `(changed)` were another line before. Play it with
`python examples/assistant.py` (it takes NumPy: `pip install numpy`), kill it wherever you like,
play it again.
"""

from typing import Any

import numpy as np

import holdfast  # (added) 1

QUESTIONS = ["what is kelp?", "who eats kelp?", "what is basalt?", "is kelp farmed?"]


@holdfast.step  # (added) 2: a recorded answer is never asked for again
def complete(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask a model: here, at once and always the same."""
    print("asked about", messages[-1]["content"])
    return {"role": "assistant", "content": f"answer {len(messages) // 2}"}


def embed(text: str) -> "np.ndarray[Any, Any]":
    """A vector for a text: here, how often each of eight letters is in it."""
    return np.array([[float(text.count(letter)) for letter in "abeiklst"]])


class Assistant:
    """History, session and memory in plain attributes, as agents are written everywhere."""

    def __init__(self) -> None:
        self.client = object()  # a connection: made anew, not kept
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}]
        self.session: dict[str, Any] = {"asked": 0, "related": []}
        self.embeddings = np.zeros((0, 8))

    def answer(self, question: str) -> None:
        """Answer one question and remember it."""
        vector = embed(question)
        if len(self.embeddings):
            near = int(np.argmax(self.embeddings @ vector[0]))
            self.session["related"].append([question, QUESTIONS[near]])
        self.embeddings = np.vstack([self.embeddings, vector])
        self.session["asked"] += 1
        self.messages.append({"role": "user", "content": question})
        self.messages.append(complete(self.messages))


@holdfast.agent  # (added) 3
def serve(run: holdfast.Run) -> str:  # (changed) it takes the run
    """Answer all questions, one a turn."""
    bot = Assistant()
    run.attach("bot", bot, only=["messages", "session", "embeddings"])  # (added) 4
    for _ in run.turns():  # (changed) it was `while True:`
        bot.answer(QUESTIONS[bot.session["asked"]])
        if bot.session["asked"] == len(QUESTIONS):
            break
    rows = len(bot.embeddings)
    return f"{len(bot.messages)} messages, {rows} vectors, related: {bot.session['related'][-1]}"


if __name__ == "__main__":
    with holdfast.open() as store:  # (added) 5
        print(store.run(serve, id="assistant-1"))  # (changed) it was `print(serve())`
