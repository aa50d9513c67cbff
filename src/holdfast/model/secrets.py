"""What looks secret and nobody declared: what a store does with it, and what is told of it."""

import msgspec


class SecretRules(msgspec.Struct, frozen=True, kw_only=True):
    """Redact what looks secret, or with `strict` refuse it; `allow` names places to leave alone.

    A place is written as errors and logs name it, such as `state["fixtures"]` or `the answer of
    chat`; whatever lies below it is allowed too.
    """

    strict: bool = False
    allow: tuple[str, ...] = ()

    def allows(self, place: str) -> bool:
        """Whether a place is named, or lies below one that is."""
        return any(
            place.startswith(name) and place[len(name) : len(name) + 1] in {"", "[", "."}
            for name in self.allow
        )


class Redacted(msgspec.Struct, frozen=True, array_like=True, tag=45):
    """What looked like a secret of a `kind` at a `place` was left out of what was stored."""

    at: float
    place: str
    kind: str


class Exposed(msgspec.Struct, frozen=True, array_like=True, tag=64):
    """Secrets, by reference, whose values the run stored in clear before they were declared."""

    at: float
    references: list[str]


class Incomplete(msgspec.Struct, frozen=True, array_like=True, tag=46):
    """Values came back without what was redacted in them."""

    at: float
    places: list[str]
