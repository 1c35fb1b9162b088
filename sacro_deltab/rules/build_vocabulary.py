"""From marked files to the vocabulary: outputs, groups, facts, limits, documents, clauses, decisions, parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .facts import Provider
from .limits import LIMITS
from .marked_yaml import MarkedFile, Problem
from .model import Clause, Constant, Document, FactSpec, Form, OutputSpec, ParameterSpec, PolicyDecision
from .schema_check import did_you_mean

# Who may supply a fact that `by` names. A declared fact may be better founded, never worse; a ledger fact may be
# declared (an unpinned ledger), and the rules on `ledger.pinned` then see to it that nothing passes.
_ACCEPT = {
    "computed": frozenset({Provider.COMPUTED, Provider.RECORDED, Provider.ATTESTED, Provider.LEDGER}),
    "declared": frozenset(Provider),
    "attested": frozenset({Provider.ATTESTED}),
    "ledger": frozenset(Provider),
}


@dataclass(frozen=True)
class Vocabulary:
    """Everything a rule may name."""

    meta: dict[str, Any]
    outputs: dict[str, OutputSpec]
    groups: dict[str, tuple[str, ...]]
    facts: dict[str, FactSpec]
    limits: dict[str, str]
    documents: dict[str, Document]
    clauses: dict[str, Clause]
    decisions: dict[str, PolicyDecision]
    parameters: dict[str, ParameterSpec]
    mark: str
    constants: dict[str, Constant]
    forms: dict[str, Form]


def build(files: dict[str, MarkedFile], problems: list[Problem], constants: dict[str, Constant]) -> Vocabulary:
    """Build the vocabulary; what does not fit together goes to `problems`."""
    main = files["ruleset.yaml"]
    words = main.data["vocabulary"]
    outputs = {
        k: OutputSpec(k, v["class"], v["label"], v["statbarn"], tuple(v.get("range", (None, None))), v.get("columns"))
        for k, v in words["outputs"].items()
    }
    classes = {o.cls for o in outputs.values()}
    for group, members in words["groups"].items():
        for index, cls in enumerate(members):
            if cls not in classes:
                place = main.place("vocabulary", "groups", group, index)
                problems.append(Problem(place, f"{cls!r} is no class of output{did_you_mean(cls, classes)}"))
    for limit in words["limits"]:
        if limit not in LIMITS:
            place = main.key_place("vocabulary", "limits", limit)
            problems.append(Problem(place, f"{limit!r} is no limit the engine knows{did_you_mean(limit, LIMITS)}"))
    documents, clauses = _sources(files["sources.yaml"])
    return Vocabulary(
        meta=main.data["ruleset"],
        outputs=outputs,
        groups={k: tuple(v) for k, v in words["groups"].items()},
        facts={name: _fact(name, spec, main, problems) for name, spec in words["facts"].items()},
        limits=dict(words["limits"]),
        documents=documents,
        clauses=clauses,
        decisions=_decisions(files["decisions.yaml"], clauses, problems),
        parameters=_parameters(main, problems, constants),
        mark=_mark(words.get("suppression_mark", "*"), constants),
        constants=constants,
        forms=_forms(files.get("forms.yaml"), clauses, problems),
    )


def _mark(text: str, constants: dict[str, Constant]) -> str:
    """`*`; for `<minimum` the words `below 20`, since viewers take a `<` for markup."""
    return f"below {constants[text[1:]].value}" if text[1:] in constants else text


def _fact(name: str, spec: dict[str, Any], main: MarkedFile, problems: list[Problem]) -> FactSpec:
    where = ("vocabulary", "facts", name)
    if "values" in spec and spec["type"] != "text":
        problems.append(Problem(main.place(*where), f"{name}: only text facts list their words"))
    for bound in ("minimum", "maximum", "above", "below"):
        if bound in spec and (spec["type"] not in ("integer", "number") or not math.isfinite(spec[bound])):
            problems.append(Problem(main.place(*where, bound), f"{name}: only a number has a {bound}"))
    if "ask" in spec and spec["by"] != "attested":
        problems.append(Problem(main.place(*where, "ask"), f"{name}: only what TRE staff alone can say is asked"))
    accept = frozenset(Provider(word) for word in spec["accept"]) if "accept" in spec else _ACCEPT[spec["by"]]
    return FactSpec(
        name=name,
        type=spec["type"],
        by=spec["by"],
        means=spec["means"],
        reads=spec["reads"],
        accept=accept,
        unit=spec.get("unit", ""),
        values=tuple(spec.get("values", ())),
        minimum=spec.get("minimum"),
        maximum=spec.get("maximum"),
        above=spec.get("above"),
        below=spec.get("below"),
        after=spec.get("known") == "after",
        raw=bool(spec.get("raw", False)),
        optional=bool(spec.get("optional", False)),
        part_value=bool(spec.get("part_value", False)),
        ask=spec.get("ask", ""),
    )


def _sources(marked: MarkedFile) -> tuple[dict[str, Document], dict[str, Clause]]:
    documents: dict[str, Document] = {}
    clauses: dict[str, Clause] = {}
    for doc, entry in marked.data["sources"].items():
        documents[doc] = Document(doc, entry["title"], entry["file"], entry["sha256"], entry["authority"])
        for cid, c in entry["clauses"].items():
            place = marked.key_place("sources", doc, "clauses", cid)
            clauses[cid] = Clause(cid, doc, c["line"], c["kind"], c["sha256"], c["gist"], c.get("reason"), place)
    return documents, clauses


def _forms(marked: MarkedFile | None, clauses: dict[str, Clause], problems: list[Problem]) -> dict[str, Form]:
    out: dict[str, Form] = {}
    for name, f in (marked.data["forms"] if marked is not None else {}).items():
        assert marked is not None
        for index, clause in enumerate(f["source"]):
            if clause != "form" and clause not in clauses:
                place = marked.place("forms", name, "source", index)
                problems.append(Problem(place, f"no clause {clause}{did_you_mean(clause, clauses)}", f"check/{name}"))
        out[name] = Form(
            name=name,
            title=f["title"],
            why=f["why"],
            source=tuple(f["source"]),
            decision=tuple(f.get("decision", ())),
            effects=tuple(f["effect"]),
            remedy=f["remedy"],
            page=f["page"],
            place=marked.key_place("forms", name),
        )
    return out


def _decisions(marked: MarkedFile, clauses: dict[str, Clause], problems: list[Problem]) -> dict[str, PolicyDecision]:
    out: dict[str, PolicyDecision] = {}
    for did, d in marked.data["decisions"].items():
        for index, clause in enumerate(d["clauses"]):
            if clause not in clauses:
                place = marked.place("decisions", did, "clauses", index)
                problems.append(Problem(place, f"no clause {clause}{did_you_mean(clause, clauses)}", did))
        out[did] = PolicyDecision(
            id=did,
            ask=d["ask"],
            choose=d["choose"],
            instead=d["instead"],
            clauses=tuple(d["clauses"]),
            direction=d.get("direction"),
            reason=d.get("reason"),
            place=marked.key_place("decisions", did),
        )
    return out


def _parameters(main: MarkedFile, problems: list[Problem], constants: dict[str, Constant]) -> dict[str, ParameterSpec]:
    out: dict[str, ParameterSpec] = {}
    for name, spec in main.data["parameters"].items():
        place = main.key_place("parameters", name)
        if sum(key in spec for key in ("value", "rule", "constant")) != 1:
            problems.append(Problem(place, f"parameter {name}: give one of 'value', 'rule' and 'constant'"))
        elif "constant" in spec and spec["constant"] not in constants:
            hint = did_you_mean(spec["constant"], constants)
            problems.append(Problem(place, f"parameter {name}: no constant {spec['constant']!r}{hint}"))
        elif "rule" in spec and ("fact" in spec) == ("round" in spec):
            problems.append(Problem(place, f"parameter {name}: with 'rule', give either 'fact' or 'round'"))
        elif "value" in spec and "stricter" not in spec:
            problems.append(Problem(place, f"parameter {name}: say which way is 'stricter'"))
        out[name] = ParameterSpec(
            name=name,
            means=spec["means"],
            value=constants[spec["constant"]].value if spec.get("constant") in constants else spec.get("value"),
            rule=spec.get("rule"),
            fact=spec.get("fact"),
            rounding=spec.get("round"),
            form=spec.get("form"),
            stricter=spec.get("stricter", "none"),
            place=place,
            constant=spec.get("constant"),
        )
    return out
