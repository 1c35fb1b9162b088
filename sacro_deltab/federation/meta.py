"""Node tables side by side: inverse-variance meta-analysis of group mean deltas, with heterogeneity.

A suppressed cell is missing: it enters neither the mean nor the people, and is never a zero. Sampling variance of a
cell is sd²/n with the node's own SD of that group where it was released, else the node's SD of delta; rounding of the
mean to one decimal adds 0.1²/12. Without any SD a node's cell is left out, and the table says so.

A node's deltas come from its own noisy model. That noise shifts all groups of the node alike, and tilts and bends its
age bands; where the node sent moments its size is known and is added, else the report says that it is not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import chi2

from ..kinds.group_tables import BY_AGE, DELTA_SD_BY_GROUP
from ..kinds.registry import KINDS
from ..kinds.whole import DELTA_SD
from ..outputs.document import OutputDocument
from .bundle import Node
from .compare import released_n

Z95 = 1.959963984540054
_BAND = re.compile(r"(\d+(?:\.\d+)?) to under (\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Estimate:
    """One node's number with its standard error, years."""

    node: str
    value: float
    se: float
    n: int | None = None


@dataclass(frozen=True)
class ModelNoise:
    """What privacy noise does to a node's deltas, as SDs in years.

    shift: of all of them; tilt: per year of age from `middle`; bend: per year² of (age − middle)² less what its mean
    and slope on age explain (`square`: both).
    """

    shift: float
    tilt: float
    bend: float
    middle: float
    square: tuple[float, float]

    def variance(self, group: str | None) -> float:
        """Of a mean delta; group: the label of an age band, None where the group is no band."""
        found = None if group is None else _BAND.match(group)
        if found is None:
            return self.shift**2
        away = (float(found[1]) + float(found[2])) / 2 - self.middle
        mean, slope = self.square
        return self.shift**2 + (self.tilt * away) ** 2 + (self.bend * (away * away - mean - slope * away)) ** 2


@dataclass(frozen=True)
class Pooled:
    """Inverse-variance average of estimates, and how much they disagree.

    value, se: fixed effect; random, random_se: DerSimonian & Laird; q on df degrees; i2 in percent; tau: SD between
    nodes.
    """

    value: float
    se: float
    random: float
    random_se: float
    q: float
    df: int
    i2: float
    tau: float

    @property
    def p_value(self) -> float | None:
        """Probability of a Q this large without heterogeneity."""
        if self.df < 1:
            return None

        return float(chi2.sf(self.q, self.df))

    def to_json(self) -> dict[str, Any]:
        """For reports."""
        return {**vars(self), "p_value": self.p_value}


@dataclass(frozen=True)
class Cell:
    """One group over the nodes. missing: nodes whose cell was suppressed, absent or without an SD."""

    group: str
    estimates: tuple[Estimate, ...]
    missing: tuple[str, ...]
    pooled: Pooled | None

    @property
    def n(self) -> int:
        """People behind the pooled cell, as the nodes released them."""
        return sum(e.n or 0 for e in self.estimates)


@dataclass(frozen=True)
class MetaTable:
    """One table pooled over nodes."""

    name: str
    kind: str
    label: str
    unit: str
    cells: tuple[Cell, ...] = field(default=())


def inverse_variance(estimates: Sequence[Estimate]) -> Pooled:
    """Fixed-effect and random-effects average.

    Raises
    ------
    ValueError
        For no estimates, or one whose standard error is not positive.
    """
    if not estimates or any(not (math.isfinite(e.value) and 0 < e.se < math.inf) for e in estimates):
        raise ValueError("estimates need finite values and positive standard errors")
    weights = [1 / e.se**2 for e in estimates]
    total = sum(weights)
    mean = sum(w * e.value for w, e in zip(weights, estimates, strict=True)) / total
    q = sum(w * (e.value - mean) ** 2 for w, e in zip(weights, estimates, strict=True))
    df = len(estimates) - 1
    spare = total - sum(w * w for w in weights) / total
    tau2 = max(0.0, (q - df) / spare) if spare > 0 else 0.0
    wide = [1 / (e.se**2 + tau2) for e in estimates]
    return Pooled(
        value=mean,
        se=1 / math.sqrt(total),
        random=sum(w * e.value for w, e in zip(wide, estimates, strict=True)) / sum(wide),
        random_se=1 / math.sqrt(sum(wide)),
        q=q,
        df=df,
        i2=100 * max(0.0, (q - df) / q) if q > 0 else 0.0,
        tau=math.sqrt(tau2),
    )


