"""Which bytes look like a secret: the forms that well-known services give their keys.

Every form but a private key has a run of `RUN` letters, digits, `_` or `-`. Text of people has few
such runs, so most bytes are cleared by one translation and one search.
"""

import functools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

RUN: Final = 20

_FORMS: Final = {
    "anthropic-key": rb"sk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{32,}",
    "openai-key": rb"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{32,}|sk-[A-Za-z0-9]{48}",
    "openrouter-key": rb"sk-or-v1-[0-9a-f]{64}",
    "groq-key": rb"gsk_[A-Za-z0-9]{48,64}",
    "xai-key": rb"xai-[A-Za-z0-9]{64,100}",
    "huggingface-token": rb"hf_[A-Za-z0-9]{34,40}",
    "replicate-token": rb"r8_[A-Za-z0-9]{37}",
    "aws-access-key": rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    "google-api-key": rb"AIza[A-Za-z0-9_-]{35}",
    "google-oauth-secret": rb"GOCSPX-[A-Za-z0-9_-]{28}",
    "google-oauth-token": rb"ya29\.[A-Za-z0-9_-]{30,}",
    "github-token": rb"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    "gitlab-token": rb"glpat-[A-Za-z0-9_-]{20,64}",
    "npm-token": rb"npm_[A-Za-z0-9]{36}",
    "pypi-token": rb"pypi-AgE[A-Za-z0-9_-]{50,}",
    "slack-token": rb"xox[abeoprs]-[A-Za-z0-9-]{20,}|xapp-[0-9]-[A-Za-z0-9-]{20,}",
    "slack-webhook": rb"hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}",
    "stripe-key": rb"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{32,}",
    "sendgrid-key": rb"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    "digitalocean-token": rb"do[opr]_v1_[0-9a-f]{64}",
    "telegram-token": rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
    "jwt": rb"eyJ[A-Za-z0-9_-]{12,}\.eyJ[A-Za-z0-9_-]{17,}\.[A-Za-z0-9_-]{20,}",
    "private-key": (
        rb"-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?s:.{0,16384}?)(?:-----END (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    ),
}
KINDS: Final = tuple(_FORMS)

_NAMES: Final = {name.replace("-", "_"): name for name in _FORMS}
EACH: Final = b"|".join(
    b"(?P<%s>%s)" % (group.encode(), _FORMS[name]) for group, name in _NAMES.items()
)
# A key inside a longer word is none; what stands before it in packed bytes may be anything.
WHOLE: Final = rb"(?<![A-Za-z0-9])(?:" + EACH + rb")"
ARMOUR: Final = b"-----BEGIN "
"""How a private key begins, which alone among the forms may have no run."""
_HOOK: Final = b"hooks.slack.com/services/T"

_BEGINNINGS: Final = {
    b"-": (b"sk-", b"xai-", b"GOCSPX-", b"glpat-", b"pypi-AgE", b"xox", b"xapp-", ARMOUR),
    b"_": (
        *(b"gsk_", b"hf_", b"r8_", b"npm_", b"whsec_", b"doo_v1_", b"dop_v1_", b"dor_v1_"),
        *(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
        *(b"sk_live_", b"sk_test_", b"rk_live_", b"rk_test_"),
    ),
    b".": (b"eyJ", b"SG.", b"ya29.", _HOOK),
    b"A": (b"AKIA", b"ASIA", b"ABIA", b"ACCA", b"AIza", b":AA"),
}
"""What each form begins with, under a byte that it surely has: a picture in base64 has few."""
_BACK: Final = {b":AA": (10, 9, 8)}
"""How many digits stand before such a beginning."""

GRAM: Final = 3
GRAMS: Final = frozenset(
    beginning[:GRAM] for each in _BEGINNINGS.values() for beginning in each
) - {ARMOUR[:GRAM], _HOOK[:GRAM]}
"""The first bytes of every form that begins in a run, or right before it."""
_BEFORE: Final = 5  # the longest beginning that ends outside a run: `ya29.`
_RUNS_MAX: Final = 200
_RUNS_SHARE: Final = 16
"""So many bytes in runs, or one in so many of all bytes, are looked at run by run."""

TABLE: Final = bytes(
    97 if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") else 32
    for code in range(256)
)
"""Turns what a run is made of into `a`, and everything else into a space."""

WORD: Final = b"a" * RUN


class Hit(NamedTuple):
    """A stretch of bytes that looks like a secret."""

    start: int
    end: int
    kind: str


def runs_of(data: bytes) -> Iterator[bytes]:
    """The runs of `RUN` and more bytes in `data`."""
    marked = data.translate(TABLE)
    at = marked.find(WORD)
    while at >= 0:
        end = marked.find(b" ", at)
        end = len(data) if end < 0 else end
        yield data[at:end]
        at = marked.find(WORD, end)


def is_suspect(data: bytes, marked: bytes, at: int, grams: frozenset[bytes]) -> bool:
    """Whether a closer look at packed bytes is due: a run has one of `grams`, or runs are many.

    `marked` is what `TABLE` makes of them, and `at` is where the first run begins in it.
    """
    seen, seen_max = 0, max(_RUNS_MAX, len(data) // _RUNS_SHARE)
    while at >= 0:
        end = marked.find(b" ", at)
        end = len(data) if end < 0 else end
        seen += end - at
        if seen > seen_max:
            return True
        # Where a secret that holds this run, or lies in it, would begin.
        if _any_of(grams).search(data, max(0, at - _BEFORE), end - RUN + GRAM):
            return True
        at = marked.find(WORD, end)
    return ARMOUR in data or _HOOK in data


def looks_secret(data: bytes) -> bool:
    """Whether something in packed bytes looks like a secret; rarely too careful."""
    return any(_compiled(EACH).match(data, start) for start in _starts(data))


def find(data: bytes) -> Iterator[Hit]:
    """Everything in a text or in bytes of the user's that looks like a secret."""
    end = 0
    for start in sorted(_starts(data)):
        match = _compiled(WHOLE).match(data, start) if start >= end else None
        if match is not None and match.lastgroup is not None:
            end = match.end()
            yield Hit(start, end, _NAMES[match.lastgroup])


def _starts(data: bytes) -> Iterator[int]:
    """Where a form may begin: few places, found far quicker than by a pattern."""
    for sure, beginnings in _BEGINNINGS.items():
        for beginning in beginnings if sure in data else ():
            at = data.find(beginning)
            while at >= 0:
                yield from (at - back for back in _BACK.get(beginning, (0,)) if back <= at)
                at = data.find(beginning, at + 1)


def ready() -> None:
    """Make the pattern that most runs are looked at with, so that no answer waits for it."""
    _any_of(GRAMS)


@functools.lru_cache(maxsize=4)
def _any_of(grams: frozenset[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, sorted(grams))))


@functools.cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """A pattern, made when it is first needed: most programs never come so far."""
    return re.compile(pattern)
