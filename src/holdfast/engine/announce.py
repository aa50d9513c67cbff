"""One message to people through Apprise: chat, mail, push; loaded only where it is asked for."""

import io
import logging
from collections.abc import Iterable

import apprise

from holdfast.engine.deliver import WHY_CHARS_MAX, Undelivered


def announce(addresses: Iterable[str], title: str, text: str) -> None:
    """Send a message to every address; unless all of them took it, it is no delivery.

    What an address says of itself is not repeated: there may be a password in it.
    """
    sender, said = apprise.Apprise(), io.StringIO()
    listening = apprise.LogCapture(level=logging.WARNING, fmt="%(message)s", delete=False)  # type: ignore[no-untyped-call]  # Apprise's own
    for nth, address in enumerate(addresses, start=1):
        if not sender.add(address):
            raise Undelivered(f"Apprise knows no service for address {nth} (see its list of URLs)")
    with listening as logged:
        is_sent = sender.notify(body=text, title=title)
        said.write(logged.getvalue())
    if not is_sent:
        last = said.getvalue().strip().rpartition("\n")[2]
        raise Undelivered(f"Apprise could not send it: {last}"[:WHY_CHARS_MAX])
