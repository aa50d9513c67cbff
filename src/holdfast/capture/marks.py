"""What changed in a container since the last save: a list's window, a dict's keys."""


class Window:
    """The middle of a list that is no longer what was saved.

    Of the saved items `trim` were dropped from the front, the next `lo` and the last `hi` still
    stand; what is between them is written by its final value. Never a log of operations: a log
    that holds live objects applies changes twice.
    """

    __slots__ = ("hi", "length", "length_saved", "lo", "trim")

    def __init__(self, length: int) -> None:
        self.length = self.length_saved = self.lo = self.hi = length
        self.trim = 0

    def splice(self, start: int, stop: int, count: int) -> None:
        """Note that items `start:stop` are replaced by `count` others."""
        if start == 0 and count == 0 and stop <= self.lo:
            self.trim += stop
            self.lo -= stop
        elif start < self.lo:
            self.lo = start
        self.hi = min(self.hi, self.length - stop)
        self.length += count - (stop - start)

    def cut(self, length: int) -> tuple[int, int, int]:
        """Give `trim`, `lo`, `hi` for a list that is now `length` long.

        Another length than was noted means that something changed the list without its methods:
        then nothing is taken for granted and the whole list is written.
        """
        if length != self.length:
            return 0, 0, 0
        hi = min(self.hi, length - self.lo, self.length_saved - self.trim - self.lo)
        return self.trim, self.lo, hi

    def is_clean(self, length: int) -> bool:
        """Say whether the list is, item for item, the saved one."""
        return self.trim == 0 and self.lo == length == self.length_saved == self.length


class Changes:
    """The keys of a dict that are no longer what was saved.

    `gone` are saved keys that were deleted, also if they came back since. `put` are the keys to
    set after that, in order; its value says whether the key stands at the end (it was added since
    the save) or in its saved place (it was overwritten). So key order comes back exactly.
    """

    __slots__ = ("gone", "length", "put")

    def __init__(self, length: int) -> None:
        self.gone: dict[object, None] = {}
        self.put: dict[object, bool] = {}
        self.length = length

    def add(self, key: object) -> None:
        """Note that `key`, which was not there, is set."""
        self.put[key] = True
        self.length += 1

    def overwrite(self, key: object) -> None:
        """Note that `key`, which was there, is set."""
        if key not in self.put:
            self.put[key] = False

    def delete(self, key: object) -> None:
        """Note that `key`, which was there, is deleted."""
        if not self.put.pop(key, False):
            self.gone[key] = None
        self.length -= 1

    def is_clean(self) -> bool:
        """Say whether the dict is, key for key, the saved one."""
        return not self.gone and not self.put
