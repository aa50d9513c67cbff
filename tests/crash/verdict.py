"""What the outside saw of a run, against what the promises allow. The store is not asked."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.crash.outside import Line, Outside

WITHOUT_TOKEN = ("charge", "drawn", "nobody", "left")
"""What has no token of its own: a refusal, what the run drew, a default answer, a balance."""
REPEATABLE = "book"
"""The world does this once for each idempotency key, however often it is asked."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A run that nobody interrupted: how often each thing is asked, done, and answered."""

    asked: Counter[str]
    done: Counter[str]
    result: list[str]


def reference(outside: Outside) -> Reference:
    """What an uninterrupted run left."""
    log = outside.log()
    return Reference(
        asked=Counter(line.what for line in log if line.kind == "asked"),
        done=Counter(line.what for line in outside.world()),
        result=[answer["what"] for answer in result(log)],
    )


def result(log: list[Line]) -> list[dict[str, str]]:
    """The result that the last life handed out."""
    assert "result" == log[-1].kind, f"no result, but {log[-1]}"
    answers: list[dict[str, str]] = json.loads(log[-1].what)
    return answers


def asked_again(outside: Outside, expected: Reference) -> list[str]:
    """Questions asked although an earlier life of the run had been handed their answer.

    A question that stands n times in the agent may be asked n times, less one for each answer
    that was handed out before; the answers of equal questions are told apart by their tokens.
    """
    found = []
    handed: dict[str, set[str]] = {}
    for life in _lives(outside.log()):
        asked = Counter(line.what for line in life if line.kind == "asked")
        for what, times in asked.items():
            allowed = expected.asked[what] - len(handed.get(what, ()))
            found += [what] * max(0, times - allowed)
        for line in life:
            if line.kind == "got":
                handed.setdefault(line.what, set()).add(line.token)
    return found


def doubled(outside: Outside, expected: Reference) -> list[str]:
    """Effects done more often than the agent means them, or under changing keys."""
    found = []
    keys: dict[str, Counter[str]] = {}
    for line in outside.world():
        keys.setdefault(line.what, Counter())[line.kind] += 1
    for what, times in keys.items():
        found += [what] * max(0, len(times) - expected.done[what])
        if not what.startswith(REPEATABLE):
            found += [what] * (times.total() - len(times))
    owners = Counter(key for times in keys.values() for key in times)
    return found + [key for key, whats in owners.items() if whats > 1]


def lost(outside: Outside, expected: Reference) -> list[str]:
    """Answers that were handed out, and deeds that were done, but are not in the result."""
    log = outside.log()
    answers = result(log)
    used = {answer["token"] for answer in answers}
    given = {line.token for line in log if line.kind == "asked"}
    whats = [answer["what"] for answer in answers]
    found = [f"got {line.what}" for line in log if line.kind == "got" and line.token not in used]
    found += [
        f"made up {answer['what']}"
        for answer in answers
        if answer["token"] not in given and not answer["what"].startswith(WITHOUT_TOKEN)
    ]
    done = Counter(what for what, _ in {(line.what, line.kind) for line in outside.world()})
    found += [f"never done {what}" for what in expected.done - done]
    found += [
        f"done {line.what}"
        for line in outside.world()
        if line.token not in used and not line.what.startswith(REPEATABLE)
    ]
    return found + ([] if whats == expected.result else [f"result {whats}"])


def _lives(log: list[Line]) -> Iterator[list[Line]]:
    life: list[Line] = []
    for line in log:
        if line.kind == "life":
            yield life
            life = []
        life.append(line)
    yield life
