"""The session in words for the researcher: what would pass, what would not, and what to change."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .entries import WORDS, badge, bullets

if TYPE_CHECKING:
    from .core import SessionCore


def session_text(session: SessionCore) -> str:
    """Plain text, for a terminal or a log inside the TRE."""
    rule_set = session.ruleset
    lines = [f"Session {session.cohort}, rules {rule_set.id} {rule_set.version} (sha256 {rule_set.sha256[:12]}…)"]
    lines += _said(session)
    for entry in session.entries:
        lines.append(f"{entry.status.upper():<7}{entry.name}: {entry.title} ({WORDS[entry.status]})")
        lines += [f"         because: {reason}" for reason in entry.reasons]
        lines += [f"         to get it out: {merge}" for merge in entry.merges]
        lines += [f"         linked: {note}" for note in entry.notes_inside]
    totals = session.budget.totals_json()
    lines.append(f"Budget: ε {totals['epsilon_sum']:g} of {rule_set.parameters['epsilon_total']} spent.")
    if open_orders := session.orders.entries:
        entries = ", ".join(map(str, open_orders))
        lines.append(f"Paid for and not taken up yet (ask again as before; nothing is spent): ledger entries {entries}")
    lines += [f"Noticed: {change}" for change in session.config_changes]
    lines += [f"Not checked: {what}" for what in dict.fromkeys(session.not_checked)]
    return "\n".join(lines)


def session_html(session: SessionCore) -> str:
    """The report for a notebook: self-contained, no script."""
    rows = "".join(
        f"<tr><td>{badge(e.status)}</td><td><b>{escape(e.title)}</b><br><code>{escape(e.name)}</code></td>"
        f"<td>{bullets(e.reasons) or escape(WORDS[e.status])}</td><td>{bullets(e.merges)}</td></tr>"
        for e in session.entries
    )
    notes = bullets([*_said(session), *session.config_changes, *(f"Not checked: {t}" for t in session.not_checked)])
    return (
        f"<div><p><b>Session {escape(session.cohort)}</b>, rules {escape(session.ruleset.id)} "
        f"{escape(session.ruleset.version)}</p><table><thead><tr><th>verdict</th><th>output</th><th>why</th>"
        f"<th>to get it out</th></tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
    )


def _said(session: SessionCore) -> list[str]:
    out = []
    for who, said in (("Declared", session.declared), ("Attested", session.attested)):
        if said.facts or said.outputs:
            simulated = " (SIMULATED: no person said this)" if said.simulated else ""
            out.append(f"{who} by {said.by}{simulated}: " + ", ".join(f"{k} = {v}" for k, v in said.facts.items()))
    return out
