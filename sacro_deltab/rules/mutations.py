"""One-step changes to every limit, comparator and effect; a change that no example notices is a number unpinned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ..base.findings import Effect
from .comparators import COMPARATORS
from .examples import run_example
from .limits import LIMITS, named_limit
from .model import Condition, Rule, RuleSet
from .strictness import condition_words

NOTICED_AT_LEAST = 0.98  # `rules test` fails below this share


@dataclass(frozen=True)
class Mutation:
    """One changed form of a rule; `kind` is limit, comparator, effect, condition or result."""

    rule: Rule
    changed: Rule | None  # None: the rule is gone
    kind: str
    what: str
    line: int

    @property
    def reason(self) -> str:
        """Why it may have gone unnoticed, as far as that can be told."""
        named = any(c.named for c in self.rule.require)
        if self.kind == "comparator" and named:
            return "a limit that is worked out never equals a written number, so at-least and more-than look alike"
        return "no example lies between the old and the new form: add one on the limit and one just past it"

    def __str__(self) -> str:
        return f"{self.rule.place.path}:{self.line}: {self.rule.id}: {self.kind}: {self.what}"


@dataclass(frozen=True)
class MutationReport:
    """How many changes were tried, and those that no example noticed."""

    tried: int
    survivors: tuple[Mutation, ...]

    @property
    def noticed(self) -> int:
        """Changes that at least one example noticed."""
        return self.tried - len(self.survivors)

    @property
    def share(self) -> float:
        """Share of changes that were noticed; 1.0 where there were none to try."""
        return self.noticed / self.tried if self.tried else 1.0


def mutate(ruleset: RuleSet) -> MutationReport:
    """Try every one-step change of every rule in force against the rule's own examples."""
    tried = 0
    survivors = []
    for rule in ruleset.rules:
        if not rule.in_force:
            continue
        for mutation in mutations(ruleset, rule):
            tried += 1
            if not _noticed(ruleset, mutation):
                survivors.append(mutation)
    return MutationReport(tried, tuple(survivors))


def _noticed(ruleset: RuleSet, mutation: Mutation) -> bool:
    for example in mutation.rule.examples:
        before = run_example(ruleset, mutation.rule, example)
        if mutation.changed is None:
            if before not in ("pass", "keep", "not_applicable"):
                return True
        elif run_example(ruleset, mutation.changed, example) != before:
            return True
    return False


def mutations(ruleset: RuleSet, rule: Rule) -> Iterator[Mutation]:
    """Every one-step change of one rule."""
    for key in ("when", "require"):
        conditions: tuple[Condition, ...] = getattr(rule, key)
        for index, condition in enumerate(conditions):
            for kind, other in _conditions(ruleset, condition):
                swapped = conditions[:index] + ((other,) if other else ()) + conditions[index + 1 :]
                words = condition_words(other) if other else "dropped"
                what = f"{condition_words(condition)} → {words}"
                yield Mutation(rule, _with(rule, key, swapped), kind, what, condition.place.line)
    yield from _alternatives(ruleset, rule)
    yield from _effects(rule)
    yield from _results(rule)


def _alternatives(ruleset: RuleSet, rule: Rule) -> Iterator[Mutation]:
    """An alternative of `any_of` dropped, or one of its conditions changed."""
    for name in ("any_when", "any_require"):
        held: tuple[tuple[Condition, ...], ...] = getattr(rule, name)
        for index, one in enumerate(held):
            forms = [("condition", held[:index] + held[index + 1 :], f"alternative {index + 1} dropped")]
            for place, condition in enumerate(one):
                for kind, other in _conditions(ruleset, condition):
                    changed = one[:place] + ((other,) if other else ()) + one[place + 1 :]
                    words = condition_words(other) if other else "dropped"
                    what = f"{condition_words(condition)} → {words}"
                    forms.append((kind, (*held[:index], changed, *held[index + 1 :]), what))
            for kind, form, what in forms:
                other_rule = replace(rule, any_when=form) if name == "any_when" else replace(rule, any_require=form)
                yield Mutation(rule, other_rule, kind, what, one[0].place.line)


