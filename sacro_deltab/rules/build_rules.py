"""From marked files and vocabulary to rules: names resolved, types fitted, every misfit listed with its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from ..base.findings import Effect
from .build_vocabulary import Vocabulary
from .fits import misfit, read_conditions, read_parameter
from .limits import named_limit
from .marked_yaml import MarkedFile, Problem
from .model import Condition, Example, ParameterValue, Place, Rule, RuleSet
from .schema_check import VERBS, did_you_mean

_EXPECT = {
    "require": {"pass", "block", "review", "not_applicable"},
    "forbid": {"block", "not_applicable"},
    "flag": {"review", "not_applicable"},
    "do": {"keep", "suppress", "withhold", "not_applicable"},
}


def build(
    files: dict[str, MarkedFile],
    problems: list[Problem],
    words: Vocabulary,
    unsound: Collection[tuple[str, int | None]] = (),
) -> RuleSet | None:
    """Build all rules and the rule set; None where there are `problems` or rules too `unsound` to build."""
    rules: list[Rule] = []
    seen: dict[str, Place] = {}
    for name in sorted(files):
        marked = files[name]
        if (name, None) in unsound:
            continue
        for index, data in enumerate(marked.data.get("rules", [])):
            if (name, index) in unsound:
                continue
            place = marked.place("rules", index, "id")
            if data["id"] in seen:
                problems.append(Problem(place, f"this id is taken, see {seen[data['id']]}", data["id"]))
            seen[data["id"]] = place
            if data["id"] in words.meta.get("gone", ()):
                problems.append(Problem(place, "was the id of a rule that is gone: take another", data["id"]))
            rules.append(_RuleBuilder(marked, index, data, words, problems).build())
    if unsound:
        return None
    _check_references(rules, files, words, problems)
    parameters = _parameters(words, {rule.id: rule for rule in rules}, problems)
    place = files["ruleset.yaml"].key_place("parameters")
    problems += [Problem(place, f"misses the parameter {name}: {why}") for name, why in _missing(words, parameters)]
    if problems:
        return None
    meta = words.meta
    return RuleSet(
        id=meta["id"],
        version=meta["version"],
        title=meta["title"],
        status=meta["status"],
        language=meta["language"],
        sha256="",
        rules=tuple(rules),
        outputs=MappingProxyType(words.outputs),
        groups=MappingProxyType(words.groups),
        facts=MappingProxyType(words.facts),
        limits=MappingProxyType(words.limits),
        decisions=MappingProxyType(words.decisions),
        clauses=MappingProxyType(words.clauses),
        documents=MappingProxyType(words.documents),
        parameters=MappingProxyType(parameters),
        parameter_specs=MappingProxyType(words.parameters),
        mark=words.mark,
        folder="",
        constants=MappingProxyType(words.constants),
        forms=MappingProxyType(words.forms),
        changes=tuple(meta.get("changes", ())),
        gone=tuple(meta.get("gone", ())),
    )


class _RuleBuilder:
    """One rule from its data; collects problems under the rule's id."""

    def __init__(
        self, marked: MarkedFile, index: int, data: dict[str, Any], words: Vocabulary, problems: list[Problem]
    ) -> None:
        self.marked, self.index, self.data, self.words, self.problems = marked, index, data, words, problems

    def wrong(self, what: str, *path: Any, key: bool = False) -> None:
        where = ("rules", self.index, *path)
        place = self.marked.key_place(*where) if key else self.marked.place(*where)
        self.problems.append(Problem(place, what, self.data["id"]))

    def build(self) -> Rule:
        data = self.data
        verb = next(v for v in VERBS if v in data)
        outputs = self._outputs()
        self._names("source", self.words.clauses, "clause")
        self._names("decision", self.words.decisions, "decision")
        deed, args = self._deed() if verb == "do" else (None, {})
        if deed == "suppress" and args["part"] != data.get("for_each"):
            self.wrong(f"suppress: {args['part']} needs for_each: {args['part']}", "do")
        return Rule(
            id=data["id"],
            title=data["title"],
            verb=verb,
            outputs=outputs,
            place=self.marked.place("rules", self.index, "id"),
            section=str(self.marked.data.get("section", "")),
            applies_to=tuple(data["applies_to"]),
            for_each=data.get("for_each"),
            when=self._conditions("when"),
            require=self._conditions("require"),
            any_when=self._alternatives("when"),
            any_require=self._alternatives("require"),
            otherwise=Effect(data["otherwise"]) if verb == "require" else None,
            deed=deed,
            deed_args=MappingProxyType(args),
            deed_constants=MappingProxyType(
                {
                    k: self.marked.named[p]
                    for k in args
                    if (p := ("rules", self.index, "do", deed, k)) in self.marked.named
                }
            ),
            ask=data["flag"]["ask"] if verb == "flag" else None,
            source=tuple(data["source"]),
            decision=tuple(data.get("decision", ())),
            waivable=data.get("waivable", self.words.meta.get("defaults", {}).get("waivable", "by_dac")),
            status=data.get("status", "active"),
            direction=data.get("direction"),
            since=data.get("since", self.words.meta.get("defaults", {}).get("since", "")),
            replaced_by=data.get("replaced_by"),
            note=data.get("note"),
            remedy=data.get("remedy"),
            examples=self._examples(verb, deed),
        )

    def _outputs(self) -> frozenset[str]:
        found: set[str] = set()
        known = {**self.words.outputs, **self.words.groups}
        for index, name in enumerate(self.data["applies_to"]):
            if name in self.words.outputs:
                found.add(name)
            elif name in self.words.groups:
                classes = self.words.groups[name]
                found |= {o.name for o in self.words.outputs.values() if o.cls in classes}
            else:
                what = f"{name!r} is no output or group{did_you_mean(name, known)}"
                self.wrong(what, "applies_to", index)
        return frozenset(found)

    def _names(self, key: str, known: Mapping[str, Any], kind: str) -> None:
        for index, name in enumerate(self.data.get(key, ())):
            if name not in known:
                self.wrong(f"no {kind} {name}{did_you_mean(name, known)}", key, index)

    def _alternatives(self, key: str) -> tuple[tuple[Condition, ...], ...]:
        """What stands under `any_of`."""
        held = self.data.get(key, {}).get("any_of", [])
        return tuple(self._conditions(key, "any_of", index) for index in range(len(held)))

    def _conditions(self, key: str, *inner: Any) -> tuple[Condition, ...]:
        data: Any = self.data.get(key, {})
        for step in inner:
            data = data[step]
        known = {f: tests for f, tests in data.items() if f != "any_of" and self._known_fact(f, key, *inner, f)}
        found, wrong = read_conditions(
            self.marked, ("rules", self.index, key, *inner), known, self.words, allow_named=key == "require"
        )
        self.problems += [replace(p, rule=self.data["id"]) for p in wrong]
        for condition in found:
            if condition.named:
                for need in named_limit(str(condition.limit)).needs:
                    self._known_fact(need, key, *inner, condition.fact, condition.comparator)
        return found

    def _known_fact(self, fact: str, *path: Any) -> bool:
        if fact not in self.words.facts:
            self.wrong(f"{fact!r} is not a fact{did_you_mean(fact, self.words.facts)}", *path, key=True)
            return False
        owner = self.words.facts[fact].of_part
        if owner is not None and self.data.get("for_each") != owner:
            self.wrong(f"{fact!r} is a fact of one {owner}: the rule needs for_each: {owner}", *path, key=True)
        return True

    def _deed(self) -> tuple[str, dict[str, Any]]:
        deed, args = next(iter(self.data["do"].items()))
        if deed in ("suppress", "withhold"):
            return deed, {"part": args}
        if deed == "label":
            return deed, {"text": args}
        if deed == "round" and not {"decimal_places", "significant_figures", "to_nearest"} & set(args):
            self.wrong("round needs decimal_places, significant_figures or to_nearest", "do", "round")
        if deed == "label_band" and self._known_fact(args["fact"], "do", "label_band", "fact"):
            self._bands(args)
        return deed, dict(args)

    def _bands(self, args: dict[str, Any]) -> None:
        limits = [band.get("below", band.get("up_to")) for band in args["bands"]]
        if limits[-1] is not None or None in limits[:-1]:
            self.wrong("every band but the last has a limit, and the last has none", "do", "label_band", "bands")
        elif any(a > b for a, b in pairwise(limits[:-1])):
            self.wrong("bands go upwards", "do", "label_band", "bands")

    def _examples(self, verb: str, deed: str | None) -> tuple[Example, ...]:
        out = []
        for index, data in enumerate(self.data["examples"]):
            if ("expect" in data) == ("becomes" in data):
                self.wrong("an example has either 'expect' or 'becomes'", "examples", index)
            if "expect" in data and data["expect"] not in _EXPECT[verb]:
                self.wrong(f"{data['expect']!r} is nothing this rule can do", "examples", index, "expect")
            if "becomes" in data and deed in (None, "suppress", "withhold"):
                self.wrong("only round, label and suppress_complement make something 'becomes'", "examples", index)
            if deed != "suppress_complement":
                for fact, value in data["given"].items():
                    spec = self.words.facts.get(fact)
                    if spec is None:
                        what = f"{fact!r} is not a fact{did_you_mean(fact, self.words.facts)}"
                        self.wrong(what, "examples", index, "given", fact, key=True)
                    elif (wrong := misfit(spec, value)) is not None:
                        self.wrong(f"{fact} {wrong}", "examples", index, "given", fact)
            place = self.marked.place("rules", self.index, "examples", index)
            out.append(Example(MappingProxyType(data["given"]), data.get("expect"), data.get("becomes"), place))
        return tuple(out)


