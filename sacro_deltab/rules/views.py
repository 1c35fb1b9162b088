"""A decision as JSON and as sentences, for the checker (inside) or for anything that may leave (outside).

Outside, all cell findings are one finding with one text and the same rule ids whichever cells were small, and the
results of queries on raw data are one finding too: the bytes do not depend on which cell was primary.
"""

from __future__ import annotations

from typing import Any

from ..base.findings import Effect, Finding, View
from . import messages
from .loader import load_base
from .model import Rule, RuleSet
from .types import Action, Decision


def decision_to_json(decision: Decision, view: View = "inside", *, ruleset: RuleSet | None = None) -> dict[str, Any]:
    """JSON form of a decision.

    Parameters
    ----------
    view
        "inside" has numbers and labels of cells and must stay in the TRE; "outside" may leave.
    ruleset
        Needed for "outside", to tell cell rules and raw queries from the rest; the packaged set if None.
    """
    if view == "outside":
        return _outside(decision, ruleset or _packaged())
    return {
        "output_name": decision.output_name,
        "output_type": decision.output_type,
        "effect": decision.effect.value,
        "status": decision.status,
        "findings": [_finding(f, "inside") for f in decision.findings],
        "actions": [_action(a) for a in decision.actions],
        "met": list(decision.met),
        "not_applicable": list(decision.not_applicable),
        "missing": list(decision.missing),
        "advice": [{"rules": list(a.rules), "text": a.inside, "asks": list(a.asks)} for a in decision.advice],
    }


def _packaged() -> RuleSet:

    return load_base()


def _finding(finding: Finding, view: View) -> dict[str, Any]:
    return {
        "rules": list(finding.rules),
        "effect": finding.effect.value,
        "target": finding.target,
        "text": finding.text(view),
        "clauses": list(finding.clauses),
        "asks": list(finding.asks),
        "next_step": finding.next_step,
        "waived_by": finding.waived_by,
        "provisional": finding.provisional,
    }


def _action(action: Action) -> dict[str, Any]:
    return {"verb": action.verb, "part": action.part, "args": dict(action.args), "rules": list(action.rules)}


def _outside(decision: Decision, ruleset: RuleSet) -> dict[str, Any]:
    known = ruleset.rules_for(decision.output_type) if decision.output_type in ruleset.outputs else ()
    cells = [r for r in known if messages.is_cell_rule(r)]
    hidden = hidden_rules(decision, ruleset)
    gone = decision.effect in (Effect.BLOCK, Effect.WITHHOLD)
    return {
        "output_name": decision.output_name,
        "output_type": decision.output_type,
        "effect": decision.effect.value,
        "status": decision.status,
        "findings": [_finding(f, "outside") for f in outside_findings(decision, ruleset)],
        "actions": [] if gone else _outside_actions(decision, cells),
        "met": [r for r in decision.met if r not in hidden],
        "not_applicable": [r for r in decision.not_applicable if r not in hidden],
        "checked_inside": sorted(hidden),
        "missing": list(decision.missing),
    }


def hidden_rules(decision: Decision, ruleset: RuleSet) -> frozenset[str]:
    """Rules whose result on this output stays inside: those that mark cells and those on raw data."""
    known = ruleset.rules_for(decision.output_type) if decision.output_type in ruleset.outputs else ()
    return frozenset(r.id for r in known if messages.is_cell_rule(r) or messages.is_raw(ruleset, r))


def outside_findings(decision: Decision, ruleset: RuleSet) -> tuple[Finding, ...]:
    """The findings as they may leave: cells and raw queries merged, the rest one per text."""
    known = ruleset.rules_for(decision.output_type) if decision.output_type in ruleset.outputs else ()
    cells = tuple(r for r in known if messages.is_cell_rule(r))
    raw = tuple(r for r in known if messages.is_raw(ruleset, r))
    merged: dict[tuple[Effect, str], Finding] = {}
    for finding in decision.findings:
        ids = set(finding.rules)
        if finding.effect is Effect.SUPPRESS and finding.outside == messages.CELLS_OUTSIDE:
            if decision.effect in (Effect.BLOCK, Effect.WITHHOLD):
                continue  # nothing of the table leaves, so nothing is said of its cells
            new = _plain(finding, cells, messages.CELLS_OUTSIDE, "Merge small groups.", ())
        elif ids & {r.id for r in raw} and finding.outside == messages.RAW_OUTSIDE:
            step = "Answer the question inside the TRE; an output checker decides."
            new = _plain(finding, raw, messages.RAW_OUTSIDE, step, (messages.RAW_ASK_OUTSIDE,))
        else:
            new = Finding(
                finding.rules,
                "output",
                finding.effect,
                finding.outside,
                finding.outside,
                finding.clauses,
                finding.asks,
                finding.next_step,
                finding.waived_by,
                finding.provisional,
            )
        merged.setdefault((new.effect, new.outside), new)
    return tuple(merged.values())


def _plain(finding: Finding, rules: tuple[Rule, ...], text: str, next_step: str, asks: tuple[str, ...]) -> Finding:
    return Finding(
        rules=tuple(r.id for r in rules),
        target="output",
        effect=finding.effect,
        inside=text,
        outside=text,
        clauses=tuple(dict.fromkeys(c for r in rules for c in r.source)),
        asks=asks if finding.effect is Effect.REVIEW else (),
        next_step=next_step,
    )


def _outside_actions(decision: Decision, cells: list[Rule]) -> list[dict[str, Any]]:
    ids = [r.id for r in cells]
    out = []
    for action in decision.actions:
        if action.verb == "suppress" and set(action.rules) <= set(ids):
            action = Action("suppress", action.part, action.args, tuple(ids))
        out.append(_action(action))
    return out
