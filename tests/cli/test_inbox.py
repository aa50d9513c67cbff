"""`holdfast inbox`: what waits for a person, answered from the command line."""

import json
import sys

import pytest

from tests.cli.kit import Shop

DESK = """
import dataclasses
import holdfast


@dataclasses.dataclass
class Parcel:
    weight: int


@holdfast.effect(approve=True, approve_within="1d")
def send(parcel: Parcel, to: str) -> str:
    return f"sent to {to}"


@holdfast.effect
def ring(number: str) -> str:
    raise ConnectionError("no line")


@holdfast.agent
def clerk(run: holdfast.Run) -> str:
    run.budget("calls", 5).spend(2)
    return f"told: {run.ask('Open today?', ['yes', 'no way'])}"


@holdfast.agent
def sender(run: holdfast.Run) -> str:
    try:
        return send(Parcel(3), "ann")
    except holdfast.Rejected as error:
        return f"not sent: {error.note}"


@holdfast.agent
def packer(run: holdfast.Run) -> Parcel:
    return Parcel(4)


@holdfast.agent
def broken(run: holdfast.Run) -> str:
    return run.state["never put in"]


@holdfast.agent
def ringer(run: holdfast.Run) -> str:
    return ring("555")
"""


@pytest.fixture
def desk(shop: Shop) -> Shop:
    """A store in which one of each kind waits."""
    (shop.folder / "desk.py").write_text(DESK, encoding="utf-8")
    for agent in ("clerk", "sender", "ringer"):
        assert 8 == shop("run", f"desk:{agent}", "--id", f"{agent}-1").status
    return shop


def ids(desk: Shop) -> list[str]:
    return [item["id"] for item in desk("inbox", "-o", "json").data["inbox"]]


def test_a_run_that_asks_ends_with_status_8_and_says_what_to_type(desk: Shop) -> None:
    ended = desk("restart", "clerk-1", "--app", "desk")

    question = ids(desk)[0]
    assert 8 == ended.status
    assert "run clerk-1 waits for an answer: Open today?" in ended.err
    assert f"to answer:  holdfast inbox answer {question} ANSWER" in ended.err
    assert "then:       holdfast restart clerk-1 --app desk" in ended.err


def test_what_to_type_names_the_store_that_was_named(desk: Shop) -> None:
    store = ("--store", "elsewhere")

    ended = desk("run", "desk:clerk", "--id", "there", *store)
    [item] = desk("inbox", "-o", "json", *store).data["inbox"]
    failed = desk("run", "desk:broken", "--id", "broken", *store)
    shown = desk("inbox", "show", "broken", *store)

    answer = f"holdfast inbox answer {item['id']}"
    assert (8, 5) == (ended.status, failed.status), failed.err
    assert f"to answer:  {answer} ANSWER --store elsewhere" in ended.err
    assert f"{answer} yes --store " in desk("show", "there", *store).out
    assert "to answer  holdfast restart broken --app desk --store " in shown.out


def test_the_list_shows_each_kind_for_people_and_for_programs(desk: Shop) -> None:
    table = desk("inbox")
    [question, approval, doubt] = desk("inbox", "list", "-o", "json").data["inbox"]

    assert ["question", "approval", "doubt"] == [
        row.split()[1] for row in table.out.splitlines()[1:]
    ]
    assert ("Open today?", ["yes", "no way"]) == (question["question"], question["options"])
    assert {"parcel", "to"} == set(approval["arguments"])
    assert {"number": "555"} == doubt["arguments"]
    assert 3 == len(desk("inbox", "-o", "jsonl").out.splitlines())


def test_an_item_is_shown_with_its_exact_arguments_and_how_to_answer(desk: Shop) -> None:
    question, approval, doubt = (
        desk("inbox", "show", id_[:8], "--app", "desk").out for id_ in ids(desk)
    )

    assert "'no way'" in question
    assert '"weight": 3' in approval
    assert '"ann"' in approval
    assert "Parcel(weight=3)" in desk("inbox", "show", ids(desk)[1]).out
    assert "holdfast inbox reject" in approval
    assert "happened --outcome JSON" in doubt


