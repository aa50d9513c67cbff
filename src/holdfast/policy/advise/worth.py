"""Whether saving pays: benefit over cost, and what is left of it, with every input listed."""

import math
from collections.abc import Mapping

import msgspec

MONTH_H = 720.0


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What saving brings and costs over the same time; `inputs` are what both were made of."""

    benefit_usd: float
    cost_usd: float
    inputs: Mapping[str, float]

    @property
    def benefit_cost_ratio(self) -> float:
        """Dollars that come back for each dollar spent; infinite where it costs nothing."""
        if self.cost_usd > 0:
            return self.benefit_usd / self.cost_usd
        return math.inf if self.benefit_usd > 0 else 0.0

    @property
    def net_roi(self) -> float:
        """The same without the dollar that was spent: (benefit - cost) / cost."""
        return self.benefit_cost_ratio - 1 if self.cost_usd > 0 else self.benefit_cost_ratio


def outages(
    *, hours_before: float, hours_after: float, usd_per_hour: float, costs: Mapping[str, float]
) -> Worth:
    """What fewer hours of outage bring, against what they cost; all over the same time."""
    return Worth(
        benefit_usd=(hours_before - hours_after) * usd_per_hour,
        cost_usd=math.fsum(costs.values()),
        inputs={
            "outage hours before": hours_before,
            "outage hours after": hours_after,
            "USD per outage hour": usd_per_hour,
            **costs,
        },
    )
