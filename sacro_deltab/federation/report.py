"""A pooling in words and as JSON: every node first, how they differ, then the pooled line, then who pays what."""

from __future__ import annotations

from typing import Any

from ..base.verdicts import worst
from . import noise
from .compare import released_n
from .meta import Z95, Estimate, Pooled
from .models import TITLES
from .order import Pooling

SCHEMA = "sacro_deltab/pooled-report/1"


def report_lines(pooling: Pooling) -> list[str]:
    """The account that `aggregate` prints."""
    lines = [f"{len(pooling.nodes)} nodes, every certificate verified", ""]
    lines += _node_lines(pooling)
    lines += ["", *_spread_lines(pooling)]
    lines += ["", f"Pooled by {TITLES.get(pooling.way, pooling.way)} ({pooling.way})"]
    if pooling.model is not None:
        weights = pooling.model.weights
        lines.append(f"  mean age {weights.y_mean:.1f} years, b1 {_vector(weights.b1)}")
        lines.append(f"  shares of the nodes: {', '.join(f'{s:.0%}' for s in pooling.model.shares)}")
    lines += [f"  note: {note}" for note in pooling.notes]
    lines += ["", *_privacy_lines(pooling), "", *_verdict_lines(pooling)]
    return lines


def _node_lines(pooling: Pooling) -> list[str]:
    spends = {s.node: s for s in pooling.spends}
    lines = ["node | N released | ε of the release | noise | mean age | b1"]
    for node in pooling.nodes:
        n, spend = released_n(node), spends.get(node.name)
        alone = None if pooling.model is None else pooling.model.alone.get(node.name)
        lines.append(
            f"{node.name} | {'not released' if n is None else n} | "
            + ("-" if spend is None else f"{spend.epsilon:g} (δ {spend.delta_dp:.2g}, {spend.adjacency})")
            + f" | {'-' if spend is None else spend.label} | "
            + ("- | -" if alone is None else f"{alone.y_mean:.1f} | {_vector(alone.b1)}")
        )
    return lines


def _vector(values: Any) -> str:
    shown = ", ".join(f"{float(v):.3g}" for v in list(values)[:5])
    return f"[{shown}{', …' if len(values) > 5 else ''}]"


def _spread_lines(pooling: Pooling) -> list[str]:
    lines = ["Differences between nodes (95 % intervals; I²: share of the spread that chance does not explain)"]
    if pooling.tables:
        known = pooling.model is not None and pooling.model.noise
        lines.append(
            "  mean deltas: intervals hold sampling, rounding and the noise of each node's own model"
            if known
            else "  mean deltas: the noise of each node's own model, which shifts all its groups alike, is not in the "
            "intervals, so I² overstates the differences"
        )
    for table in pooling.tables:
        for cell in table.cells:
            if cell.pooled is None:
                lines.append(f"  {table.name} {cell.group}: missing at every node")
                continue
            lines += _estimate_lines(f"{table.name} {cell.group}".strip(), cell.estimates, cell.pooled)
            lines += [f"    {name}: missing (suppressed, not sent, or without an SD)" for name in cell.missing]
    if pooling.model is not None:
        for title, estimates, pooled in pooling.model.heterogeneity[:8]:
            lines += _estimate_lines(title, estimates, pooled)
        if pooling.model.heterogeneity:
            q = sum(p.q for _, _, p in pooling.model.heterogeneity)
            df = sum(p.df for _, _, p in pooling.model.heterogeneity)
            lines.append(f"  all components together: I² {100 * max(0.0, (q - df) / q) if q else 0.0:.0f} %")
    return lines if len(lines) > 1 else [*lines, "  nothing was sent that has a standard error"]


def _estimate_lines(title: str, estimates: tuple[Estimate, ...], pooled: Pooled) -> list[str]:
    lines = [f"  {title}"]
    lines += [f"    {e.node}: {e.value:.2f} ± {Z95 * e.se:.2f}" for e in estimates]
    lines.append(f"    pooled: {pooled.value:.2f} ± {Z95 * pooled.se:.2f}, I² {pooled.i2:.0f} %, "
                 f"random effects {pooled.random:.2f} ± {Z95 * pooled.random_se:.2f}")  # fmt: skip
    return lines


