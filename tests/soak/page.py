"""The page `docs/proof.md`, made from what the soak counted: `python -m tests.soak.page`."""

# ruff: noqa: E501 the lines of the page are its own

from pathlib import Path

from tests.soak.part import FOLDER, ROOT, Record, records

PAGE = ROOT / "docs" / "proof.md"

START = """\
# Proof

Made by machine from what `make soak` counted (`python -m tests.soak.page`); nobody edits it by hand. Each number is what was tried on one machine, also where it is
smaller than the goal. *Found* is how often something happened that must not: acknowledged work lost, a wrong state, an effect doubled, an exception that is not ours.
A finding prints the line that repeats it.

"""

WHERE = """
## What each of them does
{told}

## What is tried elsewhere, or not yet
| | what | where |
|---|---|---|
| P3 | kills at every system call that changes the disk | `tests/crash/test_syscalls.py`, a sample of them in `make test` |
| P4 | kills inside repair, garbage collection, key rotation, rollback | `tests/crash`, `tests/corruption/test_repair_killed.py`, in `make test` |
| P6, P7 | every block write of a device; a whole machine switched off | not built; P2 and P5 stand in for them |
| P9 | a full, read-only or limited disk | with real mounts and limits: `tests/crash/test_disk.py`, in `make test`; a disk that lies is not tried |
| P10 | cuts, sectors, rows and files deleted and swapped | `tests/corruption/matrix.py`: a part in `make test`, all with HOLDFAST_MATRIX=1; tried last on 2026-11-16 at 56e8ddc: 209,859 damaged stores (of the sectors of the database only the part that `make test` draws), wrong or silent 0 |
| P12 | the same machine, 20,000 steps in each `make test`; PostgreSQL | `tests/property/test_store_model.py`; PostgreSQL is not there yet |
| P13 | writers, a collector and kills side by side; a takeover in single steps | `tests/crash/test_gc.py`, `test_takeover.py`, in `make test` |
| P14 | every schedule of two writers and a collector; of two holders and a takeover | `tests/unit/store/gc/test_schedules.py`, `tests/unit/store/test_lease_schedules.py` |
| P16 | PostgreSQL, object stores | not there yet |
| P17 | faults planted in the source, each noticed by a quick test | [the table](mutants.md); `tests/mutants`: a part in `make test`, all in `make mutants` |
| P18 | runs of golden stores go on; more of the fence | `tests/golden`, `tests/engine/test_fence.py`, in `make test` |

## What it has found so far
Each was mended, is counted from the start since, and left a test behind.
- P1: files removed before or during an encryption could come back in clear after a power cut (`tests/soak/test_soak.py`).
- P1: a folder that a process made and did not come to flush took a later object with it in a power cut (`tests/soak/test_soak.py`).
- P2: the directory of a new store was not flushed into its parent (`tests/unit/store/backends/test_place.py`).
- P8: a lock file that the disk took in parts raised a foreign error (`tests/unit/store/backends/test_bell.py`).
- P10: with one bit flipped, `verify` and `repair` counted through billions of rows, the catalog looked for ever, and a search failed its own assertion (`tests/corruption/test_findings.py`).
- P10: an index entry whose length had one bit flipped named a branch of another run: a checkpoint was said to be absent (`tests/corruption/test_findings.py`).
- P15: a damaged dtype was given to Python's parser, which took it for a literal (`tests/unit/store/codec/test_arrays.py`).

## Limits of this proof
A disk that lies about flushing is outside it. P1 takes SQLite's commits as all or nothing, which P2 and P5 look at with the real files. Subsets of unflushed writes are
complete where they are few, else prefixes, single ones and draws. P10 looks at most flips through the queries of the library on the tree they lie in, and opens, restores
and verifies those that this does not explain and a sample of the rest. It judges what is read, not what a run does next: one damaged entry in the index of
effects does not let an effect be done again (`tests/engine/test_index.py`), several may, and `verify` finds them: verify a store that a disk has damaged before its runs go on. P15 changes bytes of valid samples; it is no search guided by coverage.
"""


def write(folder: Path = FOLDER, page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(text(list(records(folder))), encoding="utf-8")


def text(found: list[Record]) -> str:
    """The page of these records."""
    found = sorted(found, key=lambda record: int(record.id.partition(",")[0][1:]))
    told = "\n".join(
        f"- **{record.id}** (`tests/soak/{record.name}.py`): {record.what}" for record in found
    )
    return (
        START
        + _table(found)
        + _beside({each.name: each for each in found})
        + WHERE.format(told=told)
    )


def _table(found: list[Record]) -> str:
    lines = [
        "| | tried | of | found | besides | seed, commit where it was counted last, day |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        if each.skipped:
            lines.append(f"| {each.id} | skipped: {each.skipped} | {each.goal:,} | | | |")
            continue
        whole = " (all there are)" if each.is_all else ""
        lines.append(
            f"| {each.id} | **{each.reached:,}** {each.counted}{whole} | {each.goal:,} | "
            f"**{each.found}** | {_besides(each)} | {each.seed}, {each.commit}, {each.on} |"
        )
    machines = sorted({each.machine for each in found if each.machine})
    skipped = sum(bool(each.skipped) for each in found)
    return "\n".join(lines) + f"\n\n{'; '.join(machines)}. Skipped here: {skipped}.\n"


def _besides(record: Record) -> str:
    others = {name: n for name, n in record.counts.items() if name != record.counted}
    return ", ".join(f"{name} {n:,}" for name, n in others.items())


def _beside(found: dict[str, Record]) -> str:
    """Ours beside what the neighbours were measured at."""

    def of(part: str, name: str) -> str:
        return f"{found[part].counts.get(name, 0):,}" if part in found else "not tried"

    def findings(part: str) -> str:
        return f"{found[part].found:,}" if part in found else "not tried"

    return f"""
## Beside the neighbours
LangGraph 1.2.20 (SqliteSaver 3.1.2) and DBOS 3.3.0 (SQLite), measured or read in November 2026 on a machine of the same kind.

| check | LangGraph | DBOS | Holdfast |
|---|---|---|---|
| kill -9: finished steps that run again | async, its default: 179 in 25 trials, worst 20; sync: 4 in 20 | 11 in 20 trials | {of("kills", "answers asked again")} in {of("kills", "kills")} kills |
| kill -9: effects done twice | no record of an intent | no record of an intent | {of("kills", "effects doubled")} in {of("kills", "kills")} kills |
| one bit flipped in the database: wrong and silent | 337 of 1,500 | no integrity check | {findings("flips")} of {of("flips", "bits")} |
| changed bytes that run code, or raise a foreign error | runs code by default (a strict flag exists) | pickle by default | {findings("fuzz")} of {of("fuzz", "inputs")} |
| power cuts of a real file system in its own tests | none found | none found | {of("cuts", "power cuts")}, lost {of("cuts", "answers or effects lost")} |
| its worker killed in its own chaos tests | none found | one SIGKILL, one exit at a fixed point | {of("kills", "kills")} kills |
"""


if __name__ == "__main__":
    write()
