"""Faults planted in what a run does: effects once, answers recorded, words of people kept."""

from tests.mutants.mutant import mutant

EFFECT, CALL, FENCE = "engine/effect.py", "engine/call.py", "engine/fence.py"
ASK, BUDGET, STANDING = "engine/ask.py", "engine/budget.py", "policy/standing.py"
POLICY, INTENT, TURNS = "policy/effects.py", "engine/intent.py", "engine/turns.py"
BOOK, LOWER, LIFE = "engine/book.py", "store/codec/lower.py", "engine/life.py"
SESSION = "engine/session.py"

EFFECTS = "tests/engine/test_effects.py::"
DOUBT = "tests/engine/test_doubt.py::"
FENCED = "tests/engine/test_fence.py::"
KILLERS = "tests/mutants/test_killers.py::"

ACTS = [
    mutant(
        "intent after call",
        "an effect is called before its intent is durable",
        f"{KILLERS}test_an_effect_killed_right_after_it_was_done_is_not_done_again",
        (
            EFFECT,
            (
                "    try:\n        yield Commit(deed.here, ticket, begins=True)\n"
                "    except BaseException as cut:\n        _not_begun(deed, how, cut)\n"
                "        raise\n"
            ),
            "",
        ),
    ),
    mutant(
        "outcome before call returns",
        "the outcome of an effect is handed out before it is durable",
        f"{EFFECTS}test_an_intent_is_durable_before_the_call_and_the_outcome_before_it_returns",
        (
            EFFECT,
            '    failpoint.reach("effect.recording")\n    yield Commit(deed.here, ticket)\n',
            '    failpoint.reach("effect.recording")\n',
        ),
    ),
    mutant(
        "outcome before call returns",
        "an effect is recorded as done before it is called",
        f"{KILLERS}test_an_effect_killed_right_before_it_is_done_is_done_after_all",
        (
            EFFECT,
            '    failpoint.reach("effect.intended", deed.call)\n',
            (
                "    yield from _happened(deed, None, 0.0, how)\n"
                '    failpoint.reach("effect.intended", deed.call)\n'
            ),
        ),
    ),
    mutant(
        "in doubt fired again",
        "an effect in doubt that may not be repeated is repeated",
        f"{DOUBT}test_an_effect_with_neither_stops_the_run_and_is_listed",
        (POLICY, "    return Move.STOP", "    return Move.REPEAT"),
    ),
    mutant(
        "in doubt fired again",
        "what the probe found is done again",
        f"{DOUBT}test_after_a_crash_the_probe_decides",
        (
            EFFECT,
            "    if found is not None:\n        value = None if",
            "    if found is deed:\n        value = None if",
        ),
    ),
    mutant(
        "in doubt fired again",
        "a probe that cannot tell counts as not done",
        f"{DOUBT}test_a_probe_that_cannot_tell_leaves_it_in_doubt",
        (
            EFFECT,
            (
                '        why = f"its probe raised {type(unknown).__name__}: {unknown}"\n'
                "        raise _doubt(deed, why) from unknown\n"
            ),
            "        found = None if unknown else unknown\n",
        ),
    ),
    mutant(
        "in doubt fired again",
        "an error of a call counts as proof that nothing happened",
        f"{DOUBT}test_in_process_the_probe_decides_at_once",
        (
            EFFECT,
            "        if not isinstance(error, (NotDone, *spec.not_done)):",
            "        if session.stopped is error:",
        ),
    ),
    mutant(
        "in doubt fired again",
        "a run that swallows a doubt goes on",
        f"{DOUBT}test_a_doubt_that_the_agent_swallows_still_stops_the_run",
        (SESSION, "        self.stopped = self.stopped or why\n", ""),
    ),
    mutant(
        "in doubt fired again",
        "a repeated effect has another idempotency key",
        f"{DOUBT}test_an_idempotent_effect_is_repeated_under_the_same_key",
        (INTENT, 'intent + nth.to_bytes(8, "big"))', "intent + os.urandom(8))"),
        (INTENT, "import hashlib\n", "import hashlib\nimport os\n"),
        (
            EFFECT,
            "Aim(meaning=meant, nth=intended.nth, key=intended.key)",
            'Aim(meaning=meant, nth=intended.nth, key=f"{intended.key}{id(record)}")',
        ),
    ),
    mutant(
        "in doubt fired again",
        "the fence lets an effect pass that stands on another branch",
        f"{FENCED}test_the_same_intent_gets_the_recorded_outcome",
        (
            FENCE,
            "            if not self._is_split(rows):\n                return Look(",
            "            if self._fates:\n                return Look(",
        ),
    ),
    mutant(
        "in doubt fired again",
        "another effect about the same thing is not blocked",
        f"{FENCED}test_another_intent_about_the_same_thing_is_blocked_until_a_person_allows_it",
        (
            FENCE,
            "            if self._stands(each) and not self._is_allowed(aim.key):",
            "            if self._nth is None:",
        ),
    ),
    mutant(
        "in doubt fired again",
        "of two lines that do the same in one moment both do it",
        f"{FENCED}test_of_two_lines_that_pay_in_the_same_moment_one_pays",
        (FENCE, "        return look.seen != self._off(look.aim.meaning)", "        return False"),
    ),
    mutant(
        "approval revived",
        "a leave given on another branch counts again",
        "tests/engine/test_approve.py::test_a_rollback_revives_no_leave_and_no_question",
        (
            ASK,
            "    return branch_of(record.row) == session.writer.run.row.head",
            "    return branch_of(record.row) > 0",
        ),
        (
            ASK,
            "    where = repr((session.writer.run.row.head, key_of(call))).encode()",
            "    where = repr(key_of(call)).encode()",
        ),
    ),
    mutant(
        "approval revived",
        "a permission holds for a fork too",
        f"{FENCED}test_a_fork_inherits_no_permission",
        (FENCE, " if branch_of(id_) in own]", " if own]"),
        (
            FENCE,
            "for id_ in self._on(self._fates.rows(key_mark(key)))",
            "for id_ in self._fates.rows(key_mark(key))",
        ),
    ),
    mutant(
        "approval revived",
        "a leave that was not used in time is good for ever",
        "tests/engine/test_approve.py::test_an_approval_given_in_time_and_not_used_in_time_is_void",
        (
            ASK,
            '    if how == "approved" and is_expired(asked, now):',
            '    if how == "approved" and now < 0:',
        ),
    ),
    mutant(
        "approval revived",
        "an effect that needs a leave is done without one",
        "tests/engine/test_approve.py::test_nothing_is_done_before_a_person_allows_it",
        (
            EFFECT,
            "    if spec.approve is not None:\n",
            "    if spec.approve is not None and spec.limit_s:\n",
        ),
    ),
    mutant(
        "budget restored",
        "a rollback gives back what was spent",
        "tests/engine/test_budget.py::test_a_rollback_gives_nothing_back",
        (
            STANDING,
            "        return Decimal(0) if newest is None else Decimal(newest.total)",
            "        return Decimal(0)",
        ),
    ),
    mutant(
        "budget restored",
        "an interrupted run spends twice",
        "tests/engine/test_budget.py::test_an_interrupted_run_spends_once",
        (
            BUDGET,
            "            if id_ in standing.spendings:\n                return None",
            "            if id_ is None:\n                return None",
        ),
    ),
    mutant(
        "outcome before call returns",
        "an answer is handed out before it is durable",
        f"{KILLERS}test_an_answer_that_was_handed_out_is_never_asked_for_again",
        (
            CALL,
            "    if session.pacer.waits_for(ticket):\n        yield Commit(here, ticket)\n",
            "",
        ),
    ),
    mutant(
        "outcome before call returns",
        "a result is handed out before it is durable",
        f"{KILLERS}test_a_result_that_was_handed_out_is_the_result_for_ever",
        (
            LIFE,
            (
                '                failpoint.reach("run.ending")\n'
                "                begun.session.writer.finish(ticket)\n"
            ),
            '                failpoint.reach("run.ending")\n',
        ),
    ),
    mutant(
        "in doubt fired again",
        "a replay that asks something else goes on as if nothing were",
        "tests/engine/test_diverged.py"
        "::test_the_first_difference_is_shown_and_nothing_is_overwritten",
        (
            BOOK,
            "        if due:\n            first = min(due",
            "        if not due and due is None:\n            first = min(due",
        ),
    ),
    mutant(
        "in doubt fired again",
        "a turn goes on from an older state than the newest",
        "tests/engine/test_turns.py",
        (
            TURNS,
            "                    self._next_turn, self._is_restored = entry.turn + 1, False",
            "                    self._next_turn, self._is_restored = entry.turn, False",
        ),
    ),
    mutant(
        "secret after hash",
        "what is stored still holds the secrets that were declared",
        "tests/engine/test_secrets.py"
        "::test_known_secrets_come_back_exact_and_are_nowhere_in_the_store",
        (LOWER, "            if vault.may_hold(data):\n", "            if not data:\n"),
    ),
    mutant(
        "secret after hash",
        "a renewed secret makes another question",
        "tests/engine/test_secrets.py"
        "::test_a_renewed_secret_changes_no_question_and_comes_back_new",
        (
            LOWER,
            "            self._leaves[Secret] = veil.write_secret_canonical\n",
            "            self._leaves[Secret] = str.__str__\n",
        ),
    ),
]
