"""One rule against one output: conditions over checked facts, with everything that was missing or unfit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from .comparators import compare
from .facts import Fact, Facts, FactValue, Part, Provider
from .fits import misfit
from .limits import MissingFactError, named_limit
from .model import Condition, Rule, RuleSet

MISSING = "is missing"  # why of a fact that nobody supplied at all


@dataclass(frozen=True)
class Lack:
    """A fact that a rule needs and does not have, and why: nobody gave it, wrong type, wrong provider."""

    fact: str
    why: str


@dataclass(frozen=True)
class Failed:
    """A condition as it was found: its value, and its limit worked out."""

    condition: Condition
    value: FactValue
    limit: Any


@dataclass(frozen=True)
class Outcome:
    """What one rule said of one target (a part, or the whole output)."""

    rule: Rule
    part: Part | None
    applies: bool
    met: bool = True
    held: tuple[Failed, ...] = ()  # the `when` conditions that held
    failed: tuple[Failed, ...] = ()  # the `require` conditions that did not
    lacks: tuple[Lack, ...] = ()

    @property
    def target(self) -> str:
        """Key of the part, or "output"."""
        return "output" if self.part is None else self.part.key


@dataclass
class Scope:
    """Checked access to the facts of one output: never an unfit value, never an unentitled provider."""

    ruleset: RuleSet
    facts: Facts
    overrides: dict[str, Fact] = field(default_factory=dict)

    def read(self, name: str, part: Part | None) -> FactValue | Lack:
        """The value of a fact, or what is wrong with it."""
        spec = self.ruleset.facts[name]
        fact = self._find(name, part)
        if fact is None:
            return False if spec.optional else Lack(name, MISSING)
        if not isinstance(fact, Fact) or fact.name != name:
            return Lack(name, "is not what its name says")
        wrong = misfit(spec, fact.value)
        if wrong is not None:
            return Lack(name, wrong)
        if fact.by not in spec.accept:
            return Lack(name, f"must not rest on what is {fact.by.value}")
        return fact.value

    def _find(self, name: str, part: Part | None) -> Fact | None:
        """A fact of a part is looked for on the part alone: one value for the whole output would speak for all."""
        spec = self.ruleset.facts[name]
        if name in self.overrides:
            return self.overrides[name]
        if part is not None and name in part.facts:
            return part.facts[name]
        if part is not None and spec.part_value:
            return Fact(name, part.value, Provider.COMPUTED) if _plain(part.value) else None
        return None if spec.of_part is not None else self.facts.facts.get(name)

    def limit(self, condition: Condition, part: Part | None) -> Any:
        """The limit, worked out where it is named; None where it is undefined. May raise MissingFactError."""
        if not condition.named:
            return condition.limit

        def need(name: str) -> Any:
            value = self.read(name, part)
            if isinstance(value, Lack):
                raise MissingFactError(name)
            return value

        try:
            return named_limit(str(condition.limit)).work_out(need, self.ruleset.parameters)
        except (OverflowError, ZeroDivisionError, ValueError):
            return None


def _plain(value: object) -> TypeGuard[float]:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _holds(scope: Scope, condition: Condition, part: Part | None) -> tuple[bool | None, Failed | None, list[Lack]]:
    """(holds, what was found, what is missing); holds is None where a fact is missing."""
    value = scope.read(condition.fact, part)
    if isinstance(value, Lack):
        return None, None, [value]
    try:
        limit = scope.limit(condition, part)
    except MissingFactError as missing:
        lack = scope.read(missing.fact, part)
        return None, None, [lack if isinstance(lack, Lack) else Lack(missing.fact, MISSING)]
    found = Failed(condition, value, limit)
    if limit is None:
        return False, found, []
    return compare(condition.comparator, value, limit, named=condition.named), found, []


def _any(
    scope: Scope, alternatives: tuple[tuple[Condition, ...], ...], part: Part | None
) -> tuple[bool | None, list[Failed], list[Lack]]:
    """Whether one alternative holds: with it, what was found of it; else what was found against all, and missing."""
    against: list[Failed] = []
    lacks: list[Lack] = []
    for one in alternatives:
        results = [_holds(scope, condition, part) for condition in one]
        if all(holds is True for holds, _, _ in results):
            return True, [found for _, found, _ in results if found is not None], []
        against += [found for holds, found, _ in results if holds is False and found is not None]
        if not any(holds is False for holds, _, _ in results):
            lacks += [lack for _, _, missing in results for lack in missing]
    return (None if lacks else False), against, lacks


def evaluate(scope: Scope, rule: Rule, part: Part | None = None) -> Outcome:
    """Judge one target by one rule. A false `when` is not_applicable even where other facts are missing."""
    held: list[Failed] = []
    lacks: list[Lack] = []
    for condition in rule.when:
        holds, found, missing = _holds(scope, condition, part)
        if holds is False:
            return Outcome(rule, part, applies=False)
        lacks += missing
        if found is not None:
            held.append(found)
    if rule.any_when:
        true, found_too, missing = _any(scope, rule.any_when, part)
        if true is False:
            return Outcome(rule, part, applies=False)
        held += found_too
        lacks += missing
    if lacks:
        return Outcome(rule, part, applies=True, met=False, lacks=tuple(lacks))
    failed: list[Failed] = []
    for condition in rule.require:
        holds, found, missing = _holds(scope, condition, part)
        lacks += missing
        if holds is False and found is not None:
            failed.append(found)
    if rule.any_require:
        true, found_too, missing = _any(scope, rule.any_require, part)
        lacks += missing
        failed += [] if true is True else found_too
    return Outcome(rule, part, True, not failed and not lacks, tuple(held), tuple(failed), tuple(lacks))
