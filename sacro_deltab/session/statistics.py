"""Whole-cohort statistics of a session: means, SDs, quantiles, N, feature summaries, correlations, regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..measure.measure import carriers, computed, count, dof_check, feature_facts, statistic_of, summary_facts
from ..measure.numbers import PrintedCell, Trace
from ..measure.people import Floats, Roster, columns_of, label_text, numbers, rows_of
from ..outputs import build
from ..rules.facts import Part
from .common import about, build_facts
from .entries import Candidate

_LARGEST = 1e100
CUSTOMARY = 5  # quantiles asked for where nobody says which

if TYPE_CHECKING:
    from .core import SessionCore


def n_candidate(session: SessionCore, title: str) -> Candidate:
    """N of the cohort: distinct people."""
    people = session.state.people
    if people is None:
        raise InputError("the session does not know its people yet", next_step="Pass people= or train a model first.")
    if session.budget.n_is_secret():
        raise InputError(
            "under add_remove N is not public: printing it beside a release on these people would void its ε",
            next_step="Leave N out, or train with adjacency='zero_out_N_public'.",
        )
    n = people.n_people
    document = build.scalar("n_subjects", "n_subjects", title, "N", n, unit="people", about=about(session))
    facts = build_facts(session, document, computed(n=n, value=n))
    cell = PrintedCell(document.name, "N", np.arange(n), "grand")
    return Candidate(document, facts, (cell,), n=n)


def scalar_candidate(session: SessionCore, kind: str, values: Any, title: str, name: str | None) -> Candidate:
    """Whole-cohort mean or SD of delta, over people with a value."""
    people = _people(session, values)
    session.refuse_other_than_deltas(values, people)
    statistic = "mean" if kind == "delta_mean" else "sd"
    value = statistic_of(people[np.isfinite(people)], statistic)
    if value is None:
        raise InputError("too few people have a value for this statistic", next_step="Check the column of values.")
    label = "mean delta" if statistic == "mean" else "SD of delta"
    document = build.scalar(
        kind, build.safe_name(name or kind), title, label, value, unit="years", about=about(session)
    )
    shares = summary_facts(people, session.ruleset.parameters, statistic)
    facts = shares | computed(value=value) | session.model_origin(values)
    if kind == "delta_mean":
        facts |= computed(mean__noised_beside=any(e.type == kind and e.privacy is not None for e in session.entries))
    cell = PrintedCell(
        document.name,
        label,
        np.flatnonzero(np.isfinite(people)),
        "grand",
        session.state.variable(people),
        statistic,
        shows_n=False,
    )
    return Candidate(document, build_facts(session, document, facts), (cell,), n=count(people))


def quantile_candidate(
    session: SessionCore, values: Any, percents: Sequence[float], title: str, name: str | None
) -> Candidate:
    """Quantiles by linear interpolation over people with a value."""
    people = _people(session, values)
    session.refuse_other_than_deltas(values, people)
    finite = people[np.isfinite(people)]
    try:
        asked = sorted({float(p) for p in percents})
    except (TypeError, ValueError):
        asked = []
    if not asked or any(not 0 <= p <= 100 for p in asked):
        raise InputError("percentiles must lie between 0 and 100", next_step="For example (5, 25, 50, 75, 95).")
    if not finite.size:
        raise InputError("nobody has a value", next_step="Check the column of values.")
    least = int(session.ruleset.parameters["min_n"])
    # The five customary ones of few people go to the rules, which block them with a record that says so.
    if len(asked) > CUSTOMARY and len(asked) * least > finite.size + least and finite.size > least:
        raise InputError(
            "so many quantiles of so few people are nearly the people themselves",
            next_step="Ask for at most one quantile for each group of the minimum size.",
        )
    labels = [build.percent_label(p) for p in asked]
    found = [float(v) for v in np.percentile(finite, asked)]
    document = build.vector(
        "delta_quantiles",
        build.safe_name(name or "delta_quantiles"),
        title,
        labels,
        found,
        label_column="percentile",
        value_column="delta",
        unit="years",
        about=about(session),
    )
    parts = tuple(
        Part("quantile", label, computed(quantile__percent=percent), value)
        for label, percent, value in zip(labels, asked, found, strict=True)
    )
    facts = summary_facts(people, session.ruleset.parameters) | session.model_origin(values)
    session.state.variable(people)  # refuses copies in other units or with some people's changed
    trace = Trace(document.name, "quantiles", ("delta",), people[:, None].copy(), percents=tuple(asked))
    return Candidate(document, build_facts(session, document, facts, parts), n=count(people), trace=trace)


def feature_candidate(
    session: SessionCore, X: Any, feature_names: Sequence[str] | None, title: str, name: str | None
) -> Candidate:
    """Mean and SD of every feature, over the people who have a value for it."""
    names, matrix = _matrix(session, X, feature_names)
    finite = [column[np.isfinite(column)] for column in matrix.T]
    rows = [[statistic_of(column, "mean"), statistic_of(column, "sd")] for column in finite]
    document = build.matrix(
        "idp_summary",
        build.safe_name(name or "idp_summary"),
        title,
        names,
        [("mean", ""), ("sd", "")],
        rows,
        about=about(session),
    )
    facts = feature_facts(matrix)
    trace = Trace(document.name, "features", tuple(names), matrix)
    return Candidate(document, build_facts(session, document, facts), n=int(facts["n"].value), trace=trace)


def correlation_candidates(
    session: SessionCore, values: Any, others: Any, title: str, name: str | None, p_values: bool
) -> list[Candidate]:
    """Pearson correlations over people with both values, and one p-value document for each.

    `n` is the number of people that a correlation rests on (see `carriers`): with a column that is 1 for one person and
    0 for the others it returns that person's value.
    """
    from scipy import stats  # late: scipy is heavy

    people = _people(session, values)
    names, matrix = _matrix(session, others, None)
    found, tails, sizes = [], [], []
    behind: list[int] = []  # people that each number rests on
    pairs: list[Floats] = []
    for label, column in zip(names, matrix.T, strict=True):
        both = np.isfinite(people) & np.isfinite(column)
        n = int(both.sum())
        if n < 3 or np.ptp(people[both]) == 0 or np.ptp(column[both]) == 0:
            raise InputError(f"no correlation with {label!r}: too few people, or one column is constant")
        result = stats.pearsonr(people[both], column[both])
        found.append(float(result.statistic))
        tails.append(float(result.pvalue))
        sizes.append(n)
        behind.append(min(n, carriers(people[both]), carriers(column[both])))
        pairs.append(np.where(both[:, None], np.column_stack([people, column]), np.nan))
    stem = build.safe_name(name or "correlation")
    document = build.vector(
        "correlation", stem, title, names, found, label_column="variable", value_column="r", about=about(session)
    )
    least = int(session.ruleset.parameters["min_residual_dof"])
    shared = computed(
        n=min(behind), residual_dof=min(sizes) - 2, acro__regression_check=dof_check(min(sizes) - 2, least)
    )
    parts = tuple(Part("row", label, {}, value) for label, value in zip(names, found, strict=True))
    trace = _pairs_trace(document.name, names, pairs)
    out = [Candidate(document, build_facts(session, document, shared, parts), n=min(behind), trace=trace)]
    if not p_values:
        return out
    for label, p, n, few, pair in zip(names, tails, sizes, behind, pairs, strict=True):
        one = build.vector(
            "p_value",
            build.safe_name(f"{stem}_p_{label}"),
            f"p-value of the correlation with {label}",
            [label],
            [p],
            label_column="variable",
            value_column="p",
            about=about(session),
        )
        facts = computed(n=few, residual_dof=n - 2, value=p, acro__regression_check=dof_check(n - 2, least))
        trace = Trace(one.name, "correlation", ("delta", label), pair, ((0, 1),))
        out.append(Candidate(one, build_facts(session, one, facts, (Part("row", label, {}, p),)), n=few, trace=trace))
    return out


def _pairs_trace(output: str, names: Sequence[str], pairs: Sequence[Floats]) -> Trace:
    """The columns of some correlations; the values stand there once for each set of people."""
    columns: list[Floats] = []
    labels: list[str] = []
    whose: dict[bytes, int] = {}
    sets = []
    for name, pair in zip(names, pairs, strict=True):
        people = np.packbits(np.isfinite(pair[:, 0])).tobytes()
        if people not in whose:
            whose[people] = len(columns)
            columns.append(pair[:, 0])
            labels.append("delta")
        sets.append((whose[people], len(columns)))
        columns.append(pair[:, 1])
        labels.append(name)
    return Trace(output, "correlation", tuple(labels), np.column_stack(columns), tuple(sets))


def _people(session: SessionCore, values: Any) -> Floats:
    return _summable(session.state.roster(rows_of(values)).mean_by_person(values))


def _summable(values: Floats) -> Floats:
    """Values whose squares can be summed in floats, or a refusal."""
    if np.abs(np.nan_to_num(values)).max(initial=0.0) > _LARGEST:
        raise InputError("values are too large to be summed", next_step="Rescale the column, for example to thousands.")
    return values


def _matrix(session: SessionCore, X: Any, feature_names: Sequence[str] | None) -> tuple[list[str], Floats]:
    """(names, people × columns) from a DataFrame, a Series or an array with names."""
    columns = [numbers(column) for column in columns_of(X)]
    if feature_names is not None:
        if isinstance(feature_names, str) or not hasattr(feature_names, "__iter__"):
            raise InputError("feature_names must be a list of names", next_step="Give one name a column.")
        names = list(feature_names)
    elif hasattr(X, "columns"):
        names = list(X.columns)
    elif len(columns) == 1:
        names = [getattr(X, "name", None) or "value"]
    else:
        names = [f"feature_{i + 1}" for i in range(len(columns))]
    if not columns:
        raise InputError("the table has no columns", next_step="Give at least one column of numbers.")
    labels = [label_text(name, "names") for name in names]
    if len(labels) != len(columns) or len(set(labels)) != len(labels):
        raise InputError("column names repeat, or are not one a column", next_step="Give every column its own name.")
    roster: Roster = session.state.roster(columns[0].size)
    matrix = np.column_stack([roster.mean_by_person(column) for column in columns])
    return labels, _summable(matrix)
