"""Faults planted in what makes files and commits durable."""

from tests.mutants.mutant import mutant

FS, DIRECTORY = "store/backends/fs.py", "store/backends/directory.py"
CONNECTION, SQLITE = "store/backends/connection.py", "store/backends/sqlite.py"
HEADS, WRITER, COMMITTER = "store/backends/heads.py", "store/writer.py", "store/committer.py"
LEASES, SCHEMA, HANDLE = "store/leases.py", "store/backends/schema.py", "engine/handle.py"
GC, CHUNKS = "store/gc/objects.py", "store/chunks.py"
PACKS, GC_ROWS = "store/backends/packs.py", "store/gc/rows.py"
DOING, WAL = "store/backends/doing.py", "store/backends/wal.py"
GC_RUNS, RETAINED = "store/gc/runs.py", "engine/retain.py"
NEEDED = "engine/needed.py"

POWER = "tests/crash/test_power.py::test_no_acknowledged_"
FILES = "tests/crash/test_files.py::"
BESIDE = "tests/crash/test_beside.py::"
RECORDS = "tests/contract/test_records.py::TestSqliteRecords::"
UNIT = "tests/unit/store/backends/"
RETAIN = "tests/engine/test_retain.py::"
MEANWHILE = "tests/engine/test_meanwhile.py::"
LEASE = "tests/unit/store/test_leases.py::"

