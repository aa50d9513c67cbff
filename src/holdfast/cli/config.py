"""Settings and where each came from: flag, variable, file, default; the first that says it wins.

The order: flag > `HOLDFAST_…` variable > `holdfast.toml` > `[tool.holdfast]` in pyproject.toml
(both searched upwards from the working directory) > the user's `holdfast/config.toml` > default.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import BadConfig, UsageError
from holdfast.model.cadence import DURABILITIES, pace_of
from holdfast.model.prices import Price, prices_of
from holdfast.policy.retention import Retention

FORMATS = ("table", "json", "jsonl")
SECRETS = ("redact", "strict")
FILE = "holdfast.toml"
PREFIX = "HOLDFAST_"
RULES = "retention."
_RULES = Retention.__struct_fields__
SWITCHES = {
    *("HOLDFAST_TRACEBACK", "HOLDFAST_FAILPOINT"),
    *("HOLDFAST_PASSPHRASE", "HOLDFAST_NEW_PASSPHRASE"),
}
"""Variables that are no settings."""
FILE_BYTES_MAX = 1024 * 1024

_SECRET = re.compile(r"secret|token|pass|credential|api_?key|private|auth", re.IGNORECASE)
_KEY = re.compile(r"(file|env|vault):|passphrase$")
"""Forms of a key's place that say nothing of the key."""
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One value and what said so."""

    key: str
    value: Any
    origin: str

    @property
    def shown(self) -> object:
        """The value, unless its name or its shape says that it is not for other eyes."""
        return self.value if self.key == "secrets" else hide(self.key, self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Every setting, and variables that look like settings but are none."""

    settings: Mapping[str, Setting]
    unknown: Sequence[Setting] = ()

    @property
    def store(self) -> Path:
        """The directory of the store."""
        return Path(self.settings["store"].value)

    @property
    def key(self) -> str:
        """Where the store's key is found; empty: the store is not encrypted."""
        return str(self.settings["key"].value)

    @property
    def app(self) -> tuple[str, ...]:
        """The modules in which agents are looked up."""
        return tuple(self.settings["app"].value)

    @property
    def output(self) -> str:
        """How results are printed: table, json or jsonl."""
        return str(self.settings["output"].value)

    @property
    def retention(self) -> Retention | None:
        """By which rules garbage is collected; None: by none."""
        rules = {name: self.settings[f"{RULES}{name}"].value for name in _RULES}
        return Retention(**rules) if any(value is not None for value in rules.values()) else None

    @property
    def prices(self) -> dict[str, Price]:
        """What tokens cost where the answer recorded no price, by model."""
        return prices_of(self.settings["prices"].value)

    @property
    def saving(self) -> dict[str, Any]:
        """How a store is opened to carry out runs: secrets, when to save, what to keep."""
        keys = ("secrets", "checkpoint", "snapshot", "durability")
        said = {key: str(self.settings[key].value) for key in keys}
        return {**said, "retention": self.retention}


def load(flags: Mapping[str, Any], environ: Mapping[str, str], cwd: Path) -> Config:
    """The settings in force; `BadConfig` names the file and key that cannot be read."""
    found: dict[str, Setting] = {}
    for key, value, origin in _said(flags, environ, cwd):
        found.setdefault(key, Setting(key=key, value=value, origin=origin))
    names = {_variable(key) for key in DEFAULTS} | SWITCHES
    unknown = [
        Setting(key=name, value=value, origin=f"${name}")
        for name, value in sorted(environ.items())
        if name.startswith(PREFIX) and name not in names
    ]
    return Config(settings={key: found[key] for key in DEFAULTS}, unknown=unknown)


def hide(key: str, value: object) -> object:
    """The value as it may be printed."""
    is_odd_key = key == "key" and value and not _KEY.match(str(value))
    if _SECRET.search(key) or is_odd_key:
        return "(hidden)"
    return _USERINFO.sub("(hidden)", value) if isinstance(value, str) else value


def _said(
    flags: Mapping[str, Any], environ: Mapping[str, str], cwd: Path
) -> Iterator[tuple[str, Any, str]]:
    """Everything anybody says, the strongest first."""
    for key, value in flags.items():
        if value is not None:
            option = f"--{key.removeprefix(RULES).replace('_', '-')}"
            yield key, _check(key, value, option), option
    for key in DEFAULTS:
        name = _variable(key)
        if text := environ.get(name):
            yield key, _check(key, text, f"${name}"), f"${name}"
    for file, table in _files(environ, cwd):
        for key, value in _flat(file, table):
            if key not in DEFAULTS:
                known = ", ".join(DEFAULTS)
                raise BadConfig(f"{file}, {key}", f"there is no such setting (known: {known})")
            checked = _check(key, value, f"{file}, {key}")
            if key == "store":
                checked = str(file.parent / Path(checked).expanduser())
            yield key, checked, str(file)
    for key, value in DEFAULTS.items():
        yield key, value, "default"


