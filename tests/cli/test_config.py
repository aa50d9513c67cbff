"""Settings: which one counts, where it came from, and what is refused."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.config import hide, load
from holdfast.errors import BadConfig
from holdfast.policy.retention import Retention
from tests.cli.kit import Shop

RULES = ("last", "within", "every", "runs_last", "runs_within", "quota")
FILES = {
    "holdfast.toml": 'store = "own"\n',
    "pyproject.toml": '[tool.holdfast]\nstore = "shared"\n',
    "home/.config/holdfast/config.toml": 'store = "users"\n',
}


@pytest.mark.parametrize(
    ("silent", "store", "origin"),
    [
        (0, "flag", "--store"),
        (1, "variable", "$HOLDFAST_STORE"),
        (2, "own", "holdfast.toml"),
        (3, "shared", "pyproject.toml"),
        (4, "home/.config/holdfast/users", "home/.config/holdfast/config.toml"),
        (5, ".holdfast", "default"),
    ],
)
def test_the_first_that_says_it_wins(tmp_path: Path, silent: int, store: str, origin: str) -> None:
    flags = {"store": "flag"} if silent < 1 else {}
    environ = {"HOME": str(tmp_path / "home")}
    if silent < 2:
        environ["HOLDFAST_STORE"] = "variable"
    for name in list(FILES)[max(silent - 2, 0) :]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FILES[name])
    below = tmp_path / "deep" / "below"
    below.mkdir(parents=True)

    found = load(flags, environ, below).settings["store"]

    assert (store, origin) == (
        found.value.removeprefix(f"{tmp_path}/"),
        found.origin.removeprefix(f"{tmp_path}/"),
    )


def test_the_nearest_pyproject_that_speaks_of_holdfast_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.holdfast]\noutput = "json"\n')
    near = tmp_path / "near"
    near.mkdir()
    (near / "pyproject.toml").write_text("[tool.other]\nx = 1\n")

    assert "json" == load({}, {}, near).output


def test_a_file_may_come_from_an_editor_on_windows(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_bytes(b'\xef\xbb\xbfoutput = "json"\r\napp = ["shop"]\r\n')

    found = load({}, {}, tmp_path)

    assert ("json", ("shop",)) == (found.output, found.app)


def test_a_directory_that_is_gone_is_told_as_that(shop: Shop) -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            f"mkdir gone && cd gone && rmdir ../gone && '{sys.executable}' -m holdfast runs",
        ],
        cwd=shop.folder,
        env=shop.environment({}),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert "error: the working directory is gone; change to one that is there" in done.stderr


def test_modules_are_a_list_or_separated_by_commas(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text('app = ["shop", "shop.billing"]\n')

    assert ("shop", "shop.billing") == load({}, {}, tmp_path).app
    assert ("one", "two") == load({}, {"HOLDFAST_APP": "one, two"}, tmp_path).app


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store = ", "cannot be read as TOML"),
        ("stroe = 'x'\n", "holdfast.toml, stroe: there is no such setting (known: store, key, app"),
        ("output = 'yaml'\n", "'yaml' is not one of table, json, jsonl"),
        ("store = 7\n", "holdfast.toml, store: it takes a text"),
        ("app = 7\n", "it takes the name of a module"),
        ("app = ['a b']\n", "'a b' is not the name of a module"),
        ("app = [1]\n", "'' is not the name of a module"),
    ],
)
def test_what_cannot_be_meant_names_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "holdfast.toml").write_text(text)

    with pytest.raises(BadConfig) as caught:
        load({}, {}, tmp_path)

    assert str(tmp_path / "holdfast.toml") in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["holdfast.toml", "pyproject.toml", "config.toml"])
def test_a_file_that_this_user_may_not_look_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def refused(file: Path) -> bool:
        if file.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return False

    monkeypatch.setattr(Path, "is_file", refused)

    with pytest.raises(BadConfig, match=rf"{name}: it cannot be looked for \(Permission denied\)"):
        load({}, {"HOME": str(tmp_path / "home")}, tmp_path)


def test_a_value_in_the_table_of_pyproject_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nholdfast = 1\n")

    with pytest.raises(BadConfig, match=r"tool\.holdfast: it is not a table"):
        load({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("api_token", "abc", "(hidden)"),
        ("HOLDFAST_DB_PASSWORD", "abc", "(hidden)"),
        ("store", "postgres://ann:abc@host/db", "postgres://(hidden)@host/db"),
        ("store", "/data/runs", "/data/runs"),
        ("app", ("shop",), ("shop",)),
    ],
)
def test_what_looks_secret_is_never_shown(key: str, value: object, shown: object) -> None:
    assert shown == hide(key, value)


def test_config_show_prints_each_value_with_its_origin(shop: Shop) -> None:
    shop.put("holdfast.toml", 'app = "shop"\n')

    table = shop("config", "show", "--store", "here")
    told = shop("config", "--json", HOLDFAST_API_TOKEN="hush")  # noqa: S106 a secret to be hidden

    lines = [line.split() for line in table.out.splitlines()]
    assert [
        ["KEY", "VALUE", "ORIGIN"],
        ["store", "here", "--store"],
        ["key", "(none)", "default"],
        ["app", "shop", str(shop.folder / "holdfast.toml")],
        ["output", "table", "default"],
        ["notify_webhook", "(none)", "default"],
        ["notify_command", "(none)", "default"],
        ["notify_apprise", "(none)", "default"],
        ["notify_key", "(none)", "default"],
        ["secrets", "redact", "default"],
        ["checkpoint", "(none)", "default"],
        ["snapshot", "(none)", "default"],
        ["durability", "durable", "default"],
        ["prices", "(none)", "default"],
        *([f"retention.{rule}", "(none)", "default"] for rule in RULES),
    ] == lines
    assert {"store": "default", "output": "--output"}.items() <= {
        setting["key"]: setting["origin"] for setting in told.data["settings"]
    }.items()
    assert "HOLDFAST_API_TOKEN=(hidden) is no setting" in told.err
    assert "hush" not in told.out + told.err


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("file:/etc/key", "file:/etc/key"),
        ("passphrase", "passphrase"),
        ("cmd:pass show holdfast", "(hidden)"),
        ("c2VjcmV0", "(hidden)"),
    ],
)
def test_the_place_of_a_key_is_shown_and_what_may_be_one_is_not(
    shop: Shop, key: str, shown: str
) -> None:
    told = shop("config", "--json", HOLDFAST_KEY=key)

    assert [shown] == [each["value"] for each in told.data["settings"] if each["key"] == "key"]


@pytest.mark.parametrize("command", [("config",), ("runs",), ("restart", "--all")])
def test_a_bad_file_ends_every_command_with_2(shop: Shop, command: tuple[str, ...]) -> None:
    shop.put("holdfast.toml", "colour = 1\n")

    done = shop(*command)

    assert (2, "") == (done.status, done.out)
    assert "holdfast.toml, colour: there is no such setting" in done.err
    assert "Traceback" not in done.err


def test_output_may_be_chosen_by_a_variable_and_overruled_by_a_flag(history: Shop) -> None:
    chosen = history("runs", HOLDFAST_OUTPUT="jsonl")
    overruled = history("runs", "-o", "table", HOLDFAST_OUTPUT="jsonl")

    assert 5 == len(chosen.out.splitlines())
    assert chosen.out.startswith('{"schema_version": 1')
    assert overruled.out.startswith("ID")


def test_a_store_in_a_file_is_found_from_below_its_directory(history: Shop) -> None:
    history.put("holdfast.toml", 'store = ".holdfast"\n')
    below = history.folder / "below"
    below.mkdir()

    assert 0 == Shop(below)("show", "run-42").status


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[retention]\nlast = 0\n", "last is 0; it is a number above 0"),
        ('[retention]\nwithin = "a while"\n', "is not a duration"),
        ('[retention]\nquota = "2XB"\n', "is no size"),
        ("[retention]\nnewest = 3\n", "there is no such setting"),
        ("retention = 3\n", "it is a table"),
        ("[retention]\nlast = true\n", "no whole number"),
    ],
)
def test_a_rule_that_cannot_be_read_names_its_file(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "holdfast.toml").write_text(text)

    with pytest.raises(BadConfig, match=why) as refused:
        load({}, {}, tmp_path)

    assert "holdfast.toml, retention" in str(refused.value)


@pytest.mark.parametrize(
    ("rule", "text", "why"),
    [
        ("quota", "0", "--quota: quota is 0"),
        ("within", "soon", "--within: 'soon' is not a duration"),
        ("runs_within", "0s", "--runs-within: runs_within is '0s'"),
    ],
)
def test_a_rule_that_cannot_be_read_names_its_flag(
    tmp_path: Path, rule: str, text: str, why: str
) -> None:
    with pytest.raises(BadConfig, match=why):
        load({f"retention.{rule}": text}, {}, tmp_path)


def test_rules_are_one_value_and_the_first_that_says_one_wins(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text('[retention]\nlast = 3\nwithin = "7d"\nquota = "2GB"\n')
    environ = {"HOLDFAST_RETENTION_LAST": "4", "HOLDFAST_RETENTION_QUOTA": "1GB"}

    found = load({"retention.quota": "3GB"}, environ, tmp_path).retention

    assert Retention(last=4, within="7d", quota="3GB") == found
    (tmp_path / "holdfast.toml").unlink()
    assert load({}, {}, tmp_path).retention is None


def test_a_file_says_when_runs_are_saved_whose_agents_do_not(shop: Shop) -> None:
    saving = 'app = "plain"\ncheckpoint = "steps=2 | seconds=30s"\ndurability = "bounded"\n'
    (shop.folder / "holdfast.toml").write_text(saving)
    (shop.folder / "plain.py").write_text(PLAIN)

    ran = shop("run", "plain:count", "--id", "counted")
    shown = shop("show", "counted")

    assert 0 == ran.status, ran.err
    said = dict(line.split(None, 1) for line in shown.out.partition("\n\n")[0].splitlines())
    assert "steps=2 | seconds=30" == said["saved"]
    assert "bounded: a crash may lose the steps of the last 100 ms" in said["durability"]
    assert "2 checkpoints" in said["did"]
    assert shown.out.count("by steps") == 2
    assert "known by" not in shown.out


@pytest.mark.parametrize("how", [(), ("--supervise",)])
def test_a_flag_says_how_one_run_is_saved_whatever_its_agent_and_the_file_say(
    shop: Shop, how: tuple[str, ...]
) -> None:
    file = 'app = "plain"\ncheckpoint = "steps=1"\n[snapshot]\nnotes = "steps=3"\n'
    (shop.folder / "holdfast.toml").write_text(file)
    (shop.folder / "plain.py").write_text(PLAIN)

    by_file = shop("run", "plain:count", "--id", "by-file", *how)
    flags = ("--checkpoint", "steps=2", "--snapshot", "notes: steps=1", "--durability", "async")
    by_flag = shop("run", "plain:count", "--id", "by-flag", *flags, *how)

    assert (0, 0) == (by_file.status, by_flag.status), by_flag.err
    said = {
        name: dict(line.split(None, 1) for line in shop("show", name).out.splitlines()[:9])
        for name in ("by-file", "by-flag")
    }
    assert "steps=1, notes: steps=3" == said["by-file"]["saved"]
    assert "steps=2, notes: steps=1" == said["by-flag"]["saved"]
    assert said["by-flag"]["durability"].startswith("async: ")


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--checkpoint", "hourly"), "--checkpoint: 'hourly' is no cadence"),
        (("--snapshot", "memory: hourly"), "--snapshot: section 'memory': 'hourly' is no cadence"),
        (("--durability", "maybe"), "--durability: 'maybe' is not one of durable, bounded, async"),
        (("--input", '{"checkpoint": 1}'), "called checkpoint cannot be given by name"),
    ],
)
def test_flags_of_saving_that_cannot_be_meant_are_refused(
    shop: Shop, flags: tuple[str, ...], why: str
) -> None:
    (shop.folder / "plain.py").write_text(PLAIN.replace("def count(run)", "def count(run, **_)"))

    done = shop("run", "plain:count", *flags)

    assert 2 == done.status
    assert why in done.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('snapshot = "memory"', "takes sections of the state and the cadence of each"),
        ("[snapshot]\nmemory = 3", "section 'memory': '3' is no cadence"),
        ('checkpoint = "hourly"', "'hourly' is no cadence"),
        ('durability = "maybe"', "is not one of durable, bounded, async"),
    ],
)
def test_a_way_of_saving_that_cannot_be_meant_is_refused(shop: Shop, text: str, why: str) -> None:
    (shop.folder / "holdfast.toml").write_text(text)

    done = shop("runs")

    assert 2 == done.status
    assert why in done.err


PLAIN = """
import holdfast

@holdfast.step
def add(n):
    return n

@holdfast.agent
def count(run):
    return sum(add(n) for n in range(4))
"""
