"""What has to do with keys: missing, wrong, unusable, or not to be destroyed yet."""

from holdfast.errors.storage import StoreError
from holdfast.errors.usage import UsageError


class KeyUnusable(UsageError):
    """The place that was named for a key does not give one, or none was named."""

    remedy = "`holdfast keys init --help` shows what a key can be and how one is made"

    def __init__(self, source: str, why: str) -> None:
        super().__init__(source, why)
        self.source, self.why = source, why

    def __str__(self) -> str:
        where = f"no key can be had from {self.source}: " if self.source else ""
        return f"{where}{self.why}; {self.remedy}"


class KeyNeeded(StoreError):
    """The store is encrypted, and no key was given."""

    remedy = 'give its key with `--key`, `$HOLDFAST_KEY` or `holdfast.open(key="…")`'

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(path, kind)
        self.path, self.kind = path, kind

    def __str__(self) -> str:
        asked = f"encrypted (its key is kept by: {self.kind})"
        return f"the store at {self.path} is {asked} and no key was given; {self.remedy}"


class WrongKey(StoreError):
    """The key that was given is not the one this was encrypted with; nothing was changed."""

    remedy = (
        "give the key it was encrypted with; after a rotation that was cut off that is the old "
        "one; without it nothing can be read, by anybody"
    )

    def __init__(self, what: str, kind: str, kept: str = "") -> None:
        super().__init__(what, kind, kept)
        self.what, self.kind, self.kept = what, kind, kept

    def __str__(self) -> str:
        kept = f" (its key is kept by: {self.kept})" if self.kept else ""
        return f"the key from {self.kind} does not open {self.what}{kept}; {self.remedy}"


class NotEncrypted(StoreError):
    """A key was given, and the store is not encrypted; it is not trusted."""

    remedy = "`holdfast keys init` encrypts it in place; or open it without a key"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"a key was given, but the store at {self.path} is not encrypted; {self.remedy}"


class RunShared(UsageError):
    """Forks read the run's rows as their own history, so it cannot be erased alone."""

    remedy = "erase the forks first, or all of them at once with `--with-forks`"

    def __init__(self, run: str, forks: tuple[str, ...]) -> None:
        super().__init__(run, forks)
        self.run, self.forks = run, forks

    def __str__(self) -> str:
        return f"run {self.run} is the history of {', '.join(self.forks)}; {self.remedy}"
