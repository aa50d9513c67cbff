"""Root keys that are 32 bytes at hand: in a file, in a variable, printed by a command."""

import base64
import binascii
import os
import re
import secrets
import shlex
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import KeyUnusable
from holdfast.store.backends.fs import Fs
from holdfast.store.seal import provider
from holdfast.store.seal.aead import KEY_BYTES

TEXT_BYTES_MAX = 1024
COMMAND_S_MAX = 30.0

_HEX = re.compile("[0-9a-fA-F]{64}")


class RootKey:
    """A root key that is at hand."""

    def __init__(self, root: bytes, kind: str) -> None:
        self._root, self.kind = root, kind

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """`key` as only this root key gives it back, bound to `context`."""
        return provider.wrap(self._root, key, context)

    def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
        """What `wrap` was given; `WrongKey` if another root key wrapped it."""
        return provider.unwrap(self._root, wrapped, context, what=what, kind=self.kind)


def from_file(path: Path) -> RootKey:
    """The key in a file that nobody else may read."""
    source = f"file {path}"
    try:
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            text = stream.read(TEXT_BYTES_MAX + 1)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        why += f"; a store that is there needs the key it was made with, `holdfast keys new {path}`"
        raise KeyUnusable(source, f"{why} makes one for a new store") from error
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise KeyUnusable(source, f"other users may read or change it; `chmod 600 {path}`")
    return RootKey(parse(text, source), "file")


def make_file(path: Path, fs: Fs) -> None:
    """Make a key file, mode 0600, durable; one that is there is never overwritten."""
    try:
        if path.exists():
            raise KeyUnusable(f"file {path}", "it is there already and is not overwritten")
        fs.write_new(path, base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        fs.flush_directory(path.parent)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise KeyUnusable(f"file {path}", f"it cannot be made ({why})") from error


def from_variable(name: str, environ: Mapping[str, str]) -> RootKey:
    """The key in a variable of the environment."""
    source = f"variable {name}"
    if not environ.get(name):
        raise KeyUnusable(source, "it is not set")
    return RootKey(parse(environ[name].encode(), source), "env")


def from_command(command: str) -> RootKey:
    """The key that a command prints; what it says on stderr goes through."""
    source = "the command"  # Not shown whole: a word of it may be a secret.
    try:
        words = shlex.split(command)
        source = f"command {words[0]}"
        done = subprocess.run(  # noqa: S603 the operator named it
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=COMMAND_S_MAX,
            check=False,
        )
    except (ValueError, IndexError, OSError) as error:
        raise KeyUnusable(source, f"it cannot be run ({error})") from error
    except subprocess.TimeoutExpired:
        raise KeyUnusable(source, f"it took more than {COMMAND_S_MAX:.0f} s") from None
    if done.returncode:
        raise KeyUnusable(source, f"it ended with status {done.returncode}")
    return RootKey(parse(done.stdout, source), "cmd")


def parse(text: bytes, source: str) -> bytes:
    """A key of 32 bytes as people write it: 64 hex digits, or base64."""
    try:
        word = text.decode("ascii").strip()
        if _HEX.fullmatch(word):
            return bytes.fromhex(word)
        key = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except (UnicodeDecodeError, binascii.Error):
        key = b""
    if len(key) != KEY_BYTES or len(text) > TEXT_BYTES_MAX:
        raise KeyUnusable(source, "it does not hold 32 bytes as 64 hex digits or as base64")
    return key
