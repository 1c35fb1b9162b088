"""Whether a condition can be written: the fact's type, the comparator's signs, limits that can decide something."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, Protocol

from .comparators import COMPARATORS
from .limits import LIMITS, OTHER_FACT
from .marked_yaml import MarkedFile, Problem
from .model import Condition, Constant, FactSpec, ParameterSpec, ParameterValue, Rule
from .schema_check import did_you_mean


class Words(Protocol):
    """What conditions may name: a vocabulary, or a rule set."""

    @property
    def facts(self) -> Mapping[str, FactSpec]: ...

    @property
    def constants(self) -> Mapping[str, Constant]: ...


def read_conditions(
    marked: MarkedFile, path: tuple[Any, ...], data: Mapping[str, Any], words: Words, *, allow_named: bool
) -> tuple[tuple[Condition, ...], list[Problem]]:
    """Conditions at `path` of a file, and what is wrong with them."""
    out: list[Condition] = []
    problems: list[Problem] = []
    for fact, tests in data.items():
        if fact not in words.facts:
            what = f"{fact!r} is not a fact{did_you_mean(fact, words.facts)}"
            problems.append(Problem(marked.key_place(*path, fact), what))
            continue
        for word, limit in tests.items():
            place = marked.place(*path, fact, word)
            constant = marked.named.get((*path, fact, word))
            wrong = fit_other(words.facts, fact, word, limit) or fit(
                words.facts[fact], word, limit, allow_named=allow_named, constants=words.constants
            )
            wrong = wrong or not_by_name(words.constants, fact, limit, constant)
            if wrong:
                problems.append(Problem(place, wrong))
                continue
            named = COMPARATORS[word].takes == "number" and isinstance(limit, str)
            frozen = tuple(limit) if isinstance(limit, list) else limit
            out.append(Condition(fact, word, frozen, named, place, constant))
    return tuple(out), problems


def fit_other(facts: Mapping[str, FactSpec], fact: str, word: str, limit: Any) -> str | None:
    """Why `limit` cannot be the value of another fact; None where it can, or is no such limit."""
    if not isinstance(limit, str) or not limit.startswith(OTHER_FACT) or COMPARATORS[word].takes != "number":
        return None
    other = facts.get(limit.removeprefix(OTHER_FACT))
    if other is None:
        name = limit.removeprefix(OTHER_FACT)
        return f"{name!r} is not a fact{did_you_mean(name, facts)}"
    mine = facts[fact]
    if {mine.type, other.type} - {"integer", "number"} or mine.unit != other.unit:
        return f"{fact} and {other.name} cannot be compared: {mine.type} {mine.unit} and {other.type} {other.unit}"
    return None


def not_by_name(constants: Mapping[str, Constant], fact: str, limit: Any, used: str | None) -> str | None:
    """Why a limit must be written with a constant's name: the fact belongs to one, and 0 alone means nobody."""
    owners = [c.name for c in constants.values() if fact in c.facts]
    if not owners or used in owners or limit == 0:
        return None
    return f"{fact} belongs to the constant {owners[0]}: write its name, and set the number there for all rules"


def misfit(spec: FactSpec, value: Any) -> str | None:
    """Why `value` cannot be a value of this fact, without printing it; None if it can."""
    kinds = {"boolean": (bool,), "integer": (int,), "number": (int, float), "text": (str,)}
    if not isinstance(value, kinds[spec.type]) or (spec.type != "boolean" and isinstance(value, bool)):
        names = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "text": "text"}
        return f"must be {names[spec.type]}"
    if isinstance(value, str):
        if not spec.values or value in spec.values:
            return None
        return f"must be one of {', '.join(spec.values)}{did_you_mean(value, spec.values)}"
    if isinstance(value, bool):
        return None
    return _out_of_range(spec, float(value)) if isinstance(value, (int, float)) else None


