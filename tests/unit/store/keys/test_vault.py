"""A key service keeps the root key: only what it wrapped, for that context, comes back."""

from pathlib import Path

import pytest

import holdfast
from holdfast.errors import KeyUnusable, WrongKey
from holdfast.store.keys.spec import provider_of
from holdfast.store.keys.vault import VaultKey
from tests.unit.store.keys.transit import TOKEN, service


def test_the_service_gives_back_what_it_wrapped_for_that_context() -> None:
    with service("mine", "other") as address:
        mine, other = (VaultKey(f"{address}/{name}", TOKEN) for name in ("mine", "other"))
        wrapped = mine.wrap(b"k" * 32, b"context")

        assert wrapped.startswith(b"vault:v1:")
        assert b"k" * 32 == mine.unwrap(wrapped, b"context", "the store")
        for provider, given, context in (
            (other, wrapped, b"context"),
            (mine, wrapped, b"another"),
            (mine, b"nonsense", b"context"),
            (mine, b"\xff", b"context"),
        ):
            with pytest.raises(WrongKey, match="the store"):
                provider.unwrap(given, context, "the store")


def test_what_keeps_the_service_from_answering_is_named() -> None:
    with service("mine") as address:
        with pytest.raises(KeyUnusable, match="403"):
            VaultKey(f"{address}/mine", "another token").wrap(b"k" * 32, b"c")
        with pytest.raises(KeyUnusable, match="404"):
            VaultKey(f"{address}/none", TOKEN).wrap(b"k" * 32, b"c")
    with pytest.raises(KeyUnusable, match="cannot be reached"):
        VaultKey(f"{address}/mine", TOKEN).wrap(b"k" * 32, b"c")


@pytest.mark.parametrize(
    ("place", "token", "why"),
    [
        ("http://example.org/transit/k", TOKEN, "only over https"),
        ("https://example.org", TOKEN, "not written as"),
        ("https://example.org/transit/k", "", "VAULT_TOKEN"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_anything_is_sent(
    place: str, token: str, why: str
) -> None:
    with pytest.raises(KeyUnusable, match=why):
        provider_of(f"vault:{place}", {"VAULT_TOKEN": token})


def test_a_store_can_be_kept_by_a_key_service(tmp_path: Path) -> None:
    with service("mine", "other") as address:
        mine, other = (VaultKey(f"{address}/{name}", TOKEN) for name in ("mine", "other"))
        holdfast.open(tmp_path / "s", key=mine).close()

        holdfast.open(tmp_path / "s", key=mine).close()
        with pytest.raises(WrongKey):
            holdfast.open(tmp_path / "s", key=other)
