"""A run that `python shop.py` began is the same run to `--app shop`, also where it has classes."""

import os
import subprocess
import sys

import pytest

from tests.cli.kit import Shop

SCRIPT = """
import dataclasses
import enum
import pathlib

import holdfast
import pydantic

LOG = pathlib.Path("log.txt")


class Size(enum.Enum):
    SMALL = 1


class Order(pydantic.BaseModel):
    item: str


@dataclasses.dataclass
class Question:
    about: str
    size: Size


class Sold(Exception):
    pass


@holdfast.register
class Late(Exception):
    pass


def say(text):
    with LOG.open("a") as log:
        log.write(text + "\\n")


@holdfast.step(raises=[Sold])
def ask(question: Question) -> Order:
    say(f"ask {question.about}")
    if question.about == "sold":
        raise Sold("out")
    if question.about == "late":
        raise Late("soon")
    return Order(item=question.about)


@holdfast.effect(key="order", idempotent=True)
def pay(order: Order) -> str:
    say(f"pay {order.item}")
    return f"paid {order.item}"


@holdfast.agent
def child(run: holdfast.Run, order: Order) -> str:
    return pay(order)


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def buyer(run: holdfast.Run, first: Order) -> list:
    run.state["said"] = []
    run.state["last"] = first
    for turn in run.turns():
        if turn == 2:
            return holdfast.plain(run.state["said"])
        for about in ("sold", "late", f"kelp {turn}"):
            try:
                run.state["last"] = ask(Question(about, Size.SMALL))
            except (Sold, Late) as error:
                run.state["said"].append(type(error).__name__)
        run.state["said"].append(pay(run.state["last"]))
        run.state["said"].append(run.child(child, Order(item=f"rock {turn}")))


if __name__ == "__main__":
    with holdfast.open() as store:
        print(store.run(buyer, Order(item="none"), id="bought"))
"""

TURN = ["Sold", "Late", "paid kelp {0}", "paid rock {0}"]
SAID = [each.format(turn) for turn in range(2) for each in TURN]
DONE = [
    each.format(turn)
    for turn in range(2)
    for each in ("ask sold", "ask late", "ask kelp {0}", "pay kelp {0}", "pay rock {0}")
]


@pytest.fixture
def market(shop: Shop) -> Shop:
    shop.put("market.py", SCRIPT)
    return shop


BY_MODULE = """
import holdfast, market
with holdfast.open() as store:
    print(store.run(market.buyer, market.Order(item="none"), id="bought"))
"""


def begun(shop: Shop, *args: str, failpoint: str = "") -> str:
    environment = {**os.environ, "HOLDFAST_STORE": str(shop.store)}
    environment |= {"HOLDFAST_FAILPOINT": failpoint} if failpoint else {}
    done = subprocess.run(
        [sys.executable, *args],
        cwd=shop.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failpoint or 0 == done.returncode, done.stderr
    return done.stdout


def log_of(shop: Shop) -> list[str]:
    return (shop.folder / "log.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "failpoint", ["step.recorded:2", "effect.recorded:1", "effect.recorded:2", "step.recorded:5"]
)
def test_what_a_script_began_goes_on_by_its_module(market: Shop, failpoint: str) -> None:
    begun(market, "market.py", failpoint=failpoint)

    done = market("restart", "bought", "--app", "market", "-o", "json")

    assert 0 == done.status, done.err
    assert SAID == done.data["result"]
    assert DONE == log_of(market)


def test_what_a_module_began_goes_on_by_the_script(market: Shop) -> None:
    begun(market, "-c", BY_MODULE, failpoint="effect.recorded:1")

    assert f"{SAID}\n" == begun(market, "market.py")
    assert DONE == log_of(market)


def test_points_of_a_script_are_shown_and_its_effects_stand_in_forks_and_after_rollbacks(
    market: Shop,
) -> None:
    begun(market, "market.py")
    app = ("--app", "market")

    shown = market("show", "bought", "--at", "0", "--path", "last.item", *app)
    forked = market("fork", "bought", "--at", "0", "--as", "fork", *app)
    again = market("restart", "fork", *app, "-o", "json")
    rolled = market("rollback", "bought", "--to", "start", "--yes", *app)
    anew = market("restart", "bought", *app, "-o", "json")

    assert (0, "kelp 0") == (shown.status, shown.data), shown.err
    assert (0, 0, 0) == (forked.status, rolled.status, again.status), again.err
    assert forked.out.endswith("  holdfast restart fork --app market\n")
    assert (0, SAID, SAID) == (anew.status, again.data["result"], anew.data["result"]), anew.err
    assert [each for each in DONE if each.startswith("pay")] == [
        each for each in log_of(market) if each.startswith("pay")
    ]