DISK = [
    mutant(
        "row before file",
        "a commit does not bring back what its patch is made on",
        "tests/unit/store/test_lines.py::test_a_commit_brings_back_all_that_a_patch_is_made_on",
        (CHUNKS, "{**below, name: body}", "{name: body}"),
    ),
    mutant(
        "unlink before row",
        "what a patch is made on is removed while a row names the patch",
        "tests/engine/test_patches.py::test_what_a_kept_point_is_a_patch_on_stays_when_others_go",
        (
            GC,
            "self.names.update(chunks.names(reference))",
            "self.names.add(chunks.name(reference))",
        ),
    ),
    mutant(
        "row hash skipped",
        "an equal copy takes over a digest whose parts have none",
        "tests/unit/capture/test_inherit.py::"
        "test_a_change_in_an_equal_copy_shows_in_the_digest_of_all_that_holds_it",
        (
            "capture/inherit.py",
            "    hashes = [old.hf_hash, *(item.hf_hash for item in below)]",
            "    hashes = [old.hf_hash]",
        ),
    ),
    mutant(
        "no file fsync",
        "a large value is named without being flushed",
        f"{POWER}object_is_lost",
        (
            FS,
            '            os.fsync(fd)\n            failpoint.reach("file.flushed")',
            "            pass",
        ),
    ),
    mutant(
        "no dir fsync",
        "the name of a large value is not flushed",
        f"{POWER}object_is_lost",
        (FS, "        self.flush_directory(target.parent)", "        pass"),
    ),
    mutant(
        "no parent fsync",
        "a new directory is not flushed into its parent",
        f"{POWER}object_is_lost",
        (FS, "            self.flush_directory(path.parent)", "            pass"),
    ),
    mutant(
        "no dir fsync",
        "a file that another process wrote counts before its name is flushed",
        f"{UNIT}test_directory.py"
        "::test_an_object_that_somebody_else_wrote_is_flushed_before_it_counts",
        (DIRECTORY, "                    self._fs.flush_directory(place.parent)\n", ""),
    ),
    mutant(
        "no parent fsync",
        "a directory that a dead process made counts before it is flushed into its parent",
        "tests/soak/test_soak.py"
        "::test_a_folder_whose_maker_died_does_not_take_a_later_object_with_it",
        (DIRECTORY, "            self._fs.flush_directory(folder.parent)\n", ""),
    ),
    mutant(
        "fsync retried",
        "a flush that failed is tried again and then believed",
        f"{FILES}test_what_could_not_be_flushed_is_not_said_to_be_kept",
        (
            FS,
            '            os.fsync(fd)\n            failpoint.reach("file.flushed")',
            (
                "            try:\n                os.fsync(fd)\n"
                "            except OSError:\n                os.fsync(fd)"
            ),
        ),
    ),
    mutant(
        "short write accepted",
        "what one call wrote counts as the whole file",
        f"{FILES}test_a_file_that_could_only_be_written_in_part_is_not_kept",
        (
            FS,
            "            while rest:\n                rest = rest[os.write(fd, rest) :]",
            "            os.write(fd, rest)",
        ),
    ),
    mutant(
        "row before file",
        "a large value is written after the row that names it",
        f"{FILES}test_a_row_never_names_a_large_value_that_is_not_there",
        (CHUNKS, "        self._store(kept.reference, name, kept.objects[name])\n", ""),
        (
            SQLITE,
            "            self._uphold(writes)\n            failpoint",
            "            failpoint",
        ),
        (
            SQLITE,
            '            failpoint.reach("store.committed")\n',
            '            failpoint.reach("store.committed")\n            self._uphold(writes)\n',
        ),
    ),
    mutant(
        "unlink before row",
        "a large value is removed while rows still name it",
        f"{RETAIN}test_a_value_that_is_named_between_the_marks_stays",
        (GC, "                if name not in named.names:", "                if name:"),
    ),
    mutant(
        "index trusted",
        "a pack that was read before is taken for the one that stands there now",
        "tests/unit/store/backends/test_packs.py"
        "::test_a_pack_that_was_written_anew_in_the_same_length_is_read_anew",
        (
            PACKS,
            "            return len(body), body.read(_BEGIN)\n",
            '            return len(body), b""\n',
        ),
        (
            PACKS,
            "known = (len(found[0]), found[0][:_BEGIN]), rows",
            'known = (len(found[0]), b""), rows',
        ),
    ),
    mutant(
        "gc without second mark",
        "rows are pruned of a run while somebody rolls a fork of it back",
        f"{MEANWHILE}test_nothing_is_collected_of_a_run_while_a_fork_of_it_is_rolled_back",
        (
            GC_ROWS,
            "if any(opened.leases.is_held(no) for no in sweep.users(link, branch)):",
            "if opened.leases.is_held(run.row.no):",
        ),
    ),
    mutant(
        "gc without second mark",
        "rows are pruned of a run that was forked since it was judged",
        f"{MEANWHILE}test_a_fork_that_is_made_while_garbage_is_collected_keeps_its_state",
        (GC_ROWS, "sweep.is_grown(link, branch, seen.branch) or ", ""),
    ),
    mutant(
        "gc without second mark",
        "a fork is made of what was pruned since it was read",
        f"{MEANWHILE}test_a_fork_of_what_is_collected_before_it_is_there_is_refused",
        (DOING, "sweep.noted(link, key) != value for key", "False for key"),
    ),
    mutant(
        "gc without second mark",
        "rows are pruned of a point that was pinned since it was judged",
        f"{MEANWHILE}test_what_is_pinned_while_garbage_is_collected_stays",
        (GC_ROWS, " or not pins.read(link) <= seen.pins", ""),
    ),
    mutant(
        "gc without second mark",
        "a run is removed while somebody holds it",
        f"{RETAIN}test_nothing_goes_of_a_run_that_somebody_took_up_since_it_was_judged",
        (GC_RUNS, "if found is None or opened.leases.is_held(row.no):", "if found is None:"),
    ),
    mutant(
        "gc without second mark",
        "old rows are pruned that the kept state still names",
        f"{RETAIN}test_rows_that_the_kept_state_still_names_stay_however_old",
        (RETAINED, "        found |= rows_used(reader, rows_of_one)\n", ""),
    ),
    mutant(
        "gc without second mark",
        "rows are pruned that are named only by what the kept state names",
        f"{RETAIN}test_an_answer_that_stands_inside_what_the_agent_made_stays",
        (NEEDED, " | _rows_below(reader, due)", ""),
    ),
    mutant(
        "gc without second mark",
        "rows are pruned with which the earlier loops of a run were left",
        f"{RETAIN}test_a_run_of_many_loops_goes_on_after_garbage_was_collected",
        (NEEDED, "list(_rows_to_loops(reader, spans - outside))", "[]"),
    ),
    mutant(
        "gc without second mark",
        "rows that came since the first mark are not read before the removal",
        "tests/mutants/test_killers.py"
        "::test_a_value_that_a_row_names_since_the_first_mark_is_not_removed",
        (
            GC,
            "        with opened.records.alone():\n            named.read_on()\n",
            "        with opened.records.alone():\n",
        ),
    ),
    mutant(
        "gc without wait",
        "garbage is removed while others commit",
        f"{BESIDE}test_a_value_that_another_handle_names_while_garbage_is_removed_stays",
        (
            SQLITE,
            "with self._lock.held(), named(self._file):\n                    self._soles",
            "with named(self._file):\n                    self._soles",
        ),
    ),
    mutant(
        "condemned ban",
        "a commit names a value that was collected meanwhile and does not write it again",
        f"{BESIDE}test_a_value_that_another_handle_names_while_garbage_is_removed_stays",
        (SQLITE, "                    self._objects.uphold(id_, data)", "                    pass"),
    ),
    mutant(
        "synchronous=NORMAL",
        "a commit returns before the log is flushed",
        f"{POWER}row_is_lost",
        (CONNECTION, '    "synchronous": 2,', '    "synchronous": 1,'),
    ),
    mutant(
        "synchronous=NORMAL",
        "after the log was grown nothing is flushed any more",
        f"{POWER}row_is_lost",
        (
            WAL,
            "        if missing > 0:\n",
            '        link.execute("PRAGMA synchronous=OFF")\n        if missing > 0:\n',
        ),
    ),
    mutant(
        "pragma not read back",
        "a setting that SQLite does not take is believed",
        f"{UNIT}test_connection.py::test_a_setting_that_sqlite_does_not_take_is_an_error",
        (CONNECTION, "        if found is None or found[0] != wanted:", "        if found == ():"),
    ),
    mutant(
        "plain open of the database",
        "the database file is opened and closed beside SQLite, which drops its locks",
        f"{BESIDE}test_a_handle_that_is_closed_takes_no_commit_from_one_that_is_open",
        (
            SQLITE,
            "                self._note(writes, done)\n",
            '                self._note(writes, done); self._file.open("rb").close()\n',
        ),
    ),
    mutant(
        "connection kept over fork",
        "a forked child goes on with the connection of its parent",
        "tests/crash/test_fork.py::test_after_a_fork_only_the_process_that_opened_a_store_uses_it",
        (HANDLE, "        store._after_fork()", "        context.forget()"),
    ),
    mutant(
        "checkpoint without the lock",
        "others may commit while the log is moved into the database",
        f"{BESIDE}test_nothing_is_committed_while_the_log_is_moved_into_the_database",
        (
            WAL,
            '        failpoint.reach("store.recycling")\n',
            '        self._lock.give(); failpoint.reach("store.recycling")\n',
        ),
    ),
    mutant(
        "checkpoint without the lock",
        "others may commit while the log is emptied",
        f"{BESIDE}test_nothing_is_committed_while_the_log_is_moved_into_the_database",
        (
            WAL,
            '            failpoint.reach("store.emptying")\n',
            '            self._lock.give(); failpoint.reach("store.emptying")\n',
        ),
    ),
    mutant(
        "failed commit taken as rolled back",
        "after a failed commit the connection is used again",
        f"{UNIT}test_sqlite.py"
        "::test_on_a_full_disk_nothing_more_is_acknowledged_and_a_revived_store_goes_on",
        (
            SQLITE,
            (
                "                self._note(writes, done)\n"
                "            except StoreError as error:\n"
                "                self._fault = error\n                self._drop()\n"
            ),
            "                self._note(writes, done)\n            except StoreError:\n",
        ),
    ),
    mutant(
        "failed commit taken as rolled back",
        "a run whose write failed writes on",
        "tests/unit/store/test_writer.py::test_once_a_write_has_failed_every_later_one_is_refused",
        (
            WRITER,
            (
                "            done = self.committer.finish(ticket)\n"
                "        except Exception as error:\n"
                "            self._fault = error\n"
            ),
            "            done = self.committer.finish(ticket)\n        except Exception:\n",
        ),
    ),
    mutant(
        "failed commit taken as rolled back",
        "an error of a commit reaches nobody",
        "tests/unit/store/test_committer.py"
        "::test_an_error_reaches_everyone_whose_write_was_in_the_commit",
        (COMMITTER, "                ticket.error = error", "                ticket.done = 0"),
    ),
    mutant(
        "head note ignored",
        "what was acknowledged is not noted beside the database",
        f"{UNIT}test_sqlite.py::test_a_lost_log_is_noticed_though_sqlite_says_nothing",
        (
            HEADS,
            "                if row and check == zlib.crc32(part[:-4]):",
            "                if not row:",
        ),
    ),
    mutant(
        "head note ignored",
        "a store that misses acknowledged rows is opened all the same",
        "tests/unit/store/test_open.py"
        "::test_a_store_that_misses_acknowledged_rows_is_opened_only_to_look",
        (
            "store/open.py",
            "            if must_be_whole:\n",
            "            if not must_exist and False:\n",
        ),
    ),
    mutant(
        "schema not compared",
        "a planted trigger or view is let in",
        f"{UNIT}test_connection.py::test_any_other_schema_is_refused_and_the_stranger_named",
        (
            CONNECTION,
            "    if odd := found ^ {*wanted.items()}:",
            "    if odd := {*wanted.items()} - found:",
        ),
    ),
    mutant(
        "epoch not in commit",
        "a row is written whatever the epoch of its run",
        f"{RECORDS}test_an_append_under_another_epoch_does_nothing",
        (SCHEMA, "WHERE (SELECT epoch FROM run WHERE no=?)=? ", "WHERE (? + ?) IS NOT NULL "),
    ),
    mutant(
        "epoch not in commit",
        "a fenced writer may grow a branch",
        f"{RECORDS}test_a_fenced_branch_is_not_grown",
        (DOING, "        if not self._is_at(write.no, write.epoch):\n            return -1\n", ""),
    ),
    mutant(
        "epoch not in commit",
        "a takeover does not raise the epoch",
        "tests/unit/store/test_writer.py::test_whoever_wrote_before_a_takeover_is_fenced_for_good",
        (
            WRITER,
            "replace(old.row, epoch=old.row.epoch + 1)",
            "replace(old.row, epoch=old.row.epoch)",
        ),
    ),
    mutant(
        "seq not unique",
        "a row is written over the one that stands in its place",
        f"{RECORDS}test_another_row_in_a_used_place_is_refused",
        (SCHEMA, '    "INSERT INTO j SELECT', '    "INSERT OR REPLACE INTO j SELECT'),
    ),
    mutant(
        "seq gap allowed",
        "a row is written though the row before it is missing",
        f"{RECORDS}test_a_row_whose_forerunner_is_missing_is_refused",
        (
            SCHEMA,
            "AND (EXISTS (SELECT 1 FROM j WHERE id=?) OR EXISTS (SELECT 1 FROM pack WHERE id=?)) ",
            "AND (? + ?) IS NOT NULL ",
        ),
    ),
    mutant(
        "wall-clock lease",
        "whether a holder lives is judged by the wall clock",
        f"{LEASE}test_a_wall_clock_that_is_set_back_takes_no_run_from_anybody",
        (
            LEASES,
            (
                "        if 0 <= self._clock.monotonic() - at < 2 * BEAT_S:\n"
                "            return True\n"
                "        began = self._clock.monotonic()\n"
                "        while self._clock.monotonic() - began < self._stall_s:"
            ),
            (
                "        if 0 <= self._clock.now() - at < 2 * BEAT_S:\n            return True\n"
                "        began = self._clock.now()\n"
                "        while abs(self._clock.now() - began) < self._stall_s:"
            ),
        ),
        (
            LEASES,
            "_BEAT.pack(count, self._clock.monotonic())",
            "_BEAT.pack(count, self._clock.now())",
        ),
    ),
    mutant(
        "wall-clock lease",
        "a run is taken from a holder that beats",
        f"{LEASE}test_a_holder_that_beats_keeps_its_run",
        (
            LEASES,
            "            if self._read(run)[0] != count:\n                return True\n",
            "            if self._read(run)[0] != count:\n                return False\n",
        ),
        (
            LEASES,
            "        if 0 <= self._clock.monotonic() - at < 2 * BEAT_S:\n            return True\n",
            "",
        ),
    ),
]
