"""A root key that never leaves its key service: the transit engine of Vault or OpenBao.

The service wraps and unwraps; what is wrapped is bound to its context as associated data.
"""

import base64
import binascii
import http.client
import json
import re
import urllib.error
import urllib.request
from typing import Any

from holdfast.errors import Damaged, KeyUnusable, WrongKey

ANSWER_BYTES_MAX = 64 * 1024
WAIT_S_MAX = 10.0

_PLACE = re.compile(r"(https?://[^/\s]+)/((?:[\w.-]+/)*[\w.-]+)/([\w.-]+)")
_LOOPBACK = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")


class VaultKey:
    """A named key of a transit engine, as `https://HOST/MOUNT/NAME`."""

    kind = "vault"

    def __init__(self, place: str, token: str) -> None:
        found = _PLACE.fullmatch(place)
        if found is None:
            raise KeyUnusable(f"vault {place}", "it is not written as https://HOST/MOUNT/NAME")
        self._host, self._mount, self._name = found.groups()
        if not place.startswith("https:") and not _LOOPBACK.fullmatch(self._host):
            raise KeyUnusable(f"vault {place}", "keys travel only over https")
        if not token:
            raise KeyUnusable(f"vault {place}", "there is no token in $VAULT_TOKEN")
        self._token = token

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """`key` as the service wraps it, bound to `context`."""
        given = {"plaintext": _text(key), "associated_data": _text(context)}
        return str(self._ask("encrypt", given, "ciphertext")).encode()

    def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
        """What `wrap` was given; `WrongKey` if the service says that it is not its own."""
        try:
            given = {"ciphertext": wrapped.decode("ascii"), "associated_data": _text(context)}
            return base64.b64decode(self._ask("decrypt", given, "plaintext"), validate=True)
        except UnicodeDecodeError:
            raise WrongKey(what, self.kind) from None
        except binascii.Error as error:
            raise Damaged(f"the key of {what}", f"the service gave no key ({error})") from error
        except _Refused:
            raise WrongKey(what, self.kind) from None

    def _ask(self, act: str, given: dict[str, str], wanted: str) -> Any:  # noqa: ANN401 JSON
        address = f"{self._host}/v1/{self._mount}/{act}/{self._name}"
        headers = {"X-Vault-Token": self._token, "Content-Type": "application/json"}
        asked = urllib.request.Request(address, json.dumps(given).encode(), headers)  # noqa: S310 checked above
        try:
            with urllib.request.urlopen(asked, timeout=WAIT_S_MAX) as answer:  # noqa: S310 as above
                return json.loads(answer.read(ANSWER_BYTES_MAX))["data"][wanted]
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.BAD_REQUEST:
                raise _Refused from error
            raise KeyUnusable(f"vault {self._host}", f"it answered {error.code}") from error
        except (OSError, http.client.HTTPException) as error:
            raise KeyUnusable(f"vault {self._host}", f"it cannot be reached ({error})") from error
        except (ValueError, KeyError, TypeError) as error:
            raise KeyUnusable(f"vault {self._host}", "its answer cannot be read") from error


class _Refused(Exception):
    """The service does not know what it was asked to open."""


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