def _check_references(
    rules: list[Rule], files: dict[str, MarkedFile], words: Vocabulary, problems: list[Problem]
) -> None:
    ids = {rule.id for rule in rules}
    for rule in rules:
        if rule.replaced_by is not None and rule.replaced_by not in ids:
            problems.append(
                Problem(rule.place, f"replaced_by names no rule{did_you_mean(rule.replaced_by, ids)}", rule.id)
            )
    covered = set().union(*(rule.outputs for rule in rules if rule.in_force and rule.section != "Admission"), set())
    main = files["ruleset.yaml"]
    for output in words.outputs:
        if output not in covered:
            place = main.key_place("vocabulary", "outputs", output)
            problems.append(Problem(place, f"output {output!r} has no rule of its own: nothing would judge it"))


def _parameters(words: Vocabulary, rules: dict[str, Rule], problems: list[Problem]) -> dict[str, ParameterValue]:
    out: dict[str, ParameterValue] = {"suppression_mark": words.mark}
    for name, spec in words.parameters.items():
        try:
            out[name] = read_parameter(spec, rules)
        except LookupError as error:
            problems.append(Problem(spec.place, f"parameter {name}: {error.args[0]}"))
    return out


# What the package reads from every rule set, and from those with model parameters besides.
_NEEDED = {
    "min_n": "the table engine protects groups below it",
    "withhold_share": "the table engine stops there",
    "interval_n": "the table engine protects so wide an interval",
    "interval_years": "the table engine protects so wide an interval",
    "round_n_base": "the attacker believes counts to be rounded to it",
    "round_n_below": "the attacker believes counts below it to be rounded",
    "mean_decimals": "the attacker believes means to be rounded to it",
    "nk_n": "the dominance check adds up so many",
    "nk_k": "the dominance check allows such a share",
    "min_residual_dof": "the regression check asks for so many",
    "values_per_person": "more coefficients than that go to a person",
    "features_share": "people with fewer features have no value",
    "usual_spread_years": "wider values are no deltas",
    "spread_from": "fewer people are not looked at for their spread",
}
_NEEDED_FOR_MODELS = ("epsilon_total", "n_min_dp", "delta_dp_cap", "age_min", "age_max", "feature_z", "clips_allowed")


def _missing(words: Vocabulary, parameters: Mapping[str, ParameterValue]) -> list[tuple[str, str]]:
    """Parameters that the package reads and nobody set, with what they are for."""
    models = any(o.cls == "model_weight" for o in words.outputs.values())
    needed = {**_NEEDED, **(dict.fromkeys(_NEEDED_FOR_MODELS, "private training reads it") if models else {})}
    return [(name, why) for name, why in needed.items() if name not in parameters]
