"""Faults planted in what says that stored bytes are what was written, where they were written."""

from tests.mutants.mutant import mutant

CHAIN, READER, FRAME = "store/chain.py", "store/reader.py", "store/codec/frame.py"
PACKS, CATALOG, CHUNKS = "store/backends/packs.py", "store/backends/catalog.py", "store/chunks.py"
AEAD, KEYS, SEALED = "store/seal/aead.py", "store/seal/keys.py", "store/seal/sealed.py"
CHUNK_SEALS, ANCHOR = "store/seal/chunks.py", "store/anchor.py"

HASHES = "tests/unit/store/test_chain.py::"
HASHED = "tests/contract/test_seals.py::TestHashed::"
SEALS = "tests/contract/test_seals.py::TestSealed::"
PACKER, PACKED = "store/packer.py", "tests/unit/store/test_packer.py::"
READ = "tests/unit/store/test_reader.py::"
CIPHER = "tests/unit/store/seal/test_aead.py::"
KEYED = "tests/unit/store/seal/test_keys.py::"
LARGE = "tests/unit/store/seal/test_chunks.py::"
BODY = "tests/unit/store/codec/test_frame.py::"
KILLERS = "tests/mutants/test_killers.py::"
GOLDEN = (
    "tests/golden/test_golden.py::test_a_golden_store_is_whole_and_every_point_restores_as_it_was"
)
SWAPPED = f"{SEALS}test_every_row_in_every_other_rows_place_is_refused"

