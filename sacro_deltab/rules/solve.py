"""Can an output be such that none of these rules stops it? Decided, not sampled.

Conditions compare one fact with a limit, so the values of a fact fall into finitely many classes: those on, beside and
between all its limits. A limit that is worked out is a fact of its own here, which lies below, on or above it. What a
rule lets through is then a choice: a condition of its `when` is false, or everything that it requires is true. The
search makes these choices rule by rule and ends with a case or with the proof that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from .comparators import compare
from .model import Condition, FactSpec, Rule
from .strictness import samples

Key = tuple[str, str]  # fact, and the named limit it is compared with or ""
Case = dict[Key, tuple[Any, ...]]  # the values that are still possible

_SIDES = {"at_least": (0, 1), "at_most": (-1, 0), "more_than": (1,), "less_than": (-1,)}


@dataclass(frozen=True)
class Found:
    """A case that nothing stops: a value for each fact that matters; as text, those that it is about."""

    values: Mapping[str, Any]
    about: frozenset[str]

    def __str__(self) -> str:
        told = {k: v for k, v in sorted(self.values.items()) if k in self.about}
        shown = (f"{k}: {str(v).lower() if isinstance(v, bool) else v}" for k, v in told.items())
        return "{" + ", ".join(shown) + "}"


def key_of(condition: Condition) -> Key:
    """Which unknown a condition is about."""
    return condition.fact, str(condition.limit) if condition.named else ""


def holds(condition: Condition, value: Any) -> bool:
    """Whether the condition holds for one class of values."""
    if condition.named:
        return value in _SIDES[condition.comparator]
    return compare(condition.comparator, value, condition.limit)


def domains(facts: Mapping[str, FactSpec], conditions: Iterable[Condition]) -> Case:
    """The classes of values of every unknown in the conditions, in the range of its fact."""
    by_key: dict[Key, list[Condition]] = {}
    for condition in conditions:
        by_key.setdefault(key_of(condition), []).append(condition)
    return {key: (-1, 0, 1) if key[1] else _values(facts[key[0]], found) for key, found in by_key.items()}


def _values(spec: FactSpec, conditions: Sequence[Condition]) -> tuple[Any, ...]:
    if spec.type == "boolean":
        return (False, True)
    if spec.type == "text":
        if spec.values:
            return spec.values
        return tuple(v for v in samples(conditions) if isinstance(v, str))
    points = {v for v in samples(conditions) if isinstance(v, int | float) and not isinstance(v, bool)}
    if spec.type == "integer":
        points = {int(p) + d for p in points for d in (-1, 0, 1)}
    edges = [e for e in (spec.minimum, spec.maximum) if e is not None]
    inside = [p for p in {*points, *edges} if _in_range(spec, p)]
    return tuple(sorted(inside)) or (0,)


def _in_range(spec: FactSpec, value: float) -> bool:
    return not (
        (spec.minimum is not None and value < spec.minimum)
        or (spec.maximum is not None and value > spec.maximum)
        or (spec.above is not None and value <= spec.above)
        or (spec.below is not None and value >= spec.below)
    )


def narrowed(case: Case, condition: Condition, *, to: bool) -> Case | None:
    """The case with only the values for which the condition holds (or does not); None where none is left."""
    key = key_of(condition)
    left = tuple(v for v in case[key] if holds(condition, v) is to)
    return {**case, key: left} if left else None


def all_hold(case: Case, conditions: Iterable[Condition]) -> Case | None:
    """The case in which every condition holds."""
    found: Case | None = case
    for condition in conditions:
        found = None if found is None else narrowed(found, condition, to=True)
    return found


def passing(
    facts: Mapping[str, FactSpec],
    given: Sequence[Condition],
    rules: Sequence[Rule],
    broken: Sequence[Condition] = (),
) -> Found | None:
    """A case in which `given` holds, nothing `broken` does, and no rule fires; None is the proof that there is none."""
    said = [*given, *broken]
    case = all_hold(domains(facts, [*said, *(c for r in rules for c in r.conditions)]), given)
    for condition in broken:
        case = None if case is None else narrowed(case, condition, to=False)
    found = None if case is None else _search(case, list(rules))
    if found is None:
        return None
    asked = {key_of(c) for c in said} | {key_of(c) for r in rules for c in r.conditions}
    values = {_name(key): _shown(key, found[key]) for key in sorted(asked)}
    return Found(values, frozenset(_name(key_of(c)) for c in said))


def _name(key: Key) -> str:
    return f"{key[0]} against {key[1]}" if key[1] else key[0]


def _shown(key: Key, values: tuple[Any, ...]) -> Any:
    return {-1: "below", 0: "equal", 1: "above"}[values[0]] if key[1] else values[0]


def _search(case: Case, rules: list[Rule]) -> Case | None:
    """Let one rule after another through; a rule that cannot fire in this case needs no choice."""
    for place, rule in enumerate(rules):
        when = all_hold(case, rule.when)
        if when is None or (rule.any_when and all(all_hold(when, one) is None for one in rule.any_when)):
            continue
        if rule.verb == "require" and all(_always(when, c) for c in rule.require) and _any_always(when, rule):
            continue
        rest = rules[place + 1 :]
        for choice in _ways(case, rule):
            found = _search(choice, rest)
            if found is not None:
                return found
        return None
    return case


def _ways(case: Case, rule: Rule) -> Iterable[Case]:
    """The cases in which the rule does not fire: what it requires holds, or a condition of its `when` does not."""
    if rule.verb == "require":
        for one in rule.any_require or ((),):
            if (met := all_hold(case, (*rule.require, *one))) is not None:
                yield met
    for condition in rule.when:
        if (turned := narrowed(case, condition, to=False)) is not None:
            yield turned
    for picked in product(*rule.any_when) if rule.any_when else ():  # one condition of every alternative is false
        turned = case
        for condition in picked:
            turned = None if turned is None else narrowed(turned, condition, to=False)
        if turned is not None:
            yield turned


def ways_to_fire(rule: Rule) -> Iterable[tuple[tuple[Condition, ...], tuple[Condition, ...]]]:
    """(what holds, what does not) in every way in which the rule fires."""
    for when in rule.any_when or ((),):
        given = (*rule.when, *when)
        if rule.verb != "require":
            yield given, ()
        for broken in rule.require:
            yield given, (broken,)
        for picked in product(*rule.any_require) if rule.any_require else ():
            yield given, tuple(picked)


def _any_always(case: Case, rule: Rule) -> bool:
    return not rule.any_require or any(all(_always(case, c) for c in one) for one in rule.any_require)


def _always(case: Case, condition: Condition) -> bool:
    return all(holds(condition, v) for v in case[key_of(condition)])
