"""An agent into which secrets are planted, wherever data of the user's enters a run."""

import base64
import collections
import json
import logging
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pydantic

import holdfast

Planter = Callable[[holdfast.Run, str], object]


@dataclass
class Box:
    """A class of the user's."""

    name: str
    content: Any


@dataclass(frozen=True)
class Fixed:
    """A class whose instances never change."""

    content: str


class Model(pydantic.BaseModel):
    """A Pydantic model that takes more than it declares."""

    model_config = pydantic.ConfigDict(extra="allow")
    content: str


class Struct(msgspec.Struct):
    """A msgspec struct."""

    content: dict[str, str]


class Pair(NamedTuple):
    """A named tuple."""

    left: str
    right: str


for known in (Box, Fixed, Model, Struct, Pair):
    holdfast.register(known)


@holdfast.register
class Refused(Exception):
    """An error with attributes."""


@holdfast.step
def echo(value: Any) -> Any:  # noqa: ANN401 whatever is planted
    return {"heard": value, "n": 1}


@holdfast.step(usage=lambda value: {"input_tokens": 1, "model": value["model"]})
def chat(prompt: str, model: str) -> dict[str, str]:
    return {"content": prompt, "model": model}


@holdfast.step(raises=(Refused,))
def fail(text: str, how: str) -> None:
    error = Refused(f"refused: {text}", {"body": text})
    if how == "attribute":
        error = Refused("refused")
        error.response = {"headers": {"authorization": f"Bearer {text}"}}  # type: ignore[attr-defined]
    if how == "note":
        error = Refused("refused")
        error.add_note(f"sent with {text}")
    if how == "cause":
        raise Refused("refused") from ValueError(f"bad key {text}")
    if how == "group":
        raise ExceptionGroup("several", [ValueError(text), error])
    raise error


@holdfast.effect(key="order", idempotent=True)
def pay(order: str, body: Any) -> Any:  # noqa: ANN401 whatever is planted
    return {"paid": order, "body": body}


@holdfast.effect(not_done=(Refused,))
def decline(body: str) -> None:
    raise Refused(f"declined {body}")


def _raise(how: str) -> Planter:
    def plant(_run: holdfast.Run, secret: str) -> None:
        try:
            fail(secret, how)
        except Exception:
            logging.getLogger("holdfast").exception("went past what failed for %s", secret)

    return plant


def _put(make: Callable[[str], object]) -> Planter:
    def plant(run: holdfast.Run, secret: str) -> None:
        run.state.setdefault("put", []).append(make(secret))

    return plant


def _key(run: holdfast.Run, secret: str) -> None:
    run.state.setdefault("keys", {})[secret] = {secret: 1}


def _section(run: holdfast.Run, secret: str) -> None:
    run.state[secret] = "a section"


def _gone(run: holdfast.Run, secret: str) -> None:
    run.state["gone"] = {secret: secret}
    run.checkpoint()
    del run.state["gone"][secret]


def _changed(run: holdfast.Run, secret: str) -> None:
    run.state.setdefault("box", Box("kelp", [])).content.append({"key": secret})


def _decline(_run: holdfast.Run, secret: str) -> None:
    try:
        decline(secret)
    except Refused:
        return


def _log(_run: holdfast.Run, secret: str) -> None:
    logging.getLogger("holdfast").warning("user's line: %s", {"key": secret})


def _repr(secret: str) -> str:
    """Every form after the value itself was seen once, so that it is known."""
    raw = secret.encode()
    forms = [secret, raw.hex(), raw.hex().upper(), base64.b64encode(b"ab:" + raw).decode()]
    return " ".join([*forms, base64.urlsafe_b64encode(b"u" + raw).decode(), repr(secret)])


PLANTERS: dict[str, Planter] = {
    "text": _put(lambda secret: secret),
    "text around it": _put(lambda secret: f"Authorization: Bearer {secret}\n"),
    "nested": _put(lambda secret: {"a": [{"b": {"c": secret}}]}),
    "key of a dict": _key,
    "name of a section": _section,
    "deleted again": _gone,
    "set": _put(lambda secret: {secret, "other"}),
    "tuple and frozenset": _put(lambda secret: (secret, frozenset({secret}))),
    "bytes": _put(lambda secret: b"\x00\xff" + secret.encode()),
    "bytearray": _put(lambda secret: bytearray(secret.encode())),
    "dataclass": _put(lambda secret: Box(secret, [secret])),
    "changed dataclass": _changed,
    "frozen dataclass": _put(Fixed),
    "Pydantic model": _put(lambda secret: Model(content=secret, more=secret)),  # type: ignore[call-arg]
    "msgspec struct": _put(lambda secret: Struct({secret: secret})),
    "named tuple": _put(lambda secret: Pair("left", secret)),
    "array of text": _put(lambda secret: np.array([["a", secret]])),
    "array of bytes": _put(lambda secret: np.array([secret.encode(), b"b"])),
    "bytes as an array": _put(lambda secret: {"a": secret.encode() + b"!"}),
    "path": _put(lambda secret: pathlib.PurePosixPath("/keys") / secret.replace("/", "-")),
    "JSON text": _put(lambda secret: json.dumps({"deep": json.dumps({"key": "x"}), "key": secret})),
    "other forms": _put(_repr),
    "large text": _put(lambda secret: "kelp " * 20_000 + secret),
    "deque as list": _put(lambda secret: list(collections.deque([secret]))),
    "argument and answer of a step": lambda _run, secret: echo(secret),
    "long argument": lambda _run, secret: echo("kelp " * 11 + secret),
    "nested argument": lambda _run, secret: echo({"headers": {"x-key": secret}}),
    "answer in the state": lambda run, secret: run.state.update(answer=echo([secret])),
    "model and parameters": lambda _run, secret: chat(prompt="hello", model=secret),
    "effect": lambda _run, secret: pay("order", {"card": secret}),
    "key of an effect": lambda _run, secret: pay(secret, "x"),
    "effect that declines": _decline,
    "message of an error": _raise("message"),
    "attribute of an error": _raise("attribute"),
    "note of an error": _raise("note"),
    "cause of an error": _raise("cause"),
    "group of errors": _raise("group"),
    "label of a checkpoint": lambda run, secret: run.checkpoint(label=f"after {secret}"),
    "log": _log,
    "undecorated call": lambda run, secret: run.call(str.upper, f"kelp {secret}"),
}

PLANTED: list[tuple[str, str]] = []


@holdfast.agent(checkpoint=holdfast.every(turns=3))
def garden(run: holdfast.Run, given: list[str], *, named: str) -> object:
    for turn in run.turns():
        if turn == len(PLANTED):
            return {"given": given, "named": named, "last": PLANTED[-1][1]}
        place, secret = PLANTED[turn]
        PLANTERS[place](run, secret)
    raise AssertionError


@holdfast.agent
def failing(_run: holdfast.Run, secret: str) -> None:
    raise RuntimeError(f"no entry with {secret}")


@holdfast.agent
def doubting(_run: holdfast.Run, secret: str) -> None:
    cut_off(secret)


@holdfast.effect
def cut_off(secret: str) -> None:
    raise ConnectionError(f"lost while sending {secret}")


@holdfast.agent
def asking(run: holdfast.Run, secret: str) -> object:
    return run.ask(f"is {secret} right?")
