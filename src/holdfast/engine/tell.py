"""People are told, beside a watch, of what waits and nobody told them: again until it arrives."""

import threading
from collections.abc import Callable, Iterable

from holdfast.clock import Clock
from holdfast.engine.item import Item
from holdfast.engine.logs import log
from holdfast.engine.notify import Notifier
from holdfast.errors import HoldfastError

EVERY_S, EVERY_S_MAX = 10.0, 600.0
"""How often the inbox is looked at; ever more rarely while messages do not arrive."""


class Teller:
    """Looks at the inbox now and then, in a thread of its own; what fails is logged."""

    def __init__(
        self, notifier: Notifier, items: Callable[[], Iterable[Item]], clock: Clock
    ) -> None:
        self._notifier, self._items, self._clock = notifier, items, clock
        self._wait_s, self._due = EVERY_S, 0.0
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Begin to tell people, if it is time and that is not under way."""
        is_busy = self._thread is not None and self._thread.is_alive()
        if not is_busy and self._clock.monotonic() >= self._due:
            self._thread = threading.Thread(target=self.tell, name="holdfast-tell", daemon=True)
            self._thread.start()

    def tell(self) -> None:
        """Tell people of every open item that they were not told of yet."""
        is_sound = True
        try:
            for told in self._notifier.tell(self._items()):
                if told.why is not None:
                    is_sound = False
                    log.warning("nobody was told by %s of %s: %s", told.how, told.item.id, told.why)
        except HoldfastError as error:
            is_sound = False
            log.warning("nobody was told of what waits: %s", error)
        self._wait_s = EVERY_S if is_sound else min(EVERY_S_MAX, 2 * self._wait_s)
        self._due = self._clock.monotonic() + self._wait_s

    def join(self) -> None:
        """Wait for what is under way."""
        if self._thread is not None:
            self._thread.join()
