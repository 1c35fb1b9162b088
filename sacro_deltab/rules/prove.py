"""`rules prove`: does the law hold what its clauses ask? Holds, or the smallest case that gets through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..base.findings import Effect
from .model import Rule, RuleSet
from .requirements import Requirement, Requirements, load_requirements
from .solve import Found, passing, ways_to_fire
from .strictness import restricts

WAIVABLE = ("by_dac", "by_dac_individual", "never")


@dataclass(frozen=True)
class Gap:
    """A requirement that does not hold for one kind of output, with what gets through."""

    requirement: str
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.requirement}: {self.kind}: {self.what}"


@dataclass(frozen=True)
class Proof:
    """What `rules prove` found: requirements that do not hold, rules that never decide, changes nothing notices."""

    requirements: int
    kinds: int
    gaps: tuple[Gap, ...]
    idle: tuple[Rule, ...]
    unasked: tuple[str, ...]

    def lines(self) -> list[str]:
        """For people."""
        out = [f"{self.requirements} requirements over {self.kinds} kinds of output: "]
        out[0] += "all hold" if not self.gaps else f"{len(self.gaps)} cases get through"
        out += [f"OPEN {gap}" for gap in self.gaps]
        out.append(f"Rules that never decide by themselves, since another rule stops the same ({len(self.idle)}):")
        out += [f"  {r.id}  {r.title} ({', '.join(r.source)})" for r in self.idle]
        if self.unasked:
            out.append(f"Rules and facts that no requirement names ({len(self.unasked)}): {', '.join(self.unasked)}")
        return out

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "ok": not self.gaps,
            "requirements": self.requirements,
            "open": [str(gap) for gap in self.gaps],
            "never_decide": [r.id for r in self.idle],
            "unasked": list(self.unasked),
        }


def prove(ruleset: RuleSet) -> Proof:
    """Decide every requirement of a rule set."""
    asked = load_requirements(ruleset)
    served = {r.id for one in asked.all for r in ruleset.rules if set(r.source) & set(one.clauses) and _serves(r, one)}
    unasked = tuple(r.id for r in ruleset.rules if r.in_force and r.id not in served) if asked.all else ()
    unasked += tuple(f for f in ruleset.facts if f not in asked.said_by) if asked.said_by else ()
    found = tuple(gaps(ruleset, asked))
    kinds = {kind for one in asked.all for kind in one.outputs}
    return Proof(len(asked.all), len(kinds), found, tuple(idle(ruleset)), unasked)


def rule_effect(rule: Rule) -> Effect:
    """The effect of a rule that fires."""
    if rule.verb == "require":
        assert rule.otherwise is not None
        return rule.otherwise
    if rule.verb in ("forbid", "flag"):
        return Effect.BLOCK if rule.verb == "forbid" else Effect.REVIEW
    words = {"suppress_complement": "suppress", "label_band": "label"}
    return Effect(words.get(str(rule.deed), str(rule.deed)))


def gaps(ruleset: RuleSet, asked: Requirements) -> list[Gap]:
    """Every requirement that does not hold; empty is the proof that all do."""
    out = [gap for one in asked.all for gap in requirement_gaps(ruleset, one)]
    return [*out, *switched_off(ruleset), *evidence_gaps(ruleset, asked), *number_gaps(ruleset, asked)]


def requirement_gaps(ruleset: RuleSet, one: Requirement) -> Iterator[Gap]:
    """Where one requirement does not hold, for each clause by the rules that cite it."""
    for clause in one.clauses:
        citing = [r for r in ruleset.rules if r.in_force and clause in r.source and _serves(r, one)]
        rules = [r for r in citing if _not_more_waivable(r, one)]
        for kind in one.outputs:
            found = passing(ruleset.facts, (*one.given, *one.breaks), [r for r in rules if kind in r.outputs])
            if found is not None:
                yield Gap(one.id, kind, _told(ruleset, one, clause, kind, found))


def _serves(rule: Rule, one: Requirement) -> bool:
    effect = rule_effect(rule)
    if one.does:
        return rule.deed in one.does and _same_deed(one.does[str(rule.deed)], dict(rule.deed_args))
    return restricts(rule) and effect.rank <= Effect(one.effect).rank


def _same_deed(wanted: Any, args: Mapping[str, Any]) -> bool:
    if isinstance(wanted, Mapping):
        return all(args.get(k) == v for k, v in wanted.items())
    return wanted in (True, args.get("text"))


def _not_more_waivable(rule: Rule, one: Requirement) -> bool:
    return WAIVABLE.index(rule.waivable) >= WAIVABLE.index(one.waivable)


def _told(ruleset: RuleSet, one: Requirement, clause: str, kind: str, found: Found) -> str:
    """What gets through, and whether a rule of another clause stops it all the same."""
    others = [r for r in ruleset.rules_for(kind) if _serves(r, one)]
    through = passing(ruleset.facts, (*one.given, *one.breaks), others)
    if through is None:
        names = ", ".join(r.id for r in others if clause not in r.source or not _not_more_waivable(r, one))
        return f"no rule of {clause} shuts out {found}; only rules of other clauses do ({names})"
    return f"{clause} asks for {one.effect}, and {found} gets through"


def switched_off(ruleset: RuleSet) -> Iterator[Gap]:
    """A rule that was switched off without one in its place, and what it leaves open."""
    for rule in ruleset.rules:
        if rule.in_force or rule.replaced_by is not None:
            continue
        for kind in sorted(rule.outputs):
            found = decides(ruleset, rule, kind)
            if found is not None:
                yield Gap(rule.id, kind, f"is switched off, and {found} gets through")
                break
        else:
            yield Gap(rule.id, "every kind", "is switched off: say which rule replaces it (replaced_by)")


def decides(ruleset: RuleSet, rule: Rule, kind: str) -> Found | None:
    """A case of this kind in which this rule alone has its effect; None is the proof that others always do too."""
    effect = rule_effect(rule)
    others = [
        r
        for r in ruleset.rules_for(kind)
        if r.id != rule.id and restricts(r) == restricts(rule) and rule_effect(r).rank <= effect.rank
    ]
    if not restricts(rule):
        others = [r for r in others if r.deed == rule.deed and dict(r.deed_args) == dict(rule.deed_args)]
    if rule.deed in ("suppress_complement",):
        others = [r for r in others if r.deed == rule.deed]
    for given, broken in ways_to_fire(rule):
        found = passing(ruleset.facts, given, others, broken)
        if found is not None:
            return found
    return None


def idle(ruleset: RuleSet) -> list[Rule]:
    """Rules that never decide a verdict by themselves: whatever they stop, another rule stops as well."""
    return [
        r for r in ruleset.rules if r.in_force and all(decides(ruleset, r, kind) is None for kind in sorted(r.outputs))
    ]


def evidence_gaps(ruleset: RuleSet, asked: Requirements) -> Iterator[Gap]:
    """Facts that more people may say than is asked, that stopped being raw, or that may be absent now."""
    for name, spec in ruleset.facts.items():
        if name in asked.said_by:
            more = sorted({p.value for p in spec.accept} - set(asked.said_by[name]))
            if more:
                yield Gap(name, "fact", f"may be said by {', '.join(more)} too")
        if name in asked.raw and not spec.raw:
            yield Gap(name, "fact", "is a query on the data (raw), and its result would leave")
        if asked.said_by and spec.optional and name not in asked.optional:
            yield Gap(name, "fact", "is optional: where nobody supplies it nothing blocks")
        if asked.said_by and spec.ask and name not in asked.asked:
            yield Gap(name, "fact", "is asked of the checker: where nobody supplies it nothing blocks")


def number_gaps(ruleset: RuleSet, asked: Requirements) -> Iterator[Gap]:
    """Parameters that are less strict than asked, and kinds that are not of their class."""
    for name, least in asked.numbers.items():
        spec, value = ruleset.parameter_specs.get(name), ruleset.parameters.get(name)
        if spec is None or not isinstance(value, int | float):
            yield Gap(name, "parameter", "is missing")
        elif (
            (value < least)
            if spec.stricter == "higher"
            else (value > least)
            if spec.stricter == "lower"
            else value != least
        ):
            yield Gap(name, "parameter", f"is {value}; the law asks for {least} or stricter")
    for cls, kinds in asked.kinds.items():
        for kind in kinds:
            if kind in ruleset.outputs and ruleset.cls(kind) != cls:
                yield Gap(kind, "kind", f"is of class {ruleset.cls(kind)}, not {cls}")


def let_through(old: RuleSet, new: RuleSet) -> list[Gap]:
    """What the old set stops and the new one lets through (or lowers), kind by kind; empty is the proof of none."""
    out = []
    facts = {**old.facts, **new.facts}
    for kind in sorted(old.output_types & new.output_types):
        for rule in old.rules_for(kind):
            effect = rule_effect(rule)
            others = [
                r
                for r in new.rules_for(kind)
                if (restricts(rule) and restricts(r) and rule_effect(r).rank <= effect.rank)
                or (r.deed == rule.deed and not restricts(rule) and dict(r.deed_args) == dict(rule.deed_args))
            ]
            for given, broken in ways_to_fire(rule):
                found = passing(facts, given, others, broken)
                if found is not None:
                    out.append(Gap(rule.id, kind, f"{effect.value} becomes less for {found}"))
                    break
    return out
