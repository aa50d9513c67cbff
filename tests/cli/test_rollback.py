"""`holdfast rollback`: the plan, the consent, the report, and the way back."""

import shlex

import pytest

from tests.cli.kit import Shop, new_shop, on_terminal, wait_for

TOOLS = """
import holdfast
from pathlib import Path


def say(text):
    with open("asked", "a") as file:
        file.write(text + "\\n")


def cancel(outcome, order):
    say(f"cancel {order}")
    if Path("broken").exists():
        raise holdfast.NotDone("closed")


@holdfast.effect(undo=cancel, key="order")
def place(order: str) -> str:
    say(f"place {order}")
    return order


@holdfast.effect(key="to")
def mail(to: str) -> None:
    say(f"mail {to}")


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def trader(run: holdfast.Run) -> int:
    run.state["turns"] = []
    for turn in run.turns():
        if turn == 1:
            place("o-1")
            mail("ann")
        run.state["turns"].append(turn)
        if turn == 2:
            return turn
    return -1
"""


@pytest.fixture
def traded(shop: Shop) -> Shop:
    shop.put("tools.py", TOOLS)
    assert 0 == shop("run", "tools:trader", "--id", "run-42").status
    return shop


def test_a_plan_is_shown_and_nothing_is_done_without_consent(traded: Shop) -> None:
    dry = traded("rollback", "run-42", "--to", "0", "--app", "tools", "--dry-run")
    told = traded("rollback", "run-42", "--to", "0", "--app", "tools", "--dry-run", "--json")
    silent = traded("rollback", "run-42", "--to", "0", "--app", "tools")
    bare = traded("rollback", "run-42", "--to", "0", "--dry-run")

    assert (0, 0, 2) == (dry.status, told.status, silent.status)
    assert "place(order='o-1')" in dry.out
    assert "will be undone" in dry.out
    assert ["impossible", "undo"] == [each["how"] for each in told.data["effects"]]
    assert (2, 0) == (told.data["turns_lost"], told.data["turn"])
    assert "--yes" in silent.err
    assert "is not declared here" in bare.out
    assert ["place o-1", "mail ann"] == traded.asked()


def test_it_is_done_reported_shown_and_can_be_taken_back(traded: Shop) -> None:
    done = traded(
        *("rollback", "run-42", "--to", "0", "--app", "tools", "--yes"),
        *("--reason", "wrong", "--json"),
    )
    shown = traded("show", "run-42")
    state = traded("show", "run-42", "--path", "runtime.rollbacks[:].reason")
    verified = traded("verify", "--deep")
    back = traded("rollback", "run-42", "--undo", "--yes", "--json")
    again = traded("restart", "run-42", "--app", "tools")

    assert (0, 0, 0, 0) == (done.status, shown.status, verified.status, back.status), done.err
    assert ["impossible", "undone"] == [each["how"] for each in done.data["effects"]]
    assert "rolled back from branch 1" in shown.out
    assert "taking back place(order='o-1'): undo" in shown.out
    assert "taken back place(order='o-1')" in shown.out
    assert "taken back mail(to='ann')" in shown.out
    assert ["wrong"] == state.data
    assert ["place(order='o-1')"] == [each["effect"] for each in back.data["undone"]]
    assert (0, 2) == (again.status, again.data)
    assert ["place o-1", "mail ann", "cancel o-1"] == traded.asked()


def test_on_a_terminal_it_asks(traded: Shop) -> None:
    no = on_terminal(traded, "rollback", "run-42", "--to", "0", "--app", "tools", typed="n\n")
    assert "nothing was done" in no.out
    yes = on_terminal(traded, "rollback", "run-42", "--to", "0", "--app", "tools", typed="y\n")

    assert (0, 0) == (no.status, yes.status)
    assert "cancel o-1" == traded.asked()[-1]
    assert "holdfast restart run-42 --app tools" in yes.out


