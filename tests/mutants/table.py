"""Every planted fault, and those of the list for which there is no code."""

from tests.mutants.acts import ACTS
from tests.mutants.disk import DISK
from tests.mutants.mutant import Mutant
from tests.mutants.rows import ROWS
from tests.mutants.seals import SEALS
from tests.mutants.tail import BESIDE

MUTANTS: tuple[Mutant, ...] = (*DISK, *BESIDE, *ROWS, *SEALS, *ACTS)

FAULTS = (
    "no file fsync",
    "no dir fsync",
    "no parent fsync",
    "fsync retried",
    "short write accepted",
    "row before file",
    "unlink before row",
    "synchronous=NORMAL",
    "pragma not read back",
    "plain open of the database",
    "connection kept over fork",
    "checkpoint without the lock",
    "failed commit taken as rolled back",
    "row hash skipped",
    "column outside the hash",
    "prev hash skipped",
    "seq gap allowed",
    "head note ignored",
    "WAL walk off",
    "schema not compared",
    "index trusted",
    "length before header crc",
    "tag skipped",
    "each AAD field dropped",
    "commitment skipped",
    "plaintext accepted",
    "salt over plaintext",
    "bytes left out of the salt",
    "epoch not in commit",
    "seq not unique",
    "wall-clock lease",
    "gc without wait",
    "gc without second mark",
    "condemned ban",
    "orphan by age",
    "intent after call",
    "outcome before call returns",
    "in doubt fired again",
    "approval revived",
    "budget restored",
    "secret after hash",
    "symlink followed",
    "bomb cap off",
    "Host unchecked",
    "RLS not forced",
)
"""The list of RELIABILITY §9, in its words."""

NO_CODE = {
    "WAL walk off": "no such code: the head note finds a log that lost its end",
    "length before header crc": "no such code: frames have no header checksum; the hash of the row "
    "covers the header and is compared first",
    "orphan by age": "no such code: garbage is found by what rows name, never by age",
    "symlink followed": "no such code: no directory is restored yet",
    "Host unchecked": "no such code: there is no server yet",
    "RLS not forced": "no such code: there is no PostgreSQL backend yet",
}
"""Faults that are not planted, and why."""
