"""`holdfast run`: start, continue, or print the recorded result."""

import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.kit import Shop, wait_for

FORKER = """
import os
import signal

import holdfast


@holdfast.agent
def forker(run):
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def test_the_result_goes_to_stdout_as_json_and_nothing_else_is_printed(shop: Shop) -> None:
    done = shop("run", "shop:trader", "--id", "r", "--input", '{"symbol": "KELP", "rounds": 1}')

    assert (0, '"KELP after 1"\n', "") == (done.status, done.out, done.err)


def test_a_finished_run_prints_its_recorded_result_and_asks_nothing(shop: Shop) -> None:
    shop("run", "shop:trader", "--id", "r", "--input", '["KELP", 1]')
    asked = shop.asked()

    again = shop("run", "shop:trader", "--id", "r")

    assert (0, '"KELP after 1"\n') == (again.status, again.out)
    assert ["chat 0", "pay KELP-0", "chat 1"] == asked == shop.asked()


def test_a_killed_run_is_continued_by_the_same_command(shop: Shop) -> None:
    command = ("run", "shop:trader", "--id", "r", "--input", '["KELP", 1]')
    killed = shop(*command, HOLDFAST_FAILPOINT="effect.recorded:1")

    done = shop(*command)

    assert -signal.SIGKILL == killed.status
    assert (0, '"KELP after 1"\n') == (done.status, done.out)
    assert ["chat 0", "pay KELP-0", "chat 1"] == shop.asked()


@pytest.mark.parametrize(
    ("given", "args", "kwargs"),
    [
        ('{"a": 1, "b": [2]}', [], {"a": 1, "b": [2]}),
        ('[1, {"a": 2}]', [1, {"a": 2}], {}),
        ('"KELP"', ["KELP"], {}),
        ("null", [None], {}),
        ("@input.json", ["from the file"], {}),
        ("-", ["from stdin"], {}),
    ],
)
def test_the_input_names_arguments_orders_them_or_is_the_only_one(
    shop: Shop, given: str, args: list[object], kwargs: dict[str, object]
) -> None:
    shop.put("input.json", '"from the file"')

    done = shop("run", "shop:echo", "--id", "r", "--input", given, text='"from stdin"')

    assert [args, kwargs] == done.data


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--input", "KELP"), "--input takes JSON"),
        (("--input", "@missing.json"), "missing.json cannot be read"),
        (("--input", '{"simbol": "KELP"}'), "cannot take this input"),
        ((), "missing a required argument: 'symbol'"),
    ],
)
def test_input_that_cannot_be_meant_is_refused_before_anything_is_recorded(
    shop: Shop, given: tuple[str, ...], said: str
) -> None:
    done = shop("run", "shop:trader", *given)
    listed = shop("runs", "--json")

    assert (2, "") == (done.status, done.out)
    assert said in done.err
    assert "Traceback" not in done.err
    assert listed.status == 3 or [] == listed.data["runs"]


CHECKED = """
import holdfast


@holdfast.agent(validate=[lambda state: state.get("cash", 0) >= 0])
def spender(run: holdfast.Run) -> None:
    for _ in run.turns():
        run.state["cash"] = -1
"""


def test_a_state_that_is_invalid_says_what_to_type_to_try_again(shop: Shop) -> None:
    shop.put("checked.py", CHECKED)

    done = shop("run", "checked:spender", "--id", "r")

    assert "is invalid" in done.err
    assert "to try again:  holdfast restart r --app checked\n" in done.err


ORDERS = """
from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

import holdfast
from pydantic import BaseModel

if TYPE_CHECKING:
    from holdfast import Run


class Side(StrEnum):
    BUY = "buy"


class Order(BaseModel):
    symbol: str
    price: Decimal


@dataclass
class Limits:
    orders: int


@holdfast.agent
def desk(
    run: Run,
    order: Order,
    limits: Limits,
    sides: list[Side],
    wait: float = 0,
    *more: int,
    most: Limits | None = None,
    **named: str,
) -> list:
    first = (order, limits, *sides, wait, *more, most, *named.values())
    return [type(each).__name__ for each in first] + [order.price, run.id]
