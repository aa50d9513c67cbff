"""Faults planted in the seals of an encrypted store, one for each thing that they bind."""

from tests.mutants.mutant import mutant

AEAD = "store/seal/aead.py"
FRAME = "store/codec/frame.py"
SEALED = "store/seal/sealed.py"
KEYS = "store/seal/keys.py"
CHUNKS = "store/seal/chunks.py"
PROVIDER = "store/seal/provider.py"
PACKER = "store/seal/packer.py"
CIPHER = "tests/unit/store/seal/test_aead.py::"
KEYED = "tests/unit/store/seal/test_keys.py::"
LARGE = "tests/unit/store/seal/test_chunks.py::"
PLACES = "tests/unit/store/seal/test_places.py::"
PACKED = "tests/unit/store/seal/test_packer.py::"
CONTRACT = "tests/contract/test_seals.py::TestSealed::"

SEALS = [
    mutant(
        "bytes left out of the salt",
        "the nonce does not depend on the bytes",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (AEAD, 'message = len(bound).to_bytes(4, "big") + bound + payload', "message = bound"),
    ),
    mutant(
        "bytes left out of the salt",
        "the nonce leaves out the last byte",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (AEAD, "+ bound + payload\n", "+ bound + payload[:-1]\n"),
    ),
    mutant(
        "bytes left out of the salt",
        "the nonce does not tell place and bytes apart",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (AEAD, 'len(bound).to_bytes(4, "big") + bound + payload', "bound + payload"),
    ),
    mutant(
        "bytes left out of the salt",
        "the nonce is always the same",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (AEAD, "nonce = self.nonce(bound, payload)", "nonce = bytes(NONCE_BYTES)"),
    ),
    mutant(
        "bytes left out of the salt",
        "the nonce needs no key",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (
            AEAD,
            "hashlib.blake2b(message, key=self._nonces, digest_size",
            "hashlib.blake2b(message, digest_size",
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the header is not authenticated",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (
            AEAD,
            "sealed = self._aead.encrypt(nonce, payload, bound)",
            "sealed = self._aead.encrypt(nonce, payload, place)",
        ),
        (AEAD, "sealed, place + body[:HEADER_BYTES])", "sealed, place)"),
    ),
    mutant(
        "tag skipped",
        "a mac of another length is tried",
        f"{CIPHER}test_every_bit_and_every_cut_of_seal_and_body_is_noticed",
        (AEAD, "if len(mac) != MAC_BYTES:", "if False:"),
    ),
    mutant(
        "bytes left out of the salt",
        "cipher and nonce share one key",
        f"{CIPHER}test_what_is_sealed_today_is_what_was_sealed_in_version_1",
        (
            AEAD,
            "self._nonces = parts[KEY_BYTES : 2 * KEY_BYTES]",
            "self._nonces = parts[:KEY_BYTES]",
        ),
    ),
    mutant(
        "commitment skipped",
        "every key has the same commitment",
        f"{CIPHER}test_a_commitment_says_which_key_is_meant",
        (
            AEAD,
            "self.commitment = parts[2 * KEY_BYTES :]",
            "self.commitment = bytes(COMMITMENT_BYTES)",
        ),
    ),
    mutant(
        "plaintext accepted",
        "what is not sealed is accepted",
        f"{CIPHER}test_open_bytes_are_damage_and_never_data",
        (
            FRAME,
            'if not flags & _SEALED:\n        raise errors.Damaged(where, "it is not sealed',
            'if not where:\n        raise errors.Damaged(where, "it is not sealed',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the key id is not compared",
        f"{CIPHER}test_another_key_id_is_refused_and_named",
        (FRAME, "if found != key:", "if False:"),
    ),
    mutant(
        "each AAD field dropped",
        "a run's number is not bound",
        f"{CONTRACT}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            'place(b"run", row.no, row.epoch, row.head)',
            'place(b"run", row.epoch, row.head)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "a run's head is not bound",
        f"{CONTRACT}test_every_change_of_a_column_is_refused",
        (SEALED, 'place(b"run", row.no, row.epoch, row.head)', 'place(b"run", row.no, row.epoch)'),
    ),
    mutant(
        "each AAD field dropped",
        "a branch's number is not bound",
        f"{CONTRACT}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            'place(b"branch", row.no, row.run, row.parent, row.at)',
            'place(b"branch", row.run, row.parent, row.at)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "a branch's run is not bound",
        f"{CONTRACT}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            'place(b"branch", row.no, row.run, row.parent, row.at)',
            'place(b"branch", row.no, row.parent, row.at)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "a branch's parent is not bound",
        f"{CONTRACT}test_every_change_of_a_column_is_refused",
        (
            SEALED,
            'place(b"branch", row.no, row.run, row.parent, row.at)',
            'place(b"branch", row.no, row.run, row.at)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "a branch is not bound to the row before",
        f"{CONTRACT}test_every_change_of_a_column_is_refused",
        (SEALED, "row.parent, row.at) + before", "row.parent, row.at)"),
    ),
    mutant(
        "each AAD field dropped",
        "a row's run is not bound",
        f"{PLACES}test_what_stands_elsewhere_does_not_open",
        (SEALED, 'keys.place(b"row", run)', 'keys.place(b"row")'),
    ),
    mutant(
        "each AAD field dropped",
        "a packed row need not follow the row before",
        f"{PACKED}test_packed_rows_open_as_they_did_before",
        (SEALED, "if row.before != before:", "if False:"),
    ),
    mutant(
        "each AAD field dropped",
        "a pack's run is not bound",
        f"{PLACES}test_what_stands_elsewhere_does_not_open",
        (SEALED, 'place(b"pack", self._run, first, last)', 'place(b"pack", first, last)'),
        (SEALED, 'place(b"pack", self._run, *span)', 'place(b"pack", *span)'),
    ),
    mutant(
        "each AAD field dropped",
        "a pack's first row is not bound",
        f"{PLACES}test_what_stands_elsewhere_does_not_open",
        (SEALED, 'place(b"pack", self._run, first, last)', 'place(b"pack", self._run, last)'),
        (SEALED, 'place(b"pack", self._run, *span)', 'place(b"pack", self._run, span[1])'),
    ),
    mutant(
        "each AAD field dropped",
        "a pack's last row is not bound",
        f"{PLACES}test_what_stands_elsewhere_does_not_open",
        (SEALED, 'place(b"pack", self._run, first, last)', 'place(b"pack", self._run, first)'),
        (SEALED, 'place(b"pack", self._run, *span)', 'place(b"pack", self._run, span[0])'),
    ),
    mutant(
        "each AAD field dropped",
        "a pack's ends are not bound",
        f"{PACKED}test_every_byte_of_a_pack_counts",
        (SEALED, "first, last) + ends, frame)", "first, last), frame)"),
        (SEALED, "self._run, *span) + ends", "self._run, *span)"),
    ),
    mutant(
        "each AAD field dropped",
        "intents of all runs have the same names",
        f"{PLACES}test_names_tell_kinds_and_runs_apart",
        (SEALED, 'self._run.to_bytes(8, "big") + intent)', "intent)"),
    ),
    mutant(
        "plaintext accepted",
        "ids of runs are named without a key",
        f"{LARGE}test_equal_values_of_two_stores_have_other_names_and_other_bytes",
        (
            KEYS,
            'hashlib.blake2b(kind + b"\\0" + text, key=self._names, digest_size=32)',
            'hashlib.blake2b(kind + b"\\0" + text, digest_size=32)',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "names of all kinds are the same",
        f"{KEYED}test_names_and_large_values_have_keys_of_their_own",
        (KEYS, 'hashlib.blake2b(kind + b"\\0" + text', "hashlib.blake2b(text"),
    ),
    mutant(
        "each AAD field dropped",
        "a place does not say its kind",
        f"{LARGE}test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself",
        (
            KEYS,
            'b"holdfast 1 " + kind + b"\\0" + self.store_id',
            'b"holdfast 1 " + b"\\0" + self.store_id',
        ),
    ),
    mutant(
        "commitment skipped",
        "the commitment of the store key is skipped",
        f"{KEYED}test_a_key_service_that_gives_another_key_is_found_out_before_anything_is_opened",
        (KEYS, "if not hmac.compare_digest(cipher.commitment, root.commitment):", "if False:"),
    ),
    mutant(
        "each AAD field dropped",
        "the provider's kind is not authenticated",
        f"{KEYED}test_every_byte_of_the_row_that_holds_the_store_key_counts",
        (
            KEYS,
            "[root.kind, root.key, root.wrapped, root.commitment]",
            "[root.key, root.wrapped, root.commitment]",
        ),
    ),
    mutant(
        "each AAD field dropped",
        "the wrapped key is not authenticated",
        f"{KEYED}test_another_wrapping_of_the_same_key_does_not_stand_in_for_the_first",
        (
            KEYS,
            "[root.kind, root.key, root.wrapped, root.commitment]",
            "[root.kind, root.key, root.commitment]",
        ),
    ),
    mutant(
        "bytes left out of the salt",
        "names and large values share one key",
        f"{KEYED}test_names_and_large_values_have_keys_of_their_own",
        (KEYS, "self.chunks = derive(secret, _CHUNKS)", "self.chunks = derive(secret, _NAMES)"),
    ),
    mutant(
        "each AAD field dropped",
        "a wrapped key is not bound to its store",
        f"{KEYED}test_another_key_is_named_wrong_and_another_store_too",
        (
            KEYS,
            'b"holdfast store " + store_id.hex().encode() + b" key %d" % key',
            'b"holdfast store key %d" % key',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "a wrapped key is not bound to its number",
        f"{KEYED}test_another_wrapping_of_the_same_key_does_not_stand_in_for_the_first",
        (KEYS, 'store_id.hex().encode() + b" key %d" % key', "store_id.hex().encode()"),
    ),
    mutant(
        "salt over plaintext",
        "the salt of a large value is over its digest",
        f"{LARGE}test_the_key_covers_the_bytes_as_compressed",
        (
            CHUNKS,
            "hashlib.blake2b(header + payload, key=secret",
            "hashlib.blake2b(digest, key=secret",
        ),
    ),
    mutant(
        "bytes left out of the salt",
        "the salt leaves out bytes",
        f"{LARGE}test_the_key_covers_the_bytes_as_compressed",
        (
            CHUNKS,
            "hashlib.blake2b(header + payload, key=secret",
            "hashlib.blake2b(header + payload[:-1], key=secret",
        ),
    ),
    mutant(
        "salt over plaintext",
        "the salt leaves out the header",
        f"{LARGE}test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself",
        (
            CHUNKS,
            "hashlib.blake2b(header + payload, key=secret",
            "hashlib.blake2b(payload, key=secret",
        ),
    ),
    mutant(
        "salt over plaintext",
        "the salt needs no secret",
        f"{LARGE}test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself",
        (
            CHUNKS,
            "hashlib.blake2b(header + payload, key=secret, digest_size",
            "hashlib.blake2b(header + payload, digest_size",
        ),
    ),
    mutant(
        "bytes left out of the salt",
        "the key of a large value needs no digest",
        f"{LARGE}test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself",
        (CHUNKS, "secret = self._chunk_keys.chunks + digest", "secret = self._chunk_keys.chunks"),
        (
            CHUNKS,
            "self._aead(self._chunk_keys.chunks + digest, salt)",
            "self._aead(self._chunk_keys.chunks, salt)",
        ),
    ),
    mutant(
        "bytes left out of the salt",
        "the key of a large value has no salt",
        f"{LARGE}test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself",
        (
            CHUNKS,
            'AESGCM(derive(secret, b"holdfast 1 chunk", salt=salt))',
            'AESGCM(derive(secret, b"holdfast 1 chunk"))',
        ),
    ),
    mutant(
        "each AAD field dropped",
        "a large value's header is not bound",
        f"{LARGE}test_a_sealed_value_is_made_as_the_format_says_and_its_key_needs_the_value_itself",
        (CHUNKS, "self.name_chunk(digest) + header\n", "self.name_chunk(digest)\n"),
    ),
    mutant(
        "plaintext accepted",
        "a large value is named by its digest",
        f"{LARGE}test_equal_values_are_one_object_under_a_name_that_says_nothing",
        (CHUNKS, 'return self._chunk_keys.name(b"chunk", digest)', "return digest"),
    ),
    mutant(
        "salt over plaintext",
        "the salt of a wrapping is chance alone",
        f"{KEYED}test_chance_that_repeats_wraps_no_two_keys_under_one_salt",
        (
            PROVIDER,
            "mixed = secrets.token_bytes(_SALT_BYTES) + key + context",
            "mixed = secrets.token_bytes(_SALT_BYTES)",
        ),
    ),
    mutant(
        "salt over plaintext",
        "the salt of a wrapping has no chance in it",
        f"{KEYED}test_wrapping_twice_gives_other_bytes_and_is_bound_to_its_context",
        (
            PROVIDER,
            "mixed = secrets.token_bytes(_SALT_BYTES) + key + context",
            "mixed = key + context",
        ),
    ),
    mutant(
        "salt over plaintext",
        "the salt of a wrapping is fixed",
        f"{KEYED}test_wrapping_twice_gives_other_bytes_and_is_bound_to_its_context",
        (
            PROVIDER,
            "salt = hashlib.blake2b(mixed, key=root, digest_size=_SALT_BYTES).digest()",
            "salt = bytes(_SALT_BYTES)",
        ),
    ),
    mutant(
        "commitment skipped",
        "the commitment of a wrapping is skipped",
        f"{KEYED}test_another_key_is_named_wrong_and_another_store_too",
        (PROVIDER, "if not hmac.compare_digest(commitment, rest[:COMMITMENT_BYTES]):", "if False:"),
    ),
    mutant(
        "each AAD field dropped",
        "the context of a wrapping is not bound",
        f"{KEYED}test_another_key_is_named_wrong_and_another_store_too",
        (PROVIDER, 'info = b"holdfast 1 wrap\\0" + context', 'info = b"holdfast 1 wrap\\0"'),
        (PROVIDER, ".encrypt(_NONCE, key, context)", '.encrypt(_NONCE, key, b"")'),
        (PROVIDER, "rest[COMMITMENT_BYTES:], context)", 'rest[COMMITMENT_BYTES:], b"")'),
    ),
    mutant(
        "commitment skipped",
        "commitment and key of a wrapping are the same",
        f"{KEYED}test_the_commitment_of_a_wrapping_is_not_the_key_that_wraps",
        (
            PROVIDER,
            "return made[:KEY_BYTES], made[KEY_BYTES:]",
            "return made[:KEY_BYTES], made[:KEY_BYTES]",
        ),
    ),
    mutant(
        "each AAD field dropped",
        "rows of a pack are chained to the wrong end",
        f"{PACKED}test_packed_rows_open_as_they_did_before",
        (
            PACKER,
            "befores = [body[_ENDS][:MAC_BYTES], *(row.mac for row in rows)]",
            "befores = [body[_ENDS][MAC_BYTES:], *(row.mac for row in rows)]",
        ),
    ),
]
