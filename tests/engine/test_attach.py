"""Objects of the program as sections of the state: captured as they change, filled on a restart."""
# ruff: noqa: ANN401, ARG001, ARG005 agents return what the test looks at; misuses are alike

import copy
import dataclasses
import functools
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import pydantic
import pytest

import holdfast
from holdfast.model.journal import Based, TurnEnded
from tests.engine.kit import RUN, Crash, Stage, World, text

T = TypeVar("T")


@dataclasses.dataclass
class Bot:
    messages: list[Any] = dataclasses.field(default_factory=list)
    session: dict[str, Any] = dataclasses.field(default_factory=dict)
    count: int = 0
    matrix: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    messages: list[Any]
    limits: tuple[int, ...] = (1, 2)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", frozen=True)

    messages: list[Any] = []
    name: str = "fresh"
    _seen: dict[str, int] = pydantic.PrivateAttr(default_factory=dict)


class Offering:
    def __init__(self) -> None:
        self.messages: list[Any] = []

    def capture(self) -> dict[str, Any]:
        return {"messages": list(self.messages), "count": len(self.messages)}

    def restore(self, value: dict[str, Any]) -> None:
        self.messages = value["messages"]


class Struct(msgspec.Struct, frozen=True):
    messages: list[Any] = []
    name: str = "fresh"


class Computing:
    def __init__(self) -> None:
        self.messages: list[Any] = []

    @property
    def size(self) -> int:
        return len(self.messages)


class Plain:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.client = object()


def talking(make: Any, world: World, turns: int = 4, **options: Any) -> holdfast.Agent[..., Any]:
    """An agent around an object with messages; each turn adds a question and a reply."""

    @holdfast.step
    def chat(turn: int) -> dict[str, str]:
        return {"role": "assistant", "content": world.ask(f"chat {turn}")}

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        bot = make()
        run.attach("bot", bot, **options)
        for turn in run.turns():
            bot.messages.append({"role": "user", "content": f"question {turn}"})
            bot.messages.append(chat(turn))
            if turn == turns:
                return [holdfast.plain(each) for each in bot.messages]
        raise AssertionError

    return agent


