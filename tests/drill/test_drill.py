"""Drills through the command line: faults bite, planted mistakes are found, nothing is left."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import holdfast
from holdfast.cli.main import main
from holdfast.drill.faults import FAULTS, USUAL
from holdfast.drill.result import Log
from holdfast.report.sizes import sizes as sizes_of
from tests.cli.kit import wait_for
from tests.drill.conftest import Clinic
from tests.drill.kit import STUBS
from tests.unit.drill.test_scorecard import HEAD

FAILURES = sorted(name for name in USUAL if FAULTS[name]().traits.is_failure)


def test_every_fault_bites_and_every_run_recovers(clinic: Clinic) -> None:
    done = clinic.drill(
        "sound",
        *("--scenario", "scenario.toml", "--runs", "24", "--share", "1", "--seed", "5"),
        *("--workers", "8", "--results", "drill.jsonl", "-o", "json"),
    )

    card = done.data
    assert 0 == done.status, done.err
    kinds = {each["fault"]: each for each in card["kinds"]}
    assert sorted(USUAL) == sorted(kinds)
    # Each was there: where it is a failure, the run failed by it and was recovered.
    assert all(each["struck"] for each in kinds.values())
    assert all(kinds[name]["episodes"] for name in FAILURES)
    assert all(each["recovered"] == each["episodes"] for each in kinds.values())
    assert not any(kinds[name]["episodes"] for name in ("slow-disk", "clock-jump"))
    assert kinds["corrupt"]["repaired"] == kinds["corrupt"]["struck"]
    assert {each["name"]: 0 for each in card["nevers"]} == {
        each["name"]: each["seen"] for each in card["nevers"]
    }
    # A slow disk held its runs up.
    runs = [json.loads(line) for line in (clinic.folder / "drill.jsonl").read_text().splitlines()]
    assert max(each["held_s"] for each in runs if each.get("fault") == "slow-disk") > 0.1
    assert [] == list(clinic.spill.iterdir())


def test_a_kill_at_any_time_comes_within_a_call_which_is_then_made_again(clinic: Clinic) -> None:
    done = clinic.drill(
        *("napping", "--faults", "kill-any", "--runs", "4", "--share", "1", "--seed", "3"),
        *("--workers", "2", *STUBS, "-o", "json"),
    )

    assert 0 == done.status, done.err
    [kind] = done.data["kinds"]
    assert 4 == kind["struck"] == kind["recovered"]
    # The run is one call of half a second, which each that was killed has to make in full.
    assert 0.5 <= kind["median_s"]


def test_a_stream_that_breaks_off_or_stalls_is_continued(clinic: Clinic) -> None:
    (clinic.folder / "short.toml").write_text('stall = "1s"')

    done = clinic.drill(
        *("talker", "--faults", "cut-stream,stall-stream", "--runs", "4", "--share", "1"),
        *("--workers", "4", "--scenario", "short.toml", *STUBS, "-o", "json"),
    )

    assert 0 == done.status, done.err
    kinds = {each["fault"]: each for each in done.data["kinds"]}
    assert [2, 2] == [kinds[name]["struck"] for name in ("cut-stream", "stall-stream")]
    assert 4 == sum(each["recovered"] for each in kinds.values())


def test_an_ordinary_function_stands_in_for_an_asynchronous_stream(clinic: Clinic) -> None:
    done = clinic.drill(
        *("atalker", "--faults", "kill, cut-stream", "--runs", "2", "--share", "1"),
        *(*STUBS, "--stub", "asay=clinic:say", "-o", "json"),
    )

    assert 0 == done.status, done.err
    assert 2 == done.data["struck"]


def test_what_children_ask_fail_at_and_store_counts_as_their_task_s(clinic: Clinic) -> None:
    done = clinic.drill(
        *("mother", "--faults", "kill,timeout,rate-limit", "--runs", "12", "--share", "0.5"),
        *("--seed", "3", "--workers", "4", *STUBS, "--results", "r.jsonl", "-o", "json"),
    )

    assert 0 == done.status, done.err  # The same call of a parent and a child is not asked twice.
    assert 6 == done.data["struck"]
    kinds = {each["fault"]: each for each in done.data["kinds"]}
    assert [2, 2, 2] == [kinds[name]["recovered"] for name in ("kill", "timeout", "rate-limit")]
    runs = [json.loads(line) for line in (clinic.folder / "r.jsonl").read_text().splitlines()]
    calm = [each for each in runs if "no" in each and not each.get("fault")]
    assert 6 == len(calm)
    assert all(each["held_s"] > 0 for each in calm)
    alone = clinic.drill("mother", "--runs", "1", "--share", "0", *STUBS, "--store", "kept")
    assert 0 == alone.status, alone.err
    with holdfast.open(clinic.folder / "kept" / "store") as store:
        sizes = {each.run: each.bytes for each in sizes_of(store.opened).runs}
    whole = sum(size for run, size in sizes.items() if run.startswith("drill-0"))
    assert pytest.approx(whole, rel=0.1) == calm[0]["bytes"]


def test_calls_side_by_side_are_failed_and_timed_as_what_they_are(clinic: Clinic) -> None:
    done = clinic.drill(
        *("twofold", "--faults", "timeout,rate-limit", "--runs", "8", "--share", "0.5"),
        *("--seed", "3", "--workers", "4", *STUBS, "--results", "r.jsonl", "-o", "json"),
    )

    assert 0 == done.status, done.err
    assert done.data["episodes"]
    runs = [json.loads(line) for line in (clinic.folder / "r.jsonl").read_text().splitlines()]
    calm = [each for each in runs if "no" in each and not each.get("fault")]
    assert calm
    assert all(each["held_s"] > 0 for each in calm)


def test_a_few_runs_show_bounds_and_never_that_a_promise_is_met(clinic: Clinic) -> None:
    done = clinic.drill("sound", "--runs", "3", "--faults", "kill", "--share", "1", *STUBS)

    assert 0 == done.status
    assert "1,497 needed  not shown" in done.out
    assert "no promise was missed; too few samples" in done.out


def test_an_effect_that_is_done_twice_is_found_and_its_line_repeats_it(clinic: Clinic) -> None:
    planted = ("--fault", "clinic:AfterPay", "--allow-effects", "--share", "1")

    done = clinic.drill("sound", *planted, "--runs", "2", "--seed", "7")

    assert 6 == done.status
    assert "1 effects doubled" in done.err
    assert "a promise was MISSED" in done.out
    told = next(line for line in done.err.splitlines() if "--only" in line).split()
    assert ["holdfast", "drill", "run", "clinic:sound"] == told[:4]
    again = clinic(*told[1:])
    assert 6 == again.status
    assert "1 effects doubled" in again.err
    assert [] == list(clinic.spill.iterdir())


def test_the_same_effect_with_a_ledger_to_ask_is_done_once(clinic: Clinic) -> None:
    planted = ("--fault", "clinic:AfterPay", *STUBS, "--share", "1")

    done = clinic.drill("sound", *planted, "--runs", "2", "--seed", "7", "-o", "json")

    assert 0 == done.status
    assert 2 == done.data["struck"]
    assert 2 == done.data["episodes"]


def test_a_state_that_a_restart_gets_wrong_is_found(clinic: Clinic) -> None:
    done = clinic.drill(
        *("leaky", "--faults", "kill", "--runs", "8", "--share", "1", "--seed", "1"),
        *("--workers", "4", *STUBS),
    )

    assert 6 == done.status
    assert "total is wrong" in done.err
    assert "states wrong" in done.out


def test_effects_are_refused_that_nobody_allowed(clinic: Clinic) -> None:
    done = clinic.drill("sound", "--stub", "mail=clinic:fake_mail")

    assert 2 == done.status
    assert "would do for real: pay" in done.err
    assert "--stub pay=module:fake" in done.err
    assert "--allow-effects" in done.err


def test_an_effect_whose_stand_in_is_misspelt_is_not_done_for_real(clinic: Clinic) -> None:
    paid = clinic.folder / "paid"
    shop = f"""
