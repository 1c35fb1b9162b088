"""Pearson's correlations of delta: r by r with p-values of their own, or many as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.measure import carriers, computed, dof_check
from ..measure.numbers import Moment, Rows, Trace, products, sides
from ..measure.people import Floats
from ..outputs import Cell, Column, OutputDocument
from ..rules.facts import Fact, Part
from . import anew, documents
from .asked import both, column, matrix, pairs
from .kind import Inside, Kind, Made, Measured, Reading, headed

CORRELATION = "correlation"
P_VALUE = "p_value"
TABLE = "correlation_table"
LEVEL = 0.95  # of every interval
HEADS = (
    Column("variable", "label"), Column("n", "n", "people"), Column("r", "value"), Column("low_95", "value"),
    Column("high_95", "value"), Column("p", "p"), Column("p_fdr", "p"),
)  # fmt: skip


@dataclass(frozen=True)
class Correlated:
    """Pearson's r of one column with another over the people who have both."""

    n: int
    r: float
    low: float
    high: float
    p: float
    behind: int  # people that the number rests on


def correlate(y: Floats, x: Floats) -> Correlated | None:
    """r with Fisher's interval; None where it is not defined."""
    from scipy import stats  # late: scipy is heavy

    known = np.isfinite(y) & np.isfinite(x)
    a, b = y[known], x[known]
    n = int(known.sum())
    if n < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    found = stats.pearsonr(a, b)
    r = float(found.statistic)
    half = float(stats.norm.ppf((1 + LEVEL) / 2)) / np.sqrt(n - 3)
    z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    ends = float(np.tanh(z - half)), float(np.tanh(z + half))
    return Correlated(n, r, *ends, float(found.pvalue), min(n, carriers(a), carriers(b)))


def false_discovery(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p-values."""
    order = np.argsort(p)[::-1]
    ranks = np.arange(p.size, 0, -1)
    out = np.empty(p.size)
    out[order] = np.minimum.accumulate(np.minimum(p[order] * p.size / ranks, 1.0))
    return out


def _each(y: Floats, names: Sequence[str], columns: Floats) -> list[Correlated]:
    found = [correlate(y, one) for one in columns.T]
    bad = next((label for label, one in zip(names, found, strict=True) if one is None), None)
    if bad is not None:
        raise InputError(
            f"no correlation with {bad!r}: too few people, or one column is constant", next_step="Leave it out."
        )
    return [one for one in found if one is not None]


def _facts(inside: Inside, found: Sequence[Correlated]) -> dict[str, Fact]:
    """`n` is the number of people that a correlation rests on (see `carriers`): with a column that is 1 for one person
    and 0 for the others it returns that person's value."""
    dof = min(one.n for one in found) - 2
    check = dof_check(dof, int(inside.parameters["min_residual_dof"]))
    return computed(n=min(one.behind for one in found), residual_dof=dof, acro__regression_check=check)


def make(
    inside: Inside,
    values: Any,
    others: Any,
    title: str = "Correlations with delta",
    name: str | None = None,
    p_values: bool = True,
) -> list[Made]:
    """Pearson correlations over people with both values, and one p-value document for each."""
    people = column(inside, values)
    names, columns = matrix(inside, others)
    found = _each(people, names, columns)
    stem = documents.safe_name(name or CORRELATION)
    document = documents.vector(
        CORRELATION, stem, title, names, [one.r for one in found], label_column="variable", value_column="r",
        about=inside.about(values),
    )  # fmt: skip
    parts = tuple(Part("row", label, {}, one.r) for label, one in zip(names, found, strict=True))
    each = [both(people, other) for other in columns.T]
    trace = pairs(document.name, CORRELATION, names, each)
    own = inside.own(values=people, columns=(names, columns))
    out = [Made(document, own | _facts(inside, found), min(one.behind for one in found), parts, trace=trace)]
    for label, one, pair in zip(names, found, each, strict=True) if p_values else ():
        document = documents.vector(
            P_VALUE, documents.safe_name(f"{stem}_p_{label}"), f"p-value of the correlation with {label}", [label],
            [one.p], label_column="variable", value_column="p", about=inside.about(values),
        )  # fmt: skip
        facts = own | _facts(inside, [one]) | computed(value=one.p)
        trace = Trace(document.name, P_VALUE, ("delta", label), pair, ((0, 1),))
        out.append(Made(document, facts, one.behind, (Part("row", label, {}, one.p),), trace=trace))
    return out


def table(
    inside: Inside, values: Any, others: Any, title: str = "Correlations with delta", name: str | None = None
) -> list[Made]:
    """Pearson's r of `values` with every column of a table as one output: n, r, 95 % interval, p, and p adjusted for
    their number (Benjamini-Hochberg)."""
    people = column(inside, values)
    names, columns = matrix(inside, others)
    found = _each(people, names, columns)
    adjusted = false_discovery(np.array([one.p for one in found]))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, one.n, one.r, one.low, one.high, one.p, float(q))
        for label, one, q in zip(names, found, adjusted, strict=True)
    )
    context = inside.about(values, interval=LEVEL, adjusted=f"Benjamini-Hochberg over {len(rows)} correlations")
    document = OutputDocument(documents.safe_name(name or "correlations"), TABLE, title, HEADS, rows, context)
    trace = pairs(document.name, TABLE, names, [both(people, other) for other in columns.T])
    facts = inside.own(values=people, columns=(names, columns)) | _facts(inside, found)
    return [Made(document, facts, min(one.behind for one in found), trace=trace)]