def test_a_rollback_that_was_cut_off_keeps_the_run_from_going_on_until_it_is_over(
    traded: Shop,
) -> None:
    words = ("rollback", "run-42", "--to", "0", "--app", "tools", "--yes")
    killed = traded(*words, HOLDFAST_FAILPOINT="rollback.moved:1")
    refused = traded("restart", "run-42", "--app", "tools")
    listed = traded("runs", "--status", "rolling-back", "--json")
    resumed = traded("rollback", "run-42", "--app", "tools", "--yes", "--json")
    gone_on = traded("restart", "run-42", "--app", "tools")

    assert (-9, 2, 0, 0) == (killed.status, refused.status, resumed.status, gone_on.status)
    assert "holdfast rollback ID" in refused.err
    assert ["run-42"] == [each["id"] for each in listed.data["runs"]]
    assert ["impossible", "undone"] == [each["how"] for each in resumed.data["effects"]]
    assert 1 == traded.asked().count("cancel o-1")
    assert 1 == traded.asked().count("mail ann")
    assert 2 == traded.asked().count("place o-1")


@pytest.mark.parametrize(
    ("args", "status", "why"),
    [
        (("nobody", "--to", "0"), 3, "no run 'nobody'"),
        (("run-42",), 2, "say where to"),
        (("run-42", "--to", "99"), 3, "turn 99"),
        (("run-42", "--to", "before:zz"), 2, "no effect"),
        (("run-42", "--to", "0", "--wait", "-1"), 2, "--wait: '-1' is not a duration"),
        (("run-42", "--undo"), 2, "--yes"),
        (("run-42", "--undo", "--yes"), 2, "was not rolled back"),
        (("run-42", "--undo", "--to", "0"), 2, "neither --to nor --only"),
        (("run-42", "--to", "0", "--only", "nothing"), 2, "no section 'nothing'"),
    ],
)
def test_what_cannot_be_rolled_back_is_said_in_one_line(
    traded: Shop, args: tuple[str, ...], status: int, why: str
) -> None:
    done = traded("rollback", *args)

    assert (status, "") == (done.status, done.out)
    assert why in done.err
    assert "Traceback" not in done.err


def test_the_fence_is_opened_on_the_command_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    shop = new_shop(tmp_path_factory.mktemp("fence") / "shop")
    tools = TOOLS.replace('key="to"', "")
    shop.put("tools.py", tools)
    shop("run", "tools:trader", "--id", "run-42")
    shop("fork", "run-42", "--at", "0", "--as", "other")
    shop.put("tools.py", tools.replace('mail("ann")', 'mail("bob")'))

    blocked = shop("restart", "other", "--app", "tools")
    listed = shop("runs", "--status", "blocked", "--json")
    key = blocked.err.split("--allow ")[-1].strip()
    allowed = shop("restart", "other", "--app", "tools", "--allow", key, "--yes")

    assert 8 == blocked.status, blocked.err
    assert "is blocked" in blocked.err
    assert ["other"] == [each["id"] for each in listed.data["runs"]]
    assert (0, 2) == (allowed.status, allowed.data)
    assert ["place o-1", "mail ann", "mail bob"] == shop.asked()


AT_WORK = (
    TOOLS
    + """
import time


@holdfast.step
def wait(nth: int) -> bool:
    Path("waiting").touch()
    time.sleep(0.05)
    return Path("go").exists()


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def slowly(run: holdfast.Run) -> int:
    for turn in run.turns():
        place(f"o-{turn}")
        nth = 0
        while turn == 1 and not wait(nth):
            nth += 1
        if turn == 2:
            return turn
    return -1
"""
)
BACK = ("rollback", "run-42", "--to", "0", "--app", "tools")


def test_a_run_at_work_is_paused_after_asking_rolled_back_and_left_to_go_on(shop: Shop) -> None:
    shop.put("tools.py", AT_WORK)
    with shop.start("run", "tools:slowly", "--id", "run-42") as plain:
        wait_for((shop.folder / "waiting").exists)
        no = on_terminal(shop, *BACK, typed="n\n")
        unasked = shop(*BACK)
        still = plain.poll()
        yes = on_terminal(shop, *BACK, typed="y\ny\n")
        _, said = plain.communicate(timeout=60)

    assert (0, 2, 0) == (no.status, unasked.status, yes.status), yes.out
    assert "works on run run-42; it is asked to pause it" in no.out
    assert "nothing was done" in no.out
    assert "--yes" in unasked.err
    assert still is None
    assert "rolls back run run-42" in yes.out
    assert 8 == plain.returncode, said
    assert "was paused for a rollback" in said
    assert "holdfast restart run-42 --app tools" in said
    assert ["place o-0", "place o-1", "cancel o-1"] == shop.asked()
    assert "interrupted" in shop("show", "run-42").out

    shop.put("go")
    again = shop("restart", "run-42", "--app", "tools")
    assert (0, 2) == (again.status, again.data)
    assert ["place o-1", "place o-2"] == shop.asked()[3:]


