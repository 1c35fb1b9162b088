"""Sentences, not traces: what a decision says, what it rests on, what to do next, and what was met."""

from __future__ import annotations

from collections.abc import Mapping

from ..base.findings import Effect, Finding, View
from .facts import Facts, Provider
from .model import RuleSet
from .types import Action, Decision
from .views import hidden_rules, outside_findings

HEADLINES = {
    Effect.BLOCK: "BLOCK: cannot leave in this form",
    Effect.WITHHOLD: "WITHHOLD: the table stays inside",
    Effect.REVIEW: "REVIEW: a person must decide",
    Effect.SUPPRESS: "SUPPRESS: meets the policy with the cells below replaced by the mark",
    Effect.ROUND: "ROUND: meets the policy once rounded as below",
    Effect.LABEL: "LABEL: meets the policy with the words below",
    Effect.PASS: "PASS: meets the policy",
}


def explain(
    ruleset: RuleSet,
    decision: Decision,
    *,
    view: View = "inside",
    facts: Facts | None = None,
    words: Mapping[str, str] | None = None,
) -> str:
    """Explain one decision in plain sentences.

    Parameters
    ----------
    view
        "inside" has numbers; "outside" may leave.
    facts
        Where given, the facts that rest on somebody's word are listed first (inside view only).
    words
        Clause id → the document's own words, from `documents.clause_words`; printed beside the gist.
    """
    known = decision.output_type in ruleset.outputs
    label = ruleset.outputs[decision.output_type].label if known else decision.output_type
    lines = [f"{decision.output_name} · {label}", f"  {HEADLINES[decision.effect]}"]
    if facts is not None and view == "inside":
        lines += _said(facts)
    findings = decision.findings if view == "inside" else outside_findings(decision, ruleset)
    for number, finding in enumerate(findings, 1):
        lines += finding_lines(ruleset, number, finding, view, words or {})
    if view == "inside" or decision.effect not in (Effect.BLOCK, Effect.WITHHOLD):
        lines += [f"  {line}" for line in _actions(ruleset, decision.actions)]
    hidden = frozenset() if view == "inside" else hidden_rules(decision, ruleset)
    met = [r for r in decision.met if r not in hidden]
    idle = [r for r in decision.not_applicable if r not in hidden]
    lines.append(f"  Met: {len(met)}. Did not apply: {len(idle)}.")
    if hidden:
        lines.append(f"  Checked inside, results stay there: {len(hidden)}.")
    if view == "inside":
        lines += [f"    met: {r}: {ruleset.rule(r).title}" for r in met]
    return "\n".join(lines) + "\n"


def _said(facts: Facts) -> list[str]:
    names = {
        Provider.DECLARED: "Declared by the researcher",
        Provider.ATTESTED: "Attested by TRE staff",
        Provider.RECORDED: "Recorded by the session, not recomputed",
    }
    out = []
    for provider, text in names.items():
        found = sorted({f.name for f in facts if f.by is provider})
        if found:
            out.append(f"  {text}: {', '.join(found)}.")
    return out


def finding_lines(ruleset: RuleSet, number: int, finding: Finding, view: View, words: Mapping[str, str]) -> list[str]:
    """One finding with its questions, clauses, notes, what to do, and whether it can be waived."""
    target = f" {finding.target}" if finding.target != "output" and view == "inside" else ""
    lines = [f"  {number}. {finding.effect.value}{target}: {finding.text(view)} ({', '.join(finding.rules)})"]
    lines += [f"     Question: {ask}" for ask in finding.asks]
    for clause_id in finding.clauses:
        clause = ruleset.clauses[clause_id]
        title = ruleset.documents[clause.document].title
        quoted = f" “{words[clause_id]}”" if clause_id in words else ""
        lines.append(f"     {clause_id}, {title}, line {clause.line}: {clause.gist}{quoted}")
    lines += [f"     Note: {note}" for note in _notes(ruleset, finding.rules)]
    if finding.next_step:
        lines.append(f"     What to do: {finding.next_step}")
    if finding.waived_by:
        lines.append(f"     Waived by {finding.waived_by}: block lowered to review.")
    elif finding.effect is Effect.BLOCK and finding.rules:
        lines.append(f"     Waiver: {_waiver_words(ruleset, finding)}.")
    if finding.provisional:
        lines.append("     Provisional: rests on a starting value that has still to be confirmed.")
    return lines


def _notes(ruleset: RuleSet, rules: tuple[str, ...]) -> list[str]:
    return [note for r in rules if (note := ruleset.rule(r).note)]


def _waiver_words(ruleset: RuleSet, finding: Finding) -> str:
    kinds = {ruleset.rule(r).waivable for r in finding.rules}
    if "never" in kinds:
        return "never"
    if "by_dac_individual" in kinds:
        return "only by a decision of the data access committee on this one output"
    return "by the data access committee"


def _actions(ruleset: RuleSet, actions: tuple[Action, ...]) -> list[str]:
    out = []
    marked = [str(a.part) for a in actions if a.verb == "suppress"]
    if marked:
        out.append(f"Replaced by the mark: {', '.join(marked)}.")
    for action in actions:
        if action.verb == "suppress_complement":
            out.append(f"Further cells may be marked so that none can be worked out ({', '.join(action.rules)}).")
        elif action.verb == "round":
            out.append(f"Rounded: {_rounding(action)} ({', '.join(action.rules)}).")
        elif action.verb == "label":
            fact = f"{action.args['fact']}: " if "fact" in action.args else ""
            out.append(f"Label: {fact}{action.args['text']} ({', '.join(action.rules)}).")
            out += [f"  Note: {note}" for note in _notes(ruleset, action.rules)]
    return out


def _rounding(action: Action) -> str:
    args = action.args
    what = {"every_n": "every N", "every_p": "p-values"}.get(str(args.get("part")), "values")
    if action.part is not None:
        what = f"{what} of {action.part}"
    if "to_nearest" in args:
        return f"{what} to the nearest {args['to_nearest']}"
    if "decimal_places" in args:
        return f"{what} to {args['decimal_places']} decimal place{'s' if args['decimal_places'] != 1 else ''}"
    return f"{what} to {args['significant_figures']} significant figures"
