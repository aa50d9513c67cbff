"""What a store does with values that look secret and that nobody declared."""

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