def _privacy_lines(pooling: Pooling) -> list[str]:
    if not pooling.spends:
        return ["Privacy: no noised release was pooled"]
    totals = pooling.totals
    how = f"the largest node counts, because {totals.declared_by} declared that nobody is in two nodes"
    if not totals.disjoint:
        how = "the nodes' budgets add up, because nobody declared that they share no person (--declare-disjoint NAME)"
    unit = pooling.spends[0].unit
    lines = [f"Privacy, per {unit}: {how}"]
    exact = "" if totals.epsilon_exact is None else f" (ε {totals.epsilon_exact:.3g} exactly, for the pooled releases)"
    lines.append(f"  this round: ε {totals.round_epsilon:g}, δ {totals.round_delta:.2g}{exact}")
    if totals.total_epsilon is not None:
        lines.append(f"  all rounds, by the nodes' ledgers: ε {totals.total_epsilon:g}, δ {totals.total_delta:.2g}")
    if pooling.round is not None:
        again = " (pooled before; nothing new is spent)" if pooling.repeated else ""
        lines.append(f"  round {pooling.round}{again}")
    mus = [s.mu for s in pooling.spends if s.mu]
    if len(mus) == len(pooling.spends):
        lines += [
            f"  {text}" for text in noise.explain(pooling.noise_model, mus, max(s.delta_dp for s in pooling.spends))
        ]
    return lines


def _verdict_lines(pooling: Pooling) -> list[str]:
    lines = [f"Verdict: {pooling.verdict} (by {pooling.ruleset.name}); a person releases it"]
    for output in pooling.outputs:
        if output.minus is None:
            lines.append(f"  {output.name}: {output.judged.status}")
    for name in dict.fromkeys(o.minus for o in pooling.outputs if o.minus is not None):
        found = [o.judged.status for o in pooling.outputs if o.minus == name]
        lines.append(f"  pooled minus {name} (anybody with that file can compute it): {worst(found)}")
    return lines + [f"  asked: {text}" for text in pooling.questions]


def report_json(pooling: Pooling) -> dict[str, Any]:
    """The same for machines."""
    spends = {s.node: s.to_json() for s in pooling.spends}
    model = pooling.model
    return {
        "schema": SCHEMA,
        "pooled_id": pooling.pooled_id,
        "way": pooling.way,
        "noise_model": pooling.noise_model,
        "verdict": pooling.verdict,
        "round": pooling.round,
        "nodes": [
            {
                "node": n.name,
                "n": released_n(n),
                "certificate_id": n.certificate_id,
                "verdict": n.predicate["verdict"],
                "undecided": list(n.undecided),
                "privacy": spends.get(n.name),
                "share": None if model is None else model.shares[i],
                "y_mean": None if model is None else round(model.alone[n.name].y_mean, 1),
                "b1": None if model is None else [float(f"{v:.3g}") for v in model.alone[n.name].b1],
            }
            for i, n in enumerate(pooling.nodes)
        ],
        "tables": [
            {
                "name": t.name,
                "type": t.kind,
                "cells": [
                    {
                        "group": c.group,
                        "estimates": [vars(e) for e in c.estimates],
                        "missing": list(c.missing),
                        "pooled": None if c.pooled is None else c.pooled.to_json(),
                    }
                    for c in t.cells
                ],
            }
            for t in pooling.tables
        ],
        "heterogeneity": []
        if model is None
        else [
            {"what": title, "estimates": [vars(e) for e in estimates], "pooled": pooled.to_json()}
            for title, estimates, pooled in model.heterogeneity
        ],
        "privacy": pooling.totals.to_json(),
        "outputs": [
            {"name": o.name, "type": o.kind, "without": o.minus, "verdict": o.judged.status} for o in pooling.outputs
        ],
        "notes": list(pooling.notes),
        "questions": list(pooling.questions),
    }
