"""What is cut out of a row: the dicts that a state names, and nothing that needs a codec."""

from typing import Any

import msgspec

from holdfast.capture.state import State
from holdfast.capture.tracked import track
from holdfast.model.journal import Answer, Based, Call, Entry, Row, TurnEnded, Usage
from holdfast.store.codec import values
from holdfast.store.codec.frame import seal
from holdfast.store.cuttable import cuttable

TEXT = "a text that is too long to be repeated"
MESSAGE = {"author": "kelp", "text": TEXT}
NESTED = {"text": TEXT, "calls": [{"name": "look"}]}

pack = msgspec.msgpack.encode


def answer(value: object) -> Answer:
    return Answer(Call(0, "ask", b"digest", 0, 0, False, []), values.encode(value), 1.0, 0.1, None)


def ended(delta: bytes | None) -> TurnEnded:
    return TurnEnded(0, 0, 1.0, delta, None, False, Usage(), 0)


def row(*entries: Entry) -> bytes:
    return seal(pack(Row(-1, 0, list(entries))))


def found(body: bytes) -> list[tuple[int, int, int, object]]:
    return [(n, at, ordinal, msgspec.msgpack.decode(raw)) for n, at, ordinal, raw in cuttable(body)]


def test_answers_that_are_dicts_are_cut_whole() -> None:
    body = row(answer(MESSAGE), answer(NESTED), answer([MESSAGE]), answer(TEXT), answer({"n": 1}))

    assert [(1, 0, -1, MESSAGE), (3, 1, -1, NESTED)] == found(body)


def test_what_only_the_codec_can_read_is_not_cut() -> None:
    assert [] == found(row(answer({"set": {1, 2}, "text": TEXT}), answer({1: TEXT})))


def test_dicts_of_a_save_are_cut_under_the_numbers_that_later_saves_name() -> None:
    state = State({"messages": [MESSAGE]})
    state.base()
    messages = state.root["messages"]
    messages += [dict(MESSAGE), track({"text": TEXT}, (9, 9), ()), NESTED, {"set": {1}, "t": TEXT}]
    messages.append([dict(MESSAGE), 7])
    delta = state.delta()

    cuts = found(row(ended(delta)))

    assert [(1, 0, 0, MESSAGE), (3, 0, 2, NESTED), (1, 0, 8, MESSAGE)] == cuts


def test_bases_and_what_cannot_be_read_are_left_alone() -> None:
    base: Any = State({"a": MESSAGE}).base()

    assert [] == found(row(Based(0, 0, base, []), ended(None), ended(b"\xff" + bytes(40))))
    assert [] == found(row(ended(b"no save"))) == found(b"") == found(seal(b"no row"))