import pathlib, holdfast
@holdfast.effect(key="order")
def pay(order: str) -> None:
    pathlib.Path({str(paid)!r}).touch()
def fake_pay(order: str) -> None:
    pass
@holdfast.agent
def payer(run: holdfast.Run) -> None:
    pay("o-1")
"""
    (clinic.folder / "shop.py").write_text(shop)
    faults = ("--runs", "1", "--faults", "slow-disk")  # Another could leave the effect in doubt.
    ask = ("drill", "run", "shop:payer", *faults, "--allow-effects", "--stub")

    refused = clinic(*ask, "payy=shop:fake_pay")
    allowed = clinic(*ask, "pay=shop:fake_pay")

    assert (2, 0) == (refused.status, allowed.status)
    assert "stand-in for payy: no step, effect or stream has that name; did you mean pay?" in (
        refused.err
    )
    assert not paid.exists()


def test_a_store_that_exists_is_left_alone(clinic: Clinic) -> None:
    (clinic.folder / "mine").mkdir()

    done = clinic.drill("sound", *STUBS, "--store", "mine")

    assert 2 == done.status
    assert "it exists" in done.err
    assert [] == list((clinic.folder / "mine").iterdir())


def test_the_store_of_a_drill_is_kept_where_it_is_asked_for(clinic: Clinic) -> None:
    done = clinic.drill("leaky", "--share", "0", "--runs", "2", "--store", "kept", *STUBS)

    assert 0 == done.status
    runs = clinic("runs", "--store", "kept/store", "-o", "json").data["runs"]
    assert {"drill-0", "drill-1"} < {each["id"] for each in runs}


@pytest.mark.parametrize(
    ("number", "run", "said"),
    [
        (signal.SIGINT, "drill--1", "one that never ends cannot be drilled"),
        (signal.SIGTERM, "drill-0", "the same command goes on there"),
        (signal.SIGKILL, "drill--1", ""),
    ],
)
def test_a_drill_that_is_ended_leaves_no_process_and_where_it_can_no_file(
    clinic: Clinic, number: int, run: str, said: str
) -> None:
    child = clinic.start(
        *("drill", "run", "clinic:sleepy", "--allow-effects", "--runs", "50", "--workers", "3"),
        *("--results", "drill.jsonl"),
    )
    try:
        wait_for(lambda: list(clinic.spill.rglob(f"{run}/ledger")))
        mine = _below(child.pid)
        child.send_signal(number)
        _, told = child.communicate(timeout=60)
    finally:
        child.kill()

    assert mine
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in mine))
    assert (clinic.folder / "drill.jsonl").exists()
    if number != signal.SIGKILL:
        assert 130 == child.returncode
        assert said in str(told)
        assert [] == list(clinic.spill.iterdir())


def _below(pid: int) -> list[int]:
    """The nursery and its children."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent == pid:
                found += [int(entry.name), *_below(int(entry.name))]
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_drill_whose_own_disk_is_full_blames_no_run_for_it(clinic: Clinic) -> None:
    options = ("-t", "tmpfs", "-o", "size=2600k", "tmpfs", str(clinic.spill))
    subprocess.run(["mount", *options], check=True)
    try:
        done = clinic.drill(
            *("sound", "--runs", "400", "--faults", "kill", "--workers", "2", *STUBS),
            *("--results", "drill.jsonl"),
        )
    finally:
        subprocess.run(["umount", "-l", str(clinic.spill)], check=True)

    assert 2 == done.status, done.err
    assert "the disk that the drill works on is full" in done.err
    assert "--only" not in done.err
    assert (clinic.folder / "drill.jsonl").read_text().count("\n") > 1  # It had begun.


