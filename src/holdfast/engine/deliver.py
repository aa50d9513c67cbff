"""One message to people, by webhook or by command; loads the network only when it is used.

A webhook is signed as standardwebhooks.com says: `webhook-id`, `webhook-timestamp`, and in
`webhook-signature` the HMAC-SHA256 of the two and the body.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
import subprocess
import urllib.parse
from collections.abc import Sequence

from holdfast.version import VERSION

WEBHOOK_S_MAX = 5.0
COMMAND_S_MAX = 30.0
WHY_CHARS_MAX = 300
_PREFIX = "whsec_"


class Undelivered(Exception):
    """A message did not arrive, or nobody can say that it did; it may be tried again."""


def post(url: str, body: bytes, *, id_: str, at: int, key: str | None) -> None:
    """Send `body` to a webhook; anything but a status from 200 to 299 is no delivery."""
    headers = {
        "content-type": "application/json",
        "user-agent": f"holdfast/{VERSION}",
        "webhook-id": id_,
        "webhook-timestamp": str(at),
    }
    if key is not None:
        headers["webhook-signature"] = sign(body, id_=id_, at=at, key=key)
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    link = kind(parts.hostname or "", parts.port, timeout=WEBHOOK_S_MAX)
    path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    try:
        link.request("POST", path, body, headers)
        status = link.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise Undelivered(f"{type(error).__name__}: {error}"[:WHY_CHARS_MAX]) from error
    finally:
        link.close()
    if not 200 <= status <= 299:  # noqa: PLR2004 what HTTP calls success
        raise Undelivered(f"it answered with status {status}")


def sign(body: bytes, *, id_: str, at: int, key: str) -> str:
    """The signature of a message; a key that begins with `whsec_` is base64 after that."""
    secret = key.encode()
    if key.startswith(_PREFIX):
        try:
            secret = base64.b64decode(key.removeprefix(_PREFIX), validate=True)
        except binascii.Error as error:
            raise Undelivered("the key begins with whsec_ and is no base64 after that") from error
    signed = f"{id_}.{at}.".encode() + body
    made = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def call(command: Sequence[str], body: bytes) -> None:
    """Run a command with `body` on its standard input; anything but status 0 is no delivery."""
    try:
        done = subprocess.run(  # noqa: S603 the operator's own command, without a shell
            command, input=body, capture_output=True, timeout=COMMAND_S_MAX, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Undelivered(f"{type(error).__name__}: {error}"[:WHY_CHARS_MAX]) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Undelivered(f"it ended with status {done.returncode}: {said}"[:WHY_CHARS_MAX])
