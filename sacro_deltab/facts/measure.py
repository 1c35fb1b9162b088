"""Measuring: per-subject arrays go in, named scalars come out. The only bridge from data to rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .people import Floats, Grouping
from .types import Fact, FactValue, Part, Provider

# The second dominance check of the documents (DT-X2, D-27): the two largest people hold more than half of a total.
NK_PEOPLE = 2
NK_SHARE = 0.5


def computed(**facts: FactValue) -> dict[str, Fact]:
    """Facts by keyword; two underscores in a key stand for the point: `cell__n=3` → `cell.n`."""
    return {
        key.replace("__", "."): Fact(key.replace("__", "."), value, Provider.COMPUTED) for key, value in facts.items()
    }


def count(values: Floats) -> int:
    """People with a finite value: contributors, never rows."""
    return int(np.isfinite(values).sum())


def largest_share(values: Floats) -> float:
    """Largest |value| of one person ÷ Σ|value| (D-24), in [0, 1]; 1/n where all values are 0; 1 where nobody is."""
    size = np.abs(values[np.isfinite(values)])
    if not size.size:
        return 1.0
    total = float(size.sum())
    return float(size.max()) / total if total > 0 else 1.0 / size.size


def largest_square_share(values: Floats) -> float:
    """Largest squared deviation from the mean of one person ÷ their sum (D-47); 0 for a constant column."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0
    square = (finite - finite.mean()) ** 2
    total = float(square.sum())
    return float(square.max()) / total if total > 0 else 0.0


def max_abs_z(values: Floats) -> float:
    """Largest |value − mean| ÷ SD (n − 1); 0 for fewer than two people or no spread."""
    finite = values[np.isfinite(values)]
    spread = float(finite.std(ddof=1)) if finite.size > 1 else 0.0
    return float(np.abs(finite - finite.mean()).max()) / spread if spread > 0 else 0.0


def nk_check(values: Floats) -> str:
    """Dominance as ACRO 1.0.2's NKCheck reads it, on people: `fail` when the two largest hold more than half.

    `review` as soon as one value is negative, as ACRO answers; `pass` otherwise. Our own computation, not ACRO's run.
    """
    finite = values[np.isfinite(values)]
    if (finite < 0).any():
        return "review"
    total = float(finite.sum())
    top = float(np.sort(finite)[-NK_PEOPLE:].sum())
    return "fail" if total > 0 and top / total > NK_SHARE else "pass"


def frequency_check(counts: Sequence[int], min_n: int) -> str:
    """`pass` when every count is at least `min_n`: ACRO's MinimumThresholdCheck at the rule set's threshold."""
    return "pass" if all(n >= min_n for n in counts) else "fail"


def dof_check(dof: int, minimum: int) -> str:
    """ACRO's MinimumDoFCheck at the rule set's limit."""
    return "pass" if dof >= minimum else "fail"


def feature_facts(matrix: Floats) -> dict[str, Fact]:
    """`n`, `largest_share`, `idp.largest_share` over the columns of a (people, features) matrix.

    `n` is the smallest number of contributors of any feature.
    """
    counts = np.isfinite(matrix).sum(axis=0)
    return computed(
        n=int(counts.min()) if counts.size else 0,
        largest_share=max((largest_share(column) for column in matrix.T), default=1.0),
        idp__largest_share=max((largest_square_share(column) for column in matrix.T), default=1.0),
    )


def summary_facts(values: Floats) -> dict[str, Fact]:
    """Facts of a whole-cohort mean, SD or quantile."""
    return computed(
        n=count(values),
        largest_share=largest_share(values),
        outlier__max_abs_z=max_abs_z(values),
        acro__dominance_check=nk_check(values),
    )


def cell_parts(grouping: Grouping, values: Floats | None, statistic: str) -> tuple[Part, ...]:
    """One part a group: its people, its largest share, its band width, its raw statistic.

    statistic: mean | sd | count. With `values` None people are counted as they stand (a count table).
    """
    parts = []
    for index, label in enumerate(grouping.labels):
        member = grouping.codes == index
        inside = values[member] if values is not None else np.ones(int(member.sum()))
        finite = inside[np.isfinite(inside)]
        facts: Mapping[str, Fact] = {
            **computed(cell__n=int(finite.size), cell__largest_share=largest_share(finite)),
            "cell.structural_zero": Fact("cell.structural_zero", label in grouping.structural, Provider.DECLARED),
        }
        if grouping.widths is not None:
            facts = {**facts, **computed(band__width_years=float(grouping.widths[index]))}
        parts.append(Part("cell", label, facts, statistic_of(finite, statistic)))
    return tuple(parts)


def statistic_of(values: Floats, statistic: str) -> float | None:
    """mean, sd (n − 1), or count of finite values; None where there is none."""
    if statistic == "count":
        return float(values.size)
    if values.size < (2 if statistic == "sd" else 1):
        return None
    return float(values.mean()) if statistic == "mean" else float(values.std(ddof=1))


def table_facts(values: Floats | None, parts: Sequence[Part], min_n: int) -> dict[str, Fact]:
    """Facts of a table as a whole, over people who are in one of its groups."""
    counts = [int(part.facts["cell.n"].value) for part in parts]
    facts = computed(n=sum(counts), acro__frequency_check=frequency_check(counts, min_n))
    if values is None:
        facts |= computed(acro__dominance_check="pass", largest_share=1.0 / max(1, sum(counts)))
    else:
        facts |= computed(
            acro__dominance_check=nk_check(values),
            largest_share=largest_share(values),
            outlier__max_abs_z=max_abs_z(values),
        )
    return facts
