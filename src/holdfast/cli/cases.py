"""A case for the advisor, read from a TOML file as people write it; every odd value is named."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.errors import BadCase
from holdfast.model.case import Case, Cause, Policy, Prices, Promise, Saving, Scope, Unit
from holdfast.model.limits import CLOCKS, dollars, is_sane, seconds, short_repr, size_of
from holdfast.policy.advise.tokens import records

FILE_BYTES_MAX = 1024 * 1024
UNITS_MAX = 20_000
PER_CENT = 100
_PER_CENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
YEAR_S = 366 * 86_400.0
JOURNALS = ("none", "local", "remote")
SHARES_OFF = 0.005
"""Shares of causes are guesses, but they are shares of one whole."""


def read_case(file: Path) -> Case:
    """The case in a file; `BadCase` names the key that cannot be meant."""
    try:
        with file.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise BadCase(str(file), f"it has more than {FILE_BYTES_MAX:,} bytes")
        said = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise BadCase(str(file), f"it cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:  # No text, no TOML, endless numbers or lists.
        raise BadCase(str(file), f"it cannot be read as TOML ({error})") from error
    return case_of(said, str(file))


def case_of(data: Mapping[str, Any], where: str) -> Case:
    """The case that a file says."""
    top = Table(data, where)
    unit = top.text("unit", "step")
    units = _units(top.table("work"))
    causes = _causes(top.table("failures"), units)
    found = Case(
        name=top.text("name", where),
        unit=unit,
        units=units,
        causes=causes,
        saving=_saving(top.table("saving")),
        prices=_prices(top.table("prices", {})),
        promise=promised(Promise(), top.table("sla", {})),
        current=_current(top.table("current")) if "current" in data else None,
    )
    top.done()
    if found.saving.continues and (count := records(found)) > UNITS_MAX:
        often = f"a record every {found.saving.tokens_every:,g} tokens makes {count:,} records"
        why = f"{often} of the work, of which {UNITS_MAX:,} can be reckoned with; record less often"
        top.table("saving").bad("tokens_every", why)
    return found


def promised(promise: Promise, table: "Table") -> Promise:
    """A promise with what a table says of it."""
    said: dict[str, Any] = {}
    for key, name, read in (
        ("availability", "availability", table.share),
        ("overhead_cap", "overhead", table.share),
        ("breach_rate", "breach_rate", table.share),
        ("max_recovery", "max_recovery_s", table.seconds),
        ("bytes_per_task", "bytes_per_task", table.size),
        ("breach_usd_per_hour", "breach_usd_per_hour", table.dollars),
        ("recovery_budget", "recovery_usd", table.dollars),
    ):
        if (value := read(key, None)) is not None:
            said[name] = value
    clock = table.text("clock", promise.clock)
    if clock not in CLOCKS:
        table.bad("clock", f"it is {' or '.join(CLOCKS)}, not {clock!r}")
    table.done()
    return replace(promise, clock=clock, **said)


def promise_said(promise: Promise, said: Sequence[str]) -> Promise:
    """A promise with what `--sla key=value` says."""
    table: dict[str, Any] = {}
    for each in ",".join(said).split(","):
        key, equals, text = each.partition("=")
        if not equals:
            raise BadCase(f"--sla {each}", "write it as key=value, such as max_recovery=30s")
        try:
            table[key.strip()] = float(text)
        except ValueError:
            table[key.strip()] = text.strip()
    return promised(promise, Table(table, "--sla"))


class Table:
    """A table whose values are read one by one; what nobody asked for is unknown."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data, self._where, self._read = data, where, set[str]()

    def bad(self, key: str, why: str) -> None:
        """Say that a value cannot be meant."""
        raise BadCase(f"{self._where}, {key}", why)

    def done(self) -> None:
        """Refuse what was never asked for: a misspelt key must not be without effect."""
        for key in self._data:
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                self.bad(key, f"there is no such key here (known: {known})")

    def table(self, key: str, default: Mapping[str, Any] | None = None) -> "Table":
        """A table inside this one."""
        found = self._get(key, default)
        if not isinstance(found, Mapping):
            self.bad(key, "it is missing; it takes a table" if found is None else "it is no table")
        return Table(found, f"{self._where}, {key}")

    def tables(self, key: str) -> list["Table"]:
        """A list of tables; at least one."""
        found = self._get(key, None)
        if not isinstance(found, list) or not found:
            self.bad(key, f"it takes a list of tables, each under [[{key}]]")
        if not all(isinstance(each, Mapping) for each in found):
            self.bad(key, "each of the list is a table")
        place = f"{self._where}, {key}"
        return [Table(each, f"{place}[{number}]") for number, each in enumerate(found)]

    def text(self, key: str, default: str) -> str:
        """A text."""
        found = self._get(key, default)
        if not isinstance(found, str) or not found:
            self.bad(key, "it takes a text that is not empty")
        return str(found)

    def flag(self, key: str) -> bool:
        """Yes or no; no where it is not there."""
        found = self._get(key, default=False)
        if not isinstance(found, bool):
            self.bad(key, "it is true or false")
        return bool(found)

    def number(self, key: str, default: float | None, *, least: float = 0.0) -> Any:  # noqa: ANN401 None only where the default is
        """A finite number."""
        found = self._get(key, default)
        if found is None:
            return None
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not is_sane(found) or found < least:
            self.bad(key, f"it takes a finite number from {least:g}, not {short_repr(found)}")
        return float(found)

    def count(self, key: str, default: int, *, least: int = 0) -> int:
        """A whole number."""
        found = self.number(key, default, least=least)
        if found != int(found):
            self.bad(key, f"it takes a whole number, not {found!r}")
        return int(found)

    def share(self, key: str, default: float | None) -> Any:  # noqa: ANN401 as `number`
        """A share between 0 and 1, or in per cent with the sign."""
        said = _PER_CENT.fullmatch(str(self._get(key, default)))
        found = self.number(key, default) if said is None else float(said[1]) / PER_CENT
        if found is not None and found > 1:
            is_slip = said is None and found <= PER_CENT
            meant = f" (write {found:g} % as {found / 100:g})" if is_slip else ""
            self.bad(key, f"it is a share between 0 and 1, not {found:g}{meant}")
        return found

    def seconds(self, key: str, default: float | None) -> Any:  # noqa: ANN401 as `number`
        """A duration, as people write it."""
        return self._made(key, default, seconds)

    def dollars(self, key: str, default: float | None) -> Any:  # noqa: ANN401 as `number`
        """A sum, as people write it."""
        return self._made(key, default, dollars)

    def size(self, key: str, default: float | None) -> Any:  # noqa: ANN401 as `number`
        """A number of bytes, as people write it."""
        is_text = isinstance(self._get(key, default), str)
        return self._made(key, default, size_of) if is_text else self.number(key, default)

    def _made(self, key: str, default: float | None, read: Any) -> Any:  # noqa: ANN401 as `number`
        found = self._get(key, default)
        if found is None:
            return None
        try:
            made = read(found)
        except ValueError as error:
            raise BadCase(f"{self._where}, {key}", str(error)) from None
        if read is seconds and made > YEAR_S:
            self.bad(key, f"{found!r} is more than a year")
        return made

    def _get(self, key: str, default: object) -> Any:  # noqa: ANN401 whatever stands there
        self._read.add(key)
        return self._data.get(key, default)


