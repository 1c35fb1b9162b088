"""Sentences for findings, in two forms: the checker's (numbers, labels) and the one that may leave.

The outside form is built from the rule, its limit and names of facts, never from a value, a label of a cell or a
query on raw data; so it cannot say "7", and it cannot say which of two marked cells was small (D-28, D-79).
"""

from __future__ import annotations

from typing import Any

from .comparators import COMPARATORS
from .evaluate import Failed, Lack, Outcome
from .limits import named_limit
from .model import Condition, Rule, RuleSet

CELLS_OUTSIDE = "Some cells of this output are replaced by the mark, so that no small group can be seen or worked out."
RAW_OUTSIDE = (
    "A check on the data themselves was made inside the TRE; its result stays there, and a person must look at it."
)
RAW_ASK_OUTSIDE = "Has the check made inside the TRE been looked at, and was it accepted?"
CELL_RULE_OUTSIDE = "in at least one part of this output"


def words(value: Any) -> str:
    """A value as a sentence says it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ", ".join(words(one) for one in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def limit_words(condition: Condition, limit: Any, *, inside: bool) -> str:
    """The limit as a sentence says it; outside, a named limit shows its symbol, since 1/N² would show N."""
    comparator = COMPARATORS[condition.comparator]
    if condition.named:
        symbol = named_limit(str(condition.limit)).symbol
        shown = f"{symbol}, here {words(limit)}" if inside and limit is not None else symbol
        if inside and limit is None:
            shown = f"{symbol}, which is undefined here"
    else:
        shown = " or ".join(words(v) for v in limit) if condition.comparator == "is_one_of" else words(limit)
        if condition.comparator == "outside":
            shown = f"{words(limit[0])} to {words(limit[1])}"
    return f"{comparator.reads} {shown}".strip()


def _reads(ruleset: RuleSet, fact: str) -> str:
    return ruleset.facts[fact].reads


def _inside_conditions(ruleset: RuleSet, found: tuple[Failed, ...], asks: str) -> str:
    def one(f: Failed) -> str:
        if isinstance(f.value, bool):
            return f"{_reads(ruleset, f.condition.fact)}: {'yes' if f.value else 'no'}"
        limit = limit_words(f.condition, f.limit, inside=True)
        return f"{_reads(ruleset, f.condition.fact)}: {words(f.value)}; {asks} {limit}"

    return ". ".join(one(f) for f in found)


def inside_text(ruleset: RuleSet, outcome: Outcome) -> str:
    """The checker's sentence for one outcome."""
    rule = outcome.rule
    if outcome.failed:
        return f"{rule.title}. Found: {_inside_conditions(ruleset, outcome.failed, 'the rule asks for')}."
    if rule.verb == "forbid":
        return f"{rule.title}."
    if outcome.held:
        return f"{rule.title}. Found: {_inside_conditions(ruleset, outcome.held, 'the rule speaks at')}."
    return f"{rule.title}."


def is_raw(ruleset: RuleSet, rule: Rule) -> bool:
    """Whether the rule's result is the answer to a query on the raw data."""
    return any(ruleset.facts[c.fact].raw for c in rule.conditions)


def is_cell_rule(rule: Rule) -> bool:
    """Whether the rule marks cells: primary and complementary must look the same from outside."""
    return rule.deed in ("suppress", "suppress_complement") and rule.for_each != "quantile"


def outside_text(ruleset: RuleSet, outcome: Outcome) -> str:
    """The sentence that may leave: title and limits of the policy, no value."""
    rule = outcome.rule
    if is_raw(ruleset, rule):
        return RAW_OUTSIDE
    if is_cell_rule(rule):
        return CELLS_OUTSIDE
    if not outcome.failed:
        return f"{rule.title}."
    asks = " and ".join(_asked(ruleset, f.condition, f.limit) for f in outcome.failed)
    where = f", {CELL_RULE_OUTSIDE}" if outcome.part is not None else ""
    return f"{rule.title}. The rule asks that {asks}; that is not so here{where}."


def _asked(ruleset: RuleSet, condition: Condition, limit: Any) -> str:
    reads = _reads(ruleset, condition.fact)
    if condition.limit is True:
        return reads
    if condition.limit is False:
        return f"it is not so that {reads}"
    return f"{reads} is {limit_words(condition, limit, inside=False)}"


def review_ask(rule: Rule) -> str:
    """The question a person must answer for a review without one of its own."""
    return rule.ask or f"{rule.title}: this does not hold here. Is the output acceptable all the same, and why?"


def lack_text(ruleset: RuleSet, lack: Lack, targets: list[str]) -> tuple[str, str]:
    """(inside, outside) sentences for a fact that is missing or unfit."""
    spec = ruleset.facts[lack.fact]
    shown = [t for t in targets if t != "output"]
    named = f" (for {', '.join(shown[:5])}{' and more' if len(shown) > 5 else ''})" if shown else ""
    core = f"The fact {lack.fact} ({spec.reads}) {lack.why}; a fact that a rule needs never counts as met"
    return f"{core}{named}.", f"{core}."


def lack_next_step(ruleset: RuleSet, fact: str) -> str:
    """How a missing fact gets in."""
    ways = {
        "computed": "Export again from a session of this package, or recompute with --cohort.",
        "declared": "Say it in the file given with --declare.",
        "attested": "TRE staff say it once for the whole request, in the file given with --attest, or in a layer.",
        "ledger": "Give the ledger with --ledger.",
    }
    return ways[ruleset.facts[fact].by]