def spoken(turns: int = 4) -> list[Any]:
    return [
        message
        for turn in range(turns + 1)
        for message in (
            {"role": "user", "content": f"question {turn}"},
            {"role": "assistant", "content": f"chat {turn}#1"},
        )
    ]


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "dataclass": (Bot, {}),
    "frozen dataclass with slots": (functools.partial(Slotted, []), {}),
    "Pydantic model": (Model, {}),
    "capture and restore": (Offering, {}),
    "frozen msgspec Struct": (Struct, {}),
    "named attributes": (Plain, {"only": ["messages"]}),
    "named attributes of a Struct": (Struct, {"only": ["messages"]}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_attached_object_is_filled_after_each_crash(
    stage: Stage, world: World, kind: str
) -> None:
    make, options = KINDS[kind]
    agent = talking(make, world, **options)

    for turn in (1, 3, 4):
        world.dies_at = f"chat {turn}"
        stage.die(agent)
    world.dies_at = None
    expected = [*spoken()]
    for turn in (1, 3, 4):  # The call that died was asked again.
        expected[2 * turn + 1] = {"role": "assistant", "content": f"chat {turn}#2"}

    assert expected == stage.live(agent)
    with stage.open() as store:
        assert expected == store.restore(RUN)[1]["bot"]["messages"]


def test_a_message_is_stored_once_however_it_came_into_the_object(stage: Stage) -> None:
    big = 4000

    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        return {"role": "assistant", "content": text(("answer", turn), big), "parts": [{"n": 1}]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        bot = Bot()
        run.attach("bot", bot)
        for turn in run.turns():
            if turn == 40:
                return
            bot.messages = [*bot.messages, {"content": text(("question", turn), big)}]
            bot.messages.append(chat(turn))
            if turn % 3 == 0:
                bot.messages = copy.deepcopy(bot.messages)  # As a library that copies would.

    stage.live(agent)
    journal = stage.journal()
    deltas = [entry.delta or b"" for entry in journal if isinstance(entry, TurnEnded)]

    assert 40 == len(deltas)
    # A question by its text, an answer by where it stands, and one in three copied: by its text.
    assert sum(map(len, deltas)) < 40 * big * 1.4 + 40 * 300
    assert any(isinstance(entry, Based) for entry in journal)


@pytest.mark.parametrize("form", ["array", "small array", "bytes", "list of floats"])
def test_an_unchanged_matrix_is_never_stored_twice(stage: Stage, form: str) -> None:
    whole = np.random.default_rng(7).random((40 if form == "small array" else 400, 64))
    matrix: Any = {
        "array": whole,
        "small array": whole,
        "bytes": whole.tobytes(),
        "list of floats": whole.tolist(),
    }[form]

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        bot = Bot(matrix=matrix)
        run.attach("bot", bot)
        for turn in run.turns():
            bot.count += 1
            bot.matrix = copy.deepcopy(bot.matrix)
            if turn == 9:
                return

    stage.live(agent)
    with stage.open() as store:
        kept = store.restore(RUN)[1]["bot"]
    stored = sum(
        path.stat().st_size for path in (stage.path / "objects").rglob("*") if path.is_file()
    )
    written = sum(len(e.delta or b"") for e in stage.journal() if isinstance(e, TurnEnded))

    assert 10 == kept["count"]
    assert np.array_equal(
        whole,
        np.frombuffer(kept["matrix"]).reshape(whole.shape)
        if form == "bytes"
        else np.array(kept["matrix"]),
    )
    assert stored + written < 1.2 * whole.nbytes + 40_000 * (form == "list of floats") + 3000


class Memory:
    """A matrix that is captured in blocks."""

    def __init__(self) -> None:
        self.matrix = np.random.default_rng(7).random((400, 64))

    def capture(self) -> dict[str, Any]:
        return {"blocks": np.array_split(self.matrix, 8)}

    def restore(self, value: dict[str, Any]) -> None:
        self.matrix = np.concatenate(value["blocks"])


def test_of_a_matrix_in_blocks_those_are_stored_that_changed(stage: Stage) -> None:
    turns, is_crashing = 6, True
    expected = Memory().matrix
    expected[:turns] = 1

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        memory = Memory()
        run.attach("memory", memory)
        for turn in run.turns():
            if turn == turns and is_crashing:
                raise Crash
            if turn == turns:
                return np.array_equal(expected, memory.matrix)
            memory.matrix[turn] = 1
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert stage.live(agent)
    on_disk = sum(path.stat().st_size for path in stage.path.rglob("*") if path.is_file())
    assert on_disk < 3 * expected.nbytes


def test_what_a_turn_changes_is_what_its_end_writes(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        bot = Bot(session={f"key {n}": text(n, 100) for n in range(50)})
        run.attach("bot", bot)
        for turn in run.turns():
            bot.session["key 7"] = str(turn)
            bot.session["key 8"] = copy.copy(bot.session["key 8"])
            if turn == 5:
                return

    stage.live(agent)
    deltas = [entry.delta or b"" for entry in stage.journal() if isinstance(entry, TurnEnded)]

    assert len(deltas[0]) > 5000
    assert max(map(len, deltas[1:])) < 40


def test_what_is_shared_in_and_between_objects_stays_shared(stage: Stage) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        one, two = Bot(), Bot()
        run.attach("one", one)
        run.attach("two", two)
        for turn in run.turns():
            if turn == 0:
                two.messages = one.session["log"] = one.messages
                two.matrix = one.matrix = {0}
            if turn == 1 and is_crashing:
                raise Crash
            if turn == 1:
                one.messages.append(turn)
                one.matrix.add(turn)
                return [two.messages, one.session["log"], two.matrix]
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert [[1], [1], {0, 1}] == stage.live(agent)


def test_what_is_parted_stays_apart(stage: Stage) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        bot = Bot()
        run.attach("bot", bot)
        for turn in run.turns():
            if turn == 0:
                bot.messages = bot.session["log"] = []
                bot.matrix = bot.session["set"] = {0}
            if turn == 1:
                bot.session = {"log": list(bot.messages), "set": set(bot.matrix)}
            if turn == 2 and is_crashing:
                raise Crash
            if turn == 2:
                bot.messages.append(1)
                bot.matrix.add(1)
                return [bot.session["log"], bot.session["set"]]
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert [[], {0}] == stage.live(agent)


def test_private_extra_and_set_fields_of_a_model_come_back(stage: Stage) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        model = Model()
        run.attach("model", model)
        for turn in run.turns():
            if turn == 0:
                model._seen["a"] = 1  # noqa: SLF001 the agent's own
                assert model.__pydantic_extra__ is not None
                model.__pydantic_extra__["more"] = [1]
                model.__pydantic_fields_set__.add("name")
            if turn == 1 and is_crashing:
                raise Crash
            if turn == 1:
                return [model._seen, model.model_extra, model.model_dump(exclude_unset=True)]  # noqa: SLF001
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    expected = [{"a": 1}, {"more": [1]}, {"name": "fresh", "more": [1]}]
    assert expected == stage.live(agent)


@dataclasses.dataclass
class Shelf(Generic[T]):
    items: list[T] = dataclasses.field(default_factory=list)


def test_an_object_made_of_a_class_with_its_parameter_is_attached_like_any_other(
    stage: Stage,
) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        shelf = Shelf[int]()
        run.attach("shelf", shelf)
        for turn in run.turns():
            if turn == 1 and is_crashing:
                raise Crash
            shelf.items.append(turn)
            if turn == 1:
                return [shelf.items, run.state["shelf"]]
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert [[0, 1], {"items": [0, 1]}] == stage.live(agent)


class Early(pydantic.BaseModel):
    messages: list[Any] = []
    _seen: int = pydantic.PrivateAttr(default=0)

    @functools.cached_property
    def length(self) -> int:
        return len(self.messages)

    @pydantic.computed_field  # type: ignore[prop-decorator]  # as its documentation has it
    @functools.cached_property
    def doubled(self) -> int:
        return 2 * len(self.messages)


class Late(Early):
    tone: str = "dry"
    _new: list[int] = pydantic.PrivateAttr(default_factory=lambda: [7])


def test_a_model_computes_anew_what_it_cached_and_keeps_what_is_new_in_its_class(
    stage: Stage,
) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        model = Early() if is_crashing else Late()
        run.attach("model", model)
        for turn in run.turns():
            if turn == 0:
                model.messages.append("one")
                model._seen = 5  # noqa: SLF001 the agent's own
                assert (1, 2) == (model.length, model.doubled)
            if turn == 1 and is_crashing:
                raise Crash
            if turn == 1:
                assert isinstance(model, Late)
                return [model.messages, model._seen, model.doubled, model.tone, model._new]  # noqa: SLF001
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert [["one"], 5, 2, "dry", [7]] == stage.live(agent)


class Hidden:
    __slots__ = ("__dict__", "hidden")
    hidden: int


@dataclasses.dataclass
class Below(Hidden):
    shown: int = 1


def test_what_stands_in_a_slot_of_a_class_above_is_kept(stage: Stage) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        bot = Below()
        run.attach("bot", bot)
        for turn in run.turns():
            if turn == 0:
                bot.hidden = 5
            if turn == 1 and is_crashing:
                raise Crash
            if turn == 1:
                return [bot.shown, bot.hidden]
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert [1, 5] == stage.live(agent)


def test_attributes_beside_the_fields_come_and_go(stage: Stage) -> None:
    is_crashing = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        bot: Any = Bot()
        bot.fresh = "made by the constructor"
        run.attach("bot", bot)
        for turn in run.turns():
            if turn == 0:
                bot.note = ["beside"]
                del bot.fresh
            if turn == 1 and is_crashing:
                raise Crash
            if turn == 1:
                return [bot.note, hasattr(bot, "fresh")]
        raise AssertionError

    stage.die(agent)
    is_crashing = False

    assert [["beside"], False] == stage.live(agent)


@pytest.mark.parametrize("where", ["in a turn", "between loops", "after a loop"])
def test_an_object_attached_later_is_filled_at_once(stage: Stage, world: World, where: str) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        bot: Bot | None = None
        if where != "in a turn":
            for turn in run.turns():
                run.state["first"] = turn
                if turn == 1:
                    break
            bot = Bot()
            run.attach("bot", bot)
            bot.count += 100
        if where == "after a loop":
            run.call(world.ask, "last")
            return bot.count if bot else None
        for turn in run.turns():
            if bot is None:
                bot = Bot()
                run.attach("bot", bot)
            bot.count += 1
            run.call(world.ask, f"ask {turn}")
            if turn == 5:
                return bot.count
        raise AssertionError

    world.dies_at = "last" if where == "after a loop" else "ask 4"
    stage.die(agent)
    world.dies_at = None

    expected = {"in a turn": 6, "between loops": 104, "after a loop": 100}
    assert expected[where] == stage.live(agent)


def test_an_async_agent_is_filled_too(stage: Stage, world: World) -> None:
    @holdfast.step
    async def chat(turn: int) -> dict[str, str]:
        return {"content": world.ask(f"chat {turn}")}

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:
        bot = Bot()
        run.attach("bot", bot)
        async for turn in run.turns():
            bot.messages.append(await chat(turn))
            if turn == 3:
                return [holdfast.plain(message) for message in bot.messages]
        raise AssertionError

    world.dies_at = "chat 2"
    stage.die(agent)
    world.dies_at = None

    assert ["chat 0#1", "chat 1#1", "chat 2#2", "chat 3#1"] == [
        message["content"] for message in stage.live(agent)
    ]


def test_a_checkpoint_holds_what_the_object_holds_then(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        bot = Bot()
        run.attach("bot", bot)
        for _ in run.turns():
            bot.messages.append("before")
            point = run.checkpoint()
            bot.messages.append("after")
            return point
        raise AssertionError

    point = stage.live(agent)

    with stage.open() as store:
        assert ["before"] == store.restore(point)[1]["bot"]["messages"]
        assert ["before", "after"] == store.restore(RUN)[1]["bot"]["messages"]


def misuse(stage: Stage, act: Any) -> Exception:
    """What the run ends with when `act` is done in its first turn, or at its end."""

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        bot = Bot()
        run.attach("bot", bot)
        for turn in run.turns():
            if turn == 1:
                return
            act(run, bot)

    return stage.fault(agent)


def run_state_changed(run: holdfast.Run, bot: Bot) -> None:
    run.state["bot"]["messages"].append("past the object")
    bot.messages.append("in the object")


def run_state_changed_after_a_checkpoint(run: holdfast.Run, bot: Bot) -> None:
    bot.messages.append("in the object")
    run.checkpoint()
    run_state_changed(run, bot)


def section_replaced(run: holdfast.Run, bot: Bot) -> None:
    run.state["bot"] = {"messages": []}


class Counting:
    """One whose `capture` is never the same; of `restore`, one takes what was captured."""

    def __init__(self, held: Any = int) -> None:
        self.count, self.held = 0, held

    def capture(self) -> dict[str, Any]:
        self.count += 1
        return {"count": self.count, "held": self.held()}

    def restore(self, value: dict[str, Any]) -> None: ...


class Forgetful(Counting):
    def restore(self) -> None: ...  # type: ignore[override]


def attached_and_asked(run: holdfast.Run, held: Any) -> None:
    run.attach("x", Counting(held))
    run.call(lambda: 1)


MISUSES: dict[str, tuple[Any, type[Exception], str]] = {
    "attached twice": (
        lambda run, bot: run.attach("bot", Bot()),
        holdfast.UsageError,
        "an object is attached as 'bot' already",
    ),
    "under two names": (
        lambda run, bot: run.attach("other", bot),
        holdfast.UsageError,
        "this object is attached as 'bot' already",
    ),
    "no text as name": (
        lambda run, bot: run.attach(7, Bot()),
        holdfast.UsageError,
        "a section's name is text, not 7",
    ),
    "a value": (
        lambda run, bot: run.attach("x", {}),
        holdfast.UsageError,
        "a dict is a value, not an object",
    ),
    "what cannot be set": (
        lambda run, bot: run.attach("x", Computing(), only=["messages", "size"]),
        holdfast.UsageError,
        "size of tests.engine.test_attach.Computing cannot be set again",
    ),
    "a class": (lambda run, bot: run.attach("x", Bot), holdfast.UsageError, "only="),
    "an object of no known form": (
        lambda run, bot: run.attach("x", Plain()),
        holdfast.UsageError,
        "Plain is no dataclass, Pydantic model or msgspec Struct and offers no `capture()`",
    ),
    "an attribute that is not there": (
        lambda run, bot: run.attach("x", Plain(), only=["mesages"]),
        holdfast.UsageError,
        "Plain has no attribute 'mesages'",
    ),
    "an attribute that is no name": (
        lambda run, bot: run.attach("x", Plain(), only=[7]),
        holdfast.UsageError,
        "run.attach: only= names attributes of the object, not 7",
    ),
    "attributes that are no names": (
        lambda run, bot: run.attach("x", Plain(), only=7),
        holdfast.UsageError,
        "run.attach: only= names attributes of the object, not 7",
    ),
    "a section of another kind": (
        lambda run, bot: (run.state.update(x=1), run.attach("x", Bot())),
        holdfast.UsageError,
        "the state holds a section 'x' that is no attached object",
    ),
    "inside a step": (
        lambda run, bot: run.call(lambda: run.attach("x", Bot())),
        holdfast.NestedCall,
        "run.attach was called inside",
    ),
    "a field that cannot be stored": (
        lambda run, bot: bot.session.update(client=object()),
        holdfast.NotStorable,
        'state["bot"]["session"]["client"]: object',
    ),
    "a field that was deleted": (
        lambda run, bot: delattr(bot, "messages"),
        holdfast.NotStorable,
        'state["bot"].messages',
    ),
    "a container of the state": (
        lambda run, bot: (run.state.update(x=[]), bot.messages.append(run.state["x"])),
        holdfast.NotStorable,
        'state["bot"]["messages"][0]: list: it is part of run.state too',
    ),
    "an answer that is in the state too": (
        lambda run, bot: (
            run.state.update(x=run.call(lambda: {"a": 1})),
            bot.messages.append(run.state["x"]),
        ),
        holdfast.NotStorable,
        "it is part of run.state too",
    ),
    "a container inside a leaf and beside it": (
        lambda run, bot: bot.session.update(pair=(bot.messages,)),
        holdfast.NotStorable,
        'state["bot"]["session"]["pair"]: tuple: it stands inside a value',
    ),
    "a container that holds itself": (
        lambda run, bot: bot.messages.append(bot.messages),
        holdfast.NotStorable,
        "it contains itself",
    ),
    "changed in the state": (
        run_state_changed,
        holdfast.UsageError,
        'state["bot"]["messages"] was changed in run.state',
    ),
    "changed in the state after a checkpoint": (
        run_state_changed_after_a_checkpoint,
        holdfast.UsageError,
        'state["bot"]["messages"] was changed in run.state',
    ),
    "replaced in the state": (
        section_replaced,
        holdfast.UsageError,
        'state["bot"] was changed in run.state',
    ),
    "changed by a step": (
        lambda run, bot: run.call(lambda: bot.messages.append(1)),
        holdfast.ChangedInCall,
        'changed state["bot"]["messages"]',
    ),
    "one that captures something else each time": (
        lambda run, bot: attached_and_asked(run, int),
        holdfast.UsageError,
        'state["x"]: what the attached object captures differs each time it is asked',
    ),
    "one that captures what cannot be stored": (
        lambda run, bot: attached_and_asked(run, object),
        holdfast.NotStorable,
        'state["x"]["held"]: object',
    ),
    "one that takes back nothing": (
        lambda run, bot: run.attach("x", Forgetful()),
        holdfast.UsageError,
        "Forgetful.restore is called with the captured value: too many positional arguments",
    ),
}


@pytest.mark.parametrize("case", MISUSES)
def test_misuse_is_refused_with_its_place(stage: Stage, case: str) -> None:
    act, kind, words = MISUSES[case]

    error = misuse(stage, act)

    assert kind is type(error)
    assert words in str(error)


def test_an_effect_that_changes_the_object_is_refused_and_is_not_in_doubt(stage: Stage) -> None:
    paid: list[str] = []
    is_fixed = False

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        bot = Bot()
        run.attach("bot", bot)

        @holdfast.effect
        def pay() -> str:
            paid.append("1")
            if not is_fixed:
                bot.count += 1
            return "paid"

        for _ in run.turns():
            pay()
            bot.count += 1
            return bot.count
        raise AssertionError

    error = stage.fault(agent)
    assert isinstance(error, holdfast.ChangedInCall)
    is_fixed = True

    assert 1 == stage.restart(agent)
    assert ["1"] == paid


def test_a_fork_fills_the_object_from_its_edited_history(stage: Stage, world: World) -> None:
    agent = talking(Bot, world)
    stage.live(agent)

    with stage.open() as store:
        edits = {"bot.messages[0].content": "another question", "bot.count": 7}
        store.fork(RUN, at=1, new_id="other", state=edits)
        forked = store.run(agent, id="other")
        restored = store.restore("other")[1]["bot"]

    assert ["another question", *(each["content"] for each in spoken(1)[1:])] == [
        message["content"] for message in forked[:4]
    ]
    assert 10 == len(forked)
    assert (forked, 7) == (restored["messages"], restored["count"])
    assert ["chat 2", "chat 3", "chat 4"] == world.repeated


@dataclasses.dataclass(slots=True)
class SlottedCount:
    count: int = 0


class ModelCount(pydantic.BaseModel):
    count: int = 0


class OfferedCount:
    def __init__(self) -> None:
        self.count = 0

    def capture(self) -> dict[str, int]:
        return {"count": self.count}

    def restore(self, value: dict[str, int]) -> None:
        (self.count,) = value.values()


@pytest.mark.parametrize("kind", [SlottedCount, ModelCount, OfferedCount])
def test_an_object_attached_as_runtime_has_no_part_in_what_is_told_of_rollbacks(
    stage: Stage, world: World, kind: Any
) -> None:
    told: list[int] = []
    world.dies_at = "any"

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        held = kind()
        run.attach("runtime", held)
        for turn in run.turns():
            told.append(len(run.rollbacks))
            if turn == 3 and world.dies_at:
                raise Crash
            held.count += 1
            if turn == 3:
                return int(held.count)
        raise AssertionError

    for times in (1, 2):
        stage.die(agent)
        with stage.open() as store:
            store.plan_rollback(RUN, to=1).apply()
            assert times == len(store.restore(RUN)[1]["runtime"]["rollbacks"])
    world.dies_at = None

    assert 4 == stage.live(agent)
    assert [0, 0, 0, 0, 1, 1, 2, 2] == told


def test_what_an_agent_keeps_itself_where_rollbacks_are_told_of_stays(
    stage: Stage, world: World
) -> None:
    world.dies_at = "any"

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        run.state["runtime"] = {"rollbacks": 7}
        for turn in run.turns():
            if turn == 2:
                if world.dies_at:
                    raise Crash
                return [run.state["runtime"]["rollbacks"], run.rollbacks]
        raise AssertionError

    stage.die(agent)
    world.dies_at = None
    with stage.open() as store:
        store.plan_rollback(RUN, to=0).apply()

    assert [7, []] == stage.live(agent)