def _units(table: Table) -> list[Unit]:
    repeat = table.count("repeat", 1, least=1)
    found = []
    for each in table.tables("unit"):
        made = Unit(
            seconds=each.seconds("seconds", 0.0),
            usd=each.dollars("usd", 0.0),
            upfront=each.share("upfront", 0.5),
            bytes=each.size("bytes", 0.0),
            is_effect=each.flag("effect"),
            tokens=each.number("tokens", 0.0),
        )
        if not made.seconds:
            each.bad("seconds", "a unit of work takes longer than nothing")
        each.done()
        found.append(made)
    if repeat * len(found) > UNITS_MAX:
        table.bad("repeat", f"it makes more than {UNITS_MAX:,} units; put several into one")
    table.done()
    return found * repeat


def _causes(table: Table, units: Sequence[Unit]) -> list[Cause]:
    per_task, mtbf_s = table.share("per_task", None), table.seconds("mtbf", None)
    if (per_task is None) == (mtbf_s is None):
        table.bad("per_task", "say how often work fails: either per_task = 0.09, or mtbf = '2h'")
    if mtbf_s is not None and not mtbf_s:
        table.bad("mtbf", "work that fails all the time has no case")
    if per_task is not None and per_task >= 1:
        table.bad("per_task", "not every task can fail; give mtbf = '…' for work that fails a lot")
    work_s = math.fsum(unit.seconds for unit in units)
    rate = 1 / mtbf_s if per_task is None else -math.log1p(-per_task) / work_s
    tables = table.tables("cause")
    shares = [each.share("share", 1.0 if len(tables) == 1 else 0.0) for each in tables]
    if abs(math.fsum(shares) - 1) > SHARES_OFF:
        table.bad("cause", f"the shares of all causes are 1 together, not {math.fsum(shares):g}")
    found = [_cause(each, rate * share) for each, share in zip(tables, shares, strict=True)]
    table.done()
    return found