def test_values_of_classes_are_shown_in_a_story_where_their_module_is_named(desk: Shop) -> None:
    assert 0 == desk("run", "desk:packer", "--id", "pack-1").status

    assert "<desk:Parcel, " in desk("show", "pack-1").out
    assert "Parcel(weight=4)" in desk("show", "pack-1", "--app", "desk").out


def test_an_answer_is_recorded_and_the_next_command_works(desk: Shop) -> None:
    question = ids(desk)[0]

    told = desk("inbox", "answer", question[:10], "no way", "--as", "ann")

    assert (0, f"{question} answered\n") == (told.status, told.out)
    assert "holdfast restart clerk-1 --app desk" in told.err
    assert (
        "told: no way" == desk("restart", "clerk-1", "--app", "desk", "-o", "json").data["result"]
    )
    shown = desk("inbox", "show", question, "--json").data["item"]
    assert ("answered", "no way", "ann") == (shown["state"], shown["answer"], shown["by"])
    assert "answered by ann" in desk("show", "clerk-1").out


def test_the_second_answer_is_refused_with_who_was_first(desk: Shop) -> None:
    question = ids(desk)[0]
    desk("inbox", "answer", question, "yes", "--as", "ann")

    second = desk("inbox", "answer", question, "no way", "--as", "bob")

    assert 8 == second.status
    assert f"{question} was answered by ann at 2" in second.err


def test_an_effect_is_approved_or_rejected(desk: Shop) -> None:
    approval = ids(desk)[1]

    rejected = desk("inbox", "reject", approval, "--note", "too heavy", "-o", "json").data

    assert "rejected" == rejected["word"]
    assert (
        "not sent: too heavy"
        == desk("restart", "sender-1", "--app", "desk", "--json").data["result"]
    )
    desk("run", "desk:sender", "--id", "sender-2")
    assert 0 == desk("inbox", "approve", ids(desk)[-1]).status
    assert "sent to ann" == desk("restart", "sender-2", "--app", "desk", "--json").data["result"]


def test_a_doubt_is_settled(desk: Shop) -> None:
    doubt = ids(desk)[2]

    assert 0 == desk("inbox", "answer", doubt, "happened", "--outcome", '"rang"').status
    assert "rang" == desk("restart", "ringer-1", "--app", "desk", "--json").data["result"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ((), "nothing here says what ring gives back; say it with `--outcome JSON` (null"),
        (("--app", "json"), "nothing here says what ring gives back"),
        (("--app", "desk"), "ring gives back str, and nothing was said"),
        (("--app", "desk", "--outcome", "7"), "ring gives back str, and something else"),
    ],
)
def test_nothing_is_recorded_of_an_effect_that_gives_something_back(
    desk: Shop, how: tuple[str, ...], why: str
) -> None:
    doubt = ids(desk)[2]

    refused = desk("inbox", "answer", doubt, "happened", *how)

    assert 2 == refused.status
    assert why in refused.err
    assert doubt == ids(desk)[2]


def test_of_an_effect_that_is_not_known_nothing_can_be_said_on_purpose(desk: Shop) -> None:
    doubt = ids(desk)[2]

    assert 0 == desk("inbox", "answer", doubt, "happened", "--outcome", "null").status
    assert doubt not in ids(desk)


def test_all_that_was_answered_is_restarted_and_the_rest_left_alone(desk: Shop) -> None:
    question, _, doubt = ids(desk)
    desk("inbox", "answer", question, "yes")
    desk("inbox", "answer", doubt, "happened", "--outcome", '"rang"')

    table = desk("restart", "--all", "--app", "desk", "-o", "json").data["runs"]

    assert ["clerk-1", "ringer-1"] == [row["id"] for row in table]
    assert ["sender-1"] == [
        row["id"] for row in desk("runs", "--status", "waiting", "--json").data["runs"]
    ]


