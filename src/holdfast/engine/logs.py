"""The library's logger: silent until the application says where logs go; it tells no secrets."""

import logging

from holdfast.store.codec.veil import redact

_formatter = logging.Formatter()


def veil(record: logging.LogRecord) -> bool:
    """Replace the secrets in a log record; says that it may be logged."""
    told = record.getMessage()
    shown = redact(told)
    if shown is not told:
        record.msg, record.args = shown, ()
    if record.exc_info:
        record.exc_text = redact(_formatter.formatException(record.exc_info))
        record.exc_info = None  # its values would be shown by whoever formats it anew
    return True


log = logging.getLogger("holdfast")
log.addHandler(logging.NullHandler())
log.addFilter(veil)
