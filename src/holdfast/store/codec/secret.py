"""A secret: a text that is stored as a reference to the place where its value is kept.

It is a `str`, since that is what SDKs take: they encode it, join it and put it into an f-string
(`f"Bearer {key}"`), and get the value. `repr`, `str`, `%s`, pickle and copy, which is what logs and
tools use, get the reference.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from holdfast.errors import SecretMissing, UsageError
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import shlex
    import subprocess
else:
    shlex, subprocess = OnDemand("shlex"), OnDemand("subprocess")

BYTES_MAX: Final = 64 * 1024
COMMAND_S_MAX: Final = 30.0
REFERENCE_CHARS_MAX: Final = 1000
_SHOWN_CHARS_MAX: Final = 80
_ODD: Final = re.compile(r"[^\w./:@=+-]+")


class Secret(str):
    """A secret value, and the reference it is stored as."""

    __slots__ = ("expires", "reference")

    reference: str
    expires: float | None

    def __new__(cls, value: str, reference: str, expires: float | None = None) -> Self:
        """A secret with its value; `holdfast.secret` finds the value itself."""
        made = super().__new__(cls, value)
        made.reference, made.expires = reference, expires
        return made

    def reveal(self) -> str:
        """The value as plain text, for code that wants exactly `str`."""
        return str.__str__(self)

    def __str__(self) -> str:
        return shown(self.reference)

    def __repr__(self) -> str:
        return shown(self.reference)

    def __format__(self, spec: str) -> str:
        return format(self.reveal(), spec)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce_ex__(self, _protocol: object) -> tuple[object, ...]:
        msg = f"{shown(self.reference)} is not pickled; pass its reference and declare it there"
        raise UsageError(msg)


def shown(reference: str) -> str:
    """A reference as people see it where its value would stand."""
    return f"<secret {_ODD.sub('_', reference)[:_SHOWN_CHARS_MAX]}>"


def split(reference: str) -> tuple[str, str]:
    """Kind and name of a reference; `UsageError` for what is none."""
    kind, _, name = str(reference).partition(":")
    is_known = kind in _FETCH or kind == "name"
    if not is_known or not name.strip() or len(reference) > REFERENCE_CHARS_MAX:
        msg = (
            f"a secret is named as env:NAME, file:PATH, cmd:COMMAND or name:ANY, not {reference!r}"
        )
        raise UsageError(msg)
    return kind, name


def fetch(reference: str, environment: Mapping[str, str]) -> str:
    """The value from where the reference says; `SecretMissing` if there is none."""
    kind, name = split(reference)
    if kind not in _FETCH:
        raise SecretMissing(reference, "its value is given by the program, with value=")
    value = _FETCH[kind](reference, name, environment)
    if not value:
        raise SecretMissing(reference, "it is empty")
    if len(value) > BYTES_MAX:
        raise SecretMissing(reference, f"it is longer than {BYTES_MAX:,} characters")
    return value


def _from_environment(reference: str, name: str, environment: Mapping[str, str]) -> str:
    if name not in environment:
        raise SecretMissing(reference, f"variable {name} is not set")
    return environment[name]


def _from_file(reference: str, name: str, _environment: Mapping[str, str]) -> str:
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        return data.decode().rstrip("\r\n")
    except OSError as error:
        raise SecretMissing(reference, f"it cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SecretMissing(reference, "it is no text") from None


def _from_command(reference: str, name: str, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            shlex.split(name),
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_S_MAX,
            env=dict(environment),
        )
        return done.stdout[: BYTES_MAX + 1].decode().rstrip("\r\n")
    except subprocess.CalledProcessError as error:
        raise SecretMissing(reference, f"it ended with status {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise SecretMissing(reference, f"it took longer than {COMMAND_S_MAX:.0f} s") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its words cannot be read"
        raise SecretMissing(reference, f"it cannot be run ({why})") from None


_FETCH: Final[Mapping[str, Callable[[str, str, Mapping[str, str]], str]]] = {
    "env": _from_environment,
    "file": _from_file,
    "cmd": _from_command,
}
