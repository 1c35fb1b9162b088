"""Measuring: per-subject arrays go in, named scalars come out. The only bridge from data to rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..rules.facts import Fact, FactValue, Part, Provider
from .people import Floats, Grouping

_BLOCK = 256  # columns measured at once


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
    if float(size.max()) > 1e150:  # the sum could overflow; a share has no unit
        size = size / size.max()
    total = float(size.sum())
    return float(size.max()) / total if total > 0 else 1.0 / size.size


def largest_square_share(values: Floats) -> float:
    """Largest squared deviation from the mean of one person ÷ their sum (D-47); 0 for a constant column."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0
    largest = float(np.abs(finite).max())
    if largest > 1e150:  # squares would overflow; a share has no unit
        finite = finite / largest
    square = (finite - finite.mean()) ** 2
    total = float(square.sum())
    return float(square.max()) / total if total > 0 and np.ptp(finite) > 0 else 0.0  # a mean of equals may be off


def max_abs_z(values: Floats) -> float:
    """Largest |value − mean| ÷ SD (n − 1); 0 for fewer than two people or no spread."""
    finite = values[np.isfinite(values)]
    spread = float(finite.std(ddof=1)) if finite.size > 1 and np.ptp(finite) > 0 else 0.0
    return float(np.abs(finite - finite.mean()).max()) / spread if spread > 0 else 0.0


def nk_check(values: Floats, people: int, share: float) -> str:
    """Dominance as ACRO's NKCheck has it, on absolute values (D-27, D-84): `fail` when the `people` largest hold
    more than `share` of the total. Our own computation on people, not a run of ACRO, which answers `review` as soon as
    one value is negative.
    """
    size = np.abs(values[np.isfinite(values)])
    total = float(size.sum())
    top = float(np.sort(size)[-people:].sum())
    return "fail" if total > 0 and top / total > share else "pass"


def frequency_check(counts: Sequence[int], min_n: int) -> str:
    """`pass` when every count is at least `min_n`: ACRO's MinimumThresholdCheck at the rule set's threshold."""
    return "pass" if all(n >= min_n for n in counts) else "fail"


def dof_check(dof: int, minimum: int) -> str:
    """ACRO's MinimumDoFCheck at the rule set's limit."""
    return "pass" if dof >= minimum else "fail"


def feature_facts(matrix: Floats) -> dict[str, Fact]:
    """`n`, `largest_share`, `idp.largest_share` over the columns of a (people, features) matrix.

    `n` is the smallest number of people that any feature's mean rests on (see `carriers`): that of an indicator is a
    count of the people who have it.
    """
    blocks = [np.ascontiguousarray(matrix[:, i : i + _BLOCK].T) for i in range(0, matrix.shape[1], _BLOCK)]
    return computed(
        n=min((_fewest_carriers(block) for block in blocks), default=0),
        largest_share=max((_largest_shares(block) for block in blocks), default=1.0),
        idp__largest_share=max((_largest_square_shares(block) for block in blocks), default=1.0),
    )


def carriers(column: Floats) -> int:
    """People whose values make a column vary: all, or where most people share one value those who stand apart.

    Values within a twentieth of an SD of the median count as shared, so that noise on an indicator hides nothing. A
    constant column rests on everybody.
    """
    return _fewest_carriers(column[None, :]) if column.size else 0


def _fewest_carriers(rows: Floats) -> int:
    """The fewest `carriers` of any row; people without a value are left out."""
    if not np.isfinite(rows).all():
        return min((carriers(row[np.isfinite(row)]) for row in rows), default=0)
    size = rows.shape[1]
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    at_low, at_high = (rows == low).sum(axis=1), (rows == high).sum(axis=1)
    two = (at_low + at_high == size) & (low != high)[:, 0]
    rarer = np.where(two, np.minimum(at_low, at_high), size)
    spread = rows.std(axis=1, keepdims=True)
    apart = (np.abs(rows - np.median(rows, axis=1, keepdims=True)) > spread / 20).sum(axis=1)
    found = np.where((2 * apart < size) & (low != high)[:, 0], np.minimum(rarer, apart), rarer)
    return int(found.min(initial=size))