def test_a_supervised_run_goes_on_by_itself_after_its_rollback(shop: Shop) -> None:
    shop.put("tools.py", AT_WORK)
    with shop.start("run", "tools:slowly", "--id", "run-42", "--supervise") as kept:
        wait_for((shop.folder / "waiting").exists)
        done = shop(*BACK, "--yes", "--json")
        shop.put("go")
        out, said = kept.communicate(timeout=60)

    assert 0 == done.status, done.err
    assert ["undone"] == [each["how"] for each in done.data["effects"]]
    assert ("2\n", 0) == (out, kept.returncode), said
    assert ["o-0", "o-1", "o-1", "o-2"] == [
        line.split()[1] for line in shop.asked() if line.startswith("place")
    ]


def test_a_process_that_does_not_let_go_in_time_is_left_alone(shop: Shop) -> None:
    with shop.start("run", "shop:sleeper", "--id", "run-42", "--input", "[60]") as busy:
        wait_for((shop.folder / "waiting").exists)
        words = ("rollback", "run-42", "--to", "start", "--app", "shop", "--yes")
        late = shop(*words, "--wait", "1s")
        wrong = shop(*words, "--wait", "soon")
        still = busy.poll()
        busy.kill()
        busy.communicate()

    assert (8, 2) == (late.status, wrong.status), late.err + wrong.err
    assert "did not let it go within 1 s; nothing was changed" in late.err
    assert "--wait: 'soon'" in wrong.err
    assert still is None
    assert 0 == shop(*words).status


def test_what_no_handler_takes_back_is_not_offered_to_be_tried_again(traded: Shop) -> None:
    done = traded(*("rollback", "run-42", "--to", "0", "--app", "tools", "--yes", "--json"))
    retried = traded("rollback", "run-42", "--retry", "--app", "tools")

    assert ["impossible", "undone"] == [each["how"] for each in done.data["effects"]]
    assert "--retry" not in done.err
    assert "what has neither undo= nor offset= stands" in retried.out


def test_a_run_that_is_rolling_back_shows_what_goes_on_with_it(traded: Shop) -> None:
    back = ("rollback", "run-42", "--to", "0", "--app", "tools", "--yes")
    assert -9 == traded(*back, HOLDFAST_FAILPOINT="rollback.settling:1").status

    shown = traded("show", "run-42").out
    [line] = [line for line in shown.splitlines() if line.startswith("next ")]
    done = traded(*shlex.split(line)[2:], "--yes")

    assert "holdfast rollback run-42 --app tools" == line.removeprefix("next").strip()
    assert 0 == done.status, done.err


@pytest.mark.parametrize("odd", ["my run", "-x", "it's"])
def test_what_is_printed_to_go_on_can_be_typed_as_it_stands(shop: Shop, odd: str) -> None:
    shop.put("tools.py", TOOLS)
    shop.put("broken")
    shop("run", "tools:trader", "--id", odd)
    rolled = shop("rollback", "--to", "0", "--app", "tools", "--yes", "--", odd)

    [retry] = [line.split("`")[1] for line in rolled.err.splitlines() if "--retry" in line]
    (shop.folder / "broken").unlink()
    retried = shop(*shlex.split(retry)[1:])
    again = rolled.out.splitlines()[-1].strip()
    restarted = shop(*shlex.split(again)[1:])

    assert "place(order='o-1')" in retried.out
    assert "1 of 1 were taken back" in retried.out
    assert (0, "2\n") == (restarted.status, restarted.out)
