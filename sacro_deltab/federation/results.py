"""Documents of a pooled model and tables, and their judgement by the rule set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..judging.judge import Judged, judge_output
from ..kinds import documents as build
from ..kinds.pooled import TABLE
from ..kinds.weights import folded
from ..model.weights import Weights
from ..outputs.document import OutputDocument
from ..rules import RuleSet
from ..rules.facts import Fact, Facts, FactValue, Part, Provider
from ..tables.rounding import round_value
from .bundle import Node
from .meta import MetaTable


@dataclass(frozen=True)
class Setting:
    """Everything the rules ask about a pooling besides the numbers."""

    way: str
    noise_model: str
    disjoint: bool
    every_formal: bool
    smallest_n: int
    n: int
    count: int
    declared: bool
    route: str | None
    weighted_by_n: bool | None = None  # None where nothing was averaged


def setting_facts(setting: Setting, *, document: OutputDocument) -> dict[str, Fact]:
    """Facts of one pooled output.

    A pooled output is worked out from released files alone, so nothing can be recovered from it that was not in them:
    `package.recoverable_cells` is 0.
    """
    computed: dict[str, FactValue] = {
        "output.known": True,
        "output.format": "csv",
        "output.rows": len(document.rows),
        "n": setting.n,
        "nodes.count": setting.count,
        "nodes.certificates_verified": True,
        "nodes.every_formal": setting.every_formal,
        "nodes.smallest_n": setting.smallest_n,
        "pooled.way": setting.way,
        "pooled.noise_model": setting.noise_model,
        "pooled.suppressed_as_missing": True,
        "package.recoverable_cells": 0,
    }
    facts = {name: Fact(name, value, Provider.COMPUTED) for name, value in computed.items()}
    facts["nodes.disjoint"] = Fact("nodes.disjoint", setting.disjoint, Provider.DECLARED)
    facts["output.declared"] = Fact("output.declared", setting.declared, Provider.DECLARED)
    if setting.weighted_by_n is not None:
        facts["pooled.weighted_by_n"] = Fact("pooled.weighted_by_n", setting.weighted_by_n, Provider.COMPUTED)
    if setting.route is not None:
        facts["egress.route"] = Fact("egress.route", setting.route, Provider.ATTESTED)
    return facts


def said_by_nodes(
    ruleset: RuleSet, nodes: Sequence[Node], outputs: Mapping[str, Sequence[str]]
) -> tuple[bool, str | None]:
    """Whether the project declared what is pooled, and the way out, as every node's certificate has it."""
    met = [node.rules_met(name) for node in nodes for name in outputs.get(node.name, ())]
    routes = {n.predicate["people"]["attested"]["facts"].get("egress.route") for n in nodes}
    route = next(iter(routes)) if len(routes) == 1 else None
    if not isinstance(route, str) or not all(ruleset.ids_about("egress.route") <= set(rules) for rules in met):
        route = None
    return bool(met) and all(ruleset.ids_about("output.declared") <= set(rules) for rules in met), route


def judge_document(ruleset: RuleSet, setting: Setting, document: OutputDocument, counts: Mapping[str, int]) -> Judged:
    """Decide, round and verify one pooled output. counts: people behind each row of a table."""

    parts: tuple[Part, ...]
    if document.type == TABLE:
        parts = tuple(
            Part(
                "cell",
                str(row[0]),
                {
                    "cell.n": Fact("cell.n", int(counts[str(row[0])]), Provider.COMPUTED),
                    "cell.structural_zero": Fact("cell.structural_zero", False, Provider.DECLARED),
                },
                float(row[-1]) if isinstance(row[-1], int | float) else None,
            )
            for row in document.rows
        )
    else:
        parts = tuple(
            Part("row", str(row[0]), {}, float(row[1]) if isinstance(row[1], int | float) else None)
            for row in document.rows
        )
    facts = Facts(document.name, document.type, setting_facts(setting, document=document), parts)
    return judge_output(ruleset, facts, document)


def model_documents(
    weights: Weights, *, kind: str, prefix: str, title: str, about: Mapping[str, Any], components_public: bool
) -> list[OutputDocument]:
    """A pooled model: one weight a feature with an intercept, then the parameters of the five models.

    Centre and scale are rounded first and the weights re-expressed in them, so that rounding them moves no prediction.
    """
    form = weights.folded("simple")
    centre = np.array([round_value(float(c), significant_figures=3) for c in weights.x_mean])
    scale = np.array([round_value(float(s), significant_figures=3) for s in weights.x_std])
    coef = form.coef * scale / weights.x_std
    intercept = form.intercept + float((form.coef * (centre - weights.x_mean) / weights.x_std).sum())
    out = [folded(kind, f"{prefix}_model", title, weights, (centre, scale, coef, intercept), about)]
    names, values = _parameters(weights)
    out.append(build.vector(kind, f"{prefix}_parameters", f"{title}: parameters", names, values, about=about))
    if weights.components is not None and not components_public:
        columns = [(f"component {j + 1}", "") for j in range(weights.n_components)]
        out.append(build.matrix(kind, f"{prefix}_components", f"{title}: components", list(weights.feature_names),
                                columns, weights.components.T, about=about))  # fmt: skip
    return out


def _parameters(weights: Weights) -> tuple[list[str], list[float]]:
    names, values = ["y_mean"], [float(weights.y_mean)]
    for name in ("ysq_mean", "ysq_slope"):
        value = getattr(weights, name)
        if value is not None:
            names.append(name)
            values.append(float(value))
    for name in ("b1", "b2", "b2sq", "gamma", "gammasq", "score_mean"):
        value = getattr(weights, name)
        if value is None or (name == "b1" and weights.components is None):
            continue
        array = np.atleast_1d(np.squeeze(value))
        for index in np.ndindex(array.shape):
            names.append(f"{name}[{','.join(str(i + 1) for i in index)}]")
            values.append(float(array[index]))
    return names, values


def table_document(table: MetaTable, about: Mapping[str, Any]) -> tuple[OutputDocument, dict[str, int]]:
    """One pooled table, its standard errors and heterogeneity beside it, and the people behind each row."""
    cells = [c for c in table.cells if c.pooled is not None]
    context = {
        **about,
        "statistic": "inverse-variance mean over nodes",
        "se": {c.group: round(c.pooled.se, 2) for c in cells if c.pooled},
        "i_squared_percent": {c.group: round(c.pooled.i2, 1) for c in cells if c.pooled},
        "nodes": {c.group: len(c.estimates) for c in cells},
        "missing_nodes": {c.group: ", ".join(c.missing) for c in cells if c.missing},
    }
    document = build.group_table(
        TABLE,
        build.safe_name(f"pooled_{table.name}"),
        f"Mean delta over nodes: {table.name.replace('_', ' ')}",
        [c.group for c in cells],
        [c.n for c in cells],
        [c.pooled.value if c.pooled else None for c in cells],
        group_column=table.label,
        unit=table.unit,
        about=context,
    )
    return document, {c.group: c.n for c in cells}