ROWS = [
    mutant(
        "row hash skipped",
        "a journal row is not compared with its hash",
        f"{HASHED}test_every_bit_of_a_row_counts",
        (
            CHAIN,
            "    if not is_whole or mac != row_mac(store_id, id_, before, body):",
            "    if not is_whole:",
        ),
    ),
    mutant(
        "row hash skipped",
        "a run's row is not compared with its hash",
        f"{HASHED}test_every_change_of_a_column_is_refused",
        (
            CHAIN,
            "    if not is_whole or row.mac != run_mac(store_id, row):",
            "    if not is_whole:",
        ),
    ),
    mutant(
        "row hash skipped",
        "a pruned row is not compared with the hash of what stands in its place",
        f"{KILLERS}test_what_stands_in_place_of_a_pruned_row_is_checked",
        (CHAIN, "        if mac != pruned_mac(self.store_id, row, frame):", "        if not mac:"),
    ),
    mutant(
        "column outside the hash",
        "the epoch of a run is outside its hash",
        f"{HASHED}test_every_change_of_a_column_is_refused",
        (CHAIN, "_THREE.pack(row.no, row.epoch, row.head)", "_THREE.pack(row.no, 0, row.head)"),
    ),
    mutant(
        "column outside the hash",
        "where a branch grew from is outside its hash",
        f"{HASHED}test_every_change_of_a_column_is_refused",
        (
            CHAIN,
            "_FOUR.pack(row.no, row.run, row.parent, row.at)",
            "_FOUR.pack(row.no, row.run, row.parent, 0)",
        ),
    ),
    mutant(
        "column outside the hash",
        "the id of a journal row is outside its hash",
        f"{HASHED}test_every_change_of_a_column_is_refused",
        (CHAIN, 'b"j" + store_id + row.to_bytes(8, "big") + before', 'b"j" + store_id + before'),
    ),
    mutant(
        "column outside the hash",
        "the store is outside the hash of a journal row",
        f"{HASHED}test_every_row_in_every_other_rows_place_is_refused",
        (CHAIN, 'b"j" + store_id + row.to_bytes(8, "big")', 'b"j" + row.to_bytes(8, "big")'),
        (CHAIN, 'b"branch" + store_id + place', 'b"branch" + place'),
    ),
    mutant(
        "prev hash skipped",
        "a row does not say which row it follows",
        f"{HASHES}test_a_row_follows_only_the_row_that_it_was_written_after",
        (CHAIN, 'row.to_bytes(8, "big") + before + body', 'row.to_bytes(8, "big") + body'),
    ),
    mutant(
        "seq gap allowed",
        "a journal that ends too early is read as if it were whole",
        f"{KILLERS}test_a_journal_that_ends_too_early_is_never_read_as_whole",
        (READER, "        if expected <= span.last:", "        if expected < span.first:"),
    ),
    mutant(
        "index trusted",
        "a run is believed to be the one that its index names",
        f"{READ}test_a_run_that_is_filed_under_the_name_of_another_is_damage",
        (READER, "        elif found.body.id != run:", "        elif not found.body.id:"),
    ),
    mutant(
        "index trusted",
        "a run that its index does not find is started anew",
        "tests/corruption/test_findings.py"
        "::test_a_run_that_its_index_does_not_find_is_not_started_anew",
        (READER, "            self._records.check_catalog()  # ", "            pass  # "),
    ),
    mutant(
        "index trusted",
        "a run whose own row is lost is started anew",
        "tests/corruption/test_findings.py::test_a_run_whose_row_is_lost_is_not_started_anew",
        (
            CATALOG,
            '    UNLISTED.format(how="NOT INDEXED", span="")',
            '    UNFILED.format(span=" ")',
        ),
    ),
    mutant(
        "index trusted",
        "a pack is believed to begin where its column says",
        "tests/unit/store/backends/test_packs.py::test_a_pack_with_a_wrong_column_is_damage",
        (
            PACKS,
            "    if first + len(rows) - 1 != last:",
            "    if not rows:",
        ),
    ),
    mutant(
        "row hash skipped",
        "values of a pack are read without a look at its hash",
        f"{PACKED}test_any_change_of_a_pack_is_refused_by_who_reads_its_values",
        (PACKER, "        if body[_MAC] != pack_mac(", "        if not body[_MAC] and pack_mac("),
    ),
    mutant(
        "row hash skipped",
        "the hash of a pack vouches for a row that was changed before",
        f"{PACKED}test_the_hash_of_a_pack_does_not_vouch_for_a_row_that_was_changed_before",
        (PACKER, "            return False\n", "            return True\n"),
    ),
    mutant(
        "row hash skipped",
        "the values of a pack need not follow the rows before it",
        "tests/engine/test_beside.py::test_a_pack_from_another_line_of_history_gives_no_value",
        (
            READER,
            "                    if before == pack.ends[0]:",
            "                    if before:",
        ),
    ),
    mutant(
        "row hash skipped",
        "a large value is not compared with its name",
        "tests/unit/store/test_chunks.py::test_a_chunk_with_other_bytes_is_refused",
        (
            "store/large.py",
            "    if len(found) != length(reference) or digest != value_id(reference):",
            "    if len(found) > length(reference):",
        ),
    ),
    mutant(
        "bomb cap off",
        "a packed body is unpacked to whatever length it has",
        f"{BODY}test_a_bomb_is_not_unpacked_beyond_its_stated_length",
        (FRAME, "opened.decompress(packed, max_length=plain + 1)", "opened.decompress(packed)"),
    ),
    mutant(
        "tag skipped",
        "what is sealed is opened without its tag",
        f"{CIPHER}test_every_bit_and_every_cut_of_seal_and_body_is_noticed",
        (
            AEAD,
            (
                "        except InvalidTag:\n            raise Damaged(\n"
                '                where, "its seal does not match its bytes, its place or its key"\n'
                "            ) from None\n"
            ),
            (
                "        except InvalidTag:\n            payload = self._aead.encrypt(\n"
                "                mac[:NONCE_BYTES], body[HEADER_BYTES:], None\n"
                "            )[:-TAG_BYTES]\n"
            ),
        ),
    ),
    mutant(
        "tag skipped",
        "the place of what is sealed is not authenticated",
        SWAPPED,
        (
            AEAD,
            "        sealed = self._aead.encrypt(nonce, payload, bound)",
            "        sealed = self._aead.encrypt(nonce, payload, header)",
        ),
        (AEAD, "sealed, place + body[:HEADER_BYTES])", "sealed, body[:HEADER_BYTES])"),
    ),
    mutant(
        "each AAD field dropped",
        "the header is outside the seal",
        f"{CIPHER}test_every_bit_and_every_cut_of_seal_and_body_is_noticed",
        (AEAD, "        bound = place + header", "        bound = place"),
        (AEAD, "sealed, place + body[:HEADER_BYTES])", "sealed, place)"),
    ),
    mutant(
        "each AAD field dropped",
        "the store is outside the seal",
        f"{LARGE}test_an_object_of_another_place_does_not_open_under_this_stores_id",
        (KEYS, ' + b"\\0" + self.store_id + spread', ' + b"\\0" + spread'),
    ),
    mutant(
        "each AAD field dropped",
        "the kind of a row is outside the seal",
        GOLDEN,
        (KEYS, '        return b"holdfast 1 " + kind + b"\\0"', '        return b"holdfast 1 "'),
    ),
    mutant(
        "each AAD field dropped",
        "the id of a journal row is outside its seal",
        f"{SEALS}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            '        place = self._row_place + id_.to_bytes(8, "big") + before',
            "        place = self._row_place + before",
        ),
        (
            SEALED,
            '        place = self._row_place + row.id.to_bytes(8, "big") + before',
            "        place = self._row_place + before",
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the row before is outside the seal of a journal row",
        f"{SEALS}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            '        place = self._row_place + id_.to_bytes(8, "big") + before',
            '        place = self._row_place + id_.to_bytes(8, "big")',
        ),
        (
            SEALED,
            '        place = self._row_place + row.id.to_bytes(8, "big") + before',
            '        place = self._row_place + row.id.to_bytes(8, "big")',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the epoch of a run is outside its seal",
        f"{SEALS}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            'self._keys.place(b"run", row.no, row.epoch, row.head)',
            'self._keys.place(b"run", row.no, row.head)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the name of a run is outside its seal",
        f"{SEALS}test_every_change_of_a_column_is_refused",
        (SEALED, "row.no, row.epoch, row.head) + row.kid", "row.no, row.epoch, row.head)"),
    ),
    mutant(
        "each AAD field dropped",
        "where a branch grew from is outside its seal",
        f"{SEALS}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            "row.no, row.run, row.parent, row.at) + before",
            "row.no, row.run, row.parent) + before",
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the place of a pack is outside its seal",
        "tests/unit/store/seal/test_packer.py::test_a_pack_opens_in_its_own_place_only",
        (
            SEALED,
            'self._cipher.seal(self._keys.place(b"pack", self._run, first, last) + ends, frame)',
            'self._cipher.seal(self._keys.place(b"pack", self._run), frame)',
        ),
        (
            SEALED,
            '        place = self._keys.place(b"pack", self._run, *span) + ends',
            '        place = self._keys.place(b"pack", self._run)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the name of a large value is outside its seal",
        GOLDEN,
        (
            CHUNK_SEALS,
            '        return self._chunk_keys.place(b"chunk") + self.name_chunk(digest) + header',
            '        return self._chunk_keys.place(b"chunk") + header',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the key of a run opens for another run",
        f"{KEYED}test_a_runs_key_opens_for_its_own_run_only",
        (
            KEYS,
            'self._cipher.open(self.place(b"key", run), mac',
            'self._cipher.open(self.place(b"key", 0), mac',
        ),
        (
            KEYS,
            'self._cipher.seal(self.place(b"key", run), seal',
            'self._cipher.seal(self.place(b"key", 0), seal',
        ),
    ),
    mutant(
        "commitment skipped",
        "a key that is not the store's is taken for it",
        f"{KEYED}test_a_key_service_that_gives_another_key_is_found_out_before_anything_is_opened",
        (
            KEYS,
            "    if not hmac.compare_digest(cipher.commitment, root.commitment):",
            "    if not cipher.commitment:",
        ),
    ),
    mutant(
        "plaintext accepted",
        "open bytes are data in an encrypted store",
        f"{CIPHER}test_open_bytes_are_damage_and_never_data",
        (
            AEAD,
            "        header = unmark_sealed(body, self.id, where)\n",
            (
                "        if not body[1] & 2:\n            return body\n"
                "        header = unmark_sealed(body, self.id, where)\n"
            ),
        ),
    ),
    mutant(
        "plaintext accepted",
        "a large value in clear is data in an encrypted store",
        f"{LARGE}test_a_swapped_an_open_and_a_changed_object_are_refused",
        (
            CHUNK_SEALS,
            "        header = unmark_sealed(body, 0, where)\n",
            (
                "        if not body[1] & 2:\n            return body\n"
                "        header = unmark_sealed(body, 0, where)\n"
            ),
        ),
    ),
    mutant(
        "plaintext accepted",
        "a store that says it is open is read as one though a key was given",
        "tests/sealed/test_store.py::test_an_open_store_is_refused_where_a_key_is_given",
        ("store/open.py", "    if key is not None:\n        raise NotEncrypted(str(path))\n", ""),
    ),
    mutant(
        "salt over plaintext",
        "the key of a large value does not depend on the bytes as compressed",
        f"{LARGE}test_the_key_covers_the_bytes_as_compressed",
        (
            CHUNK_SEALS,
            "hashlib.blake2b(header + payload, key=secret",
            "hashlib.blake2b(header, key=secret",
        ),
    ),
    mutant(
        "bytes left out of the salt",
        "a nonce does not depend on all bytes that are sealed under it",
        f"{KILLERS}test_two_messages_are_never_sealed_under_one_nonce[another end]",
        (
            AEAD,
            '        message = len(bound).to_bytes(4, "big") + bound + payload',
            '        message = len(bound).to_bytes(4, "big") + bound + payload[:8]',
        ),
    ),
    mutant(
        "bytes left out of the salt",
        "a nonce does not depend on the place",
        f"{KILLERS}test_two_messages_are_never_sealed_under_one_nonce[another place]",
        (
            AEAD,
            '        message = len(bound).to_bytes(4, "big") + bound + payload',
            "        message = payload",
        ),
    ),
    mutant(
        "head note ignored",
        "a store that was set back passes its anchor",
        "tests/sealed/test_anchor.py::test_a_store_set_back_to_an_older_copy_is_found",
        (ANCHOR, "        if not found:\n", "        if found is None:\n"),
        (
            ANCHOR,
            "if now.epoch < seen.epoch or (now.epoch == seen.epoch and now.head < seen.head):",
            "if now.epoch < 0:",
        ),
        (
            ANCHOR,
            "        elif found[0].mac[:MAC_BYTES] != head.mac:",
            "        elif found and found[0].mac[:MAC_BYTES] != head.mac:",
        ),
    ),
]
