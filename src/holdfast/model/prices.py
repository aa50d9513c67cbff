"""What tokens of a model cost, as a user says it: dollars for a million that go in, and out."""

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from holdfast.model.limits import dollars
from holdfast.model.parts import Usage

MILLION = 1e6


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars for a million tokens."""

    usd_in: float
    usd_out: float

    def of(self, usage: Usage) -> float | None:
        """What a usage costs; None where nothing was counted."""
        if usage.tokens_in is usage.tokens_out is None:
            return None
        into, out = usage.tokens_in or 0, usage.tokens_out or 0
        return (into * self.usd_in + out * self.usd_out) / MILLION


Prices = Mapping[str, Price]
NO_PRICES: Prices = MappingProxyType({})


def prices_of(text: str) -> dict[str, Price]:
    """Read prices as configuration says them: `home-made-7: 0.50 / 1.50; local: 0`."""
    found = {}
    for part in filter(str.strip, text.split(";")):
        model, _, said = part.rpartition(":")  # A model's name may hold a colon.
        sums = re.split(r"\s*/\s*", said.strip())
        if not model.strip() or len(sums) > 2:  # noqa: PLR2004 in and out
            msg = (
                f"{part.strip()!r} is no price; a model's is dollars for a million tokens that go "
                "in / out, such as 0.50 / 1.50"
            )
            raise ValueError(msg)
        usd_in, *rest = map(dollars, sums)
        found[model.strip()] = Price(usd_in=usd_in, usd_out=rest[0] if rest else usd_in)
    return found
