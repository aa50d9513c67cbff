"""`holdfast keys`, `erase`, `anchor`: what they print, refuse and end with."""

from pathlib import Path

import pytest

from tests.cli.kit import Shop


@pytest.fixture
def key(shop: Shop) -> str:
    """A key file of the shop, as it is named on the command line."""
    assert 0 == shop("keys", "new", "key").status
    return "file:key"


def test_a_new_store_is_encrypted_with_one_flag_and_used_through_every_setting(
    shop: Shop, key: str
) -> None:
    made = shop("keys", "init", "--key", key, "--json")

    assert (True, 1, "file", 0) == tuple(
        made.data["keys"][name] for name in ("encrypted", "key", "kind", "runs")
    )
    assert 2 == shop("runs").status
    assert "no key was given" in shop("runs").err
    assert 0 == shop("--key", key, "run", "shop:echo", "--id", "run-1").status
    assert 0 == shop("runs", HOLDFAST_KEY=key).status
    shop.put("holdfast.toml", f'key = "{key}"\n')
    assert ["run-1"] == [run["id"] for run in shop("runs", "--json").data["runs"]]
    assert 0 == shop("verify", "--deep").status
    assert {"encrypted": True, "runs": 1}.items() <= shop("keys", "--json").data["keys"].items()


def test_a_store_is_encrypted_in_place_and_given_new_keys(shop: Shop, key: str) -> None:
    shop("run", "shop:echo", "--id", "run-1")
    shop("keys", "new", "other")

    (shop.store / "lost").mkdir()
    done = shop("keys", "init", "--key", key)
    assert "encrypted in place" in done.out
    assert "holds what repairs moved aside, perhaps in clear" in done.err
    (shop.store / "lost").rmdir()
    assert "encrypted already; 0 files in clear removed" in shop("keys", "init", "--key", key).out
    assert "rotated" in shop("keys", "rotate", "--key", key, "--new", "file:other").out

    refused = shop("--key", key, "runs")
    assert 2 == refused.status
    assert "does not open" in refused.err
    assert 0 == shop("--key", "file:other", "show", "run-1").status
    assert 0 == shop("keys", "rotate", "--key", "file:other", "--data").status
    assert 3 == shop("keys", "list", "--json").data["keys"]["key"]


def test_a_passphrase_is_rotated_from_one_variable_to_another(shop: Shop) -> None:
    words = {"HOLDFAST_PASSPHRASE": "correct horse", "HOLDFAST_NEW_PASSPHRASE": "battery staple"}

    assert 0 == shop("keys", "init", "--key", "passphrase", **words).status
    assert 0 == shop("keys", "rotate", "--key", "passphrase", "--new", "passphrase", **words).status

    assert 2 == shop("--key", "passphrase", "runs", **words).status
    now = {"HOLDFAST_PASSPHRASE": "battery staple"}
    assert 0 == shop("--key", "passphrase", "runs", **now).status


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("keys", "init"), "error: no key was named"),
        (("keys", "init", "--key", "c2VjcmV0"), "a key is written as file:PATH"),
        (("keys", "init", "--key", "file:none"), "holdfast keys new none"),
        (("keys", "rotate", "--key", "file:none"), "holdfast keys new none"),
        (("keys", "new", "shop.py"), "it is there already"),
        (("--key", "file:none", "runs"), "holdfast keys new none"),
    ],
)
def test_what_is_no_key_is_refused_with_what_to_do(
    shop: Shop, words: tuple[str, ...], why: str
) -> None:
    told = shop(*words)

    assert 2 == told.status
    assert why in told.err
    assert "Traceback" not in told.err
    assert not Path(shop.folder, ".holdfast").exists()


def test_a_store_whose_first_key_could_not_be_wrapped_is_made_at_the_next_try(
    shop: Shop, key: str
) -> None:
    down = shop("keys", "init", "--key", "vault:http://127.0.0.1:9/transit/k", VAULT_TOKEN="t")  # noqa: S106 made up

    assert 2 == down.status
    assert "cannot be reached" in down.err
    assert 3 == shop("keys", "list").status
    assert "a new store, encrypted" in shop("keys", "init", "--key", key).out


