"""Complete facts of an honest output of each type, for tests that change one thing."""

from __future__ import annotations

from typing import Any

from sacro_deltab.rules import RuleSet, facts_required
from sacro_deltab.rules.facts import Fact, Facts, Part, Provider
from sacro_deltab.rules.limits import analytic_sigma

N = 500

COMMON: dict[str, Any] = {
    "output.declared": True,
    "output.format": "json",
    "output.rows": 10,
    "egress.route": "tre_airlock",
    "cohort.unit": "person",
    "cohort.overlap_checked": True,
    "cohort.overlap_found": False,
    "cohort.registered": True,
    "n": N,
    "n.origin": "exact",
    "n_node": N,
    "n.shown": N,
    "largest_share": 0.02,
    "idp.largest_share": 0.05,
    "shape.length": 2,
    "residual_dof": N - 10,
    "pca.origin": "shared_normative",
    "y.range_years": 40.0,
    "site.count": 6,
    "outlier.max_abs_z": 3.0,
    "table.suppressed_share": 0.0,
    "table.recoverable_cells": 0,
    "table.any_n_rounded": False,
    "package.recoverable_cells": 0,
    "linked_release.any": False,
    "rounding.done": True,
    "value": 0.25,
    "acro.frequency_check": "pass",
    "acro.dominance_check": "pass",
    "acro.regression_check": "pass",
    "evidence.attack_report": True,
    "dp.applied": False,
    "dp.label": "none",
    "dp.mechanism": "none",
    "dp.adjacency": "zero_out_N_public",
    "training.iterative": False,
    "ledger.pinned": True,
    "ledger.exhausted_before": False,
    "ledger.earlier_model_exports": 0,
    "plot.source_status": "pass",
    "plot.per_subject_marks": False,
    "nodes.count": 2,
    "nodes.certificates_verified": True,
    "nodes.disjoint": True,
    "nodes.every_formal": True,
    "nodes.smallest_n": N,
    "pooled.way": "summed_moments",
    "pooled.noise_model": "local",
    "pooled.suppressed_as_missing": True,
    "record.schema_valid": True,
    "record.small_counts": 0,
    "job.data_free": True,
    "dp.end_to_end_claim": False,
    "dp.outside_budget": 0,
}

FORMAL: dict[str, Any] = {
    "dp.applied": True,
    "dp.label": "formal",
    "dp.mechanism": "discrete_gaussian",
    "dp.epsilon": 1.0,
    "dp.delta": 1e-6,
    "dp.sensitivity": 1.0,
    "dp.sigma": (analytic_sigma(1.0, 1.0, 1e-6) or 0.0) * 1.000001,
    "dp.sensitivity_basis": "clipped_bound",
    "bounds.provenance": "ruleset",
    "dp.feature_bound_enforced": True,
    "dp.rng": "secure",
    "dp.sampler": "exact_discrete",
    "dp.post_processing": True,
    "dp.noise_inside_tre": True,
    "dp.noise_before_rounding": True,
    "dp.trust_model": "central_at_node",
    "dp.clip_norm": 1.0,
    "dp.leak_warnings": 0,
    "moments.on_grid": True,
    "ledger.entry": True,
    "ledger.accountant": "sum",
    "ledger.epsilon_total": 1.0,
    "ledger.delta_total": 1e-6,
    "model.origin": "formal_release",
}


def provider(ruleset: RuleSet, name: str) -> Provider:
    """The provider that the vocabulary names first."""
    words = {"computed": Provider.COMPUTED, "declared": Provider.DECLARED, "attested": Provider.ATTESTED}
    return words.get(ruleset.facts[name].by, Provider.LEDGER)


def fact(ruleset: RuleSet, name: str, value: Any) -> Fact:
    """One fact by its rightful provider."""
    return Fact(name, value, provider(ruleset, name))


def cell(ruleset: RuleSet, key: str, n: int, value: float = 1.25, **more: Any) -> Part:
    """One cell of a table; `more` uses `__` for the dot."""
    facts = {
        "cell.n": n,
        "cell.largest_share": 0.05,
        "cell.structural_zero": False,
        "band.width_years": 10.0,
        **{k.replace("__", "."): v for k, v in more.items()},
    }
    return Part("cell", key, {k: fact(ruleset, k, v) for k, v in facts.items()}, value)


def parts_for(ruleset: RuleSet, output_type: str) -> tuple[Part, ...]:
    """Honest parts: three groups of 100 and more, two quantiles, two rows."""
    kinds = {r.for_each for r in ruleset.rules_for(output_type) if r.for_each}
    parts: list[Part] = []
    if "cell" in kinds:
        parts += [cell(ruleset, key, n) for key, n in (("AD", 180), ("MCI", 170), ("HC", 150))]
    if "quantile" in kinds:
        parts += [
            Part("quantile", q, {"quantile.percent": fact(ruleset, "quantile.percent", float(q))}, 1.5)
            for q in ("25", "75")
        ]
    if "row" in kinds:
        for key, kind, value in (("age", "coefficient", 1.5), ("age p", "p_value", 0.04)):
            parts.append(Part("row", key, {"row.statistic": fact(ruleset, "row.statistic", kind)}, value))
    return tuple(parts)


def honest(ruleset: RuleSet, output_type: str, *, private: bool | None = None, **changes: Any) -> Facts:
    """Complete facts of an output that may go on. Keys of `changes` use `__` for the dot; None removes a fact."""
    cls = ruleset.cls(output_type)
    values = dict(COMMON)
    if private if private is not None else cls == "model_weight":
        values |= FORMAL
    if cls == "plot":
        values["output.format"] = "png"
    values |= {k.replace("__", "."): v for k, v in changes.items()}
    needed = facts_required(ruleset, output_type)
    facts = {k: fact(ruleset, k, v) for k, v in values.items() if k in needed and v is not None}
    return Facts("example", output_type, facts, parts_for(ruleset, output_type))
