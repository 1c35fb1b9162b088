"""Site profiles: they may tighten rules, pin attested facts and ledgers, and never loosen anything."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..base.digests import sha256_hex
from ..base.errors import RuleSetError
from ..base.findings import Effect
from ..base.opening import read_file
from .build_rules import misfit, read_conditions, read_parameter
from .constants import put_in_place
from .facts import FactValue
from .loader import first_at_each_place, load_base, raise_problems
from .marked_yaml import MarkedFile, Problem, read_marked
from .model import ParameterValue, ProfileInfo, Rule, RuleSet
from .schema_check import check, did_you_mean
from .strictness import Direction, rule_changes

_ENTRY = re.compile(r"^\s*- +\{? *rule: *[\"']?([A-Z]{2}-\d{2,})")


def load_ruleset(source: str | Path | None = None, *, profile: str | Path | None = None) -> RuleSet:
    """Load and check a rule set, tightened by a site profile.

    Parameters
    ----------
    source
        None for the packaged `deltab-disclosure`; a packaged name; a folder; or a file in the folder.
    profile
        A profile file, or the name of one under `profiles/` of the rule set.

    Raises
    ------
    RuleSetError
        With every error of every file, each as `file:line:column: rule: what; did you mean …`.
    """
    base = load_base(source)
    return base if profile is None else apply_profile(base, find_profile(base, profile))


def find_profile(base: RuleSet, profile: str | Path) -> Path:
    """The profile's file: a path, or a name among the rule set's own profiles."""
    path = Path(profile)
    if path.is_file():
        return path
    named = Path(base.folder) / "profiles" / f"{profile}.yaml"
    if len(path.parts) == 1 and named.is_file():
        return named
    known = sorted(p.stem for p in named.parent.glob("*.yaml"))
    raise RuleSetError(
        f"there is no profile {str(profile)!r}{did_you_mean(str(profile), known)}",
        next_step=f"Give a profile file, or one of: {', '.join(known) or 'none are packaged'}.",
    )


def apply_profile(base: RuleSet, path: Path) -> RuleSet:
    """The rule set with the profile's changes; RuleSetError names each line that would loosen something."""
    marked = read_marked(path, str(path))
    if marked.data is not None:
        check(marked, "profile")
    marked.name_entries(_ENTRY)
    raise_problems(first_at_each_place(marked.problems), f"the profile {path}")
    said = _set_constants(base, marked)
    raise_problems(marked.problems, f"the profile {path}")
    if said:
        base = load_base(Path(base.folder), constants=marked.data["constants"])
    put_in_place(marked, base.constants)
    data = marked.data
    if data["profile"]["ruleset"] != base.id:
        what = f"is for the rule set {data['profile']['ruleset']!r}, not {base.id!r}"
        marked.problems.append(Problem(marked.place("profile", "ruleset"), what))
    rules = {rule.id: rule for rule in base.rules}
    for index, entry in enumerate(data.get("tighten", [])):
        said += _tighten(base, marked, index, entry, rules)
    parameters = _parameters(base, marked, data.get("parameters", {}), rules)
    attest = _attest(base, marked, data.get("attest", {}))
    raise_problems(marked.problems, f"the profile {path}")
    info = ProfileInfo(
        id=data["profile"]["id"],
        title=data["profile"]["title"],
        sha256=sha256_hex(read_file(path)),
        attest=MappingProxyType(attest),
        ledgers=tuple(MappingProxyType(dict(entry)) for entry in data.get("ledgers", [])),
        changes=tuple(said),
    )
    tightened = tuple(rules[rule.id] for rule in base.rules)
    return replace(base, rules=tightened, parameters=MappingProxyType(parameters), profile=info)


def _set_constants(base: RuleSet, marked: MarkedFile) -> list[str]:
    """What the profile sets constants to, in words; a looser number or an unknown name is a problem."""
    said = []
    for name, value in marked.data.get("constants", {}).items():
        old = base.constants.get(name)
        if old is None:
            what = f"no constant {name!r}{did_you_mean(name, base.constants)}"
        elif old.stricter == "none" or not _stricter(old.stricter, old.value, value):
            what = f"the profile loosens the constant {name}: {old.value} → {value}"
        else:
            said.append(f"{name}: {old.value} → {value}")
            continue
        marked.problems.append(Problem(marked.place("constants", name), what))
    return said


def _tighten(base: RuleSet, marked: MarkedFile, index: int, entry: dict[str, Any], rules: dict[str, Rule]) -> list[str]:
    old = rules.get(entry["rule"])
    if old is None:
        what = f"no rule {entry['rule']}{did_you_mean(entry['rule'], rules)}"
        marked.problems.append(Problem(marked.place("tighten", index, "rule"), what))
        return []
    before = len(marked.problems)
    new = _changed(base, marked, index, entry, old)
    if len(marked.problems) > before:
        return []
    changes = [c for c in rule_changes(old, new) if c.direction is not Direction.EDITORIAL]
    for change in changes:
        if change.direction is not Direction.STRICTER:
            word = "loosens" if change.direction is Direction.LOOSER else "does not only tighten"
            where = marked.key_place("tighten", index, _key_of(entry, change.what))
            marked.problems.append(Problem(where, f"the profile {word} {old.id}: {change.what}", old.id))
    if not changes:
        marked.problems.append(Problem(marked.place("tighten", index), f"changes nothing in {old.id}", old.id))
    rules[old.id] = new
    return [f"{old.id}: {change.what}" for change in changes]


