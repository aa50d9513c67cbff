"""Which program works on a run: versions, fingerprints of code and tools, allowed environment."""

import contextlib
import functools
import hashlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

from holdfast.engine.agents import Agent
from holdfast.model.journal import Facts
from holdfast.version import VERSION

LIBRARIES = (
    "anthropic",
    "autogen",
    "cohere",
    "crewai",
    "dspy",
    "google.genai",
    "haystack",
    "httpx",
    "instructor",
    "langchain",
    "langchain_core",
    "langgraph",
    "litellm",
    "llama_index.core",
    "mistralai",
    "numpy",
    "ollama",
    "openai",
    "pydantic",
    "pydantic_ai",
    "smolagents",
    "torch",
    "transformers",
)
"""Libraries whose version is recorded where the program has imported them."""

PROMPT_WORDS_MIN = 3
UNSPACED_CHARS_MIN = 12
"""Chinese, Japanese or Thai stand without spaces between words."""
TEXTS_DEPTH_MAX = 4
SCHEMAS = frozenset({"input_schema", "inputSchema", "parameters", "parametersJsonSchema"})
"""Where a tool says, beside its name, what it takes."""
PROMPTS_MAX = 256
"""A longer table holds data, not prompts, and would be read before a run can begin."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def facts_of(agent: Agent[..., Any], environment: Mapping[str, str]) -> Facts:
    """What is known of this process and of the agent's code, to be recorded with a life."""
    module = sys.modules.get(agent.fn.__module__)
    return Facts(
        holdfast=VERSION,
        python=".".join(map(str, sys.version_info[:3])),
        platform=f"{sys.platform}-{os.uname().machine}",
        code=_source(agent.fn),
        # Names of a program that runs on may come to stand for others.
        tools=None if module is None else _tools(module),
        libraries=dict(_libraries()),
        environment=dict(environment),
        prompts=None if module is None else _prompts(module),
    )


@functools.lru_cache(maxsize=256)
def _source(fn: Callable[..., Any]) -> str:
    """A hash over the text of the agent's module."""
    try:
        code = inspect.getsource(sys.modules.get(fn.__module__) or fn).encode()
    except (OSError, TypeError):  # No file: a notebook, or a frozen program.
        code = b"".join(_code(fn.__code__))
    return hashlib.sha256(code).hexdigest()


def _code(code: CodeType) -> Iterator[bytes]:
    """What a function does, without where its file lies."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames)).encode()
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _code(value)
        else:
            yield repr(value).encode()


def _tools(module: ModuleType) -> str | None:
    """A hash over names and signatures of what agents may call, and over tool schemas.

    Those of the module and of modules it imported beside it; None: nothing.
    """
    found = {
        text
        for name, value in _named(module)
        for text in [*_signatures(name, value), *_schemas(value, TEXTS_DEPTH_MAX)]
    }
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest() if found else None


def _signatures(name: str, value: object) -> Iterator[str]:
    """A step or effect with its signature, or those that a class has as methods."""
    if inspect.isclass(value):
        for inner, held in vars(value).items():
            method = held.__func__ if isinstance(held, staticmethod | classmethod) else held
            if inspect.isfunction(method):
                yield from _signatures(f"{name}.{inner}", method)
    elif inspect.isfunction(value) and inspect.isfunction(bare := getattr(value, "bare", None)):
        yield f"{name}{_signature(bare)}"


def _schemas(value: object, depth: int) -> Iterator[str]:
    """The tool schemas in a value, as providers and MCP take them."""
    if depth and type(value) in (dict, list, tuple) and len(value) <= PROMPTS_MAX:  # type: ignore[arg-type]  # each of the three has a length
        if isinstance(value, dict) and "name" in value and not SCHEMAS.isdisjoint(value):
            with contextlib.suppress(TypeError, ValueError):  # It is none after all.
                yield json.dumps(value, sort_keys=True)
        else:
            for part in value.values() if isinstance(value, dict) else value:  # type: ignore[attr-defined]  # one of the three kinds asked for above
                yield from _schemas(part, depth - 1)


@functools.lru_cache(maxsize=1024)
def _signature(fn: Callable[..., Any]) -> str:
    return _ADDRESS.sub("", str(inspect.signature(fn)))


def _prompts(module: ModuleType) -> str | None:
    """A hash over the texts that the module, and modules it imported beside it, have names for.

    The source of a module does not say what its prompts are where they are read from files.
    """
    found = sorted(
        f"{name}={text}"
        for name, value in _named(module)
        if not name.startswith("__")
        for text in _texts(value, TEXTS_DEPTH_MAX)
    )
    told = "\n".join(found).encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest() if found else None


def _named(module: ModuleType) -> Iterator[tuple[str, object]]:
    """What the module, and modules of its package that it imported, have names for."""
    package = module.__name__.partition(".")[0]
    yield from vars(module).items()
    for value in vars(module).values():
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == package:
            yield from vars(value).items()


def _texts(value: object, depth: int) -> Iterator[str]:
    """The texts of some words in a value: prompts are, names and addresses mostly are not."""
    if isinstance(value, str):
        words = len(value.split(None, PROMPT_WORDS_MIN - 1))
        if words >= PROMPT_WORDS_MIN or (len(value) >= UNSPACED_CHARS_MIN and not value.isascii()):
            yield value
    elif depth and type(value) in (dict, list, tuple) and len(value) <= PROMPTS_MAX:  # type: ignore[arg-type]  # each of the three has a length
        for part in value.values() if isinstance(value, dict) else value:  # type: ignore[attr-defined]  # one of the three kinds asked for above
            yield from _texts(part, depth - 1)


def _libraries() -> Iterator[tuple[str, str]]:
    loaded = sys.modules
    for name in [each for each in LIBRARIES if each in loaded]:
        version = getattr(loaded.get(name), "__version__", None)
        if isinstance(version, str):
            yield name, version
