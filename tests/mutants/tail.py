"""Faults planted in what keeps the newest rows beside the database."""

from tests.mutants.mutant import mutant

TAIL, SLOTS, SOLE = (f"store/backends/{name}.py" for name in ("tail", "slots", "sole"))
SQLITE, SWEEP = "store/backends/sqlite.py", "store/backends/sweep.py"

UNIT = "tests/unit/store/backends/test_tail.py::test_"
UNIT_SOLE = "tests/unit/store/backends/test_sole.py::test_"
UNIT_SLOTS = "tests/unit/store/backends/test_slots.py::test_"

BESIDE = [
    mutant(
        "epoch not in commit",
        "a takeover does not tell other processes that they may be fenced",
        f"{UNIT}a_takeover_fences_who_knows_where_the_branch_ends",
        (SQLITE, "            return write.run is not None and", "            return False and"),
    ),
    mutant(
        "epoch not in commit",
        "a branch that grows does not tell other processes that they may be fenced",
        f"{UNIT}a_branch_grown_by_another_fences_too",
        (
            SQLITE,
            "        case Grow():\n            return True",
            "        case Grow():\n            return False",
        ),
    ),
    mutant(
        "epoch not in commit",
        "what is learned under a new fence makes old knowledge look new",
        f"{UNIT}a_fenced_writer_stays_so_when_its_store_has_written_for_another_run",
        (SOLE, "if fence != self._fence or len(self._ends)", "if len(self._ends)"),
    ),
    mutant(
        "epoch not in commit",
        "who rewrites the database does not tell the writers of runs",
        f"{UNIT}who_rewrites_rows_is_heard_by_who_knows_where_branches_end",
        (
            SQLITE,
            "                    self._tail.raise_fence()\n                    self._take",
            "                    self._take",
        ),
    ),
    mutant(
        "seq not unique",
        "rows of a branch that others may write too are not looked up",
        f"{UNIT_SOLE}any_other_write_is_not",
        (SOLE, " or not write.is_sole or", " or"),
    ),
    mutant(
        "failed commit taken as rolled back",
        "what a killed writer left in the tail is written over and may count again",
        f"{UNIT}the_only_row_of_a_killed_writer_counts_no_more_once_somebody_went_on",
        (TAIL, "        words[_UNSETTLED] = 1\n        failpoint", "        failpoint"),
    ),
    mutant(
        "failed commit taken as rolled back",
        "rows that the database has taken in are taken in again",
        f"{UNIT}a_kill_while_the_tail_is_taken_in_loses_nothing",
        (SQLITE, "        if generation > tail.generation:", "        if generation < 0:"),
    ),
    mutant(
        "short write accepted",
        "a record of which a part was written counts",
        f"{UNIT}a_record_that_is_written_in_part_is_an_error",
        (TAIL, "        if written < len(data):", "        if written < 0:"),
    ),
    mutant(
        "row hash skipped",
        "the checksum of a record is not looked at",
        f"{UNIT_SLOTS}a_record_with_a_changed_bit_is_none_and_damage_if_more_follow",
        (SLOTS, "    if check != _crc(", "    if check == b'' and _crc("),
    ),
    mutant(
        "seq gap allowed",
        "a record that cannot be read before a sound one is passed over",
        f"{UNIT}a_damaged_record_is_said_and_refuses_commits_and_the_others_are_read",
        (SLOTS, "            is_damaged |= place > end\n", ""),
    ),
    mutant(
        "seq gap allowed",
        "a tail that is newer than the database is passed over",
        f"{UNIT}a_tail_of_a_later_generation_than_the_database_is_damage",
        (SLOTS, "found.generation > generation", "found.generation < 0"),
    ),
    mutant(
        "head note ignored",
        "a damaged number of the generation is believed",
        f"{UNIT}where_the_database_cannot_tell_the_generation_rows_are_read_and_commits_refused",
        (SWEEP, " if value == _checked(number) else -1", ""),
    ),
    mutant(
        "plaintext accepted",
        "what was erased still stands in the tail",
        f"{UNIT}wiping_leaves_no_byte_of_what_stood_there",
        (SQLITE, "            self._tail.wipe()\n", ""),
    ),
]