def test_a_drill_goes_on_where_its_results_end(clinic: Clinic) -> None:
    args = ("--faults", "kill", "--seed", "3", *STUBS, "--results", "drill.jsonl", "-o", "json")
    clinic.drill("sound", "--runs", "3", *args)
    lines = (clinic.folder / "drill.jsonl").read_text().splitlines(keepends=True)
    (clinic.folder / "drill.jsonl").write_text("".join(lines[:3]) + lines[3][:20])

    done = clinic.drill("sound", "--runs", "4", *args)

    assert 0 == done.status
    assert 4 == done.data["runs"]
    kept = [json.loads(line) for line in lines[1:3]]
    text = (clinic.folder / "drill.jsonl").read_text()
    assert all(text.count(f'"no":{each["no"]},') == 1 for each in kept)


def test_the_same_command_without_a_seed_goes_on_with_that_of_the_file(clinic: Clinic) -> None:
    args = ("--faults", "kill", *STUBS, "--results", "drill.jsonl", "-o", "json")
    before = clinic.drill("sound", "--runs", "1", *args).data["head"]["seed"]

    done = clinic.drill("sound", "--runs", "2", *args)

    assert 0 == done.status, done.err
    assert (2, before) == (done.data["runs"], done.data["head"]["seed"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("recovery_success = 0.9", "there is no 'recovery_success'; those are recovery_failures,"),
        ("recovery_failures = 5", "recovery_failures is a share between 0 and 1, not 5"),
        ("recovery_s = -1", "recovery_s is a number above 0, not -1"),
        ("overhead = nan", "overhead is a number above 0, not nan"),
        ('clock = "sundial"', "clock is resume or catch_up, not 'sundial'"),
    ],
)
def test_a_promise_that_nobody_can_mean_is_refused(clinic: Clinic, line: str, said: str) -> None:
    (clinic.folder / "odd.toml").write_text(f"[promises]\n{line}\n")

    done = clinic.drill("sound", "--scenario", "odd.toml", *STUBS)

    assert 2 == done.status
    assert said in done.err


