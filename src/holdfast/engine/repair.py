"""Repair of a damaged store: a plan that says what is lost and what stays; then its application.

Nothing is deleted. What is true is written into a new database; the old one and bad files are
moved aside, and it is said where they are.
"""

import contextlib
import datetime as dt
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from holdfast.clock import Clock, SystemClock
from holdfast.engine.fates import Fate, Patient, is_kin
from holdfast.engine.given import given_key, open_path
from holdfast.engine.mend import Mender
from holdfast.engine.points import Points
from holdfast.errors import Damaged, RunHeld, StoreChanged
from holdfast.model.ids import branch_of
from holdfast.model.run import Holder, RunBody
from holdfast.store.backends.base import RunRow
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.packs import Packer
from holdfast.store.backends.sqlite import FILE
from holdfast.store.chain import Hashed
from holdfast.store.chunks import Chunks
from holdfast.store.codec.frame import open_frame
from holdfast.store.leases import Leases
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Reader
from holdfast.store.repair import rebuild
from holdfast.store.repair.rebuild import Keep
from holdfast.store.repair.salvage import Salvage
from holdfast.store.repair.sift import Sieve, Sifted, Stray
from holdfast.store.seal.base import Seals
from holdfast.store.seal.files import in_clear
from holdfast.store.verify import Finding, Progress, verify

if TYPE_CHECKING:
    from holdfast.store.seal.provider import KeyProvider

HOPELESS = (
    "the database cannot be opened at all, so nothing can be read from it: "
    "put a copy of the store back, or make a new one and keep this one"
)

_decode_run = msgspec.msgpack.Decoder(RunBody).decode
_BAD = (Damaged, TypeError, ValueError, RecursionError)


def plan_repair(
    path: str | os.PathLike[str] | None = None,
    *,
    key: "str | KeyProvider | None" = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> "Repair":
    """What is damaged in the store at `path`, and what a repair would keep. Changes nothing.

    A store that cannot be opened at all raises `Damaged`: then only a copy helps.
    """
    place, clock, provider = open_path(path), clock or SystemClock(), given_key(key)
    opened = _opened(place, clock, provider)
    if rebuild.is_unsettled(place):
        opened.close()
        rebuild.settle(place, clock, opened.records.packer)
        opened = _opened(place, clock, provider)
    try:
        report = verify(opened, progress=progress)
        if report.is_whole:
            found = Assessment(runs=report.runs)
        else:
            with contextlib.closing(Salvage(place / FILE, opened.records.packer)) as salvage:
                found = _Assessor(opened, salvage, clock).assess()
        packer = opened.records.packer
        return Repair(
            place, clock, findings=report.findings, found=found, packer=packer, key=provider
        )
    finally:
        opened.close()


def _opened(path: Path, clock: Clock, key: "KeyProvider | None") -> Opened:
    try:
        return open_store(path, clock, key=key, must_exist=True, must_be_whole=False)
    except Damaged as damage:
        damage.add_note(HOPELESS)
        raise


def object_place(path: Path, name: str) -> Path:
    """Where a store keeps a large value."""
    return path / "objects" / name[:2] / name


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a store, run by run."""

    runs: int
    keeps: list[Keep] = []
    fates: list[Fate] = []
    strays: list[str] = []
    objects: list[str] = []
    store_id: bytes = b""
    seal: bytes = b""


class Repair:
    """A plan to repair a store, and its application.

    `findings` is what is damaged; `fates` what becomes of each damaged run; `strays` rows that
    belong to no run; `objects` bad files of large values. `runs` counts those that stay.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        findings: list[Finding],
        found: Assessment,
        packer: Packer,
        key: "KeyProvider | None",
    ) -> None:
        self.path, self._clock, self._packer, self._key = path, clock, packer, key
        self.findings, self._found = findings, found
        self.fates, self.strays, self.objects = found.fates, found.strays, found.objects
        self.runs = found.runs

    @property
    def is_needed(self) -> bool:
        """Whether anything is damaged."""
        return bool(self.findings)

    def apply(self) -> Path | None:
        """Do it; returns the directory that holds what was moved aside, None if nothing was.

        `RunHeld` while a process works on a run, `StoreBusy` while one has the store open,
        `StoreChanged` if the store is not what was planned for. Killed anywhere, the store is as
        before or repaired; planned and applied again, it goes on.
        """
        if not self.is_needed:
            return None
        self._refuse_held()
        with rebuild.alone(self.path, self._clock):
            with contextlib.closing(Salvage(self.path / FILE, self._packer)) as salvage:
                salvage.take_tail(self._found.store_id)
                if _fingerprint(salvage, self._found.keeps) != self._found.seal:
                    raise StoreChanged(str(self.path))
                keeps = iter(self._found.keeps)
                stage = rebuild.stage(self.path, self._found.store_id, keeps, salvage)
            self._check(stage)
            into = self._lost()
            bad = [object_place(self.path, name) for name in self.objects]
            rebuild.exchange(self.path, into, bad, self._packer)
        return into

    def _refuse_held(self) -> None:
        leases = Leases(self.path, self._clock)
        try:
            for keep in self._found.keeps:
                if leases.is_held(keep.run.no):
                    since = dt.datetime.fromtimestamp(keep.body.holder.since, dt.UTC)
                    told = f"{since:%Y-%m-%d %H:%M:%S} UTC"
                    raise RunHeld(keep.body.id, str(keep.body.holder), told)
        finally:
            leases.close()

    def _check(self, stage: Path) -> None:
        """The new database is read back, every byte, before it takes the old one's place."""
        opened = open_store(stage, self._clock, key=self._key, must_exist=True)
        try:
            objects = Directory(self.path / "objects", RealFs())
            chunks = Chunks(objects, opened.reader.seals)
            reader = Reader(opened.records, opened.reader.seals, chunks)
            whole = msgspec.structs.replace(opened, chunks=chunks, reader=reader)
            found = verify(whole).findings
        finally:
            opened.close()
        if found:
            raise Damaged("the repaired database", f"{found[0].where}: {found[0].why}")

    def _lost(self) -> Path:
        now = dt.datetime.fromtimestamp(self._clock.now(), dt.UTC)
        name = f"{now:%Y-%m-%dT%H-%M-%SZ}"
        names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
        places = (self.path / rebuild.LOST / each for each in names)
        return next(place for place in places if not place.exists())


