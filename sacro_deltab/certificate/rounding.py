"""How far rounding can move a predicted age, worked out from the released numbers and public bounds alone.

Two forms of released weights are read:

- folded: age = intercept + Σ w·z with z = (x - mean) / scale and |z| ≤ Z;
- components: w = Σⱼ bⱼ·Cⱼ, each factor rounded on its own.

Each published number v stands for some value within ±h(v), h being half a unit of its last kept place. The bound adds
|∂age/∂v|·h(v) over all numbers, with products of errors included, at the corner of the public box: no person, and
nothing of the cohort, enters it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import SacroDeltabError
from .canonical import MAX_DATA_BYTES, read_json
from .findings import PreparedOutput
from .layout import Inventory, read_bytes
from .policy import Policy

Table = dict[str, list[float]]
Rules = Sequence[Mapping[str, Any]]
_DEFAULT_FIGURES = 3


def half_unit(value: float, rules: Rules) -> float:
    """Half a unit of the last place that `rules` keep of `value`; the coarsest of several, 0 where there is none.

    A rule is {"decimal_places": d}, {"significant_figures": s} or {"to_nearest": base}.
    """
    return max((_half_unit(value, rule) for rule in rules), default=0.0)


def _half_unit(value: float, rule: Mapping[str, Any]) -> float:
    if "decimal_places" in rule:
        return 0.5 * 10.0 ** -int(rule["decimal_places"])
    if "to_nearest" in rule:
        return 0.5 * float(rule["to_nearest"])
    if "significant_figures" in rule:
        if value == 0:
            return 0.0
        return 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - int(rule["significant_figures"]) + 1)
    return 0.0


def rounding_block(inventory: Inventory, outputs: Sequence[PreparedOutput], policy: Policy) -> dict[str, Any]:
    """Rounding rules in force for each output, and a bound in years for each form in which weights leave."""
    rules = {o.name: rounding_rules(o) for o in outputs if rounding_rules(o)}
    clip = policy.parameters.get("feature_z")
    figures = policy.parameters.get("coefficient_figures", _DEFAULT_FIGURES)
    fallback = {"significant_figures": figures if isinstance(figures, int) else _DEFAULT_FIGURES}
    bound: dict[str, float] = {}
    if isinstance(clip, (int, float)) and not isinstance(clip, bool):
        documents = [d for o in outputs if not o.kept_inside for d in _documents(inventory, o)]
        bound = bounds_years(documents, float(clip), rules, fallback)
    return {
        "rules": {name: list(entries) for name, entries in sorted(rules.items())},
        "bounds_years": bound,
        "bound_how": (
            "largest change of a predicted age that rounding the released weights can cause for any standardised "
            f"features within ±{clip}; from the released numbers and public bounds only"
            if bound
            else None
        ),
    }


def rounding_rules(output: PreparedOutput) -> list[dict[str, Any]]:
    """The distinct rounding actions of an output, without the names of parts."""
    found: list[dict[str, Any]] = []
    for action in output.actions:
        args = action.get("args")
        if action.get("verb") != "round" or not isinstance(args, Mapping):
            continue
        entry = {k: v for k, v in sorted(args.items()) if k in ("decimal_places", "significant_figures", "to_nearest")}
        if entry and entry not in found:
            found.append(entry)
    return found


def _documents(inventory: Inventory, output: PreparedOutput) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for name in output.files:
        path = inventory.root.get(name)
        if path is None or not name.endswith(".json"):
            continue
        try:
            value = read_json(read_bytes(path), path=name, what="output", limit=MAX_DATA_BYTES)
        except SacroDeltabError:
            continue
        if isinstance(value, Mapping) and value.get("schema") == "sacro_deltab/output/1":
            yield output.name, value


def bounds_years(
    documents: Sequence[tuple[str, Mapping[str, Any]]],
    clip: float,
    rules: Mapping[str, Rules],
    fallback: Mapping[str, Any],
) -> dict[str, float]:
    """Form of weights → bound, rounded up to 3 significant figures; empty where no weights are among `documents`."""
    by_type = {str(d.get("type")): (_numbers(d), rules.get(name) or [fallback]) for name, d in documents}
    shared = _intercept_error(by_type)
    bounds: dict[str, float] = {}
    if "folded_weights" in by_type:
        bounds["folded_weights"] = _up(clip * sum(_folded_error(by_type)) + shared + _scaling_error(by_type, clip))
    if {"beta1", "pca_components"} <= set(by_type):
        bounds["components"] = _up(clip * sum(_components_error(by_type)) + shared)
    return bounds


def _folded_error(by_type: Mapping[str, tuple[Table, Rules]]) -> list[float]:
    table, rule = by_type["folded_weights"]
    return [half_unit(v, rule) for v in _last(table)]


def _components_error(by_type: Mapping[str, tuple[Table, Rules]]) -> list[float]:
    """|δw_f| ≤ Σⱼ |bⱼ|·h(Cⱼ) + |Cⱼ|·h(bⱼ) + h(bⱼ)·h(Cⱼ)."""
    b, b_rule = by_type["beta1"]
    c, c_rule = by_type["pca_components"]
    weights = _last(b)
    columns = list(c.values())
    width = len(columns[0]) if columns else 0
    by_component = len(weights) == len(columns)  # one column a component, one row a feature; else the other way
    rows = [[column[f] for column in columns] for f in range(width)] if by_component else columns
    return [
        sum(
            abs(w) * half_unit(v, c_rule) + (abs(v) + half_unit(v, c_rule)) * half_unit(w, b_rule)
            for w, v in zip(weights, row, strict=False)
        )
        for row in rows
    ]


def _intercept_error(by_type: Mapping[str, tuple[Table, Rules]]) -> float:
    if "y_mean" not in by_type:
        return 0.0
    table, rule = by_type["y_mean"]
    return max((half_unit(v, rule) for v in _last(table)), default=0.0)


def _scaling_error(by_type: Mapping[str, tuple[Table, Rules]], clip: float) -> float:
    """x_mean and x_std rounded: δz ≤ h(mean)/scale + |z|·h(scale)/scale, times |w|."""
    if not {"x_std", "folded_weights"} <= set(by_type):
        return 0.0
    scale, s_rule = by_type["x_std"]
    weights = _last(by_type["folded_weights"][0])
    mean, m_rule = by_type.get("x_mean", ({"": [0.0] * len(weights)}, []))
    total = 0.0
    for w, s, m in zip(weights, _last(scale), _last(mean), strict=False):
        if s > half_unit(s, s_rule):
            total += abs(w) * (half_unit(m, m_rule) + clip * half_unit(s, s_rule)) / (s - half_unit(s, s_rule))
    return total


def _numbers(document: Mapping[str, Any]) -> Table:
    columns = [str(c.get("name")) for c in document.get("columns", ())]
    roles = [str(c.get("role")) for c in document.get("columns", ())]
    rows = document.get("rows", ())
    return {
        columns[i]: [float(r[i]) if isinstance(r[i], (int, float)) else 0.0 for r in rows]
        for i in range(len(columns))
        if roles[i] == "value"
    }


def _last(table: Table) -> list[float]:
    return next(reversed(table.values()), [])


def _up(value: float) -> float:
    if value <= 0 or not math.isfinite(value):
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.12g}")
