"""The frame around every command: help, completion, errors, exit statuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import errors
from holdfast.cli import main as cli
from holdfast.cli.main import COMMANDS, EXITS, main
from holdfast.cli.reference import render
from holdfast.version import VERSION
from tests.cli.kit import Shop

STATUSES = {
    "HoldfastError": 1,
    "UsageError": 2,
    "NotStorable": 2,
    "UnknownAgent": 2,
    "AgentMismatch": 2,
    "BadConfig": 2,
    "Unsupported": 2,
    "UnknownRun": 3,
    "RunFailed": 5,
    "Diverged": 5,
    "InDoubt": 8,
    "Fenced": 8,
    "RunHeld": 8,
    "StoreNotFound": 3,
    "StoreBusy": 1,
    "StoreUnwritable": 1,
    "NewerFormat": 2,
    "Damaged": 7,
}


def test_the_version_is_printed(shop: Shop) -> None:
    assert (0, f"holdfast {VERSION}\n") == (shop("--version").status, shop("--version").out)


def test_without_arguments_the_help_is_shown(shop: Shop) -> None:
    bare, asked = shop(), shop("--help")

    assert (0, asked.out) == (bare.status, bare.out)
    assert all(f"\n  {name} " in asked.out for name in COMMANDS)


def test_the_help_of_the_top_loads_no_command_and_no_rich() -> None:
    program = (
        "import sys; from holdfast.cli.main import main; main(['--help']); "
        "print(*[m for m in sys.modules if m.startswith(('rich', 'holdfast.cli.commands.'))])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "" == ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_commands_help_has_an_example_and_its_exit_statuses(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main([name, "--help"])

    text = capsys.readouterr().out
    assert f"\n    holdfast {name}" in text.partition("Examples:")[2]
    assert "\n    0    done" in text.partition("Exit status:")[2]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("shwo",), "Did you mean 'show'?"),
        (("runs", "lits"), "Did you mean 'list'?"),
        (("config", "shw"), "Did you mean 'show'?"),
        (("show",), "Missing argument"),
        (("runs", "--colour"), "No such option: --colour"),
        (("--colour", "runs"), "No such option: --colour\n`holdfast --help`"),
        (
            ("--store", "x", "verify"),
            "--store goes after the command: `holdfast verify --store …`\n",
        ),
        (("run", "shop:trader", "--input"), "'--input' requires an argument"),
        (("-o", "json", "runs"), "-o goes after the command: `holdfast runs -o …`\n"),
        (("--store", "x"), "--store goes after the command: `holdfast COMMAND --store …`\n"),
        (("--deep", "verify"), "--deep goes after the command: `holdfast verify --deep …`\n"),
        (("runs", "--limit", "0"), "limit"),
        (("runs", "-o", "yaml"), "'-o': 'yaml' is not one of 'table', 'json', 'jsonl'"),
        (("drill",), "Missing command"),
        (
            ("show", "r", "--key", "x"),
            "--key goes before the command: `holdfast --key KEY show …`\n",
        ),
        (("runs", "list", "--key", "x"), "`holdfast --key KEY runs list …`\n"),
    ],
)
def test_a_misspelt_command_line_is_a_usage_error_with_a_hint(
    args: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(args)

    out, err = capsys.readouterr()
    assert "" == out
    assert err.startswith("error: ")
    assert said in err
    assert "--help` shows how it is used" in err


@pytest.mark.parametrize(("name", "status"), STATUSES.items())
def test_each_error_has_its_exit_status(name: str, status: int) -> None:
    kind = getattr(errors, name)

    assert status == next(EXITS[each] for each in kind.__mro__ if each in EXITS)


def test_a_remedy_is_told_unless_the_text_has_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raised: list[Exception] = [
        errors.NotStorable("x", "socket", "it is open"),
        errors.StepError("Late", "too late"),
        errors.UnknownRun("r", "s"),
        errors.StoreUnwritable("s", "it is a file", "give another path"),
        errors.NestedCall("a run", "run r", "write run.child"),
    ]
    for error in raised:
        monkeypatch.setattr(cli, "_invoke", _raiser(error))
        main(["runs"])

    first, second, third, fourth, fifth = capsys.readouterr().err.splitlines()
    assert first == "error: x: socket: it is open"  # It says itself what helps.
    assert second.endswith(f"; {errors.StepError.remedy}")
    assert 1 == third.count(errors.UnknownRun.remedy)
    assert fourth.endswith("; give another path")
    assert fifth.endswith("; write run.child")


@pytest.mark.parametrize("wish", ["", "1"])
def test_an_unexpected_error_is_one_line_unless_its_traceback_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wish: str
) -> None:
    monkeypatch.setattr(cli, "_invoke", _raiser(KeyError("lost")))
    monkeypatch.setenv("HOLDFAST_TRACEBACK", wish)

    assert 1 == main(["runs"])

    err = capsys.readouterr().err
    assert "error: unexpected KeyError: 'lost'" in err
    assert "HOLDFAST_TRACEBACK=1" in err
    assert bool(wish) == ("Traceback" in err)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_was_closed_is_nobody_and_the_command_is_carried_out(
    shop: Shop, closed: str
) -> None:
    """A service manager or a script may close them; a run must not end by what it would say."""
    command = f"'{sys.executable}' -m holdfast run shop:payer --id r --input '[\"o-1\"]' {closed}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=shop.folder,
        env=shop.environment({}),
        capture_output=True,
        text=True,
        check=False,
    )

    told = shop("show", "r", "-o", "json").data["run"]
    assert (0, "", "finished") == (done.returncode, done.stderr, told["status"])
    assert 0 == shop("verify").status


def test_a_full_disk_under_the_output_is_told_as_what_it_is(history: Shop) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "report", "sla", "--json"],
            cwd=history.folder,
            env=history.environment({}),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert 1 == done.returncode
    assert "error: the output could not be written: No space left" in done.stderr
    assert 1 == len(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (["runs"], "stdout"),
        (["show", "run-42"], "stdout"),
        (["show", "run-42", "--json"], "stdout"),
        (["show", "--help"], "stdout"),
        (["show", "no-such-run"], "stderr"),
        (["show", "--no-such-option"], "stderr"),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_error(
    history: Shop, words: list[str], gone: str
) -> None:
    read, write = os.pipe()
    os.close(read)

    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", *words],
        cwd=history.folder,
        env=history.environment({}),
        stdout=write if gone == "stdout" else subprocess.PIPE,
        stderr=write if gone == "stderr" else subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)

    assert 141 == ended.returncode
    assert not ended.stdout
    assert not ended.stderr


def test_an_error_behind_a_result_that_nobody_reads_is_silent_too(history: Shop) -> None:
    failing = history.folder / "failing.py"
    failing.write_text(
        "import sys\n"
        "from holdfast.cli import main as cli\n"
        "def invoke(words):\n"
        "    cli.put('a result')\n"
        "    raise cli.errors.UsageError('and an error')\n"
        "cli._invoke = invoke\n"
        "sys.exit(cli.main([]))\n",
        encoding="utf-8",
    )
    read, write = os.pipe()
    os.close(read)

    ended = subprocess.run(
        [sys.executable, str(failing)],
        env=history.environment({}),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)

    assert (141, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("holdfast ru", ["run", "runs"]),
        ("holdfast runs ", ["list", "cancel"]),
        ("holdfast runs --st", ["--status", "--store"]),
        ("holdfast runs --status in", ["interrupted", "in-doubt"]),
        ("holdfast restart --re", ["--redo-turn", "--revive", "--reason"]),
    ],
)
def test_the_shell_completes_commands_and_options(
    shop: Shop, typed: str, offered: list[str]
) -> None:
    done = shop(
        _HOLDFAST_COMPLETE="complete_bash",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(typed.split(" ")) - 1),
    )

    assert offered == done.out.split()


def test_the_reference_names_every_command_and_status() -> None:
    page = render()

    assert all(f"`holdfast {name}`" in page for name in COMMANDS)
    assert all(f"| {status} |" in page for status in {*EXITS.values(), 0, 130, 143})


def _raiser(error: Exception) -> object:
    def raise_it(_words: list[str]) -> int:
        raise error

    return raise_it
