"""What looks like a secret, and what does not."""

import base64
import random
import re
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.codec import leaks
from holdfast.store.codec.vault import Vault
from tests.unit.store.codec.keys import SAMPLES

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "call_9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "toolu_01A09q90qw90lq917835lq9",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
    "https://example.com/a-very-long-slug-that-talks-about-risk-management-in-2026",
    "task-force-and-desk-research-are-words-with-sk-in-them-and-go-on-for-long",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "arn:aws:iam::123456789012:role/service-role/my-lambda-execution-role-abcdefgh",
    "eyJhbGciOiJIUzI1NiJ9 is how a header begins, and eyJ0ZXN0IjoxfQ a payload",
    "-----BEGIN CERTIFICATE-----\nMIIDXTCCAkWgAwIBAgIJALoBvmyQ6NdWMA0GCSqGSIb3DQEBCwUA\n",
    "sk_learn_pipeline_with_a_very_long_name_indeed_0123456789",
    "def hf_load_model_from_pretrained_checkpoint(): ...",
    "sk-learn and scikit-learn",
]


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_key_is_found_whole_in_text_around_it(kind: str, sample: str) -> None:
    text = f'{{"key": "{sample}"}} and more'.encode()

    (hit,) = leaks.find(text)

    assert (kind, sample.encode()) == (hit.kind, text[hit.start : hit.end])


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_key_is_seen_in_packed_bytes_whatever_stands_before_it(kind: str, sample: str) -> None:
    for pad in range(90):
        packed = msgspec.msgpack.encode(["x" * pad, sample, kind])
        assert Vault(environment={}).may_hold(packed)
        assert Vault(environment={}).may_hold(msgspec.msgpack.encode(["a b " * pad + sample]))


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_key_is_seen_among_many_runs_that_are_none(kind: str, sample: str) -> None:
    chance = random.Random(kind)  # noqa: S311 a seed
    for size in (150, 900, 9000):
        picture = base64.b64encode(chance.randbytes(size)).decode()
        ids = [chance.randbytes(12).hex() for _ in range(size // 30)]
        packed = msgspec.msgpack.encode([picture, *ids, f"{picture} {sample} {picture}", *ids])
        assert Vault(environment={}).may_hold(packed)


@pytest.mark.parametrize("place", [0, 500, 999])
@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_key_is_seen_in_a_long_text_with_a_run_here_and_there(
    kind: str, sample: str, place: int
) -> None:
    chance = random.Random(kind)  # noqa: S311 a seed
    prose = "an agent reads and writes and asks a model for the next of its words " * 8
    texts = [prose + chance.randbytes(11).hex() for _ in range(1000)]
    clean = msgspec.msgpack.encode(texts)
    texts[place] += f" {sample} "

    assert not Vault(environment={}).may_hold(clean)
    assert Vault(environment={}).may_hold(msgspec.msgpack.encode(texts))


def test_a_declared_secret_is_seen_among_many_runs_that_are_none() -> None:
    chance = random.Random(5)  # noqa: S311 a seed
    value = "correct-horse-battery-staple-42"
    vault = Vault(environment={"PASSWORD": value})
    vault.declare("env:PASSWORD", None)
    for size in (150, 900, 9000):
        picture = base64.b64encode(chance.randbytes(size)).decode()
        assert vault.may_hold(msgspec.msgpack.encode([picture, picture + value + picture]))
        assert not vault.may_hold(msgspec.msgpack.encode([picture, picture + value[:-1]]))


@pytest.mark.parametrize("text", TEXTS)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert [] == list(leaks.find(text.encode()))


def test_every_kind_has_a_sample() -> None:
    assert set(leaks.KINDS) == {kind for kind, _ in SAMPLES}


def test_random_text_and_pictures_are_left_alone() -> None:
    chance = random.Random(7)  # noqa: S311 a seed
    letters = string.ascii_letters + string.digits
    for _ in range(2000):
        word = "".join(chance.choices(letters, k=chance.randint(20, 80))).encode()
        assert [] == list(leaks.find(word))
    picture = base64.b64encode(chance.randbytes(200_000))
    assert [] == list(leaks.find(picture))


PIECES = [
    *(sample.encode()[cut:] for _, sample in SAMPLES for cut in (0, 1, 4)),
    *(sample.encode()[:end] for _, sample in SAMPLES for end in (4, 12, 40)),
    *(text.encode() for text in TEXTS),
    *(b" ", b"-", b"_", b".", b"x", b"7", b"\xd9\x40", b"123456789", b"sk-", b"eyJ"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join))
def test_looking_where_forms_begin_finds_what_the_patterns_find(data: bytes) -> None:
    whole = re.compile(leaks.WHOLE)
    found = [(match.start(), match.end(), match.lastgroup) for match in whole.finditer(data)]

    assert found == [(hit.start, hit.end, hit.kind.replace("-", "_")) for hit in leaks.find(data)]
    assert leaks.looks_secret(data) is (re.search(leaks.EACH, data) is not None)
