"""The state of a run that has ended here: it can be read, and refuses changes."""

from threading import RLock

from holdfast import errors


class Ended:
    """Takes the place of the lock of a state: whoever means to change it acquires that first.

    So no change has to ask whether the run goes on. Readers hold the lock by `with`, as ever.
    """

    def __init__(self, lock: RLock, run: str) -> None:
        self._lock, self._run = lock, run

    def acquire(self) -> bool:
        """Refuse: nothing would save the change."""
        msg = (
            f"run {self._run} has ended here, and nothing saves its state any more; "
            "change a copy: `holdfast.plain(x)`"
        )
        raise errors.UsageError(msg)

    def release(self) -> None:
        """A change that had begun before the run ended is over."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
