"""Digests of meaning: what a rule or a rule set makes of facts, without titles, remedies, sources and signatures.

The full digest (`RuleSet.sha256`) covers every byte of the files and stands in records and certificates. The semantic
one stays the same when a decision is signed or a title mended; a waiver rests on that of its one rule, so that it ends
with a change of that rule and with no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ..base.canonical import canonical_json
from .model import Condition, FactSpec, PolicyDecision, Rule, RuleSet

_FACT = (
    *("type", "values", "minimum", "maximum", "above", "below", "after"),
    *("raw", "optional", "part_value", "unit", "ask"),
)


def rule_digest(ruleset: RuleSet, rule: Rule) -> str:
    """Digest of what one rule asks, with the facts and numbers that it reads."""
    facts = sorted({c.fact for c in rule.conditions})
    return _sha({"rule": _rule(rule), "facts": {f: _fact(ruleset.facts[f]) for f in facts}})


def semantic_digest(ruleset: RuleSet) -> str:
    """Digest of everything that can change a verdict, a question or what a reader sees."""
    return _sha(
        {
            "language": ruleset.language,
            "mark": ruleset.mark,
            "rules": {r.id: _rule(r) for r in ruleset.rules if r.in_force},
            "facts": {name: _fact(spec) for name, spec in ruleset.facts.items()},
            "outputs": {o.name: [o.cls, o.statbarn, *map(str, o.range), o.columns] for o in ruleset.outputs.values()},
            "parameters": {name: _number(value) for name, value in ruleset.parameters.items()},
            "forms": {f.id: list(f.effects) for f in ruleset.forms.values()},
            "pins": {} if ruleset.profile is None else {k: _number(v) for k, v in ruleset.profile.attest.items()},
        }
    )


def decision_digest(decision: PolicyDecision) -> str:
    """Digest of the full text of a decision, which a signature covers."""
    text = [decision.id, decision.ask, decision.choose, decision.instead, decision.reason, decision.direction]
    return _sha([*text, list(decision.clauses)])


def _sha(value: Any) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _number(value: Any) -> Any:
    """Floats as their shortest text: canonical JSON holds none."""
    if isinstance(value, float):
        return f"{value!r}"
    if isinstance(value, tuple | list):
        return [_number(v) for v in value]
    return value


def _conditions(conditions: Iterable[Condition]) -> list[list[Any]]:
    return sorted([c.fact, c.comparator, _number(c.limit)] for c in conditions)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "verb": rule.verb,
        "deed": rule.deed,
        "args": {k: _args(v) for k, v in rule.deed_args.items()},
        "outputs": sorted(rule.outputs),
        "for_each": rule.for_each,
        "when": _conditions(rule.when),
        "require": _conditions(rule.require),
        "otherwise": None if rule.otherwise is None else rule.otherwise.value,
        "ask": rule.ask,
        "waivable": rule.waivable,
        **({"any_when": [_conditions(one) for one in rule.any_when]} if rule.any_when else {}),
        **({"any_require": [_conditions(one) for one in rule.any_require]} if rule.any_require else {}),
    }


def _args(value: Any) -> Any:
    if isinstance(value, list):
        return [{k: _number(v) for k, v in one.items()} for one in value]
    return _number(value)


def _fact(spec: FactSpec) -> dict[str, Any]:
    return {**{name: _number(getattr(spec, name)) for name in _FACT}, "accept": sorted(p.value for p in spec.accept)}