def _key_of(entry: dict[str, Any], what: str) -> str:
    if what.startswith("when ") and "when" in entry:
        return "when"
    return next((k for k in ("require", "round", "otherwise", "waivable", "when") if k in entry), "rule")


def _changed(base: RuleSet, marked: MarkedFile, index: int, entry: dict[str, Any], old: Rule) -> Rule:
    new = old
    for key in ("require", "when"):
        if key in entry:
            if key == "require" and old.verb != "require":
                place = marked.key_place("tighten", index, key)
                marked.problems.append(
                    Problem(place, f"{old.id} requires nothing; it can be tightened by 'when'", old.id)
                )
                continue
            parsed, wrong = read_conditions(
                marked, ("tighten", index, key), entry[key], base, allow_named=key == "require"
            )
            marked.problems += wrong
            kept = tuple(c for c in getattr(old, key) if c.fact not in entry[key])
            new = replace(new, require=kept + parsed) if key == "require" else replace(new, when=kept + parsed)
    if "otherwise" in entry:
        if old.verb != "require":
            place = marked.key_place("tighten", index, "otherwise")
            marked.problems.append(Problem(place, f"{old.id} has no 'otherwise'", old.id))
        new = replace(new, otherwise=Effect(entry["otherwise"]) if old.verb == "require" else None)
    if "waivable" in entry:
        new = replace(new, waivable=entry["waivable"])
    if "round" in entry:
        if old.deed != "round":
            place = marked.key_place("tighten", index, "round")
            marked.problems.append(Problem(place, f"{old.id} rounds nothing", old.id))
        else:
            new = replace(new, deed_args=MappingProxyType(_rounding(marked, index, old, entry["round"])))
    return new


def _rounding(marked: MarkedFile, index: int, old: Rule, wanted: dict[str, Any]) -> dict[str, Any]:
    args = dict(old.deed_args)
    for key, value in wanted.items():
        fine = key in args and key != "part" and isinstance(value, int) and not isinstance(value, bool)
        lowest = 0 if key == "decimal_places" else 1
        place = marked.place("tighten", index, "round", key)
        if key in old.deed_constants:
            what = f"{old.id} rounds by the constant {old.deed_constants[key]}: set it under constants, for all rules"
            marked.problems.append(Problem(place, what, old.id))
        elif not fine or value < lowest:
            marked.problems.append(Problem(place, f"{old.id} does not round by {key!r} like that", old.id))
        else:
            args[key] = value
    return args


def _parameters(
    base: RuleSet, marked: MarkedFile, wanted: dict[str, Any], rules: dict[str, Rule]
) -> dict[str, ParameterValue]:
    out = dict(base.parameters)
    for name, spec in base.parameter_specs.items():
        if spec.rule is not None:
            out[name] = read_parameter(spec, rules)
    for name, value in wanted.items():
        place = marked.place("parameters", name)
        spec_or_none = base.parameter_specs.get(name)
        if spec_or_none is None:
            what = f"no parameter {name!r}{did_you_mean(name, base.parameter_specs)}"
        elif spec_or_none.rule is not None:
            what = f"{name} is set by {spec_or_none.rule}: tighten that rule"
        elif spec_or_none.constant is not None:
            what = f"{name} is the constant {spec_or_none.constant}: set that under constants"
        elif spec_or_none.stricter == "none":
            what = f"{name} has no stricter side: register a bounds file instead"
        elif isinstance(spec_or_none.value, int) and not isinstance(value, int):
            what = f"{name} is a whole number"
        elif not _stricter(spec_or_none.stricter, spec_or_none.value, value):
            what = f"the profile loosens {name}"
        else:
            out[name] = value
            continue
        marked.problems.append(Problem(place, what))
    return out


def _stricter(side: str, old: Any, new: Any) -> bool:
    return bool(new >= old if side == "higher" else 0 < new <= old)


def _attest(base: RuleSet, marked: MarkedFile, wanted: dict[str, Any]) -> dict[str, FactValue]:
    out: dict[str, FactValue] = {}
    for name, value in wanted.items():
        place = marked.place("attest", name)
        spec = base.facts.get(name)
        if spec is None:
            what: str | None = f"{name!r} is not a fact{did_you_mean(name, base.facts)}"
        elif spec.by not in ("attested", "declared"):
            what = f"{name} is {spec.by}: nobody can pin it"
        else:
            what = misfit(spec, value)
            what = f"{name} {what}" if what else None
        if what:
            marked.problems.append(Problem(place, what))
        else:
            out[name] = value
    return out
