"""The library's logger: silent until the application says where logs go."""

import logging

log = logging.getLogger("holdfast")
log.addHandler(logging.NullHandler())
