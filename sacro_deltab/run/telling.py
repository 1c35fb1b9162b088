"""A run in words: what meets the rules, what a person must decide, what stays inside, what was impossible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..session.acro_session import DeltabSession
    from .pipeline import Outcome


def account(outcome: Outcome) -> list[str]:
    """The run in words: what meets the rules, what a person must decide, what stays inside, and what was impossible."""
    return [*heading(outcome.session), f"Folder: {outcome.folder}", *told(outcome.session, outcome.impossible)]


def heading(session: DeltabSession) -> list[str]:
    """Which rules judged."""
    rule_set = session.ruleset
    return [f"Rules: {rule_set.id} {rule_set.version}, sha256 {rule_set.sha256[:16]}…"]


def told(session: DeltabSession, impossible: Sequence[str]) -> list[str]:
    """What was judged how, what it waits for, and what was impossible."""
    lines: list[str] = []
    words = {
        "pass": "MEETS THE RULES (a person still releases it)",
        "review": "A PERSON MUST DECIDE",
        "fail": "STAYS INSIDE",
    }
    for status, heading in words.items():
        mine = [e for e in session.entries if e.status == status]
        if not mine:
            continue
        lines += ["", f"{heading}: {len(mine)}"]
        for entry in mine:
            marked = f", {len(entry.suppressed)} marked *" if entry.suppressed and not entry.kept_inside else ""
            lines.append(f"  {entry.name}: {entry.title}{marked}")
            lines += [f"      {reason}" for reason in entry.reasons[:3]]
            lines += [f"      to get it out: {merge}" for merge in entry.merges[:2]]
    totals = session.budget.totals_json()
    most = session.ruleset.parameters["epsilon_total"]
    lines += ["", f"Privacy budget {session.budget.url}: ε {totals['epsilon_sum']:g} of {most} spent"]
    if not session.budget.pinned:
        lines.append("  The TRE has not pinned this ledger: nothing counts as formal, and a person reviews everything.")
    if session.repairs:
        lines += ["", "Repairs of the input (counted in inside/evidence.json):"]
        lines += [f"  {text}" for text in dict.fromkeys(r["text"] for r in session.repairs)]
    lines += _missing(session)
    if impossible:
        lines += ["", "Not done:", *(f"  {text}" for text in impossible)]
    return lines


def _missing(session: DeltabSession) -> list[str]:
    """Facts that somebody still has to supply, by who may say them."""
    ways = {"declared": "--declare FILE", "attested": "--attest FILE or a layer", "ledger": "the ledger"}
    wanted: dict[str, list[str]] = {}
    for entry in session.entries:
        for name in entry.decision["missing"]:
            wanted.setdefault(session.ruleset.facts[name].by, []).append(name)
    lines = [
        f"  {who} ({ways[who]}): {', '.join(dict.fromkeys(names))}" for who, names in wanted.items() if who in ways
    ]
    return ["", "Facts that nobody supplied, and that a rule needs:", *lines] if lines else []