def test_results_of_another_drill_are_refused(clinic: Clinic) -> None:
    args = ("--faults", "kill", "--runs", "1", *STUBS, "--results", "drill.jsonl")
    clinic.drill("sound", "--seed", "3", *args)

    (clinic.folder / "other.toml").write_text('input = { order = "another" }')
    seed = clinic.drill("sound", "--seed", "4", *args)
    order = clinic.drill("sound", "--seed", "3", *args, "--scenario", "other.toml")

    assert [2, 2] == [seed.status, order.status]
    assert "holds another drill" in seed.err
    assert "holds another drill" in order.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sound", "--faults", "flood", *STUBS), "there is no fault 'flood'; those are kill,"),
        (("sound", "--fault", "clinic:Missing", *STUBS), "fault clinic:Missing cannot be loaded"),
        (("sound", "--stub", "pay"), "write TOOL=MODULE:FAKE"),
        (("sound", "--stub", "pay=clinic:none", "--allow-effects"), "cannot be loaded"),
        (("sound", *STUBS, "--stub", "thnik=clinic:fake_mail"), "did you mean think? Those are"),
        (("sound", *STUBS, "--stub", "flood=clinic:fake_mail"), "that name. Those are mail, pay,"),
        (("sound", "--fault", "clinic:sound", *STUBS), "clinic:sound is not a class of faults"),
        (("sound", "--fault", "clinic:Needy", *STUBS), "Needy cannot be made without arguments"),
        (("sound", "--fault", "clinic:Nameless", *STUBS), "traits is a holdfast.drill.faults."),
        (("sound", "--fault", "torn:Any", *STUBS), "torn:Any cannot be loaded: SyntaxError"),
        (("mother", *STUBS, "--stub", "kid=clinic:fake_pay"), "no step, effect or stream has that"),
        (("sound", "--faults", "", *STUBS), "there is no fault ''"),
        (("sound", "--faults", "kill,hang,kill", *STUBS), "fault kill is named 2 times"),
        (("sound", *STUBS, "--scale", "0"), "scale is what pauses are multiplied by"),
        (("sound", *STUBS, "--scale", "nan"), "scale is what pauses are multiplied by"),
        (("sound", *STUBS, "--only", "1"), "--only 1: there is no such run among 1"),
        (("sound", *STUBS, "--results", "none/drill.jsonl"), "cannot be written (No such file"),
        (
            ("sound", "--fault", "clinic:Clumsy", "--share", "1", *STUBS),
            "clinic:Clumsy failed in `between`: RuntimeError: dropped the disk",
        ),
        (("sound", "--scenario", "their.toml"), "their.toml is for clinic:other, not for clinic:s"),
        (("sound", "--scenario", "none.toml", *STUBS), "cannot be read"),
        (("sound", "--scenario", "clinic.py", *STUBS), "scenario clinic.py"),
        (("nobody",), "no such agent is declared"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(
    clinic: Clinic, args: tuple[str, ...], said: str
) -> None:
    (clinic.folder / "torn.py").write_text("def torn(")
    (clinic.folder / "their.toml").write_text('agent = "clinic:other"')

    done = clinic.drill(args[0], "--runs", "1", *args[1:])

    assert done.status in (2, 3)
    assert said in done.err
    assert "Traceback" not in done.err


def test_an_agent_that_fails_undisturbed_cannot_be_drilled(clinic: Clinic) -> None:
    done = clinic.drill("broken", "--runs", "1", "--allow-effects")

    assert 2 == done.status
    assert "clinic:broken does not come to its end with no fault injected" in done.err
    assert "out of kelp; correct that first" in done.err
    assert [] == list(clinic.spill.iterdir())


def test_nobody_is_notified_of_what_a_drill_breaks(clinic: Clinic) -> None:
    told = clinic.folder / "told"
    command = f"touch {told}"

    done = clinic(
        *("drill", "run", "clinic:sound", "--fault", "clinic:AfterPay", "--allow-effects"),
        *("--runs", "1", "--share", "1"),
        HOLDFAST_NOTIFY_COMMAND=command,
        HOLDFAST_STORE=str(clinic.folder / "mine"),
    )

    assert 6 == done.status
    assert not told.exists()
    assert not (clinic.folder / "mine").exists()


def test_a_report_has_five_forms(clinic: Clinic, capsys: pytest.CaptureFixture[str]) -> None:
    made = clinic.drill("sound", "--faults", "kill", "--runs", "4", *STUBS, "--results", "r.jsonl")
    file = str(clinic.folder / "r.jsonl")

    def report(*how: str) -> str:
        assert 0 == main(["drill", "report", file, *how])
        return capsys.readouterr().out

    page, text = report("--as", "html"), report("--as", "markdown")
    assert "recovery success" in made.out
    assert report() in made.out
    assert text.startswith("# Drill of clinic:sound\n")
    assert "| recovery success | ≥ 99.8 % |" in text
    assert (
        "No promise was missed; too few samples to show: recovery success, recovery time P95,"
        in text
    )
    assert 5 == len(json.loads(report("--json"))["measured"])
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    families = {
        each.name: each for each in text_string_to_metric_families(report("--as", "metrics"))
    }
    struck = families["holdfast_drills"].samples
    assert 4 == sum(sample.value for sample in struck)
    assert {"sound"} == {sample.labels["outcome"] for sample in struck}
    assert "kill" in {sample.labels["scenario"] for sample in struck}
    assert "histogram" == families["holdfast_drill_recovery_seconds"].type
    # Nothing is loaded from elsewhere.
    assert not any(word in page for word in ("http:", "https:", "src=", "url(", "@import"))


@pytest.mark.parametrize("text", ["", "{}\n", "not json\n"])
def test_a_file_without_results_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(text)

    assert 2 == main(["drill", "report", str(file)])
    assert "holds no results of a drill" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--as", "poem"), "--as takes table, markdown, html or metrics, not 'poem'"),
        (("--as", "html", "-o", "json"), "--as html and -o json ask for two forms"),
    ],
)
def test_a_form_that_there_is_not_is_refused(
    clinic: Clinic, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...], said: str
) -> None:
    Log(clinic.folder / "r.jsonl").add(HEAD)

    assert 2 == main(["drill", "report", str(clinic.folder / "r.jsonl"), *asked])
    assert said in capsys.readouterr().err
