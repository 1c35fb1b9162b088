"""From outcomes to findings: one per target and reason, with all rules and clauses that say the same (D-82)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..base.findings import Effect, Finding
from . import messages
from .evaluate import MISSING, Lack, Outcome
from .model import Rule, RuleSet


@dataclass
class _Group:
    effect: Effect
    target: str
    inside: str
    outside: str
    rules: list[Rule] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    waived_by: str | None = None


def collect_findings(
    ruleset: RuleSet,
    outcomes: list[Outcome],
    problems: list[str],
    complements: frozenset[str],
    waived: Mapping[str, str],
) -> tuple[Finding, ...]:
    """All findings, worst first, then in the order of the rules."""
    groups: dict[tuple[object, ...], _Group] = {}
    for outcome in outcomes:
        if not outcome.lacks:
            _add(ruleset, groups, outcome, waived)
    for key in sorted(complements):
        _add_complement(groups, key, outcomes)
    findings = [_finding(group) for group in groups.values()]
    findings += _lacking(ruleset, outcomes)
    findings += [_shape(ruleset, text) for text in problems]
    return tuple(sorted(findings, key=lambda f: f.effect.rank))


def effect_of(outcome: Outcome) -> Effect | None:
    """What an outcome asks for; None where the rule is met or does not apply."""
    rule = outcome.rule
    if not outcome.applies:
        return None
    if rule.verb == "require":
        return None if outcome.met else rule.otherwise
    if rule.verb == "forbid":
        return Effect.BLOCK
    if rule.verb == "flag":
        return Effect.REVIEW
    return {"suppress": Effect.SUPPRESS, "withhold": Effect.WITHHOLD}.get(str(rule.deed))


def _add(
    ruleset: RuleSet, groups: dict[tuple[object, ...], _Group], outcome: Outcome, waived: Mapping[str, str]
) -> None:
    effect = effect_of(outcome)
    if effect is None:
        return
    rule = outcome.rule
    waiver = waived.get(rule.id) if effect is Effect.BLOCK else None
    if waiver is not None:
        effect = Effect.REVIEW
    key: tuple[object, ...]
    if effect is Effect.SUPPRESS:
        key = (effect, outcome.target)
    elif rule.verb == "require":
        key = (effect, outcome.target, waiver, tuple(sorted(f.condition.key for f in outcome.failed)))
    else:
        key = (effect, outcome.target, waiver, rule.id)
    group = groups.get(key)
    if group is None:
        inside, outside = messages.inside_text(ruleset, outcome), messages.outside_text(ruleset, outcome)
        group = groups[key] = _Group(effect, outcome.target, inside, outside, waived_by=waiver)
    group.rules.append(rule)
    if effect is Effect.REVIEW:
        ask = messages.review_ask(rule)
        if waiver is not None:
            ask = f"Waiver {waiver} covers this: does it cover this output as it is now?"
        # Rules that say the same of one target put one question, the first one's.
        group.asks = group.asks or [ask]


def _add_complement(groups: dict[tuple[object, ...], _Group], key: str, outcomes: list[Outcome]) -> None:
    rules = list({o.rule.id: o.rule for o in outcomes if o.rule.deed == "suppress_complement"}.values())
    inside = "Suppressed so that a small group cannot be worked out from it."
    groups[(Effect.SUPPRESS, key)] = _Group(Effect.SUPPRESS, key, inside, messages.CELLS_OUTSIDE, rules)


def _finding(group: _Group) -> Finding:
    rules = list({r.id: r for r in group.rules}.values())
    return Finding(
        rules=tuple(r.id for r in rules),
        target=group.target,
        effect=group.effect,
        inside=group.inside,
        outside=group.outside,
        clauses=tuple(dict.fromkeys(c for r in rules for c in r.source)),
        asks=tuple(group.asks),
        next_step=next((r.remedy for r in rules if r.remedy), None) or _default_step(group.effect, rules),
        waived_by=group.waived_by,
        provisional=any(r.provisional for r in rules),
    )


def _default_step(effect: Effect, rules: list[Rule]) -> str | None:
    if effect is Effect.REVIEW:
        return "Answer the question inside the TRE; an output checker decides."
    if effect is Effect.WITHHOLD:
        return "Use fewer, larger groups."
    if effect is Effect.SUPPRESS:
        return "Merge small groups."
    if any(r.waivable != "never" for r in rules):
        return "Change the output, or ask the data access committee for a waiver."
    return "Change the output; no waiver is possible."


def is_asked(ruleset: RuleSet, lack: Lack) -> bool:
    """Whether a fact that nobody supplied is a question to the checker instead of a block."""
    return lack.why == MISSING and bool(ruleset.facts[lack.fact].ask)


def _lacking(ruleset: RuleSet, outcomes: list[Outcome]) -> list[Finding]:
    """One finding per missing fact, naming it and every rule that waits for it: a block, or a question to TRE staff."""
    by_lack: dict[Lack, list[Outcome]] = {}
    for outcome in outcomes:
        for lack in outcome.lacks:
            by_lack.setdefault(lack, []).append(outcome)
    if not by_lack:
        return []
    gate = [r for r in ruleset.rules if r.in_force and any(c.fact == "evidence.complete" for c in r.require)]
    out = []
    for lack, waiting in by_lack.items():
        inside, outside = messages.lack_text(ruleset, lack, [o.target for o in waiting])
        ask = ruleset.facts[lack.fact].ask if is_asked(ruleset, lack) else ""
        rules = list({r.id: r for r in [*([] if ask else gate), *(o.rule for o in waiting)]}.values())
        out.append(
            Finding(
                rules=tuple(r.id for r in rules),
                target="output",
                effect=Effect.REVIEW if ask else Effect.BLOCK,
                inside=inside,
                outside=outside,
                clauses=tuple(dict.fromkeys(c for r in rules for c in r.source)),
                asks=(ask,) if ask else (),
                next_step=messages.lack_next_step(ruleset, lack.fact),
            )
        )
    return out


def _shape(ruleset: RuleSet, text: str) -> Finding:
    gate = [r for r in ruleset.rules if r.in_force and any(c.fact == "evidence.complete" for c in r.require)]
    return Finding(
        rules=tuple(r.id for r in gate),
        target="output",
        effect=Effect.BLOCK,
        inside=f"{text}.",
        outside=f"{text}.",
        clauses=tuple(dict.fromkeys(c for r in gate for c in r.source)),
        next_step="Export again from a session of this package.",
    )