def _cause(table: Table, per_second: float) -> Cause:
    scope = table.text("scope", "none given")
    if scope not in list(Scope):
        table.bad("scope", f"{scope!r} is not one of {', '.join(Scope)}")
    made = Cause(
        name=table.text("name", scope),
        scope=Scope(scope),
        per_second=per_second,
        detect_s=table.seconds("detect", 0.0),
        p_recovered=table.share("recovered", 0.0 if scope == Scope.POISON else 1.0),
        generations=table.count("generations", 1),
    )
    if scope == Scope.POISON and made.p_recovered:
        table.bad("recovered", "poison is what nothing here recovers from: 0")
    table.done()
    return made


def _saving(table: Table) -> Saving:
    times = ("journal_local", "journal_remote", "checkpoint_local", "checkpoint_remote")
    given = {f"{name}_s": table.seconds(name, None) for name in times}
    if all(value is None for value in given.values()):
        table.bad(times[0], f"say how long one save blocks the agent: {', '.join(times)}")
    stored = table.share("stored", 1.0)
    made = Saving(
        **given,
        restore_local_s=table.seconds("restore_local", 0.0),
        restore_remote_s=table.seconds("restore_remote", 0.0),
        bare_local_s=table.seconds("bare_local", None),
        bare_remote_s=table.seconds("bare_remote", None),
        replay_s=table.seconds("replay", 0.005),
        checkpoint_bytes=table.size("checkpoint_bytes", 0.0),
        stored=stored,
        snapshot_local_s=table.seconds("snapshot_local", None),
        snapshot_remote_s=table.seconds("snapshot_remote", None),
        snapshot_restore_s=table.seconds("snapshot_restore", None),
        snapshot_bytes=table.size("snapshot_bytes", 0.0),
        continues=table.flag("continues"),
        tokens_every=table.number("tokens_every", 1000.0, least=1.0),
    )
    table.done()
    return made


def _prices(table: Table) -> Prices:
    names = ("gb_month_usd", "put_usd", "get_usd", "second_usd", "person_usd")
    made = Prices(
        months=table.number("months", 1.0), **{name: table.dollars(name, None) for name in names}
    )
    table.done()
    return made


def _current(table: Table) -> Policy:
    journal = table.text("journal", "none")
    if journal not in JOURNALS:
        table.bad("journal", f"it is {', '.join(JOURNALS)}, not {journal!r}")
    made = Policy(
        journal=journal,
        local_every=table.count("local_every", 0),
        remote_every=table.count("remote_every", 0),
    )
    table.done()
    return made
