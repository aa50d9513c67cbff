"""A run inside a program: scripts, forks, signals, logs, and two handles on one store."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import io
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast.engine.facts import facts_of
from tests.engine.kit import RUN, Crash, Stage, World


def script(folder: Path, text: str, *args: str) -> subprocess.CompletedProcess[str]:
    file = folder / "script.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "error", str(file), *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOLDFAST_STORE": str(folder / "store")},
    )


AGENT = """
    import sys
    import holdfast

    @holdfast.step
    def chat(n: int) -> str:
        print("asked", n)
        if n == 1 and sys.argv[1] == "die":
            raise SystemExit(9)
        return f"said {n}"

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [chat(n) for n in range(3)]

    if __name__ == "__main__":
        with holdfast.open() as store:
            print(store.run(agent, id="run-1"))
"""


def fingerprint(monkeypatch: pytest.MonkeyPatch, **names: object) -> str | None:
    """What is told of the prompts of an agent whose module has these names."""
    module = ModuleType("shop.agents")
    exec("import holdfast\n@holdfast.agent\ndef seller(run): ...", vars(module))  # noqa: S102 a module of ours
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return facts_of(module.seller, {}).prompts


def test_a_fingerprint_of_the_prompts_is_told_wherever_they_came_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside, stranger = ModuleType("shop.prompts"), ModuleType("library.prompts")
    vars(beside)["SYSTEM"] = vars(stranger)["SYSTEM"] = "You sell kelp, dear."

    plain = fingerprint(monkeypatch, SYSTEM="You sell kelp.")

    assert plain == fingerprint(monkeypatch, SYSTEM="You sell kelp.", TABLE="orders", LIMIT=3)
    assert plain == fingerprint(monkeypatch, SYSTEM="You sell kelp.", library=stranger)
    assert plain != fingerprint(monkeypatch, SYSTEM="You buy kelp.")
    assert plain != fingerprint(monkeypatch, SYSTEM="You sell kelp.", prompts=beside)
    assert plain != fingerprint(monkeypatch, PROMPTS={"system": ["You sell kelp."]})
    assert None is fingerprint(monkeypatch, TABLE="orders", NAME="海藻销售员")
    chinese = fingerprint(monkeypatch, SYSTEM="你是一个卖海藻的助手。请简短回答。")
    assert chinese != fingerprint(monkeypatch, SYSTEM="你是一个买海藻的助手。请简短回答。")
    assert None is fingerprint(monkeypatch, ROWS=["data of a table"] * 300)


def tools_of(monkeypatch: pytest.MonkeyPatch, code: str = "", **names: object) -> str | None:
    """What is told of the tools of an agent whose module has these names."""
    fingerprint(monkeypatch, **names)
    module = sys.modules["shop.agents"]
    exec(code, vars(module))  # noqa: S102 a module of ours
    return facts_of(module.seller, {}).tools


METHOD = """
class Client:
    @staticmethod
    @holdfast.step
    def search({0}): ...
    @holdfast.effect(ignore="self")
    def place(self, {1}): ...
