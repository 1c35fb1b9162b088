"""Taking a killed session up again from its journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..base.errors import InputError, RefusedError
from ..build.record import record
from ..measure.numbers import PrintedCell, Trace
from .acro_records import add_record, draft_of, validate_draft
from .core import SessionCore
from .entries import Candidate, Entry
from .header import header
from .journal import Journal

Session = TypeVar("Session", bound=SessionCore)


def resume(make: Callable[..., Session], acro: Any, folder: Path, kwargs: dict[str, Any]) -> Session:
    """See `DeltabSession.resume`.

    A spend that no recorded output belongs to stays spent: its noise may have been drawn. It is listed in the
    session's report and by `ledger history`.
    """
    old = Journal(folder)
    old.repair()
    steps = list(old.steps())
    if not steps or steps[0].get("step") != "start":
        raise InputError(
            "this is no session journal", path=folder, next_step="Name the folder that holds journal.jsonl."
        )
    if any(step["step"] == "finalised" for step in steps):
        raise RefusedError("that session was finalised", next_step="Start a new session.")
    start = steps[0]
    session = make(acro, cohort=kwargs.pop("cohort", start["cohort"]), journal=folder.parent, _resumed=folder, **kwargs)
    if session.ruleset.sha256 != start["rule_set"]["sha256"]:
        raise RefusedError(
            "the rule set has changed since that session began",
            next_step="Use the rule set it began with, or start a new session.",
        )
    if session.cohort != start["cohort"]:
        raise RefusedError("that session was about another cohort", next_step="Name the same cohort.")
    session.id, session.salt, session.started = start["id"], start["salt"], start["started"]
    if any(step["step"] == "attack_report" for step in steps):
        session.attack_report = folder / "attack.json"
    for step in steps:
        if step["step"] == "config":
            session.config_changes.append(step["change"])
    for step in _kept(steps):
        _take_up(session, Entry.from_journal(step["entry"]), step["cells"], step.get("trace"))
    trainings = [step for step in steps if step["step"] == "trained"]
    if trainings:
        session.n_least = next((t["n_least"] for t in reversed(trainings) if t["n_least"] is not None), None)
        session.not_checked.append("the session was taken up again: its private models of before are gone")
    paid = {spend for entry in session.entries for spend in entry.spends}
    session.orphans = [step["entry"] for step in steps if step["step"] == "spend" and step["entry"] not in paid]
    return session


def _kept(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Output steps that were not dropped afterwards; a name may be used again after a drop."""
    kept: dict[str, dict[str, Any]] = {}
    for step in steps:
        if step["step"] == "output":
            kept[step["entry"]["name"]] = step
        if step["step"] == "drop":
            kept.pop(step["name"], None)
    return list(kept.values())


def _take_up(session: SessionCore, entry: Entry, cells: list[dict[str, Any]], trace: dict[str, Any] | None) -> None:
    draft = draft_of(record(entry.to_evidence(), entry.document, header(session)), session.journal.files)
    validate_draft(draft, taken=[name for other in session.entries for name in other.files])
    printed = [PrintedCell(**{**cell, "members": np.array(cell["members"], dtype=np.int64)}) for cell in cells]
    for name in {cell.variable for cell in printed if cell.variable is not None}:
        session.state.linked.values[name] = np.load(session.journal.folder / f"{name}.npy", allow_pickle=False)
    add_record(session.live, draft)
    session.entries.append(entry)
    state = session.state
    kept = None if trace is None else Trace.load(trace, session.journal.folder)
    if kept is not None:
        state.traces.append(kept)
    told = state.told(kept)
    if not entry.kept_inside:
        state.linked.publish(printed, entry.suppressed, entry.complementary, told)
    if (printed or told) and entry.raw is not None:
        state.wanted[entry.name] = Candidate(
            entry.raw, entry.facts, tuple(printed), n=entry.n, trace=kept, moments=told, made_of=entry.made_of
        )