def test_a_waiting_run_shows_its_question_and_what_to_type(desk: Shop) -> None:
    shown = desk("show", "clerk-1")
    listed = desk("show", "clerk-1", "-o", "json").data

    assert "waits for   Open today? (question" in shown.out
    assert "budget      calls: 2 of 5 spent" in shown.out
    assert [{"name": "calls", "spent": "2", "limit": "5"}] == listed["run"]["budgets"]
    assert f"holdfast inbox answer {ids(desk)[0]} yes" in shown.out
    assert "waiting" == listed["run"]["status"]
    assert "open" == listed["run"]["inbox"][0]["state"]


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (("answer", "QUESTION"), 2, "give the answer as a text, or as JSON"),
        (("answer", "QUESTION", "yes", "--value", "1"), 2, "give the answer as a text"),
        (("answer", "QUESTION", "--value", "{"), 2, "--value takes JSON"),
        (("answer", "QUESTION", "maybe"), 2, "it takes 'yes' or 'no way'"),
        (("approve", "QUESTION"), 2, "is a question: answer 'yes' or 'no way'"),
        (("approve", "zzz"), 3, "nothing with id 'zzz'"),
        (("show", "zzz"), 3, "nothing with id 'zzz'"),
    ],
)
def test_a_word_that_does_not_fit_is_refused(
    desk: Shop, words: tuple[str, ...], status: int, why: str
) -> None:
    question = ids(desk)[0]

    refused = desk("inbox", *(question if word == "QUESTION" else word for word in words))

    assert status == refused.status
    assert why in refused.err


def test_a_run_whose_question_was_answered_shows_by_whom_and_what_to_type(desk: Shop) -> None:
    desk("inbox", "answer", "clerk-1", "yes", "--as", "ann")

    shown = desk("show", "clerk-1").out

    assert "\nheard       Open today?: answered by ann\n" in shown
    assert "\nnext        holdfast restart clerk-1 --app desk\n" in shown


def test_an_empty_inbox_says_so(shop: Shop) -> None:
    shop("run", "shop:echo", "--id", "echo-1")

    assert "nothing waits for a person\n" == shop("inbox").out


BELL = "import pathlib, sys; pathlib.Path('rung').open('a').write(sys.stdin.read() + chr(10))"


def test_the_command_of_the_configuration_is_told_once_of_each_item(shop: Shop) -> None:
    (shop.folder / "desk.py").write_text(DESK, encoding="utf-8")
    command = json.dumps([sys.executable, "-c", BELL])
    (shop.folder / "holdfast.toml").write_text(f"notify_command = {command}\n", encoding="utf-8")

    shop("run", "desk:clerk", "--id", "clerk-1")
    shop("run", "desk:clerk", "--id", "clerk-1")

    [line] = (shop.folder / "rung").read_text(encoding="utf-8").splitlines()
    assert ids(shop) == [json.loads(line)["data"]["id"]]
    assert "nothing to tell\n" == shop("inbox", "notify").out


def test_what_did_not_arrive_is_told_later(desk: Shop) -> None:
    failed = desk("inbox", "notify", "--command", "/no/such/bell", "-o", "json")
    told = desk("inbox", "notify", "--command", f'{sys.executable} -c "{BELL}"', "-o", "json")

    assert (1, [False] * 3) == (failed.status, [row["told"] for row in failed.data["told"]])
    assert (0, [True] * 3) == (told.status, [row["told"] for row in told.data["told"]])
    assert 3 == len((desk.folder / "rung").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "nobody is to be told"),
        (("--webhook", "example.com"), "http or https"),
        (("--webhook", "http://127.0.0.1:9", "--key", "s3cret"), "as env:NAME"),
        (("--webhook", "http://127.0.0.1:9", "--key", "env:NO_KEY"), "$NO_KEY, which is not set"),
        (("--webhook", "http://127.0.0.1:9", "--every", "soon"), "not a duration"),
    ],
)
def test_what_cannot_be_told_is_refused(shop: Shop, words: tuple[str, ...], why: str) -> None:
    shop("run", "shop:echo", "--id", "echo-1")

    refused = shop("inbox", "notify", *words)

    assert 2 == refused.status
    assert why in refused.err
    assert "s3cret" not in refused.err
