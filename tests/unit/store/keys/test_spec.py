"""Keys from files, variables, commands and passphrases: found, or refused with what to do."""

import base64
from pathlib import Path

import pytest

from holdfast.errors import KeyUnusable
from holdfast.store.backends.fs import RealFs
from holdfast.store.keys.local import make_file
from holdfast.store.keys.spec import provider_of

KEY = bytes(range(32))
TEXTS = [
    KEY.hex(),
    KEY.hex().upper() + "\n",
    base64.b64encode(KEY).decode(),
    base64.urlsafe_b64encode(b"\xfb" * 32).decode() + "\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_key_is_64_hex_digits_or_base64(text: str) -> None:
    provider = provider_of("env:K", {"K": text})

    assert "env" == provider.kind
    assert b"k" * 32 == provider.unwrap(provider.wrap(b"k" * 32, b"c"), b"c", "it")


@pytest.mark.parametrize(
    "text", ["", "short", KEY.hex()[:-1], KEY.hex() + "00", "é" * 64, "=" * 44]
)
def test_anything_else_in_a_variable_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(KeyUnusable) as caught:
        provider_of("env:K", {"K": text})

    assert "variable K" in str(caught.value)
    assert not text or text not in str(caught.value)


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"

    make_file(path, RealFs())

    assert 0o600 == path.stat().st_mode & 0o777
    provider = provider_of(f"file:{path}", {})
    wrapped = provider.wrap(b"k" * 32, b"c")
    assert b"k" * 32 == provider_of(f"file:{path}", {}).unwrap(wrapped, b"c", "it")
    with pytest.raises(KeyUnusable, match="not overwritten"):
        make_file(path, RealFs())
    with pytest.raises(KeyUnusable, match="cannot be made"):
        make_file(tmp_path / "none" / "key", RealFs())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    make_file(path, RealFs())
    path.chmod(mode)

    with pytest.raises(KeyUnusable, match="chmod 600"):
        provider_of(f"file:{path}", {})


def test_a_missing_key_file_says_how_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(KeyUnusable, match="holdfast keys new"):
        provider_of(f"file:{tmp_path}/none", {})


def test_a_command_prints_the_key() -> None:
    provider = provider_of(f"cmd:printf '%s' {KEY.hex()}", {})

    wrapped = provider.wrap(b"k" * 32, b"c")
    assert b"k" * 32 == provider_of("env:K", {"K": KEY.hex()}).unwrap(wrapped, b"c", "it")


@pytest.mark.parametrize(
    ("command", "why"),
    [("false", "status 1"), ("no-such-command-here", "cannot be run"), ("'", "cannot be run")],
)
def test_a_command_that_fails_is_named(command: str, why: str) -> None:
    with pytest.raises(KeyUnusable, match=why):
        provider_of(f"cmd:{command}", {})


def test_a_passphrase_comes_from_its_variable_and_has_a_length() -> None:
    assert "passphrase" == provider_of("passphrase", {"HOLDFAST_PASSPHRASE": "long enough"}).kind
    with pytest.raises(KeyUnusable, match="HOLDFAST_PASSPHRASE is not set"):
        provider_of("passphrase", {})
    with pytest.raises(KeyUnusable, match="fewer than 8"):
        provider_of("passphrase", {"HOLDFAST_PASSPHRASE": "short"})


@pytest.mark.parametrize("spec", [KEY.hex(), "file:", "passphrase:word", "other:thing", "env:"])
def test_a_key_given_where_its_place_belongs_is_not_repeated(spec: str) -> None:
    with pytest.raises(KeyUnusable, match="a key is written as file:PATH") as caught:
        provider_of(spec, {})

    assert spec not in str(caught.value) or len(spec) <= 5
