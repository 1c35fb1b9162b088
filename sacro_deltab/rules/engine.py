"""The engine: facts and rules in, a decision out. Pure and deterministic; it sees no data and changes nothing.

Two steps, one function. A caller that can transform the output calls `decide` twice:

1. `decide(ruleset, facts)` and takes the `actions`: cells to suppress, whether complements must be chosen
   (`suppress_complement`; the choice itself is `tables.protect`'s), how to round, which labels to print.
2. It carries them out, measures the result and adds what is known only then: `rounding.done`,
   `table.suppressed_share`, `table.recoverable_cells`, `package.recoverable_cells`, and on each complementary
   cell the part fact `cell.complementary = true`. Then it calls `decide` again: that decision is the verdict.

The first decision lists those later facts as missing and so never passes by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from ..base.findings import Effect, Finding
from .comparators import compare
from .evaluate import Lack, Outcome, Scope, evaluate
from .facts import Fact, Facts, Part, Provider
from .findings import collect_findings, is_asked
from .limits import named_limit
from .model import Rule, RuleSet
from .noised import advice_of, is_raw_rule, protected_by_noise, without_raw
from .types import Action, Advice, Decision
from .waivers import Waiver, valid_waiver

PART_KINDS = ("cell", "quantile", "row")


def decide(
    ruleset: RuleSet,
    facts: Facts,
    *,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    output_sha256: str | None = None,
) -> Decision:
    """Judge one output.

    Parameters
    ----------
    ruleset
        A loaded rule set, with or without layers. Facts that a layer pins are added as attested.
    facts
        Everything measured, declared, attested or read from a ledger about the output; parts for its cells.
    waivers
        Considered only where valid for `output_sha256` on `today` (UTC; default: now).

    Returns
    -------
    Decision
        The worst effect, the findings (each target and reason once, with all rules and clauses), the actions in
        phase order, and what was met or did not apply. A missing fact is a block that names it; so is an
        unknown output type.
    """
    if facts.output_type not in ruleset.outputs:
        return _unknown(ruleset, facts)
    facts, conflicts = _with_pins(ruleset, facts)
    rules = [r for r in ruleset.rules_for(facts.output_type) if not _asks_completeness(r)]
    aside: list[Rule] = []
    advice: tuple[Advice, ...] = ()
    if protected_by_noise(facts):
        aside = [r for r in rules if is_raw_rule(ruleset, r)]
        advice = advice_of(ruleset, facts, aside)
        rules = [r for r in rules if r not in aside]
        facts = without_raw(ruleset, facts)
    scope = Scope(ruleset, facts)
    scope.overrides["output.known"] = Fact("output.known", True, Provider.COMPUTED)
    shape = _shape_problems(facts, rules)
    suppressors = [r for r in rules if r.deed == "suppress"]
    first = [outcome for rule in suppressors for outcome in _targets(scope, rule, frozenset())]
    hidden = frozenset(o.part.key for o in first if o.applies and not o.lacks and o.part is not None)
    complements = (
        frozenset(p.key for p in facts.parts if scope.read("cell.complementary", p) is True)
        if _knows(ruleset)
        else frozenset()
    )
    hidden |= complements
    rest = [o for rule in rules if rule.deed != "suppress" for o in _targets(scope, rule, hidden)]
    outcomes = first + rest
    day = today or datetime.now(UTC).date()
    waived = {
        rule.id: waiver.id
        for rule in rules
        if (waiver := valid_waiver(ruleset, rule, waivers, day, output_sha256)) is not None
    }
    findings = collect_findings(ruleset, outcomes, shape + conflicts, complements - _primary(first), waived)
    actions = _actions(ruleset, scope, rules, outcomes, hidden)
    decision = _decision(ruleset, facts, rules, outcomes, findings, actions)
    return replace(decision, not_applicable=(*decision.not_applicable, *(r.id for r in aside)), advice=advice)


def _knows(ruleset: RuleSet) -> bool:
    return "cell.complementary" in ruleset.facts


def _primary(outcomes: Iterable[Outcome]) -> frozenset[str]:
    return frozenset(o.part.key for o in outcomes if o.applies and not o.lacks and o.part is not None)


def _asks_completeness(rule: Rule) -> bool:
    return any(c.fact == "evidence.complete" for c in rule.require)


def _unknown(ruleset: RuleSet, facts: Facts) -> Decision:
    rules = [r for r in ruleset.rules if r.in_force and any(c.fact == "output.known" for c in r.require)]
    finding = Finding(
        rules=tuple(r.id for r in rules),
        target="output",
        effect=Effect.BLOCK,
        inside="This output is of a type that the rule set does not know, so no rule can let it go.",
        outside="This output is of a type that the rule set does not know, so no rule can let it go.",
        clauses=tuple(dict.fromkeys(c for r in rules for c in r.source)),
        next_step=next((r.remedy for r in rules if r.remedy), "Ask the data access committee to add the output type."),
    )
    return Decision(facts.output_name, facts.output_type, Effect.BLOCK, (finding,), (), (), ())


def _with_pins(ruleset: RuleSet, facts: Facts) -> tuple[Facts, list[str]]:
    """Add what layers pin; a pin that something else contradicts is a problem, never an override."""
    if ruleset.profile is None:
        return facts, []
    conflicts: list[str] = []
    added: list[Fact] = []
    for name, value in ruleset.profile.attest.items():
        given = facts.facts.get(name)
        if given is None or given.by not in ruleset.facts[name].accept:
            added.append(Fact(name, value, Provider.ATTESTED))
        elif isinstance(given.value, bool) != isinstance(value, bool) or given.value != value:
            conflicts.append(f"The fact {name} contradicts what a layer pins")
    return facts.with_facts(*added), conflicts


def _shape_problems(facts: Facts, rules: list[Rule]) -> list[str]:
    """Parts that cannot be judged: unknown kinds, keys that stand twice, a table nobody described."""
    problems: list[str] = []
    kinds = {p.kind for p in facts.parts}
    if unknown := sorted(kinds - set(PART_KINDS)):
        problems.append(f"The output has parts of an unknown kind ({', '.join(unknown)})")
    keys = [(p.kind, p.key) for p in facts.parts]
    if len(set(keys)) != len(keys):
        problems.append("Two parts of the output have the same label")
    for kind in sorted({str(r.for_each) for r in rules if r.for_each is not None}):
        if kind not in kinds:
            problems.append(f"No {kind} of the output was described, so none can be judged")
    return problems


def _targets(scope: Scope, rule: Rule, hidden: frozenset[str]) -> list[Outcome]:
    """A suppressed cell is out of reach of every later rule (D-81)."""
    if rule.for_each is None:
        return [evaluate(scope, rule)]
    parts = [p for p in scope.facts.parts if p.kind == rule.for_each and p.key not in hidden]
    return [evaluate(scope, rule, part) for part in parts]


def _actions(
    ruleset: RuleSet, scope: Scope, rules: list[Rule], outcomes: list[Outcome], hidden: frozenset[str]
) -> tuple[Action, ...]:
    """What the caller must do, in the order: suppress, complement, withhold, round, label."""
    marks: dict[str, list[str]] = {}
    later: dict[tuple[str, str | None, str], tuple[dict[str, Any], list[str]]] = {}
    for outcome in outcomes:
        rule = outcome.rule
        if rule.verb != "do" or not outcome.applies or outcome.lacks:
            continue
        part = None if outcome.part is None else outcome.part.key
        if rule.deed == "suppress":
            marks.setdefault(str(part), []).append(rule.id)
            continue
        args = _deed_args(scope, rule, outcome.part)
        if args is None:
            continue
        verb = "label" if rule.deed == "label_band" else str(rule.deed)
        later.setdefault((verb, part, repr(sorted(args.items()))), (args, []))[1].append(rule.id)
    complement_rules = [r.id for r in rules if r.deed == "suppress_complement"]
    for key in sorted(hidden - set(marks)):
        marks[key] = complement_rules
    order = [p.key for p in scope.facts.parts]
    groups = {p.key for p in scope.facts.parts if p.kind == "cell"}  # a percentile is of all people: its mark says no N
    done = [
        Action("suppress", k, {"mark": ruleset.mark if k in groups else "*"}, tuple(marks[k]))
        for k in sorted(marks, key=order.index)
    ]
    ranks = ["suppress_complement", "withhold", "round", "label"]
    rest = [Action(verb, part, args, tuple(ids)) for (verb, part, _), (args, ids) in later.items()]
    return (*done, *sorted(rest, key=lambda a: ranks.index(a.verb)))


def _deed_args(scope: Scope, rule: Rule, part: Part | None) -> dict[str, Any] | None:
    if rule.deed != "label_band":
        return dict(rule.deed_args)
    value = scope.read(rule.deed_args["fact"], part)
    if isinstance(value, Lack):
        return None
    return {"text": band_text(rule.deed_args["bands"], value), "fact": rule.deed_args["fact"]}


def band_text(bands: Sequence[dict[str, Any]], value: Any) -> str:
    """Text of the first band that `value` falls in: `below` is strict, `up_to` is not; the last has no limit."""
    for band in bands:
        if "below" in band and compare("less_than", value, band["below"]):
            return str(band["text"])
        if "up_to" in band and compare("at_most", value, band["up_to"]):
            return str(band["text"])
        if "below" not in band and "up_to" not in band:
            return str(band["text"])
    raise AssertionError("the last band has no limit")


def _decision(
    ruleset: RuleSet,
    facts: Facts,
    rules: list[Rule],
    outcomes: list[Outcome],
    findings: tuple[Finding, ...],
    actions: tuple[Action, ...],
) -> Decision:
    effects = [f.effect for f in findings]
    effects += [Effect(a.verb) for a in actions if a.verb in ("suppress", "withhold", "round", "label")]
    by_rule: dict[str, list[Outcome]] = {rule.id: [] for rule in rules}
    for outcome in outcomes:
        by_rule[outcome.rule.id].append(outcome)
    met: list[str] = []
    idle: list[str] = []
    for rule in rules:
        found = by_rule[rule.id]
        spoke = [o for o in found if o.applies]
        if rule.verb == "require":
            if spoke and all(o.met for o in spoke):
                met.append(rule.id)
            elif not spoke:
                idle.append(rule.id)
        elif not spoke:
            (met if rule.deed in ("suppress", "withhold") and found else idle).append(rule.id)
    complete = not any(o.lacks for o in outcomes)
    extra = [r for r in ruleset.rules_for(facts.output_type) if _asks_completeness(r)]
    if complete:
        met += [r.id for r in extra]
    lacks = tuple(dict.fromkeys(lack for o in outcomes for lack in o.lacks))
    missing = tuple(dict.fromkeys(lack.fact for lack in lacks))
    worst = min(effects, key=lambda e: e.rank, default=Effect.PASS)
    if not rules:
        worst = Effect.BLOCK
    return Decision(
        facts.output_name,
        facts.output_type,
        worst,
        findings,
        actions,
        tuple(met),
        tuple(idle),
        missing,
        asked=tuple(lack.fact for lack in lacks if is_asked(ruleset, lack)),
    )


def facts_required(ruleset: RuleSet, output_type: str) -> frozenset[str]:
    """Names of all facts that some rule on this output type may need; KeyError for an unknown type.

    An upper bound: facts behind a false `when` are not needed. The engine works out `output.known` and
    `evidence.complete` itself, and they are not in the set.
    """
    ruleset.cls(output_type)
    names: set[str] = set()
    for rule in ruleset.rules_for(output_type):
        for condition in rule.conditions:
            names.add(condition.fact)
            if condition.named:
                names.update(named_limit(str(condition.limit)).needs)
        if rule.deed == "label_band":
            names.add(rule.deed_args["fact"])
    return frozenset(names - {"output.known", "evidence.complete"})
