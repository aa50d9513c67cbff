"""What a record cannot hold stands there in other words; what has none stops the run."""

import enum
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Stage

HALF = "\ud83d"
"""Half a character, as models give where a stream is cut in an emoji."""


class Name(str):
    """A text of a class of its own."""

    __slots__ = ()


class Count(int):
    """A number of a class of its own, which has no other form."""


class Section(enum.StrEnum):
    """Names as a program keeps them."""

    LLM = "llm"


@holdfast.step
def chat(turn: int, *, seed: int = 0, model: str = "m", says: str = "", fails: str = "") -> dict:  # type: ignore[type-arg]  # of anything
    if fails:
        raise ValueError(fails)
    return {"turn": turn + seed * 0, "model": says or model, "usage": {"input_tokens": 3}}


def talk(asked: dict[str, Any], saved: dict[str, Any]) -> holdfast.Agent[..., Any]:
    """An agent that asks and saves so."""

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> dict[Any, Any]:
        run.state.update({"llm": [], 7: []})
        for turn in run.turns():
            run.state[7].append({"turn": turn})
            try:
                run.state["llm"].append(chat(turn, **asked))
            except ValueError:
                run.state["llm"].append("failed")
            try:
                run.checkpoint(**saved)
            except holdfast.HoldfastError as refused:
                run.state["refused"] = str(refused)
            run.state["llm"].append({"after": turn})
            if turn == 2:
                return dict(holdfast.plain(run.state))
        raise AssertionError

    return agent


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"seed": 1 << 70}, {"parameters": {"seed": str(1 << 70), "model": "m"}}),
        ({"seed": (1 << 64) - 1}, {"parameters": {"seed": (1 << 64) - 1, "model": "m"}}),
        ({"model": HALF}, {"model": r"\ud83d"}),
        ({"says": HALF}, {"model": r"\ud83d", "parameters": {"seed": 0, "model": "m"}}),
        ({"fails": f"no {HALF}"}, {"error": r"ValueError: no \ud83d"}),
    ],
)
def test_a_call_that_cannot_be_written_word_for_word_is_told_in_others(
    stage: Stage, asked: dict[str, Any], told: dict[str, Any]
) -> None:
    left = stage.live(talk(asked, {}))

    with stage.open() as store:
        point = store.checkpoints(RUN)[-1].model_dump()
        assert told == {name: _known(point[name], known) for name, known in told.items()}
        assert left == store.restore(RUN)[1]


def _known(value: Any, known: Any) -> Any:  # noqa: ANN401 a field of a checkpoint
    """Of a mapping, as much as is asked for."""
    return {name: value[name] for name in known} if isinstance(known, dict) else value


@pytest.mark.parametrize(
    ("saved", "told"),
    [
        ({"label": HALF}, {"label": r"\ud83d"}),
        ({"label": Name("good")}, {"label": "good"}),
        ({"only": [Section.LLM]}, {"sections": ["llm"]}),
        ({"only": [Name("llm"), "llm"]}, {"sections": ["llm"]}),
    ],
)
def test_what_a_checkpoint_is_called_is_plain_text(
    stage: Stage, saved: dict[str, Any], told: dict[str, Any]
) -> None:
    left = stage.live(talk({}, saved))

    with stage.open() as store:
        point = next(each for each in store.checkpoints(RUN) if each.label or each.sections)
        assert told == {name: getattr(point, name) for name in told}
        assert "refused" not in left
        assert left == store.restore(RUN)[1]
        assert store.restore(point.id)[0] == point


@pytest.mark.parametrize("only", [[7], [None], [["llm"]], [b"llm"], [HALF]])
def test_a_section_whose_name_is_no_text_is_not_saved_alone_and_the_state_is_whole(
    stage: Stage, only: list[Any]
) -> None:
    left = stage.live(talk({}, {"only": only}))

    assert "has a text as its name" in left["refused"]
    with stage.open() as store:
        assert left == store.restore(RUN)[1]


def test_nothing_follows_a_row_that_could_not_be_written(stage: Stage) -> None:
    is_mended = False

    def used(_: object) -> holdfast.Usage:
        return holdfast.Usage(tokens_in=3 if is_mended else Count(3))

    @holdfast.step(usage=used)
    def ask(turn: int) -> dict[str, int]:
        return {"turn": turn}

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        run.state["said"] = []
        for turn in run.turns():
            if turn == 3:
                return list(holdfast.plain(run.state["said"]))
            run.state["said"].append({"asks": turn})
            chat(turn)
            try:
                if turn == 1:
                    run.state["said"].append(ask(turn))
            except holdfast.NotStorable:
                run.state["said"].append("gone past")
        raise AssertionError

    refused = stage.fault(agent)

    assert isinstance(refused, holdfast.NotStorable)
    with stage.open() as store:
        assert {"said": [{"asks": 0}]} == store.restore(RUN)[1]
        is_mended = True
        assert [{"asks": 0}, {"asks": 1}, {"turn": 1}, {"asks": 2}] == store.restart(
            RUN, agent=agent
        )


def test_a_run_whose_error_cannot_be_written_word_for_word_fails_with_it(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:  # noqa: ARG001 it fails first
        raise ValueError(f"no {HALF}")

    failed = stage.fault(agent)

    assert isinstance(failed, holdfast.RunFailed)
    assert (holdfast.Status.FAILED, r"ValueError: no \ud83d") == (
        stage.info().status,
        stage.info().error,
    )
    assert (f"no {HALF}",) == (stage.fault(agent).__cause__ or failed).args


def test_a_question_and_a_stream_that_cannot_be_written_word_for_word_are_gone_on_with(
    stage: Stage,
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        run.state["heard"] = []
        for _ in run.turns():
            items = list(run.stream(lambda: iter(["a", HALF]), name=f"words {HALF}"))
            run.state["heard"] += [*items, run.ask(f"Say {HALF}?")]
            return list(holdfast.plain(run.state["heard"]))
        raise AssertionError

    assert isinstance(stage.fault(agent), holdfast.Waiting)
    with stage.open() as store:
        (item,) = store.inbox()
        assert r"Say \ud83d?" == item.text
        store.answer(item.id, "yes")
        assert ["a", HALF, "yes"] == store.restart(RUN, agent=agent)


@pytest.mark.parametrize(
    "said", [{"snapshot": {HALF: "turns=1"}}, {"optional": [HALF]}, {"optional": HALF}], ids=repr
)
def test_a_section_that_no_record_could_name_is_refused_where_it_is_declared(
    said: dict[str, Any],
) -> None:
    with pytest.raises(holdfast.UsageError, match="sections of the state"):
        holdfast.agent(**said)(_nothing)


def _nothing(run: holdfast.Run) -> None:
    """Never run."""


def test_an_environment_of_other_bytes_than_text_hinders_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGION", "a\udcff")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return run.checkpoint()

    with holdfast.open(tmp_path / "store", environment=["REGION"]) as store:
        assert {"REGION": r"a\udcff"} == store.restore(store.run(agent))[0].environment
