"""Changes that no example can see: scope, waivers, questions, status, who may say a fact, numbers that stand alone.

`rules test` changes each limit and comparator and asks the examples; these changes are asked of the requirements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from sacro_deltab.rules.facts import Provider
from sacro_deltab.rules.model import Rule, RuleSet
from sacro_deltab.rules.prove import WAIVABLE, decides, evidence_gaps, number_gaps, requirement_gaps, switched_off
from sacro_deltab.rules.requirements import Requirements


@dataclass(frozen=True)
class WideReport:
    """How many changes were tried, and those that nothing noticed."""

    tried: int
    survivors: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share that was noticed."""
        return 1.0 - len(self.survivors) / self.tried if self.tried else 1.0


def mutate_widely(ruleset: RuleSet, asked: Requirements) -> WideReport:
    """Try every such change of one rule, fact or number; what is not noticed is listed."""
    tried, survivors = 0, []
    for what, noticed in (*_rules(ruleset, asked), *_facts(ruleset, asked), *_numbers(ruleset, asked)):
        tried += 1
        if not noticed:
            survivors.append(what)
    return WideReport(tried, tuple(survivors))


def rule_mutations(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Changes of one rule that leave its examples alone."""
    for kind in sorted(rule.outputs):
        yield f"{rule.id}: scope: no longer about {kind}", replace(rule, outputs=rule.outputs - {kind})
    for clause in rule.source:
        yield f"{rule.id}: source: {clause} dropped", replace(rule, source=tuple(c for c in rule.source if c != clause))
    for weaker in WAIVABLE[: WAIVABLE.index(rule.waivable)]:
        yield f"{rule.id}: waivable {rule.waivable} → {weaker}", replace(rule, waivable=weaker)
    yield f"{rule.id}: switched off", replace(rule, status="deprecated")
    if rule.deed == "round":
        part = "value" if rule.deed_args["part"] == "every_n" else "every_n"
        args = MappingProxyType({**rule.deed_args, "part": part})
        yield f"{rule.id}: round part → {part}", replace(rule, deed_args=args)


def changes_nothing(ruleset: RuleSet, rule: Rule, changed: Rule) -> bool:
    """Whether other rules, no easier to waive, do the same wherever the change takes this one away (proved).

    For a clause that is no longer cited they must cite it: the findings are one finding, with all its clauses.
    """
    lost, dropped = rule.outputs - changed.outputs, set(rule.source) - set(changed.source)
    if not lost and not dropped:
        return False
    strict = [r for r in ruleset.rules if r.in_force and WAIVABLE.index(r.waivable) >= WAIVABLE.index(rule.waivable)]
    others = [r for r in strict if r.id != rule.id and dropped <= set(r.source)]
    rest = replace(ruleset, rules=(rule, *others))
    return all(decides(rest, rule, kind) is None for kind in lost or rule.outputs)


def _rules(ruleset: RuleSet, asked: Requirements) -> Iterator[tuple[str, bool]]:
    for rule in ruleset.rules:
        if not rule.in_force:
            continue
        mine = [one for one in asked.all if set(one.clauses) & set(rule.source)]
        for what, changed in rule_mutations(rule):
            other = replace(ruleset, rules=tuple(changed if r.id == rule.id else r for r in ruleset.rules))
            if changes_nothing(ruleset, rule, changed):
                continue
            noticed = any(True for one in mine for _ in requirement_gaps(other, one))
            yield what, noticed or (not changed.in_force and any(True for _ in switched_off(other)))


def _facts(ruleset: RuleSet, asked: Requirements) -> Iterator[tuple[str, bool]]:
    for name, spec in ruleset.facts.items():
        forms = [(f"{name}: optional", replace(spec, optional=True))] if not spec.optional else []
        forms += [(f"{name}: raw dropped", replace(spec, raw=False))] if spec.raw else []
        forms += [
            (f"{name}: may be {by.value}", replace(spec, accept=spec.accept | {by}))
            for by in Provider
            if by not in spec.accept
        ]
        for what, changed in forms:
            other = replace(ruleset, facts=MappingProxyType({**ruleset.facts, name: changed}))
            yield what, any(True for _ in evidence_gaps(other, asked))


def _numbers(ruleset: RuleSet, asked: Requirements) -> Iterator[tuple[str, bool]]:
    for name, spec in ruleset.parameter_specs.items():
        value = ruleset.parameters[name]
        if spec.rule is None and spec.constant is None and isinstance(value, int | float):
            looser = value * (2 if spec.stricter == "lower" else 0.5)
            other = replace(ruleset, parameters=MappingProxyType({**ruleset.parameters, name: looser}))
            yield f"{name}: {value} → {looser}", any(True for _ in number_gaps(other, asked))
    for kind, output in ruleset.outputs.items():
        moved = replace(output, cls="record" if output.cls != "record" else "summary")
        other = replace(ruleset, outputs=MappingProxyType({**ruleset.outputs, kind: moved}))
        yield f"{kind}: of class {moved.cls}", any(True for _ in number_gaps(other, asked))
