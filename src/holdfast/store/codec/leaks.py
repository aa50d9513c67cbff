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
_EACH: Final = b"|".join(
    b"(?P<%s>%s)" % (group.encode(), _FORMS[name]) for group, name in _NAMES.items()
)
# A key inside a longer word is none; what stands before it in packed bytes may be anything.
_WHOLE: Final = rb"(?<![A-Za-z0-9])(?:" + _EACH + rb")"
BEGINNINGS: Final = frozenset(
    (
        b"sk- gsk xai hf_ r8_ AKI ASI ABI ACC AIz GOC ya2 ghp gho ghu ghs ghr git glp npm pyp xox"
        b" xap sk_ rk_ whs SG. doo dop dor :AA eyJ"
    ).split()
)
"""How each form begins, but that of private keys and of Slack's hooks."""
_BEFORE: Final = 5  # the longest beginning that ends outside a run: `ya29.`
LONG: Final = 4096
"""Longer runs are mostly pictures in base64, where any few bytes stand by chance."""

_BARE: Final = (b"AKIA", b"ASIA", b"ABIA", b"ACCA", b"AIza")  # forms without `-`, `_` or `.`
ARMOUR: Final = b"-----BEGIN "
"""How a private key begins, which alone among the forms may have no run."""
_HOOK: Final = b"hooks.slack.com/"

TABLE: Final = bytes(
    97 if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") else 32
    for code in range(256)
)
"""Turns what a run is made of into `a`, and everything else into a space."""

WORD: Final = b"a" * RUN
GRAM: Final = 3


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
    """Whether a closer look at packed bytes is due: a run in them has one of `grams`.

    `marked` is what `TABLE` makes of them, and `at` is where the first run begins in it.
    """
    while at >= 0:
        end = marked.find(b" ", at)
        end = len(data) if end < 0 else end
        # Where a secret that holds this run, or lies in it, would begin.
        first, last = max(0, at - _BEFORE), end - RUN
        if end - at > LONG:
            if _is_long_suspect(data, first, end):
                return True
        elif not grams.isdisjoint([data[n : n + GRAM] for n in range(first, last + 1)]):
            return True
        at = marked.find(WORD, end)
    return ARMOUR in data or _HOOK in data


def looks_secret(data: bytes) -> bool:
    """Whether something in packed bytes looks like a secret; rarely too careful."""
    return _compiled(_EACH).search(data) is not None


def find(data: bytes) -> Iterator[Hit]:
    """Everything in a text or in bytes of the user's that looks like a secret."""
    for match in _compiled(_WHOLE).finditer(data):
        assert match.lastgroup is not None
        yield Hit(match.start(), match.end(), _NAMES[match.lastgroup])


def _is_long_suspect(data: bytes, start: int, end: int) -> bool:
    """Whether a form could stand in a long run: plain base64 has neither `-` nor `_`."""
    if data.find(b"-", start, end) >= 0 or data.find(b"_", start, end) >= 0:
        return True
    return any(data.find(bare, start, end) >= 0 for bare in _BARE)


@functools.cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """A pattern, made when it is first needed: most programs never come so far."""
    return re.compile(pattern)