def meta_tables(nodes: Sequence[Node], noise: Mapping[str, ModelNoise] | None = None) -> list[MetaTable]:
    """Every table of mean deltas that two nodes or more sent, and the mean delta itself.

    noise: of each node's own model, where it is known.
    """
    found: dict[tuple[str, str], None] = {}
    for node in nodes:
        for document in node.documents.values():
            if KINDS[document.type].of_deltas and KINDS[document.type].statistic == "mean":
                found[(document.type, document.name)] = None
    tables = []
    for kind, name in found:
        sent = {n.name: d for n in nodes if (d := n.documents.get(name)) is not None and d.type == kind}
        if len(sent) >= 2:
            tables.append(_table(kind, name, sent, nodes, noise or {}))
    return [t for t in tables if any(c.pooled is not None for c in t.cells)]


def _table(
    kind: str,
    name: str,
    sent: Mapping[str, OutputDocument],
    nodes: Sequence[Node],
    noise: Mapping[str, ModelNoise],
) -> MetaTable:
    first = next(iter(sent.values()))
    groups = list(dict.fromkeys(str(row[0]) for d in sent.values() for row in d.rows))
    cells = []
    for group in groups:
        band = group if kind == BY_AGE else None
        extra = {n.name: noise[n.name].variance(band) if n.name in noise else 0.0 for n in nodes}
        estimates = [e for n in nodes if (e := _estimate(n, sent.get(n.name), group, extra[n.name])) is not None]
        here = {e.node for e in estimates}
        missing = tuple(n.name for n in nodes if n.name not in here)
        cells.append(Cell(group, tuple(estimates), missing, inverse_variance(estimates) if estimates else None))
    return MetaTable(name, kind, first.columns[0].name, first.columns[-1].unit, tuple(cells))


def _estimate(node: Node, document: OutputDocument | None, group: str, extra: float) -> Estimate | None:
    if document is None:
        return None
    row = next((r for r in document.rows if r[0] == group), None)
    if row is None or not isinstance(row[-1], int | float) or isinstance(row[-1], bool):
        return None  # suppressed or absent: missing, not zero
    table = len(document.columns) == 3
    n = row[1] if table else _n_of(node)
    sd = (_group_sd(node, document, group) if table else None) or _scalar(node, DELTA_SD)
    if not isinstance(n, int | float) or n < 2 or sd is None or sd <= 0:
        return None
    step = 10.0 ** -int(node.policy["parameters"].get("mean_decimals", 1))
    return Estimate(node.name, float(row[-1]), math.sqrt(sd * sd / float(n) + step * step / 12 + extra), int(n))


def _n_of(node: Node) -> int | None:

    return released_n(node)


def _scalar(node: Node, kind: str) -> float | None:
    document = node.of_type(kind)
    value = None if document is None else document.rows[0][-1]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _group_sd(node: Node, means: OutputDocument, group: str) -> float | None:
    """SD of the same groups (same label column), where the node released it for this one."""
    for document in node.documents.values():
        if document.type == DELTA_SD_BY_GROUP and document.columns[0].name == means.columns[0].name:
            row = next((r for r in document.rows if r[0] == group), None)
            if row is not None and isinstance(row[-1], int | float):
                return float(row[-1])
    return None