def tells(trace: Trace, rows: Sequence[Rows]) -> Iterator[Moment]:
    """Of its moments a correlation is the only number that tells of the sum of products, so it is read as if the reader
    had all others; of a column of two values that sum is a group's own. A p-value says the same."""
    for first, second in trace.sets:
        label = trace.labels[second]
        yield from products(trace, label, rows[first], rows[second])
        for one, other in ((first, second), (second, first)):
            for name, people, _ in rows[one]:
                for members in sides(trace.matrix[:, other], people):
                    yield Moment(trace.output, label, (name,), members)


def again(asked: Reading) -> Measured | None:
    """Correlations or p-values of the cohort's deltas with the columns that the rows name."""
    found = _tested(asked)
    if found is None:
        return None
    place = 1 if asked.raw.type == CORRELATION else 4
    rows: dict[str, tuple[float | None, ...]] = {key: (row[place],) for key, row in found.rows.items()}
    facts = found.facts
    if asked.raw.type == P_VALUE and len(rows) == 1:
        facts["value"] = next(iter(rows.values()))[0]
    return Measured(facts, {}, rows)


def table_again(asked: Reading) -> Measured | None:
    """The table of the cohort's correlations."""
    from scipy import stats  # late: scipy is heavy

    found = _tested(asked)
    if found is None:
        return None
    adjusted = stats.false_discovery_control([row[-1] for row in found.rows.values()])
    rows = {key: (*row, float(q)) for (key, row), q in zip(found.rows.items(), adjusted, strict=True)}
    return Measured(found.facts, {}, rows)


def _tested(asked: Reading) -> Measured | None:
    """n, r, interval and p of each row, by numpy's own correlation and the same tests in other words."""
    from scipy import stats  # late: scipy is heavy

    columns = asked.matrix(asked.keys)
    if columns is None:
        return None
    rows: dict[str, tuple[float | None, ...]] = {}
    sizes, behind = [], []
    for key, other in zip(asked.keys, columns.T, strict=True):
        known = np.isfinite(asked.deltas) & np.isfinite(other)
        a, b, n = asked.deltas[known], other[known], int(known.sum())
        if n < 4 or a.std() == 0 or b.std() == 0:
            return None
        r = float(np.corrcoef(a, b)[0, 1])
        tail = float(2 * stats.t.sf(abs(r) * np.sqrt((n - 2) / max(1 - r * r, 1e-300)), n - 2))
        z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
        half = stats.norm.ppf(0.975) / np.sqrt(n - 3)
        rows[key] = (n, r, float(np.tanh(z - half)), float(np.tanh(z + half)), tail)
        sizes.append(n)
        behind.append(min(anew.carried(anew.known(a)), anew.carried(anew.known(b))))
    dof = min(sizes) - 2
    check = anew.freedom(dof, asked.numbers)
    return Measured({"n": min(behind), "residual_dof": dof, "acro.regression_check": check}, {}, rows)


KINDS = (
    Kind(
        CORRELATION, "Pearson's r of delta with columns, over people with both values; p-values are outputs apart.",
        "vector", make, tells, again, headed("variable", "r"), of_deltas=True, of_columns=True,
        earlier="pair",
    ),
    Kind(
        P_VALUE, "The p-value of one correlation: it says the same as r, and leaves only with it.",
        "vector", None, tells, again, headed("variable", "p"), of_deltas=True, of_columns=True,
    ),
    Kind(
        TABLE, "Many correlations as one output: n, r, 95 % interval, p, and p adjusted for their number.",
        "result_rows", table, tells, table_again, headed("variable", "n", "r", "low_95", "high_95", "p", "p_fdr"),
        of_deltas=True, of_columns=True, says=("interval", "adjusted"), earlier="pair",
    ),
)  # fmt: skip
