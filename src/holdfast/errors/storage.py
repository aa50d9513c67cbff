"""What the store could not do."""

from holdfast.errors.base import HoldfastError, shown_at


class StoreError(HoldfastError):
    """The store could not do its part."""


class StoreNotFound(StoreError):
    """There is no store at that path."""

    remedy = "check the path, or `$HOLDFAST_STORE`; `holdfast run` and `holdfast.open()` make one"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"there is no store at {self.path}; {self.remedy}"


class StoreBusy(StoreError):
    """Another process held the store's lock for too long."""

    remedy = "look for a stopped process that has the store open, and continue or end it"

    def __init__(self, path: str, waited_s: float) -> None:
        super().__init__(path, waited_s)
        self.path, self.waited_s = path, waited_s

    def __str__(self) -> str:
        return f"the store at {self.path} was locked for {self.waited_s:.0f} s; {self.remedy}"


class StoreInUse(StoreError):
    """Keys change while nobody else has the store open; here somebody has."""

    remedy = "end the processes that have the store open, then try again; nothing was changed"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"the store at {self.path} {self.why}; {self.remedy}"


class StoreClosed(StoreError):
    """The handle was closed, or belongs to the process this one was forked from."""

    remedy = "open the store again in this process with `holdfast.open(path)`"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"the store at {self.path} {self.why}; {self.remedy}"


class StoreUnwritable(StoreError):
    """The disk is full, read-only or failing; what was acknowledged is kept."""

    remedy = (
        "free space, let this user write to the directory (or open a copy of it), or repair the "
        "disk; then do it again: a run that is restarted continues where it was"
    )

    def __init__(self, path: str, why: str, instead: str = "") -> None:
        super().__init__(path, why, instead)
        self.path, self.why, self.instead = path, why, instead

    def __str__(self) -> str:
        remedy = self.instead or self.remedy
        return f"the store at {self.path} cannot be written: {self.why}; {remedy}"


class NewerFormat(StoreError):
    """The store was written by a newer Holdfast."""

    remedy = "upgrade holdfast here; nothing was changed"

    def __init__(self, path: str, found: str, known: str) -> None:
        super().__init__(path, found, known)
        self.path, self.found, self.known = path, found, known

    def __str__(self) -> str:
        known = f"this Holdfast knows {self.known}; {self.remedy}"
        return f"the store at {self.path} has format {self.found}, {known}"


class StoreChanged(StoreError):
    """Somebody wrote to the store after a repair was planned; nothing was done."""

    remedy = "end the processes that use the store, plan again, look at the plan, then apply it"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"the store at {self.path} is not what the repair was planned for; {self.remedy}"


class Damaged(StoreError):
    """Stored bytes are not what was written; the damaged part is named and never used.

    `good` is the newest point of the same run that restores, where one was looked for.
    """

    remedy = "run `holdfast verify`; `holdfast repair` shows what can be kept"

    def __init__(self, where: str, why: str, good: str | None = None) -> None:
        super().__init__(where, why, good)
        self.where, self.why, self.good = where, why, good

    def __str__(self) -> str:
        text = f"{self.where} is damaged: {self.why}; {self.remedy}"
        if self.good is None:
            return text
        return f"{text}; the newest good point of the run is {self.good}: {shown_at(self.good)}"


class ExportDamaged(Damaged):
    """A file that holds an exported run is not what was written; nothing of it was imported."""

    remedy = "nothing was imported; copy the file again, or `holdfast export` the run again"