def _out_of_range(spec: FactSpec, value: float) -> str | None:
    if not math.isfinite(value):
        return "must be finite"
    bounds = (
        (spec.minimum is not None and value < spec.minimum, f"must be at least {spec.minimum}"),
        (spec.maximum is not None and value > spec.maximum, f"must be at most {spec.maximum}"),
        (spec.above is not None and value <= spec.above, f"must be more than {spec.above}"),
        (spec.below is not None and value >= spec.below, f"must be less than {spec.below}"),
    )
    return next((text for broken, text in bounds if broken), None)


def fit(spec: FactSpec, word: str, limit: Any, *, allow_named: bool, constants: Collection[str] = ()) -> str | None:
    """Why `fact word limit` makes no sense; None if it does."""
    comparator = COMPARATORS[word]
    known = [*LIMITS, *constants]
    if spec.type not in comparator.kinds:
        return f"{word} cannot be said of {spec.name}, which is {spec.type}"
    if comparator.takes == "number":
        if isinstance(limit, str):
            if limit.startswith(OTHER_FACT):
                return None
            if limit not in LIMITS:
                return f"{limit!r} is no limit{_as_number(limit) or did_you_mean(limit, known)}"
            return None if allow_named else "a named limit stands only in require"
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
            return f"{word} needs a number"
        return _vacuous(spec, word, limit)
    if comparator.takes == "pair":
        low, high = limit
        if low > high:
            return "outside: the first number is above the second"
        return next((wrong for one in limit if (wrong := _vacuous(spec, "outside", one))), None)
    for one in limit if comparator.takes == "values" else [limit]:
        if (wrong := misfit(spec, one)) is not None:
            return f"{spec.name} {wrong}"
    return None


def _as_number(text: str) -> str | None:
    """How a number that was written as text should be written."""
    found = re.fullmatch(r"(?:[<>]=? ?)?(-?\d+(?:\.\d+)?) ?(%?)", text)
    if found is None:
        return None
    if found[2]:
        return f": write {float(found[1]) / 100:.2f}"
    return f": write {found[1]} without quotes or signs; at_least, at_most, more_than and less_than are the signs"


def _vacuous(spec: FactSpec, word: str, limit: float) -> str | None:
    """Why a limit can never decide anything: it lies outside what the fact can be."""
    low = spec.minimum if spec.minimum is not None else spec.above
    high = spec.maximum if spec.maximum is not None else spec.below
    if spec.type == "integer" and limit != int(limit):
        return f"{spec.name} is a whole number, so {word} {limit} can never be met exactly: write a whole number"
    if (low is not None and limit < low) or (high is not None and limit > high):
        hint = f": write {limit / 100:g}" if spec.unit == "share" and limit > 1 else ""
        return f"{spec.name} lies between {low} and {high}, so {word} {limit} decides nothing{hint}"
    empty = {("at_least", low), ("less_than", low), ("at_most", high), ("more_than", high)}
    if (word, limit) in empty and (limit != low or spec.minimum is not None):
        return f"{spec.name} lies between {low} and {high}, so {word} {limit} decides nothing"
    return None


def read_parameter(spec: ParameterSpec, rules: Mapping[str, Rule]) -> ParameterValue:
    """The parameter's value, read off its rule where it belongs to one; LookupError if the rule does not say it."""
    if spec.rule is None:
        if spec.value is None:
            raise LookupError("has no value")
        return str(Fraction(str(spec.value))) if spec.form == "fraction" else spec.value
    if spec.rule not in rules:
        raise LookupError(f"no rule {spec.rule}{did_you_mean(spec.rule, rules)}")
    rule = rules[spec.rule]
    found: Any
    if spec.rounding is not None:
        found = rule.deed_args.get(spec.rounding)
    else:
        found = next((c.limit for c in rule.conditions if c.fact == spec.fact), None)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise LookupError(f"{spec.rule} sets no number for it")
    return str(Fraction(str(found))) if spec.form == "fraction" else found