def test_no_setting_shows_a_passphrase(shop: Shop) -> None:
    words = {"HOLDFAST_PASSPHRASE": "horse-one", "HOLDFAST_NEW_PASSPHRASE": "horse-two"}

    told = shop("config", "show", HOLDFAST_PASSPHRAZE="horse-three", **words)

    assert "horse" not in told.out + told.err


def test_an_open_store_has_no_keys_to_rotate(shop: Shop) -> None:
    shop("run", "shop:echo", "--id", "run-1")

    assert "error: the store is not encrypted; `holdfast keys init`" in shop("keys", "rotate").err
    assert ["no"] == [
        line.split()[-1] for line in shop("keys").out.splitlines() if line.startswith("encrypted")
    ]


def test_a_run_is_erased_only_when_it_is_meant(shop: Shop, key: str) -> None:
    shop.put("holdfast.toml", f'key = "{key}"\n')
    for number in (1, 2):
        shop("run", "shop:echo", "--id", f"run-{number}")

    nobody = shop("erase", "nobody")
    refused = shop("erase", "run-1")
    erased = shop("erase", "run-1", "--yes", "--json")

    assert (2, True) == (refused.status, "--yes" in refused.err)
    assert (3, True) == (nobody.status, "no run 'nobody'" in nobody.err)
    assert ["run-1"] == erased.data["erased"]
    for words in (("erase", "run-1", "--yes"), ("show", "run-1"), ("run", "shop:echo", "--id")):
        again = shop(*words, *(["run-1"] if words[0] == "run" else []))
        assert (3, True) == (again.status, "'run-1' was erased on" in again.err)
    assert ["run-2"] == [run["id"] for run in shop("runs", "--json").data["runs"]]
    assert 0 == shop("verify").status


def test_an_anchor_finds_a_store_that_was_set_back(shop: Shop) -> None:
    shop("run", "shop:echo", "--id", "run-1")
    first = shop("anchor")
    older = shop.folder.parent / "older"
    store = str(shop.copy(older).store)
    shop("run", "shop:echo", "--id", "run-2")
    shop.put("anchor.txt", shop("anchor").out)

    assert 0 == shop("verify", "--anchor", first.out.strip()).status
    assert 0 == shop("verify", "--anchor", "@anchor.txt").status
    assert 0 == shop("verify", "--store", store).status
    found = shop("verify", "--store", store, "--anchor", "@anchor.txt", "--json")
    assert 7 == found.status
    assert ["run number 2"] == [each["where"] for each in found.data["findings"]]
    assert "a copy of the store" in shop("verify", "--store", store, "--anchor", "@anchor.txt").out
    assert 2 == shop("verify", "--anchor", "nonsense").status
    assert 2 == shop("verify", "--anchor", "@none").status
    assert 1 == shop("anchor", "run-1", "--json").data["runs"]


def test_an_export_out_of_an_encrypted_store_is_sealed_unless_it_is_asked_for_in_clear(
    shop: Shop, key: str
) -> None:
    shop("--key", key, "run", "shop:echo", "--id", "run-1", "--input", '["planted"]')

    sealed = shop("--key", key, "export", "run-1", "sealed", "--json")
    clear = shop("--key", key, "export", "run-1", "clear", "--clear", "--json")

    assert (True, False) == (sealed.data["sealed"], clear.data["sealed"])
    assert b"planted" not in (shop.folder / "sealed").read_bytes()
    assert b"planted" in (shop.folder / "clear").read_bytes()
    refused = shop("import", "sealed", "--store", "other")
    assert (2, True) == (refused.status, "the key of the file:  --file-key KEY" in refused.err)
    assert 0 == shop("import", "sealed", "--store", "other", "--file-key", key).status
    assert 0 == shop("show", "run-1", "--store", "other").status
