"""Outputs whose protection is the noise: what was seen in raw data decides nothing there, and speaks inside only.

A verdict is a query too. Where ε and δ are claimed, whatever leaves (status and sentences included) must follow from
public and noised values; a rule on a raw fact (`raw: true` in the vocabulary) would tell one person's value.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.findings import Effect
from . import messages
from .evaluate import Outcome, Scope, evaluate
from .facts import Facts, Part
from .findings import effect_of
from .model import Rule, RuleSet
from .types import Advice


def protected_by_noise(facts: Facts) -> bool:
    """Whether the output claims a formal guarantee."""
    label = facts.facts.get("dp.label")
    return label is not None and label.value == "formal"


def is_raw_rule(ruleset: RuleSet, rule: Rule) -> bool:
    """Whether the rule's result answers a query on the raw data."""
    return messages.is_raw(ruleset, rule)


def without_raw(ruleset: RuleSet, facts: Facts) -> Facts:
    """The facts that may decide: those that no query on raw data answers."""

    def public(name: str) -> bool:
        spec = ruleset.facts.get(name)
        return spec is None or not spec.raw

    parts = tuple(Part(p.kind, p.key, {n: f for n, f in p.facts.items() if public(n)}, p.value) for p in facts.parts)
    kept = {name: fact for name, fact in facts.facts.items() if public(name)}
    return Facts(facts.output_name, facts.output_type, kept, parts)


def advice_of(ruleset: RuleSet, facts: Facts, rules: Sequence[Rule]) -> tuple[Advice, ...]:
    """What rules on raw data say of a noised output, for the checker inside."""
    scope = Scope(ruleset, facts)
    out = []
    for rule in rules:
        targets = (None,) if rule.for_each is None else tuple(p for p in facts.parts if p.kind == rule.for_each)
        for part in targets:
            said = _said(ruleset, evaluate(scope, rule, part))
            if said is not None:
                out.append(said)
    return tuple(out)


def _said(ruleset: RuleSet, outcome: Outcome) -> Advice | None:
    rule = outcome.rule
    if outcome.lacks:
        return None
    effect = effect_of(outcome)
    if effect not in (Effect.BLOCK, Effect.WITHHOLD, Effect.REVIEW):
        return None
    return Advice((rule.id,), messages.inside_text(ruleset, outcome), (messages.review_ask(rule),))