def _variable(key: str) -> str:
    return PREFIX + key.upper().replace(".", "_")


def _flat(file: Path, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys and values; a table of names is one text, a rule has its table's name before its own."""
    for key, value in table.items():
        if key in LISTED and isinstance(value, dict):
            yield key, "; ".join(f"{name}: {each}" for name, each in value.items())
        elif key != RULES[:-1]:
            yield key, value
        elif isinstance(value, dict):
            yield from ((RULES + name, each) for name, each in value.items())
        else:
            raise BadConfig(f"{file}, {key}", "it is a table: [retention], then last = 20")


def _files(environ: Mapping[str, str], cwd: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The tables of the files that count, the strongest first."""
    places = [cwd, *cwd.parents]
    own = next((place / FILE for place in places if _is_there(place / FILE)), None)
    if own is not None:
        yield own, _read(own)
    for place in places:
        shared = place / "pyproject.toml"
        tools = _read(shared).get("tool", {}) if _is_there(shared) else {}
        if isinstance(tools, dict) and "holdfast" in tools:
            yield shared, _table(shared, tools["holdfast"])
            break
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~"), ".config"))
    users = Path(base).expanduser() / "holdfast" / "config.toml"
    if _is_there(users):
        yield users, _read(users)


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError as error:
        why = f"it cannot be looked for ({error.strerror}): is $HOME or this directory another's?"
        raise BadConfig(str(file), why) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise BadConfig(str(file), f"it has more than {FILE_BYTES_MAX:,} bytes")
        return tomllib.loads(data.decode("utf-8-sig"))  # Editors on Windows begin with a mark.
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(str(file), f"it cannot be read as TOML ({error})") from error


def _table(file: Path, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadConfig(f"{file}, tool.holdfast", "it is not a table")
    return value


LISTED = ("snapshot", "prices")
"""Settings that a file may say as a table: a cadence for each section, a price for each model."""
JOINED: Mapping[str, Callable[[Iterable[str]], str]] = {
    "notify_command": shlex.join,
    "notify_apprise": " ".join,
}
"""Settings that take a list too, and how it becomes a text."""


def _check(key: str, value: object, where: str) -> Any:  # noqa: ANN401 a setting of any type
    if key == "app":
        return _modules(value, where)
    if key.startswith(RULES):
        return _rule(key.removeprefix(RULES), value, where)
    if key in JOINED and isinstance(value, list) and value:
        return JOINED[key](map(str, value))
    if not isinstance(value, str) or not value:
        raise BadConfig(where, "it takes a text that is not empty")
    known = {"output": FORMATS, "secrets": SECRETS, "durability": DURABILITIES}.get(key)
    if known is not None and value not in known:
        raise BadConfig(where, f"{value!r} is not one of {', '.join(known)}")
    if key in ("checkpoint", "snapshot"):
        _pace(key, value, where)
    if key == "prices":
        _prices(value, where)
    if key == "notify_key" and not value.startswith("env:"):
        raise BadConfig(where, "it names the variable that holds the key, as env:NAME")
    return value


def _rule(name: str, value: object, where: str) -> Any:  # noqa: ANN401 as the rule has it
    """A rule of retention; variables give all of them as text."""
    asked = int(value) if isinstance(value, str) and value.isdecimal() else value
    try:
        Retention(**{name: asked})  # type: ignore[arg-type]  # a wrong kind is what it is asked about
    except (ValueError, TypeError) as error:
        raise BadConfig(where, str(error).removeprefix("retention: ")) from None
    return asked


def _pace(key: str, text: str, where: str) -> None:
    try:
        pace_of(**{key: text})
    except UsageError as error:
        raise BadConfig(where, str(error).removeprefix(f"{key}=: ")) from None


def _prices(text: str, where: str) -> None:
    try:
        prices_of(text)
    except ValueError as error:
        raise BadConfig(where, str(error)) from None


def _modules(value: object, where: str) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise BadConfig(where, "it takes the name of a module, or a list of names")
    found = tuple(name.strip() if isinstance(name, str) else "" for name in names)
    for name in found:
        if not all(part.isidentifier() for part in name.split(".")):
            raise BadConfig(where, f"{name!r} is not the name of a module")
    return found


DEFAULTS: Mapping[str, Any] = {
    "store": ".holdfast",
    "key": "",
    "app": (),
    "output": "table",
    "notify_webhook": "",
    "notify_command": "",
    "notify_apprise": "",
    "notify_key": "",
    "secrets": "redact",
    "checkpoint": "",
    "snapshot": "",
    "durability": "durable",
    "prices": "",
    **{RULES + name: None for name in _RULES},
}
