"""How far rounding can move a predicted age, worked out from the released numbers and public bounds alone.

Two forms of released weights are read, each a bound of its own:

- folded_weights: age = intercept + Σ w·z with z = (x - centre) / scale and |z| ≤ Z;
- components: the same with w = Σⱼ bⱼ·Cⱼ, where both factors were rounded.

Each published number v stands for some value within v ± h(v), h being half a unit of its last kept place. With w,
centre m and scale s published, and e(w) ≥ |w - w*| for every w* they may stand for,

    |w·z - w*·z*| ≤ Z·e(w) + (|w| + e(w)) · (Z·h(s) + h(m)) / (s - h(s)),

summed over the features. No person, and nothing of the cohort, enters it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.errors import SacroDeltabError
from ..base.opening import read_member
from ..base.strict import DATA, parse
from ..outputs.parameters import BETA1, COMPONENTS, FOLDED, X_MEAN, X_STD, Y_MEAN
from .findings import PreparedOutput
from .layout import Inventory
from .policy import Policy

Weights = dict[str, tuple[float, float]]  # feature → (published value, how far the value may be from it)
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
            value = parse(read_member(path), path=name, bounds=DATA)
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
    by_type = {str(d.get("type")): _Published(d, rules.get(name) or [fallback]) for name, d in documents}
    centre = by_type.get(Y_MEAN)
    intercept = max((half for _, half in centre.halves().values()), default=0.0) if centre else 0.0
    forms: dict[str, Weights] = {}
    if FOLDED in by_type:
        forms[FOLDED] = _folded(by_type[FOLDED])
    if {BETA1, COMPONENTS} <= set(by_type):
        forms["components"] = _components(by_type[BETA1], by_type[COMPONENTS])
    bounds = {}
    for form, weights in forms.items():
        total = _total(weights, clip, _scaling(by_type, form))
        if total is not None:
            bounds[form] = _up(total + intercept)
    return bounds


class _Published:
    """A published table of numbers: columns by name, rows by label, and how they were rounded."""

    def __init__(self, document: Mapping[str, Any], rules: Rules) -> None:
        self.rules = rules
        rows = document.get("rows", ())
        roles = [(i, str(c.get("name")), str(c.get("role"))) for i, c in enumerate(document.get("columns", ()))]
        self.labels = [str(row[0]) for row in rows]
        self.columns = {
            name: [float(r[i]) if isinstance(r[i], (int, float)) else None for r in rows]
            for i, name, role in roles
            if role == "value"
        }

    def halves(self, name: str | None = None) -> Weights:
        """Row label → (value, half unit) of a column, the last one when none has that name; empty cells left out."""
        column = self.columns.get(str(name)) or next(reversed(self.columns.values()), [])
        pairs = zip(self.labels, column, strict=True) if column else ()
        return {label: (v, half_unit(v, self.rules)) for label, v in pairs if v is not None}


def _folded(table: _Published) -> Weights:
    return table.halves("weight")


def _components(b: _Published, c: _Published) -> Weights:
    """w and e(w) ≤ Σⱼ |bⱼ|·h(Cⱼ) + (|Cⱼ| + h(Cⱼ))·h(bⱼ), feature by feature (one row a feature)."""
    factors = list(b.halves().values())
    out: Weights = {}
    for index, label in enumerate(c.labels):
        row = [column[index] or 0.0 for column in c.columns.values()]
        pairs = list(zip(factors, row, strict=False))
        value = sum(v * x for (v, _), x in pairs)
        error = 0.0
        for (v, h), x in pairs:
            half = half_unit(x, c.rules)
            error += abs(v) * half + (abs(x) + half) * h
        out[label] = (value, error)
    return out


def _scaling(by_type: Mapping[str, _Published], form: str) -> tuple[Weights, Weights]:
    """Centre and scale of each feature with their half units: the form's own, else x_mean and x_std."""
    folded = by_type.get(FOLDED)
    if form == FOLDED and folded is not None and {"centre", "scale"} <= set(folded.columns):
        return folded.halves("centre"), folded.halves("scale")
    mean, scale = by_type.get(X_MEAN), by_type.get(X_STD)
    return mean.halves() if mean else {}, scale.halves() if scale else {}


def _total(weights: Weights, clip: float, scaling: tuple[Weights, Weights]) -> float | None:
    """The sum over features; None where a published scale could stand for zero."""
    means, scales = scaling
    total = 0.0
    for label, (value, error) in weights.items():
        if scales and label not in scales:  # an intercept: nothing multiplies it
            total += error
            continue
        total += clip * error
        if not scales:
            continue
        scale, off_scale = scales[label]
        if scale <= off_scale:
            return None
        off_mean = means.get(label, (0.0, 0.0))[1]
        total += (abs(value) + error) * (clip * off_scale + off_mean) / (scale - off_scale)
    return total


def _up(value: float) -> float:
    if value <= 0 or not math.isfinite(value):
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.12g}")