class _Assessor:
    """Looks at everything that can be read, and decides run by run."""

    def __init__(self, opened: Opened, salvage: Salvage, clock: Clock) -> None:
        self._salvage, self._path = salvage, opened.path
        self._runs = {row.no: row for row in salvage.runs() if type(row.no) is int and row.no > 0}
        seals = _true_seals(opened.reader.seals, list(self._runs.values()))
        salvage.take_tail(seals.store_id)
        self._chunks = Chunks(opened.objects, seals)
        self._reader = Reader(opened.records, seals, self._chunks)
        self._seals = seals
        self._listed = {row.no: row for row in salvage.branches() if type(row.no) is int}
        self._there = {*self._listed, *salvage.rooted()}
        self._missing = opened.records.missing()
        self._in_clear = list(in_clear(opened.path)) if opened.records.is_sealed else []
        points = Points(self._reader, opened.path)
        holder = Holder(pid=os.getpid(), host=os.uname().nodename, since=clock.now())
        self._mender = Mender(self._reader, points, holder, clock.now())

    def assess(self) -> Assessment:
        """The fate of every run, and what the new database holds."""
        bodies = {no: self._body(row) for no, row in self._runs.items()}
        unsure = [row for no, row in self._runs.items() if bodies[no] is None]
        claims = [each for row in unsure if (each := _claim(row, self._seals)) is not None]
        taken: dict[int, list[Sifted | Stray]] = {}
        sieve = Sieve(self._chunks, self._salvage, self._seals)
        self._loose = loose = set(self._there)
        numbers = sorted({*self._runs, *self._owners()})
        for is_last in (False, True):
            if is_last and not loose:
                break
            for no in numbers:
                mine = self._branches_of(no) | (loose if is_last else set())
                sifted = list(sieve.sift(no, sorted(mine), self._listed))
                if not is_last or len(_found(sifted)) > len(_found(taken[no])):
                    taken[no] = sifted
                    loose -= {each.branch.no for each in _found(sifted)}
        keeps: list[Keep] = []
        fates: list[Fate] = []
        every = {each.branch.no: each for sifted in taken.values() for each in _found(sifted)}
        patients = [self._patient(no, bodies.get(no), claims, taken[no]) for no in numbers]
        mended = [self._mender.mend(patient, every) for patient in patients]
        for patient, first in zip(patients, mended, strict=True):
            kin = [each for other in patients if is_kin(patient, other) for each in other.branches]
            again = any(each.lost for each in kin)  # What of that is kept is known by now.
            keep, fate = self._mender.mend(replace(patient, kin=kin), every) if again else first
            keeps += [] if keep is None else [keep]
            fates += [] if fate is None else [fate]
        return Assessment(
            runs=len(keeps),
            keeps=keeps,
            fates=fates,
            strays=[*self._strays(loose)],
            objects=[*self._bad_files(sieve.bad_chunks.union(map(bytes.hex, self._in_clear)))],
            store_id=self._seals.store_id,
            seal=_fingerprint(self._salvage, keeps),
        )

    def _bad_files(self, names: set[str]) -> Iterator[str]:
        """Those that are there: of a value that is not, there is nothing to move aside."""
        for name in sorted(names):
            if os.path.lexists(object_place(self._path, name)):
                yield name

    def _strays(self, loose: set[int]) -> Iterator[str]:
        for no in sorted(loose):
            yield f"branch {no} and its rows: they belong to no run"
        for no in sorted({*map(branch_of, self._missing)} - self._there):
            yield f"branch {no}: it was acknowledged, and nothing of it is there"

    def _owners(self) -> Iterator[int]:
        for row in self._listed.values():
            if type(row.run) is int and row.run > 0:
                yield row.run

    def _branches_of(self, no: int) -> set[int]:
        mine = {row.no for row in self._listed.values() if row.run == no}
        run = self._runs.get(no)
        return mine | ({run.head} if run is not None and run.head in self._there else set())

    def _is_of(self, run: int, branch: int) -> bool:
        """Whether a branch that no run keeps says that it was this one's."""
        return branch in self._loose and branch in self._branches_of(run)

    def _body(self, row: RunRow) -> RunBody | None:
        with contextlib.suppress(*_BAD):
            body = _decode_run(self._seals.of(row.no).open_run(row))
            return body if self._seals.kid(body.id) == row.kid else None
        return None

    def _patient(
        self, no: int, body: RunBody | None, claims: list[RunBody], sifted: list[Sifted | Stray]
    ) -> Patient:
        branches = _found(sifted)
        ends = {each.branch.no: max(each.end, each.lost.stop - 1) for each in branches}
        gone = [id_ for id_ in self._missing if id_ > ends.get(branch_of(id_), id_)]
        found = [each for each in sifted if isinstance(each, Stray)]
        strays = [each for each in found if self._is_of(no, each.no)]
        faults = [each.why for each in strays]
        faults += [each.why for each in branches if each.why]
        origin = None if body is None else body.origin
        if body is None:
            faults.append(f"run number {no}: its catalog row is damaged or lost")
        return Patient(
            no=no,
            row=self._runs[no] if body is not None else None,
            body=body,
            claims=claims,
            branches=branches,
            faults=faults,
            gone=gone,
            indexed=self._salvage.indexed((origin and origin.ledger) or no),
            strays=strays,
        )


