"""The rules' own tests: each example beside a rule is run against that rule alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..tables.rounding import round_value
from .engine import band_text
from .evaluate import Lack, Scope, evaluate
from .facts import Fact, Facts, Part, Provider
from .model import Example, Rule, RuleSet


@dataclass(frozen=True)
class ExampleResult:
    """One example with what the rule really said."""

    rule: Rule
    example: Example
    got: str

    @property
    def wanted(self) -> str:
        """What the example expects, in the words of `got`."""
        return self.example.expect if self.example.expect is not None else f"becomes {self.example.becomes!r}"

    @property
    def passed(self) -> bool:
        """Whether the rule did what its example says."""
        return self.got == self.wanted

    def __str__(self) -> str:
        given = ", ".join(f"{k}: {v}" for k, v in self.example.given.items())
        return f"{self.example.place}: {self.rule.id}: given {{{given}}} expected {self.wanted}, got {self.got}"


def run_examples(ruleset: RuleSet, rules: tuple[Rule, ...] | None = None) -> Iterator[ExampleResult]:
    """Run every example of the given rules (all of the rule set's in force by default)."""
    for rule in ruleset.rules if rules is None else rules:
        if rule.in_force:
            for example in rule.examples:
                yield ExampleResult(rule, example, run_example(ruleset, rule, example))


def run_example(ruleset: RuleSet, rule: Rule, example: Example) -> str:
    """The effect word of the rule on the example's facts, `becomes …` for a result, or what is missing."""
    if rule.deed == "suppress_complement":
        chosen = one_way_complement(example.given, int(ruleset.parameters["min_n"]))
        same = sorted(chosen) == sorted(map(str, example.becomes or ()))
        return f"becomes {example.becomes if same else chosen!r}"
    facts, part = _facts(ruleset, rule, example.given)
    scope = Scope(ruleset, facts)
    outcome = evaluate(scope, rule, part)
    if outcome.lacks:
        return f"nothing: {outcome.lacks[0].fact} {outcome.lacks[0].why}"
    if not outcome.applies:
        return "keep" if rule.deed in ("suppress", "withhold") else "not_applicable"
    if rule.verb == "require":
        return "pass" if outcome.met else str(rule.otherwise.value if rule.otherwise else "")
    if rule.verb == "forbid":
        return "block"
    if rule.verb == "flag":
        return "review"
    return _deed(scope, rule, part, example)


def _deed(scope: Scope, rule: Rule, part: Part | None, example: Example) -> str:
    if rule.deed in ("suppress", "withhold"):
        return str(rule.deed)
    if rule.deed == "label":
        return f"becomes {rule.deed_args['text']!r}"
    if rule.deed == "label_band":
        value = scope.read(rule.deed_args["fact"], part)
        if isinstance(value, Lack):
            return f"nothing: {value.fact} {value.why}"
        return f"becomes {band_text(rule.deed_args['bands'], value)!r}"

    how = {k: v for k, v in rule.deed_args.items() if k != "part"}
    number = example.given.get("value", example.given.get("cell.n"))
    if number is None:
        return "nothing: value is missing"
    rounded = round_value(number, **how)
    same = rounded == example.becomes and str(rounded) == str(type(rounded)(example.becomes or 0))
    return f"becomes {example.becomes if same else rounded!r}"


def _facts(ruleset: RuleSet, rule: Rule, given: Mapping[str, Any]) -> tuple[Facts, Part | None]:
    facts = {name: Fact(name, value, _provider(ruleset, name)) for name, value in given.items()}
    output_type = min(rule.outputs)
    if rule.for_each is None:
        return Facts("example", output_type, facts), None
    part = Part(rule.for_each, "example", facts, given.get("value"))
    return Facts("example", output_type, {}, (part,)), part


def _provider(ruleset: RuleSet, name: str) -> Provider:
    accept = ruleset.facts[name].accept
    return next(p for p in (Provider.COMPUTED, Provider.ATTESTED, Provider.LEDGER, Provider.DECLARED) if p in accept)


def one_way_complement(given: Mapping[str, Any], min_n: int) -> list[str]:
    """Cells of a one-way table to suppress: fewest cells, then fewest people, then labels (D-38), by trying all.

    With a published total the suppressed cells together are known, so they must be nobody or at least `min_n`
    people, and more than one cell. The table engine does the general case; this is the example's oracle.
    """
    cells = {str(k): int(v) for k, v in given["cells"].items()}
    primary = {k for k, n in cells.items() if n < min_n}
    if not primary or not given.get("total_published", False):
        return sorted(primary)
    free = sorted(set(cells) - primary)
    for extra in range(len(free) + 1):
        fits = []
        for chosen in combinations(free, extra):
            union = sum(cells[k] for k in (*primary, *chosen))
            if len(primary) + extra > 1 and (union == 0 or union >= min_n):
                fits.append((union, chosen))
        if fits:
            return sorted((*primary, *min(fits)[1]))
    return sorted(cells)