"""


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (
            (
                '{"order": {"symbol": "KELP", "price": 1.5}, "limits": {"orders": 2}, '
                '"sides": ["buy"], "most": {"orders": 3}, "return": "x"}'
            ),
            ["Side", "int", "Limits", "str"],
        ),
        (
            '[{"symbol": "KELP", "price": "1.5"}, {"orders": 2}, [], 0, 7]',
            ["int", "int", "NoneType"],
        ),
    ],
)
def test_input_is_fitted_to_what_the_agent_says_it_takes(
    shop: Shop, given: str, kinds: list[str]
) -> None:
    shop.put("orders.py", ORDERS)

    done = shop("run", "orders:desk", "--id", "r", "--input", given)
    again = shop("run", "orders:desk", "--id", "r", "--input", given)

    assert ["Order", "Limits", *kinds, "1.5", "r"] == done.data
    assert done.data == again.data


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"order": {"symbol": "KELP"}, "limits": {"orders": 2}, "sides": []}', "order.price: "),
        ('[{"symbol": "KELP", "price": 1}, {"orders": "two"}, []]', "limits.orders: "),
        ('[{"symbol": "KELP", "price": 1}, {"orders": 2}, ["sell"]]', "sides.0: "),
    ],
)
def test_input_that_does_not_fit_is_refused_by_the_name_of_its_part(
    shop: Shop, given: str, said: str
) -> None:
    shop.put("orders.py", ORDERS)

    done = shop("run", "orders:desk", "--id", "r", "--input", given)

    assert (2, "") == (done.status, done.out)
    assert f"agent desk cannot take this input: {said}" in done.err
    assert "Traceback" not in done.err


def test_a_run_without_an_id_says_which_one_it_was_given(shop: Shop) -> None:
    done = shop("run", "shop:echo", "--json")

    assert done.data["run"].startswith("echo-")
    assert f"run {done.data['run']}\n" == done.err


def test_json_output_names_the_run_its_status_and_the_schema(shop: Shop) -> None:
    done = shop("run", "shop:echo", "--id", "r", "--input", "[1]", "-o", "jsonl")

    assert {"schema_version": 1, "run": "r", "status": "finished", "result": [[1], {}]} == done.data
    assert 1 == len(done.out.splitlines())


def test_a_failed_run_ends_with_5_and_the_command_that_tries_again(shop: Shop) -> None:
    first = shop("run", "shop:broken", "--id", "b", "--store", "kept here")
    again = shop("run", "shop:broken", "--id", "b", "--store", "kept here")

    for done in (first, again):
        assert (5, "") == (done.status, done.out)
        assert "ValueError: out of kelp" in done.err
        assert "holdfast restart b --app shop --store 'kept here'" in done.err
        assert "Traceback" not in done.err
    assert ["chat 1"] == shop.asked()


def test_a_result_that_cannot_be_kept_is_the_failure_of_the_run(shop: Shop) -> None:
    done = shop("run", "shop:unkept", "--id", "u")

    assert 5 == done.status
    assert "the result of the run: object" in done.err
    assert "failed" == shop("runs", "--json").data["runs"][0]["status"]


def test_an_effect_in_doubt_ends_with_8_and_says_what_to_type(shop: Shop) -> None:
    shop.put("down")

    done = shop("run", "shop:payer", "--id", "p", "--input", '"o-1"')

    assert 8 == done.status
    assert "effect pay" in done.err
    assert re.search(r"holdfast restart p --app shop --happened [0-9a-f]{32}=JSON\n", done.err)
    assert "holdfast restart p --app shop --not-done " in done.err


def test_another_agent_or_other_arguments_under_a_used_id_show_both(shop: Shop) -> None:
    shop("run", "shop:trader", "--id", "r", "--input", '["KELP", 0]')

    agent = shop("run", "shop:payer", "--id", "r", "--input", '"o"')
    arguments = shop("run", "shop:trader", "--id", "r", "--input", '["WRACK", 0]')

    assert (2, 2) == (agent.status, arguments.status)
    assert "shop:trader" in agent.err
    assert "shop:payer" in agent.err
    assert "KELP" in arguments.err
    assert "WRACK" in arguments.err


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("shop", "write module:agent"),
        ("shop:nobody", "declared: shop:broken"),
        ("shop:chat", "no such agent"),
        ("missing:agent", "there is no module missing"),
        ("missing.py:agent", "without .py it is missing"),
        ("torn:agent", "module torn does not import: ZeroDivisionError: division by zero"),
        ("misspelt:agent", "SyntaxError"),
        ("leaves:agent", "SystemExit: 3"),
        ("needs:agent", "No module named 'not_installed'"),
        ("flows:agent", "flows.py, line 2)"),
    ],
)
def test_what_does_not_name_an_agent_is_said_in_a_line(shop: Shop, agent: str, said: str) -> None:
    shop.put("torn.py", "1 / 0\n")
    shop.put("misspelt.py", "def f(:\n")
    shop.put("leaves.py", "raise SystemExit(3)\n")
    shop.put("needs.py", "import not_installed\n")
    shop.put("flows.py", "import holdfast\n@holdfast.step\ndef chat():\n    yield 1\n")

    done = shop("run", agent)

    assert 2 == done.status
    assert said in done.err
    assert "Traceback" not in done.err
    assert not shop.store.exists()


def test_the_traceback_is_shown_to_whoever_asks_for_it(shop: Shop) -> None:
    shop.put("torn.py", "1 / 0\n")

    done = shop("run", "torn:agent", HOLDFAST_TRACEBACK="1")

    assert 2 == done.status
    assert "Traceback" in done.err
    assert "ZeroDivisionError" in done.err


@pytest.mark.parametrize("agent", ["sleeper", "dreamer"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_abandons_the_step_and_the_printed_command_goes_on(
    shop: Shop, agent: str, number: signal.Signals, status: int
) -> None:
    child = shop.start("run", f"shop:{agent}", "--id", "s", "--input", "30")
    wait_for((shop.folder / "waiting").exists)

    child.send_signal(number)
    out, err = child.communicate(timeout=30)

    assert (status, "") == (child.returncode, out)
    assert "\n  holdfast restart s --app shop\n" in err
    assert "Traceback" not in err
    run = shop("runs", "--json").data["runs"][0]
    assert ("interrupted", None) == (run["status"], run["error"])
    steps = [e for e in shop("show", "s", "--json").data["events"] if e["kind"] == "step"]
    assert ["chat"] == [each["name"] for each in steps if each["outcome"] == "answered"]


def test_sigterm_counts_where_ctrl_c_is_ignored(shop: Shop) -> None:
    command = ("run", "shop:sleeper", "--id", "s", "--input", "30")
    child = shop.start(*command, before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_for((shop.folder / "waiting").exists)

    child.send_signal(signal.SIGTERM)
    err = child.communicate(timeout=30)[1]

    assert 143 == child.returncode
    assert "holdfast restart s --app shop" in err


def test_a_process_that_the_agent_forks_ends_on_sigterm_as_ever(shop: Shop) -> None:
    shop.put("pool.py", FORKER)

    done = shop("run", "pool:forker", "--id", "r")

    assert (f"{-signal.SIGTERM}\n", "") == (done.out, done.err)


def test_a_run_that_another_process_works_on_is_left_alone(shop: Shop) -> None:
    child = shop.start("run", "shop:sleeper", "--id", "s", "--input", "60")
    wait_for((shop.folder / "waiting").exists)
    try:
        done = shop("run", "shop:sleeper", "--id", "s")
        listed = shop("runs", "--status", "running", "--json")
    finally:
        child.kill()
        child.communicate()

    assert 8 == done.status
    assert f"process {child.pid} on" in done.err
    assert ["s"] == [run["id"] for run in listed.data["runs"]]


def test_a_store_in_an_unwritable_place_is_said_in_a_line(shop: Shop) -> None:
    shop.put("taken")

    done = shop("run", "shop:echo", "--store", "taken/store")

    assert 1 == done.status
    assert "cannot be written" in done.err
    assert "Traceback" not in done.err


def test_a_full_disk_stops_the_run_which_goes_on_once_there_is_room(shop: Shop) -> None:
    full = (4_000_000, resource.RLIM_INFINITY)
    child = shop.start(
        *("run", "shop:hoarder", "--id", "h"),
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, full),
    )
    out, err = child.communicate(timeout=60)
    asked = len(shop.asked())

    done = shop("run", "shop:hoarder", "--id", "h")

    assert (1, "") == (child.returncode, out)
    assert "cannot be written" in err
    assert "Traceback" not in err
    assert 10 < asked < 200
    assert (0, "200\n") == (done.status, done.out)
    assert 201 <= len(shop.asked()) <= 202  # Only the answer that found no room was asked again.


def test_warnings_of_the_library_are_shown(shop: Shop) -> None:
    shop.put("odd.py", "class Odd(Exception): pass\n" + ODD)

    done = shop("run", "odd:agent", "--id", "o")

    assert 5 == done.status
    assert "warning: " in done.err
    assert "Odd is not known by name" in done.err


ODD = """
import holdfast

@holdfast.agent
def agent(run: holdfast.Run) -> None:
    raise Odd("so")
"""


def test_the_installed_script_is_the_same_program(shop: Shop) -> None:
    script = Path(sys.executable).with_name("holdfast")

    ended = subprocess.run(
        [script, "run", "shop:echo", "--id", "r", "--input", "[1]"],
        cwd=shop.folder,
        env=shop.environment({}),
        capture_output=True,
        text=True,
        check=True,
    )

    assert [[1], {}] == json.loads(ended.stdout)
