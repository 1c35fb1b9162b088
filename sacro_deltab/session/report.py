"""The session in words for the researcher: what would pass, what would not, and what to change."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .acro_session import DeltabSession
    from .entries import Entry

_WORDS = {"pass": "meets the rules", "review": "a person must decide", "fail": "stays inside"}
_COLOURS = {"pass": "#155724", "review": "#5a4a00", "fail": "#842029"}
_GROUND = {"pass": "#d9efe0", "review": "#fbf3d0", "fail": "#f8dcdf"}


def session_text(session: DeltabSession) -> str:
    """Plain text, for a terminal or a log inside the TRE."""
    rule_set = session.ruleset
    lines = [f"Session {session.cohort}, rules {rule_set.id} {rule_set.version} (sha256 {rule_set.sha256[:12]}…)"]
    lines += _said(session)
    for entry in session.entries:
        lines.append(f"{entry.status.upper():<7}{entry.name}: {entry.title} ({_WORDS[entry.status]})")
        lines += [f"         because: {reason}" for reason in entry.reasons]
        lines += [f"         to get it out: {merge}" for merge in entry.merges]
        lines += [f"         linked: {note}" for note in entry.notes_inside]
    totals = session.budget.totals_json()
    lines.append(f"Budget: ε {totals['epsilon_sum']:g} of {rule_set.parameters['epsilon_total']} spent.")
    if session.orphans:
        lines.append("Spent, and nothing was released for it: ledger entries " + ", ".join(map(str, session.orphans)))
    lines += [f"Noticed: {change}" for change in session.config_changes]
    lines += [f"Not checked: {what}" for what in dict.fromkeys(session.not_checked)]
    return "\n".join(lines)


def session_html(session: DeltabSession) -> str:
    """The report for a notebook: self-contained, no script."""
    rows = "".join(
        f"<tr><td>{_badge(e.status)}</td><td><b>{escape(e.title)}</b><br><code>{escape(e.name)}</code></td>"
        f"<td>{_list(e.reasons) or escape(_WORDS[e.status])}</td><td>{_list(e.merges)}</td></tr>"
        for e in session.entries
    )
    notes = _list([*_said(session), *session.config_changes, *(f"Not checked: {t}" for t in session.not_checked)])
    return (
        f"<div><p><b>Session {escape(session.cohort)}</b>, rules {escape(session.ruleset.id)} "
        f"{escape(session.ruleset.version)}</p><table><thead><tr><th>verdict</th><th>output</th><th>why</th>"
        f"<th>to get it out</th></tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
    )


def entry_html(entry: Entry) -> str:
    """One output as it would leave."""
    table = entry.table
    shown = "" if table is None else table.head(50).to_html(escape=True, border=0)
    return (
        f"<div><p>{_badge(entry.status)} <b>{escape(entry.title)}</b> <code>{escape(entry.name)}</code></p>"
        f"{_list(entry.reasons)}{_list([f'To get it out: {m}' for m in entry.merges])}{shown}</div>"
    )


def _said(session: DeltabSession) -> list[str]:
    out = []
    for who, said in (("Declared", session.declared), ("Attested", session.attested)):
        if said.facts or said.outputs:
            simulated = " (SIMULATED: no person said this)" if said.simulated else ""
            out.append(f"{who} by {said.by}{simulated}: " + ", ".join(f"{k} = {v}" for k, v in said.facts.items()))
    return out


def _badge(status: str) -> str:
    style = f"background:{_GROUND[status]};color:{_COLOURS[status]};padding:1px 8px;border-radius:4px"
    return f'<span style="{style}">{status}</span>'


def _list(items: object) -> str:
    texts = [str(item) for item in items] if isinstance(items, list | tuple) else []
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>" if texts else ""
