"""Whether saving paid in this store: what restarts spared, against what saving cost."""

import math
from collections.abc import Sequence

import msgspec

from holdfast.policy.advise.worth import Worth
from holdfast.report.cost import Cost
from holdfast.report.facts import Facts
from holdfast.report.sla import HOUR_S, Kept

HOURLY, GB_MONTH = "USD per outage hour", "USD per GB-month"


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """What the store cannot know: prices. None is not counted, and is named."""

    usd_per_hour: float | None = None
    gb_month_usd: float | None = None
    months: float = 1.0


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """What saving was worth, and what is not in it because nobody said its price.

    `unpriced` are the inputs that count as nothing for that reason.
    """

    worth: Worth
    missing: list[str]
    unpriced: list[str]


def promised_usd_per_hour(facts: Sequence[Facts]) -> float | None:
    """What an hour of outage costs by the SLA of the newest run that says it."""
    said = (run.sla.breach_usd_per_hour for run in facts if run.sla is not None)
    return next((each for each in said if each is not None), None)


def returned(
    facts: Sequence[Facts], kept: Kept, cost: Cost, store_bytes: int, assumed: Assumed
) -> Return:
    """Set what every restart found recorded against what recording it took.

    Without records each restart would have begun anew: it would have been down for the work done
    before, and paid for it again.
    """
    spared_s = math.fsum(each for run in facts for each in run.at_risk_s)
    held_s = math.fsum(run.between_s for run in facts)
    hourly = assumed.usd_per_hour
    saved_usd = cost.saved.usd or 0.0
    storage = store_bytes / 1e9 * (assumed.gb_month_usd or 0.0) * assumed.months
    waiting = held_s / HOUR_S * (hourly or 0.0)
    missing, unpriced = [], []
    if hourly is None:
        missing.append("what an hour of outage costs: --usd-per-hour, or the SLA's own")
        unpriced.append(HOURLY)
    if assumed.gb_month_usd is None:
        missing.append("what a GB-month costs: --gb-month-usd")
        unpriced.append(GB_MONTH)
    missing += [f"the price of {name}" for name in cost.missing]
    return Return(
        worth=Worth(
            benefit_usd=spared_s / HOUR_S * (hourly or 0.0) + saved_usd,
            cost_usd=storage + waiting,
            inputs={
                "restarts": float(cost.restarts),
                "outage hours without records": (kept.down_s + spared_s) / HOUR_S,
                "outage hours with them": kept.down_s / HOUR_S,
                HOURLY: hourly or 0.0,
                "USD not spent again": saved_usd,
                "hours blocked by saving, at most": held_s / HOUR_S,
                "GB stored": store_bytes / 1e9,
                GB_MONTH: assumed.gb_month_usd or 0.0,
                "months": assumed.months,
            },
        ),
        missing=missing,
        unpriced=unpriced,
    )
