"""`holdfast fork`: a new run from a point of another, on the command line."""

import pytest

from tests.cli.kit import Shop


def test_a_fork_is_made_changed_and_gone_on_with(history: Shop) -> None:
    made = history(
        *("fork", "run-42", "--at", "0", "--as", "what-if", "--set", 'note={"mind": "the tide"}'),
        *("--set", "seen[0].n=7", "--reason", "trying", "--json"),
    )
    (history.folder / "down").unlink()
    before = len(history.asked())
    gone_on = history("restart", "what-if", "--app", "shop")
    note = history("show", "what-if", "--path", "note")
    seen = history("show", "what-if", "--path", "seen[:].n")
    shown = history("show", "what-if")
    verified = history("verify", "--deep")

    assert (0, 0, 0) == (made.status, gone_on.status, verified.status), made.err + gone_on.err
    assert ("what-if", "run-42") == (made.data["run"], made.data["from"])
    assert made.data["at"].startswith("run-42@")
    assert "KELP after 2" == gone_on.data
    assert {"mind": "the tide"} == note.data
    assert [7, 1, 2] == seen.data
    assert "chat 1" in history.asked()[before:]
    assert "chat 0" not in history.asked()[before:]
    assert f"forked from  {made.data['at']}" in shown.out
    assert "forked from run-42" in shown.out


def test_a_key_that_holds_the_sign_between_path_and_value_can_be_set(history: Shop) -> None:
    made = history(
        *("fork", "run-42", "--at", "0", "--as", "what-if"),
        *("--set", '["a=b.c[0]"]={"x": "="}', "--set", "['क=']=1"),
    )
    shown = history("show", "what-if", "--path", '["a=b.c[0]"].x')
    compared = history("diff", "run-42@0", "what-if", "-o", "json")

    assert 0 == made.status, made.err
    assert "=" == shown.data
    paths = {each["path"] for each in compared.data["changes"]}
    assert {'["a=b.c[0]"]', '["क="]'} == paths


def test_a_fork_says_how_to_start_it_and_is_listed(history: Shop) -> None:
    made = history("fork", "run-42", "--at", "0")
    listed = history("runs", "--json").data["runs"]
    parent = history("show", "run-42", "--json")

    name = made.out.split()[0]
    assert f"holdfast restart {name} --app shop" in made.out
    assert [name] == [each["id"] for each in listed if each["id"].startswith("run-42-fork-")]
    assert 3 == parent.data["run"]["turns"]


@pytest.mark.parametrize(
    ("args", "status", "why"),
    [
        (("nobody",), 3, "no run 'nobody'"),
        (("run-42", "--at", "99"), 3, "turn 99"),
        (("run-42", "--as", "run-43"), 2, "already"),
        (("run-42", "--set", "note"), 2, "PATH=JSON"),
        (("run-42", "--set", "note=so"), 2, "no JSON"),
        (("run-42", "--at", "0", "--set", "seen[9].n=1"), 2, "nothing at"),
    ],
)
def test_what_cannot_be_forked_is_said_in_one_line(
    history: Shop, args: tuple[str, ...], status: int, why: str
) -> None:
    done = history("fork", *args)

    assert (status, "") == (done.status, done.out)
    assert why in done.err
    assert "Traceback" not in done.err
