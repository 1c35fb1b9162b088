"""Named numbers of the law: each stands once, and limits, titles, messages, examples and the engine use its name.

A number may be written `NAME`, `-NAME`, `NAME - 1` or `NAME + 1`; a text says `{NAME}`. Names are put in place before
anything else is read, so no other part of the loader knows of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .marked_yaml import MarkedFile, Problem
from .model import Constant, Rule, RuleSet
from .schema_check import did_you_mean

_SUM = re.compile(r"(-?)([a-z][a-z0-9_]*)(?: ([+-]) (\d+))?\Z")
_IN_TEXT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_NUMBERS = frozenset({"when", "require", "any_of", "given", "becomes", "round", "range", "breaks", "does"})
_NOT_IN = frozenset({"constants"})


def read_constants(main: MarkedFile, overrides: Mapping[str, float]) -> dict[str, Constant]:
    """The constants of a rule set, with the numbers that a layer set instead; a misfit goes to the file's problems."""
    out: dict[str, Constant] = {}
    words = _text_values(main.data)
    for name, spec in main.data.get("constants", {}).items():
        place = main.key_place("constants", name)
        value = overrides.get(name, spec["value"])
        if name in words:
            main.problems.append(Problem(place, f"constant {name}: a fact takes this as a word"))
        whole = spec["unit"] in ("people", "rows", "figures", "sites")
        if whole and (not isinstance(value, int) or value < 1):
            main.problems.append(Problem(place, f"constant {name}: {spec['unit']} are whole, and at least 1"))
        if spec["unit"] == "share" and not 0 < value <= 1:
            main.problems.append(Problem(place, f"constant {name}: a share is above 0 and at most 1"))
        out[name] = Constant(
            name=name,
            value=value,
            unit=spec["unit"],
            clause=spec["clause"],
            means=spec["means"],
            stricter=spec["stricter"],
            facts=tuple(spec.get("facts", ())),
            place=place,
        )
    return out


def _text_values(data: Mapping[str, Any]) -> frozenset[str]:
    facts = data.get("vocabulary", {}).get("facts", {})
    return frozenset(v for spec in facts.values() if isinstance(spec, dict) for v in spec.get("values", ()))


def put_in_place(marked: MarkedFile, constants: Mapping[str, Constant]) -> None:
    """Replace every name in a file's data by its number; what is left unreplaced is for the loader to refuse."""

    def number(text: str, path: tuple[Any, ...]) -> Any:
        found = _SUM.match(text)
        if found is None or found[2] not in constants:
            return text
        marked.named[path] = found[2]
        value = -constants[found[2]].value if found[1] else constants[found[2]].value
        step = int(found[4] or 0)
        return value - step if found[3] == "-" else value + step if found[3] else value

    def words(text: str, path: tuple[Any, ...]) -> str:
        def one(match: re.Match[str]) -> str:
            if match[1] not in constants:
                what = f"{{{match[1]}}} names no constant{did_you_mean(match[1], constants)}"
                marked.problems.append(Problem(marked.place(*path), what))
                return match[0]
            return shown(constants[match[1]])

        return _IN_TEXT.sub(one, text)

    def walk(value: Any, path: tuple[Any, ...], numbers: bool) -> Any:
        if isinstance(value, dict):
            return {
                k: v if not path and k in _NOT_IN else walk(v, (*path, k), numbers or k in _NUMBERS)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [walk(v, (*path, i), numbers) for i, v in enumerate(value)]
        if not isinstance(value, str):
            return value
        turned = number(value, path) if numbers else value
        return words(turned, path) if isinstance(turned, str) else turned

    marked.data = walk(marked.data, (), False)


def shown(constant: Constant) -> str:
    """The number as a sentence says it: a share as a percentage, thousands apart."""
    if constant.unit == "share":
        return f"{constant.value * 100:g} %"
    return f"{constant.value:,}" if isinstance(constant.value, int) else f"{constant.value:g}"


def users(ruleset: RuleSet, constant: str) -> list[Rule]:
    """Rules that a named number stands in."""
    return [r for r in ruleset.rules if constant in {c.constant for c in r.conditions} | {*r.deed_constants.values()}]
