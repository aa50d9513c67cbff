"""Restarting runs for an operator: one with its plan, or all that need it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.cli import apps
from holdfast.cli.carry import carry_out
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.output import ask, can_ask, emit, print_result, tell
from holdfast.cli.stores import find_run, opened, status_of_info
from holdfast.cli.story import decided
from holdfast.cli.words import Word, in_full
from holdfast.engine.agents import Agent
from holdfast.engine.handle import RUNS_MAX, Store
from holdfast.engine.handle import open as open_store
from holdfast.errors import HoldfastError, UnknownAgent, UsageError
from holdfast.model.run import RunBody, RunInfo, Status
from holdfast.report.doubts import Doubt
from holdfast.report.timeline import timeline

EXIT_UNSUCCESSFUL = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Consent:
    """How far a person has agreed beforehand."""

    is_given: bool
    is_dry_run: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class How:
    """What a person says that changes the record of a run."""

    words: Sequence[Word] = ()
    redo_turn: bool = False
    allow: str | None = None
    revive: bool = False
    reason: str | None = None


def restart_one(config: Config, text: str, consent: Consent, how: How) -> int:
    """Continue the run whose id begins with `text`; what changes its record is asked for first."""
    with opened(config.store) as found:
        run = find_run(found.reader, text, config.store)
        doubts = timeline(found.reader, run).doubts if how.words else []
    body = run.body
    agent = apps.find(body.agent, body.module, apps.load(config.app))
    words = [in_full(word, body.id, doubts) for word in how.words]
    plan = _plan(body, doubts, words, how)
    if consent.is_dry_run:
        return _foretell(config, body, agent, plan)
    if words or how.redo_turn or how.allow:
        tell("\n".join(plan))
        if not consent.is_given and not _agreed():
            return 0
    with open_store(config.store, must_exist=True, **config.saving) as store:
        for word in words:
            store.resolve(body.id, word.key, happened=word.happened, outcome=word.outcome)
        if how.allow is not None:
            store.allow(body.id, how.allow, reason=how.reason)
        result = carry_out(
            store,
            body.id,
            lambda: store.restart(
                body.id,
                agent=agent,
                redo_turn=how.redo_turn,
                revive=how.revive,
                reason=how.reason,
            ),
            config,
        )
    print_result(config.output, body.id, result)
    return 0


def _foretell(config: Config, body: RunBody, agent: Agent[..., Any], plan: list[str]) -> int:
    """What would be done, and what would be decided by itself; nothing is."""
    decision = None
    if body.status not in (Status.FINISHED, Status.CANCELLED):
        with open_store(config.store, must_exist=True) as store:
            decision = store.decide(body.id, agent=agent)
        plan.append(f"by itself, supervised, it would be: {decided(decision)}")
        plan += [f"  off: {rule}" for rule in decision.off]
    document = {"run": body.id, "status": body.status, "plan": plan, "decision": decision}
    emit(config.output, document=document, lines=[document], grids=plan)
    return 0


def _agreed() -> bool:
    if not can_ask():
        msg = "there is no terminal to ask on, so nothing was done; --yes goes ahead"
        raise UsageError(msg)
    is_agreed = ask("Go ahead?")
    if not is_agreed:
        tell("nothing was done")
    return is_agreed


def _plan(body: RunBody, doubts: Sequence[Doubt], words: Sequence[Word], how: How) -> list[str]:
    """What will be done, in words."""
    plan = [f"run {body.id} of {body.module}:{body.agent}, {body.status}"]
    effects = {doubt.key: f"{doubt.effect}({doubt.asked})" for doubt in doubts}
    for word in words:
        what = "happened" if word.happened else "did not happen: it is done anew"
        plan.append(f"- record that {effects[word.key]} {what}; this cannot be taken back")
    if how.allow is not None:
        plan.append(f"- let the effect with key {how.allow} pass the fence, once: {body.error}")
    if body.status is Status.FINISHED:
        return [*plan, "- print its recorded result: it has finished"]
    if how.redo_turn:
        plan.append("- drop the recorded steps of the unfinished turn (kept on the old branch);")
        plan.append("  its effects stand and are matched by what they mean to do")
    plan.append("- continue it from its newest point")
    return plan


def restart_all(config: Config, *, is_failed_too: bool, is_dry_run: bool) -> int:
    """One after the other, oldest first; goes on after one that does not end well."""
    rows: list[dict[str, object]] = []
    with open_store(config.store, must_exist=True, **config.saving) as store:
        asking = {item.run for item in store.inbox() if item.state == "open"}
        known = {info.id: info for info in store.runs(limit=RUNS_MAX)[::-1]}
        waiting = [
            info
            for info in known.values()
            if _is_due(info, is_failed_too)
            and not _is_given_up(info, known)
            and not (info.status is Status.WAITING and info.id in asking)
        ]
        modules = apps.load(config.app)
        if waiting and not modules and not is_dry_run:
            raise UnknownAgent(f"{waiting[0].module}:{waiting[0].agent}", "no module was named")
        for info in waiting:
            if is_dry_run:
                rows.append(_row(info, status_of_info(info), "would be restarted"))
            else:
                rows.append(_try(store, config, info, modules))
    emit(
        config.output,
        document={"runs": rows},
        lines=rows,
        grids=[_grid(rows) if rows else "nothing to restart"],
    )
    is_well = is_dry_run or all(row["status"] == Status.FINISHED for row in rows)
    return 0 if is_well else EXIT_UNSUCCESSFUL


def _is_due(info: RunInfo, is_failed_too: bool) -> bool:  # noqa: FBT001 private
    if info.status in {Status.FAILED, Status.DIVERGED}:
        return is_failed_too
    return info.is_interrupted or info.status in {Status.IN_DOUBT, Status.WAITING}


def _is_given_up(info: RunInfo, known: Mapping[str, RunInfo]) -> bool:
    """Whether it is a child whose parent came to its end without it."""
    parent = known.get(info.origin.run) if info.origin and info.origin.is_child else None
    return parent is not None and parent.status is Status.FINISHED


def _try(store: Store, config: Config, info: RunInfo, modules: frozenset[str]) -> dict[str, object]:
    try:
        agent = apps.find(info.agent, info.module, modules)
        carry_out(
            store,
            info.id,
            lambda: store.restart(info.id, agent=agent),
            config,
        )
    except HoldfastError as error:
        return _row(info, status_of_info(store.get(info.id)), str(error))
    return _row(info, str(Status.FINISHED), "")


def _row(info: RunInfo, status: str, detail: str) -> dict[str, object]:
    return {
        "id": info.id,
        "agent": info.agent,
        "module": info.module,
        "status": status,
        "detail": detail,
    }


def _grid(rows: Sequence[dict[str, object]]) -> Grid:
    shown = [
        (str(row["id"]), f"{row['module']}:{row['agent']}", str(row["status"]), str(row["detail"]))
        for row in rows
    ]
    return Grid(columns=("id", "agent", "status", "detail"), rows=shown)
