"""Models for the advisor's tests: the two scenarios of its check values, and random ones."""

import math
from dataclasses import dataclass
from random import Random

from holdfast.model.case import Cause, Promise, Scope, Strategy, Unit

MIX = [
    (Scope.IN_PLACE, 0.60, 2.0, 0.995),
    (Scope.PROCESS, 0.25, 3.0, 0.995),
    (Scope.HOST, 0.08, 15.0, 0.99),
    (Scope.ROLLBACK, 0.04, 5.0, 0.95),
    (Scope.POISON, 0.03, 2.0, 0.0),
]
MENDED = [
    (Scope.IN_PLACE, 0.65, 1.0, 0.999),
    (Scope.PROCESS, 0.27, 1.0, 0.999),
    (Scope.HOST, 0.08, 8.0, 0.999),
]
TRADING = [
    (Scope.IN_PLACE, 0.60, 0.5, 0.995),
    (Scope.PROCESS, 0.25, 1.0, 0.995),
    (Scope.HOST, 0.08, 5.0, 0.99),
    (Scope.ROLLBACK, 0.04, 1.0, 0.95),
    (Scope.POISON, 0.03, 0.5, 0.0),
]
FAST = [
    (Scope.IN_PLACE, 0.60, 0.2, 0.999),
    (Scope.PROCESS, 0.25, 0.3, 0.999),
    (Scope.HOST, 0.08, 0.5, 0.999),
    (Scope.ROLLBACK, 0.04, 0.3, 0.99),
    (Scope.POISON, 0.03, 0.2, 0.0),
]
SUPPORT_RATE = -math.log(0.91) / 180
TRADING_RATE = 1 / 7200

SUPPORT_UNITS = [Unit(seconds=10, usd=0.02, bytes=4000) for _ in range(18)]
TRADING_UNITS = [
    unit
    for _ in range(120)
    for unit in (
        Unit(seconds=3.5, usd=0.02),
        Unit(seconds=1.0),
        Unit(seconds=0.5, upfront=1.0, is_effect=True),
    )
]
SUPPORT_SAVED = Strategy(
    name="journal and checkpoints",
    journal="local",
    journal_s=0.003,
    remote_every=1,
    remote_s=0.02,
    restore_local_s=1.0,
    restore_remote_s=3.0,
    replay_s=0.005,
    checkpoint_bytes=40_000,
    stored=0.25,
)


@dataclass(frozen=True)
class Model:
    units: list[Unit]
    causes: list[Cause]
    strategy: Strategy
    promise: Promise


def causes(
    mix: list[tuple[Scope, float, float, float]], rate: float, generations: int = 1
) -> list[Cause]:
    return [
        Cause(
            name=scope,
            scope=scope,
            per_second=share * rate,
            detect_s=detect_s,
            p_recovered=p_recovered,
            generations=generations,
        )
        for scope, share, detect_s, p_recovered in mix
    ]


def any_model(seed: int) -> Model:
    """A model by chance: any scopes, journal, levels and clock."""
    random = Random(seed)  # noqa: S311 a seed
    units = [
        Unit(
            seconds=random.uniform(0.5, 20),
            usd=random.uniform(0, 0.1),
            upfront=random.random(),
            is_effect=random.random() < 0.2,
        )
        for _ in range(random.randint(1, 30))
    ]
    rate = random.uniform(0.2, 2.5) / sum(unit.seconds for unit in units)
    scopes = random.sample(list(Scope), random.randint(1, 5))
    weights = [random.random() for _ in scopes]
    found = [
        Cause(
            name=scope,
            scope=scope,
            per_second=rate * weight / sum(weights),
            detect_s=random.uniform(0, 10),
            p_recovered=0.0 if scope is Scope.POISON else random.uniform(0.9, 1),
            generations=random.randint(1, 3),
        )
        for scope, weight in zip(scopes, weights, strict=True)
    ]
    strategy = Strategy(
        name=f"seed {seed}",
        journal=random.choice(["none", "local", "remote"]),
        journal_s=random.uniform(0, 0.3),
        local_every=random.choice([0, 1, 2, 5]),
        local_s=random.uniform(0, 0.5),
        remote_every=random.choice([0, 1, 3, 7]),
        remote_s=random.uniform(0, 1),
        restore_local_s=random.uniform(0, 3),
        restore_remote_s=random.uniform(0, 9),
        replay_s=random.uniform(0, 0.1),
    )
    clock = random.choice(["resume", "catch_up"])
    promise = Promise(max_recovery_s=random.uniform(2, 60), clock=clock)
    return Model(units, found, strategy, promise)