def _with(rule: Rule, key: str, conditions: tuple[Condition, ...]) -> Rule:
    return replace(rule, when=conditions) if key == "when" else replace(rule, require=conditions)


def _conditions(ruleset: RuleSet, c: Condition) -> Iterator[tuple[str, Condition | None]]:
    yield "condition", None
    for word in _OTHER_WORDS.get(c.comparator, ()):
        yield "comparator", replace(c, comparator=word)
    for limit in _limits(ruleset, c):
        yield "limit", replace(c, limit=limit)


# A step between strict and not, and a step to the other side.
_OTHER_WORDS = {
    "at_least": ("more_than", "at_most"),
    "more_than": ("at_least", "less_than"),
    "at_most": ("less_than", "at_least"),
    "less_than": ("at_most", "more_than"),
}


def _limits(ruleset: RuleSet, c: Condition) -> Iterator[Any]:
    spec = ruleset.facts[c.fact]
    if c.named and str(c.limit) not in LIMITS:
        return
    if c.named:
        mine = set(named_limit(str(c.limit)).needs)
        yield from (name for name, one in LIMITS.items() if name != c.limit and set(one.needs) <= mine)
    elif isinstance(c.limit, bool):
        yield not c.limit
    elif isinstance(c.limit, str):
        yield next((v for v in spec.values if v != c.limit), c.limit + "x")
    elif isinstance(c.limit, tuple):
        for i, one in enumerate(c.limit):
            rest = c.limit[:i] + c.limit[i + 1 :]
            if COMPARATORS[c.comparator].takes == "pair":
                for step in _steps(one, spec.type):
                    yield (*c.limit[:i], step, *c.limit[i + 1 :])
            else:
                yield rest
        yield from ((*c.limit, v) for v in spec.values if v not in c.limit) if spec.type == "text" else ()
    else:
        yield from _steps(c.limit, spec.type)


def _steps(limit: Any, kind: str) -> tuple[Any, Any]:
    """One person for whole numbers, one percent for the rest."""
    if kind == "integer":
        return limit - 1, limit + 1
    step = abs(limit) * 0.01 or 0.001
    return limit - step, limit + step


def _effects(rule: Rule) -> Iterator[Mutation]:
    line = rule.place.line
    yield Mutation(rule, None, "effect", "the rule is gone", line)
    if rule.verb == "require":
        other = Effect.REVIEW if rule.otherwise is Effect.BLOCK else Effect.BLOCK
        assert rule.otherwise is not None
        yield Mutation(
            rule, replace(rule, otherwise=other), "effect", f"otherwise {rule.otherwise.value} → {other.value}", line
        )


def _results(rule: Rule) -> Iterator[Mutation]:
    args = dict(rule.deed_args)
    line = rule.place.line
    for key in ("decimal_places", "significant_figures", "to_nearest"):
        if rule.deed == "round" and key in args:
            for step in (-1, 1):
                if args[key] + step >= (0 if key == "decimal_places" else 1):
                    changed = MappingProxyType({**args, key: args[key] + step})
                    what = f"{key} {args[key]} → {args[key] + step}"
                    yield Mutation(rule, replace(rule, deed_args=changed), "result", what, line)
    if rule.deed == "label":
        changed = MappingProxyType({"text": args["text"] + "."})
        yield Mutation(rule, replace(rule, deed_args=changed), "result", "another label", line)
    if rule.deed == "label_band":
        yield from _bands(rule, args, line)


def _bands(rule: Rule, args: dict[str, Any], line: int) -> Iterator[Mutation]:
    for index, band in enumerate(args["bands"]):
        for key, other in (("below", "up_to"), ("up_to", "below")):
            if key not in band:
                continue
            forms = [{**band, key: step} for step in _steps(band[key], "number")]
            forms.append({other: band[key], "text": band["text"]})
            for form in forms:
                bands = [*args["bands"][:index], form, *args["bands"][index + 1 :]]
                changed = replace(rule, deed_args=MappingProxyType({**args, "bands": bands}))
                yield Mutation(rule, changed, "limit", f"band {band} → {form}", line)