def _found(sifted: list[Sifted | Stray]) -> list[Sifted]:
    return [each for each in sifted if isinstance(each, Sifted)]


def _claim(row: RunRow, seals: Seals) -> RunBody | None:
    """What a catalog row says that fails its hash, if at least its id is one of this store."""
    with contextlib.suppress(*_BAD):
        body = _decode_run(open_frame(row.body, ""))
        return body if seals.kid(body.id) == row.kid else None
    return None


def _true_seals(seals: Seals, rows: list[RunRow]) -> Seals:
    """The seals under which runs were written: one bit of the store's id may be another."""
    if not rows or not isinstance(seals, Hashed) or any(_opens(seals, row) for row in rows):
        return seals
    for bit in range(8 * len(seals.store_id)):
        number = int.from_bytes(seals.store_id, "big") ^ 1 << bit
        other = Hashed(number.to_bytes(len(seals.store_id), "big"))
        if any(_opens(other, row) for row in rows):
            return other
    return seals


def _opens(seals: Seals, row: RunRow) -> bool:
    with contextlib.suppress(*_BAD):
        return bool(seals.of(row.no).open_run(row))
    return False


def _fingerprint(salvage: Salvage, keeps: list[Keep]) -> bytes:
    """What changes whenever a run does that is kept, or one is made."""
    runs = {row.no: row.epoch for row in salvage.runs()}
    ends = [(keep.run.no, salvage.end(each.no)) for keep in keeps for each in keep.branches]
    known = [(keep.run.no, runs.get(keep.run.no)) for keep in keeps]
    return hashlib.sha256(repr((len(runs), known, ends)).encode()).digest()