"""


def test_a_fingerprint_of_the_tools_knows_methods_and_modules_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def beside(arguments: str) -> ModuleType:
        module = ModuleType("shop.tools")
        exec(f"import holdfast\n@holdfast.step\ndef quote({arguments}): ...", vars(module))  # noqa: S102 as above
        return module

    method = tools_of(monkeypatch, METHOD.format("query", "order"))
    other = tools_of(monkeypatch, tools=beside("symbol"))

    assert method == tools_of(monkeypatch, METHOD.format("query", "order"))
    assert method != tools_of(monkeypatch, METHOD.format("query, n=3", "order"))
    assert method != tools_of(monkeypatch, METHOD.format("query", "order, qty"))
    assert other == tools_of(monkeypatch, tools=beside("symbol"))
    assert other != tools_of(monkeypatch, tools=beside("symbol, currency"))


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_fingerprint_of_the_tools_knows_schemas_wherever_they_came_from(
    monkeypatch: pytest.MonkeyPatch, key: str, *, is_wrapped: bool
) -> None:
    def table(kind: str, default: object = None) -> list[object]:
        takes = {"properties": {"city": {"type": kind, "default": default}}, "type": "object"}
        tool: dict[str, object] = {"name": "weather", key: takes}
        return [{"type": "function", "function": tool} if is_wrapped else tool]

    plain = tools_of(monkeypatch, TOOLS=table("string"))

    assert plain == tools_of(monkeypatch, TABLE=table("string"), LIMITS={"name": "weather"})
    assert plain != tools_of(monkeypatch, TOOLS=table("integer"))
    assert None is tools_of(monkeypatch, TOOLS=table("string", default=object()))


def test_a_name_that_stands_for_another_text_or_tool_by_now_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fingerprint(monkeypatch, SYSTEM="You sell kelp.")
    module = sys.modules["shop.agents"]
    before = facts_of(module.seller, {})

    vars(module)["SYSTEM"] = "You buy kelp."
    exec("@holdfast.step\ndef quote(symbol): ...", vars(module))  # noqa: S102 as in a notebook
    after = facts_of(module.seller, {})

    assert before.code == after.code
    assert before.prompts != after.prompts
    assert (None, 64) == (before.tools, len(after.tools or ""))


def test_an_agent_of_a_script_works_and_goes_on_in_the_next_process(tmp_path: Path) -> None:
    died = script(tmp_path, AGENT, "die")
    lived = script(tmp_path, AGENT, "live")

    assert (9, "asked 0\nasked 1\n") == (died.returncode, died.stdout)
    assert "" == lived.stderr
    assert "asked 1\nasked 2\n['said 0', 'said 1', 'said 2']\n" == lived.stdout


def test_restart_of_a_scripts_agent_says_that_it_needs_an_importable_one(tmp_path: Path) -> None:
    script(tmp_path, AGENT, "die")

    with holdfast.open(tmp_path / "store") as store:
        with pytest.raises(holdfast.UnknownAgent) as caught:
            store.restart("run-1")

        assert "__main__:agent" in str(caught.value)
        assert "a restart needs it in a module" in str(caught.value)
        assert "--app" in str(caught.value)
        assert store.get("run-1").is_interrupted


def test_the_same_agent_in_a_module_continues_what_a_script_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, AGENT, "die")
    (tmp_path / "an_app_module.py").write_text(textwrap.dedent(AGENT), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["x", "live"])

    import an_app_module  # type: ignore[import-not-found]  # noqa: PLC0415 made above

    with holdfast.open(tmp_path / "store") as store:
        result = store.restart("run-1", agent=an_app_module.agent)
    assert ["said 0", "said 1", "said 2"] == result


def test_restart_looks_among_declared_agents_only(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def system(run: holdfast.Run, command: str) -> None:
        raise Crash

    system.__module__, system.__qualname__ = "os", "system"
    planted: holdfast.Agent[[str], None] = holdfast.Agent(system)
    ran: list[str] = []
    monkeypatch.setattr(os, "system", ran.append)
    stage.die(planted, "echo planted")

    with stage.open() as store, pytest.raises(holdfast.UnknownAgent, match="os:system"):
        store.restart(RUN)

    assert [] == ran
    assert stage.info().is_interrupted


def test_a_forked_child_is_told_that_the_store_is_its_parents(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        """
        import os, sys
        import holdfast

        @holdfast.step
        def chat(n):
            return n

        @holdfast.agent
        def agent(run):
            chat(0)
            child = os.fork()
            if child == 0:
                try:
                    chat(1)
                except holdfast.StoreClosed as error:
                    print("child:", "holdfast.open" in str(error), flush=True)
                try:
                    store.run(agent, id="another")
                except (holdfast.StoreClosed, holdfast.NestedCall) as error:
                    print("child:", type(error).__name__, flush=True)
                os._exit(0)
            os.waitpid(child, 0)
            return chat(2)

        store = holdfast.open()
        print("parent:", store.run(agent, id="run-1"))
        child = os.fork()
        if child == 0:
            try:
                store.get("run-1")
            except holdfast.StoreClosed:
                print("child: closed", flush=True)
            with holdfast.open() as own:
                print("child:", own.run(agent, id="run-1"), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent:", store.run(agent, id="run-1"))
        store.close()
        """,
    )

    assert "" == done.stderr
    assert [
        "child: True",
        "child: NestedCall",
        "parent: 2",
        "child: closed",
        "child: 2",
        "parent: 2",
    ] == done.stdout.splitlines()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_children_open_the_store_for_themselves(
    tmp_path: Path, method: str
) -> None:
    done = script(
        tmp_path,
        """
        import multiprocessing, sys
        import holdfast

        @holdfast.step
        def double(n: int) -> int:
            return 2 * n

        @holdfast.agent
        def agent(run: holdfast.Run, n: int) -> int:
            return double(n)

        def work(n: int) -> int:
            with holdfast.open() as store:
                return store.run(agent, n, id=f"run {n}")

        if __name__ == "__main__":
            with holdfast.open() as store:
                context = multiprocessing.get_context(sys.argv[1])
                with context.Pool(3) as pool:
                    print(pool.map(work, range(6)))
                print(len(store.runs()))
        """,
        method,
    )

    assert "" == done.stderr
    assert "[0, 2, 4, 6, 8, 10]\n6\n" == done.stdout


def test_the_library_installs_no_signal_handlers(stage: Stage, world: World) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        return [handlers() == before, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]

    def handlers() -> list[Any]:
        return [signal.getsignal(number) for number in signal.valid_signals()]

    before = handlers()
    result = stage.live(agent)

    assert [True, before[list(signal.valid_signals()).index(signal.SIGTERM)] == 0] == result
    assert before == handlers()


def test_the_logger_is_silent_by_itself(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        """
        import logging
        import holdfast

        class Odd(Exception):
            pass

        @holdfast.step
        def chat():
            raise Odd

        @holdfast.agent
        def agent(run):
            try:
                chat()
            except Odd:
                return [type(h).__name__ for h in logging.getLogger("holdfast").handlers]

        with holdfast.open() as store:
            print(store.run(agent))
        """,
    )

    assert ("['NullHandler']\n", "") == (done.stdout, done.stderr)


def test_each_record_of_the_log_carries_the_run_id(stage: Stage, world: World) -> None:
    class Odd(Exception):
        """Warned about, as no replay could raise it."""

    @holdfast.step
    def chat(n: int) -> str:
        if n == 0:
            raise Odd
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with pytest.raises((Odd, holdfast.StepError)):
            chat(0)
        for turn in run.turns():
            chat(turn + 1)
            if turn == 1:
                return "done"
        raise AssertionError

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(run_id)s | %(message)s"))
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        world.dies_at = "chat 2"
        stage.die(agent)
        world.dies_at = None
        stage.live(agent)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)

    lines = stream.getvalue().splitlines()
    assert 2 <= len(lines)
    assert all(line.startswith(f"{RUN} | ") for line in lines)


def test_a_format_that_names_the_run_id_takes_records_of_no_run_too(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat() -> str:
        return world.ask("chat")

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        thread = threading.Thread(target=chat)
        thread.start()
        thread.join()

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(run_id)s | %(message)s"))
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    try:
        stage.live(agent)
    finally:
        logger.removeHandler(handler)

    [line] = stream.getvalue().splitlines()
    assert line.startswith("- | step ")


def test_a_run_held_by_another_handle_is_refused_and_the_holder_named(
    stage: Stage, world: World
) -> None:
    began, go_on = threading.Event(), threading.Event()

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        began.set()
        go_on.wait(30)
        return "done"

    with stage.open() as one, stage.open() as two:
        worker = threading.Thread(target=one.run, args=(agent,), kwargs={"id": RUN})
        worker.start()
        began.wait(30)
        said = []
        for store in (one, two):
            with pytest.raises(holdfast.RunHeld) as run:
                store.run(agent, id=RUN)
            with pytest.raises(holdfast.RunHeld) as restart:
                store.restart(RUN, agent=agent)
            with pytest.raises(holdfast.RunHeld) as resolve:
                store.resolve(RUN, "key", happened=True)
            said += [str(caught.value) for caught in (run, restart, resolve)]
        assert two.get(RUN).is_held
        go_on.set()
        worker.join()

        assert "done" == two.run(agent, id=RUN)
        assert not two.get(RUN).is_held

    assert all(f"process {os.getpid()} on " in text for text in said)
    assert all(RUN in text and "since" in text for text in said)


def test_a_run_is_free_as_soon_as_its_holder_is_done_or_dead(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        if is_dying:
            raise Crash
        return "done"

    is_dying = True
    with stage.open() as one, stage.open() as two:
        with pytest.raises(Crash):
            one.run(agent, id=RUN)
        is_dying = False

        assert "done" == two.run(agent, id=RUN)
        assert "done" == one.run(agent, id=RUN)


def test_a_store_may_be_closed_while_a_run_of_it_goes_on(stage: Stage, world: World) -> None:
    began, go_on = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    @holdfast.step
    def chat(n: int) -> str:
        if n == 1 and not go_on.is_set():
            began.set()
            go_on.wait(30)
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [chat(n) for n in range(3)]

    def work() -> None:
        try:
            store.run(agent, id=RUN)
        except holdfast.HoldfastError as error:
            errors.append(error)

    store = stage.open()
    worker = threading.Thread(target=work)
    worker.start()
    began.wait(30)
    store.close()
    go_on.set()
    worker.join()

    assert ["StoreClosed"] == [type(error).__name__ for error in errors]
    assert ["chat 0#1", "chat 1#2", "chat 2#1"] == stage.live(agent)
