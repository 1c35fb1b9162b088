"""Taking a killed session up again from its journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..base.digests import sha256_hex
from ..base.errors import InputError, RefusedError
from ..build.record import record
from ..measure.numbers import PrintedCell, Trace
from .acro_records import add_record, draft_of, validate_draft
from .core import SessionCore
from .entries import Candidate, Entry
from .header import header
from .journal import Journal
from .paid import orders_of
from .paid_models import taken_up

Session = TypeVar("Session", bound=SessionCore)


def resume(
    make: Callable[..., Session], acro: Any, folder: Path, kwargs: dict[str, Any], *, outputs: bool = True
) -> Session:
    """See `DeltabSession.resume`.

    What was paid for is there again: private models in `session.private_models`; anything else that was not recorded
    is asked for again as before, and is answered with the result that was sealed, or drawn if nobody has seen it.
    """
    old = Journal(folder)
    old.repair()
    steps = list(old.steps())
    if not steps or steps[0].get("step") != "start":
        raise InputError(
            "this is no session journal", path=folder, next_step="Name the folder that holds journal.jsonl."
        )
    start = steps[0]
    session = make(acro, cohort=kwargs.pop("cohort", start["cohort"]), journal=folder.parent, _resumed=folder, **kwargs)
    if session.ruleset.sha256 != start["rule_set"]["sha256"]:
        raise RefusedError(
            "the rule set has changed since that session began",
            next_step="Use the rule set it began with, or start a new session.",
        )
    if session.cohort != start["cohort"]:
        raise RefusedError("that session was about another cohort", next_step="Name the same cohort.")
    session.salt = start["salt"]
    if not any(step["step"] == "finalised" for step in steps):  # else a second folder, which is another session's
        session.id, session.started = start["id"], start["started"]
    if any(step["step"] == "attack_report" for step in steps):
        session.attack_report = folder / "attack.json"
    for step in steps:
        if step["step"] == "config":
            session.config_changes.append(step["change"])
    for step in _kept(steps):
        if not outputs:  # all is asked for again
            session.journal.write("drop", {"name": step["entry"]["name"]})
            continue
        _take_up(session, Entry.from_journal(step["entry"]), step["cells"], step.get("trace"))
    _take_up_paid(session, steps)
    _know_own_releases(session)
    return session


def _take_up_paid(session: SessionCore, steps: list[dict[str, Any]]) -> None:
    """Models whose result was sealed and recorded; other orders wait to be asked for again."""
    session.orders = orders_of(session.journal, session.budget, steps)
    for step in {step["entry"]: step for step in steps if step["step"] == "trained"}.values():
        taken_up(session, step)
        session.orders.answered(step["entry"])
    for entry in {spend for output in session.entries for spend in output.spends}:
        session.orders.answered(entry)


def _know_own_releases(session: SessionCore) -> None:
    """What left of this session already is no earlier release of others: known by its very bytes."""
    files = {path.name: sha256_hex(path.read_bytes()) for path in session.journal.files.iterdir()}
    released = {r.sha256: r.entry for r in session.budget.ledger.releases(session.cohort) if r.sha256 is not None}
    for entry in session.entries:
        found = [released[files[name]] for name in entry.files if files.get(name) in released]
        session.state.own_releases.update(found)
        session.remembered.update([entry.name] if found else [])
    session.state.history_head = ""  # read again without them


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
    draft = draft_of(record(entry.outside, entry.document, header(session)), session.journal.files)
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
