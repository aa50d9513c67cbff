"""`holdfast doctor`: what could go wrong on this machine."""

import pytest

from holdfast.cli.checks import examine
from holdfast.cli.config import load
from holdfast.clock import SystemClock
from tests.cli.kit import Shop


class Yesterday(SystemClock):
    """A clock that was set back."""

    def now(self) -> float:
        return super().now() - 86_400


def test_a_sound_machine_is_well(history: Shop) -> None:
    done = history("doctor", "--app", "shop", "--json")

    found = {check["name"]: check for check in done.data["checks"]}
    assert 0 == done.status
    assert {"platform", "python", "sqlite", "libraries", "store", "file system", "lock"} < set(
        found
    )
    assert "ok" == found["clock"]["verdict"]
    assert "(default)" in found["store"]["found"]
    assert "trader" in found["app"]["found"]
    assert ["note", "1 run: `holdfast restart --all` goes on with them"] == [
        found["interrupted"]["verdict"],
        found["interrupted"]["found"],
    ]
    assert "note" == found["in doubt"]["verdict"]


def test_effects_that_say_too_little_of_themselves_are_noted(shop: Shop) -> None:
    shop.put(
        "bare.py",
        "import holdfast\n\n\n@holdfast.effect\ndef send(to: str) -> None: ...\n\n\n"
        "@holdfast.effect(key='to', undo=print, probe=print)\ndef call(to: str) -> None: ...\n",
    )

    found = [each["found"] for each in shop("doctor", "--app", "bare", "--json").data["checks"]]

    [noted] = [text for text in found if text.startswith("bare:")]
    assert noted.startswith("bare:send has no key=")
    assert "no probe=" in noted
    assert "no undo=" in noted


def test_well_known_mistakes_are_named(history: Shop) -> None:
    found = {
        each["name"]: each["found"]
        for each in history("doctor", "--app", "shop", "--json").data["checks"]
    }

    assert "no validate= on broken, dreamer" in found["validators"]
    assert "nobody to restart them" in found["nobody watches"]


def test_where_there_is_no_store_yet_that_is_no_fault_and_none_is_made(shop: Shop) -> None:
    done = shop("doctor")

    assert 0 == done.status
    assert "there is none yet" in done.out
    assert not shop.store.exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--app", "torn"), "module torn does not import"),
        (("--store", "shop.py/store"), "cannot be written"),
    ],
)
def test_what_is_bad_is_said_and_ends_with_7(shop: Shop, args: tuple[str, ...], said: str) -> None:
    shop.put("torn.py", "1 / 0\n")

    done = shop("doctor", *args)

    assert 7 == done.status
    assert said in done.out
    assert "Traceback" not in done.err


def test_a_damaged_store_is_bad(history: Shop) -> None:
    for path in history.store.glob("store.db-*"):
        path.unlink()
    (history.store / "store.db").write_bytes(b"no database at all" * 500)

    done = history("doctor", "--json")

    assert 7 == done.status
    assert ["bad"] == [c["verdict"] for c in done.data["checks"] if "store.db" in c["found"]]


def test_a_misspelt_variable_is_noted_without_its_value(shop: Shop) -> None:
    done = shop("doctor", HOLDFAST_STROE="hush")

    assert "HOLDFAST_STROE is no setting" in done.out
    assert "hush" not in done.out


def test_a_clock_that_was_set_back_is_noticed(history: Shop) -> None:
    config = load({"store": str(history.store)}, {}, history.folder)

    [check] = [check for check in examine(config, Yesterday()) if check.name == "clock"]

    assert "note" == check.verdict
    assert "in the future: the clock was set back" in check.found


@pytest.mark.parametrize("command", [("runs",), ("show", "run-1"), ("gc",), ("keys", "list")])
def test_a_store_that_nobody_lets_us_look_at_is_said_in_a_line(
    shop: Shop, command: tuple[str, ...]
) -> None:
    for name, where in (("--store", ("--store", "s" * 300)), ("variable", ())):
        done = shop(*command, *where, **({} if where else {"HOLDFAST_STORE": "s" * 300}))

        assert 1 == done.status, name
        assert "cannot be written: file name too long; give a path that" in done.err
        assert "mistake of Holdfast" not in done.err
