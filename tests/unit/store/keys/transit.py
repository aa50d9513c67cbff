"""A small key service over HTTP, with the two calls of a transit engine."""

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TOKEN = "s.a-token"  # noqa: S105 of a service that lives for one test


class _Handler(BaseHTTPRequestHandler):
    """Encrypts and decrypts with one AES key for each name, as the transit engine does."""

    keys: dict[str, AESGCM]
    count = 0

    def do_POST(self) -> None:
        """One call."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, version, mount, act, name = self.path.split("/")
        if self.headers["X-Vault-Token"] != TOKEN:
            return self._answer(403, {"errors": ["permission denied"]})
        if (version, mount) != ("v1", "transit") or name not in self.keys:
            return self._answer(404, {"errors": []})
        bound = base64.b64decode(asked["associated_data"])
        try:
            given = self._act(act, self.keys[name], asked, bound)
        except (InvalidTag, ValueError):
            return self._answer(400, {"errors": ["cipher: message authentication failed"]})
        return self._answer(200, {"data": given})

    def _act(self, act: str, key: AESGCM, asked: dict[str, str], bound: bytes) -> dict[str, str]:
        if act == "encrypt":
            _Handler.count += 1
            nonce = _Handler.count.to_bytes(12, "big")
            sealed = key.encrypt(nonce, base64.b64decode(asked["plaintext"]), bound)
            return {"ciphertext": "vault:v1:" + base64.b64encode(nonce + sealed).decode()}
        sealed = base64.b64decode(asked["ciphertext"].removeprefix("vault:v1:"), validate=True)
        plain = key.decrypt(sealed[:12], sealed[12:], bound)
        return {"plaintext": base64.b64encode(plain).decode()}

    def _answer(self, status: int, document: dict[str, object]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its own name
        """Silent."""


@contextlib.contextmanager
def service(*names: str) -> Iterator[str]:
    """A service with keys of these names; its address."""
    keys = {name: AESGCM(AESGCM.generate_key(256)) for name in names}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"keys": keys}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/transit"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
