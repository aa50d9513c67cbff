"""Tokens and dollars: spent, not spent again because of replay, lost on branches left."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from holdfast.model.journal import Usage
from holdfast.model.prices import NO_PRICES, Prices
from holdfast.policy.usage import total
from holdfast.report.facts import Facts
from holdfast.report.prices import with_price

MILLION = 1e6
GB = 1e9


class ModelCost(msgspec.Struct, frozen=True, kw_only=True):
    """One model: what was used, spared and lost of it. `is_priced` is false where a price lacks.

    `priced_today` says that some prices are of now, because none was recorded with the answer.
    """

    model: str
    spent: Usage
    saved: Usage
    lost: Usage
    is_priced: bool
    priced_today: bool


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """All models, and their sums; dollars are those that are known."""

    runs: int
    restarts: int
    models: list[ModelCost]
    spent: Usage
    saved: Usage
    lost: Usage
    missing: list[str]


def cost_of(facts: Sequence[Facts], own: Prices = NO_PRICES, kin: Iterable[Facts] = ()) -> Cost:
    """What the runs used; `own` are prices for answers that recorded none.

    `kin` are children of theirs that are not counted themselves: what a restart spared of them is.
    """
    parts = {
        name: [usage for run in facts for usage in getattr(run, name)]
        for name in ("spent", "saved", "lost")
    }
    known = {run.id: run for run in (*kin, *facts)}
    spared = (child for run in facts for child in run.spared)
    parts["saved"] += [usage for child in spared for usage in _whole(child, known)]
    named = sorted({usage.model or "" for usages in parts.values() for usage in usages})
    models = [_model(name, parts, own) for name in named]
    return Cost(
        runs=len(facts),
        restarts=sum(run.lives - 1 for run in facts),
        models=models,
        spent=total([each.spent for each in models]),
        saved=total([each.saved for each in models]),
        lost=total([each.lost for each in models]),
        missing=[each.model or "(no model named)" for each in models if not each.is_priced],
    )


def _whole(id_: str, known: Mapping[str, Facts]) -> Iterator[Usage]:
    """What doing a run again would use, with its children: what it spent and did not lose."""
    todo, seen = [id_], set[str]()
    while todo:
        run = known.get(each := todo.pop())
        if run is None or each in seen:
            continue
        seen.add(each)
        yield from (Counter(run.spent) - Counter(run.lost)).elements()
        todo += run.children


def _model(name: str, parts: dict[str, list[Usage]], own: Prices) -> ModelCost:
    mine = {
        part: [usage for usage in usages if (usage.model or "") == name]
        for part, usages in parts.items()
    }
    told = [usage for usages in mine.values() for usage in usages]
    now = {part: [with_price(each, own=own) for each in usages] for part, usages in mine.items()}
    known = [usage for usages in now.values() for usage in usages]
    return ModelCost(
        model=name,
        **{part: total(usages) for part, usages in now.items()},
        is_priced=all(usage.usd is not None or _is_nothing(usage) for usage in known),
        priced_today=any(
            usage.usd is None and priced.usd is not None
            for usage, priced in zip(told, known, strict=True)
        ),
    )


def _is_nothing(usage: Usage) -> bool:
    """Whether it is known that no tokens were used."""
    return {0} <= {usage.tokens_in, usage.tokens_out} <= {0, None}


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Storage: what ended runs added, and what a million of them would come to."""

    ended: int
    bytes: int
    bytes_per_run: float | None
    gb_per_million: float | None
    store_bytes: int
    usd_per_month: float | None
    largest: list[tuple[str, int]]


def growth_of(facts: Sequence[Facts], store_bytes: int, gb_month_usd: float | None) -> Growth:
    """How the store grows with the runs that ended."""
    ended = [run for run in facts if run.is_ended]
    added = sum(run.bytes for run in ended)
    mean = added / len(ended) if ended else None
    largest = sorted(((run.id, run.bytes) for run in facts), key=lambda each: -each[1])
    return Growth(
        ended=len(ended),
        bytes=added,
        bytes_per_run=mean,
        gb_per_million=None if mean is None else mean * MILLION / GB,
        store_bytes=store_bytes,
        usd_per_month=None if gb_month_usd is None else store_bytes / GB * gb_month_usd,
        largest=largest[:5],
    )
