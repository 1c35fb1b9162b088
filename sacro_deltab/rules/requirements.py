"""What each clause asks, apart from the rules: what must never pass, who may say what, and which numbers hold.

`requirements.yaml` is the other side of the proof: a rule says how an output is judged, a requirement which outputs a
clause shuts out. `prove` decides whether the rules that cite the clause do so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .constants import put_in_place
from .fits import read_conditions
from .loader import first_at_each_place, raise_problems
from .marked_yaml import MarkedFile, Problem, read_marked
from .model import Condition, Place, RuleSet
from .schema_check import check, did_you_mean

FILE = "requirements.yaml"


@dataclass(frozen=True)
class Requirement:
    """One thing that clauses ask of kinds of output: where `given` and `breaks` hold, at least `effect` follows."""

    id: str
    clauses: tuple[str, ...]
    outputs: tuple[str, ...]
    given: tuple[Condition, ...]
    breaks: tuple[Condition, ...]
    effect: str
    does: Mapping[str, Any]
    waivable: str
    place: Place


@dataclass(frozen=True)
class Requirements:
    """All of them, with what is asked of facts, numbers and kinds."""

    all: tuple[Requirement, ...] = ()
    said_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # fact → providers, at most
    raw: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    numbers: Mapping[str, Any] = field(default_factory=dict)  # parameter → the least strict value
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # class → kinds


def load_requirements(ruleset: RuleSet) -> Requirements:
    """The requirements beside a rule set; none where it has no such file. Raises RuleSetError with every problem."""
    path = Path(ruleset.folder) / FILE
    if not path.is_file():
        return Requirements()
    marked = read_marked(path, str(path))
    if isinstance(marked.data, dict):
        put_in_place(marked, ruleset.constants)
        check(marked, "requirements")
    raise_problems(first_at_each_place(marked.problems), str(path))
    found = tuple(_one(ruleset, marked, rid, data) for rid, data in marked.data["requirements"].items())
    raise_problems(first_at_each_place(marked.problems), str(path))
    data = marked.data
    said = {f: tuple(entry["by"]) for entry in data.get("said_by", ()) for f in entry["facts"]}
    return Requirements(
        found,
        said,
        frozenset(data.get("raw", ())),
        frozenset(data.get("optional", ())),
        frozenset(data.get("asked", ())),
        data.get("numbers", {}),
        {cls: tuple(kinds) for cls, kinds in data.get("kinds", {}).items()},
    )


def _kinds(ruleset: RuleSet) -> dict[str, tuple[str, ...]]:
    """Kinds of output, and the groups of them that the vocabulary names."""
    groups = {
        group: tuple(o.name for o in ruleset.outputs.values() if o.cls in classes)
        for group, classes in ruleset.groups.items()
    }
    return {**groups, **{name: (name,) for name in ruleset.outputs}}


def _one(ruleset: RuleSet, marked: MarkedFile, rid: str, data: dict[str, Any]) -> Requirement:
    def conditions(key: str) -> tuple[Condition, ...]:
        found, wrong = read_conditions(marked, ("requirements", rid, key), data.get(key, {}), ruleset, allow_named=True)
        marked.problems.extend(wrong)
        return found

    kinds = _kinds(ruleset)
    for key, known in (("clauses", ruleset.clauses), ("outputs", kinds)):
        for index, name in enumerate(data[key]):
            if name not in known:
                place = marked.place("requirements", rid, key, index)
                marked.problems.append(Problem(place, f"{rid}: there is no {name!r}{did_you_mean(name, known)}"))
    return Requirement(
        id=rid,
        clauses=tuple(data["clauses"]),
        outputs=tuple(dict.fromkeys(kind for name in data["outputs"] for kind in kinds.get(name, ()))),
        given=conditions("given"),
        breaks=conditions("breaks"),
        effect=data["effect"],
        does=data.get("does", {}),
        waivable=data.get("waivable", "by_dac"),
        place=marked.key_place("requirements", rid),
    )