def _largest_shares(rows: Floats) -> float:
    """The largest `largest_share` of any row; all rows at once where none is out of the ordinary."""
    size = np.abs(rows)
    if not np.isfinite(size).all() or not size.size or float(size.max()) > 1e150:
        return max((largest_share(row) for row in rows), default=1.0)
    total = size.sum(axis=1)
    share = np.full(total.size, 1.0 / size.shape[1])
    np.divide(size.max(axis=1), total, out=share, where=total > 0)
    return float(share.max())


def _largest_square_shares(rows: Floats) -> float:
    """The largest `largest_square_share` of any row, likewise."""
    if not np.isfinite(rows).all() or not rows.size or float(np.abs(rows).max()) > 1e150:
        return max((largest_square_share(row) for row in rows), default=1.0)
    square = (rows - rows.mean(axis=1, keepdims=True)) ** 2
    total = square.sum(axis=1)
    share = np.zeros(total.size)
    np.divide(square.max(axis=1), total, out=share, where=(total > 0) & (np.ptp(rows, axis=1) > 0))
    return float(share.max())


def one_persons_share(values: Floats, statistic: str) -> float:
    """Largest share of one person in what the statistic adds up: squares for an SD, absolute values otherwise."""
    return largest_square_share(values) if statistic == "sd" else largest_share(values)


def summary_facts(values: Floats, numbers: Mapping[str, Any], statistic: str = "mean") -> dict[str, Fact]:
    """Facts of a whole-cohort mean, sd or quantile; `numbers` are the rule set's parameters."""
    return computed(
        n=count(values),
        largest_share=one_persons_share(values, statistic),
        outlier__max_abs_z=max_abs_z(values),
        acro__dominance_check=nk_check(values, int(numbers["nk_n"]), float(numbers["nk_k"])),
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
            **computed(cell__n=int(finite.size), cell__largest_share=one_persons_share(finite, statistic)),
            "cell.structural_zero": Fact("cell.structural_zero", label in grouping.structural, Provider.DECLARED),
        }
        if grouping.widths is not None:
            facts = {**facts, **computed(cell__age_band=True, band__width_years=float(grouping.widths[index]))}
        parts.append(Part("cell", label, facts, statistic_of(finite, statistic)))
    return tuple(parts)


def statistic_of(values: Floats, statistic: str) -> float | None:
    """mean, sd (n − 1), or count of finite values; None where there is none."""
    if statistic == "count":
        return float(values.size)
    if values.size < (2 if statistic == "sd" else 1):
        return None
    return float(values.mean()) if statistic == "mean" else float(values.std(ddof=1))


def table_facts(
    grouping: Grouping, values: Floats | None, parts: Sequence[Part], numbers: Mapping[str, Any]
) -> dict[str, Fact]:
    """Facts of a table as a whole, over people who are in one of its groups.

    The two ACRO checks are made on the cells that can be published, as the table would leave; `numbers` are the rule
    set's parameters.
    """
    least = int(numbers["min_n"])
    counts = {part.key: int(part.facts["cell.n"].value) for part in parts}
    open_cells = [index for index, label in enumerate(grouping.labels) if counts[label] >= least]
    shown = [counts[grouping.labels[index]] for index in open_cells]
    facts = computed(
        n=sum(counts.values()),
        acro__frequency_check=frequency_check(shown, least),
        table__any_n_rounded=any(n < int(numbers["round_n_below"]) for n in shown),
    )
    if values is None:
        return facts
    inside = values[grouping.codes >= 0]
    checks = [nk_check(values[grouping.codes == i], int(numbers["nk_n"]), float(numbers["nk_k"])) for i in open_cells]
    return facts | computed(
        acro__dominance_check="fail" if "fail" in checks else "pass",
        largest_share=largest_share(inside),
        outlier__max_abs_z=max_abs_z(inside),
    )


def training_facts(matrix: Any, ages: Any, *, origin: str, max_z: float | None) -> dict[str, Fact]:
    """Queries on the training data that the rules ask of weights; their results stay inside."""

    finite = ages[np.isfinite(ages)]
    facts = feature_facts(matrix)
    facts.pop("n")
    facts |= computed(
        y__range_years=float(finite.max() - finite.min()) if finite.size else 0.0,
        largest_share=max(largest_share(finite), float(facts["largest_share"].value)),
    )
    if max_z is not None:
        facts |= computed(outlier__max_abs_z=max_z)
    return facts | {"pca.origin": Fact("pca.origin", origin, Provider.DECLARED)}
