"""Everything that can be asked to leave: one method a statistic, each makes a candidate and hands it over.

What becomes of a candidate is said once, by whoever takes it: the session records it and settles, a preview judges it
alone, a plan records it and settles afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..base.collector import paused
from ..base.errors import InputError
from ..kinds import correlations, features, group_tables, prediction_error, quantiles, regressions, whole
from ..kinds.kind import Make
from ..kinds.registry import KINDS
from ..measure.grouping import AgeBands
from ..privacy.basis import Basis
from ..privacy.training import PrivateModel
from .common import candidate_of
from .core import SessionCore
from .entries import Candidate, Entries, Entry
from .guard import measured
from .noised_outputs import Wanted, private_candidate
from .part import Where, part_of
from .plots import plot_candidate
from .recording import record
from .settling import hypothetical
from .weights import moments_candidate, weight_candidates


class Releases(ABC):
    """The methods `release_...` of a session."""

    @property
    @abstractmethod
    def _core(self) -> SessionCore:
        """Rules, people and everything released so far."""

    @abstractmethod
    def _record(self, candidate: Candidate) -> Entry:
        """What becomes of one candidate."""

    @measured
    def release(self, kind: str, *columns: Any, where: Where = None, **options: Any) -> list[Entry]:
        """Any kind of output that is measured on people, by its key in the rule set's vocabulary.

        `session.release("prediction_error", predicted, age, validated="held-out people")`. The arguments are those of
        the kind (see `docs/kinds.md`); outputs after the first are made of it and go with it.
        """
        make = KINDS[kind].make if kind in KINDS else None
        if make is None:
            raise InputError("no such kind is measured on people", next_step="docs/kinds.md lists those that are.")
        words = ("title", "name", "validated", "formula")
        options = {k: value if k in words else self._core.rows.placed(value) for k, value in options.items()}
        return self._made(make, *columns, where=where, **options)

    @paused()
    @measured
    def release_weights(
        self, model: Any, *, title: str = "Model weights", only: Sequence[str] | None = None
    ) -> list[Entry]:
        """One record for each parameter of a model: coefficients, components, means, N, folded weights.

        `model` is a `PrivateModel`, or a fitted `BrainAgeDelta` (without noise: judged as such). `only` names the
        output types wanted.
        """
        return Entries(self._record(c) for c in weight_candidates(self._core, model, title, only))

    @measured
    def release_moments(self, model: PrivateModel, *, title: str = "Noised moments for pooling") -> Entry:
        """The noised second moments of a private training, for exact pooling over nodes."""
        return self._record(moments_candidate(self._core, model, title))

    @measured
    def release_n(self, *, where: Where = None, title: str | None = None) -> Entry:
        """N of the cohort, or of a part of it."""
        return self._one(whole.n, where=where, title=title)

    @measured
    def release_mean(
        self, values: Any, *, where: Where = None, title: str | None = None, name: str | None = None
    ) -> Entry:
        """Whole-cohort mean of delta in years."""
        return self._one(whole.mean, values, where=where, title=title, name=name)

    @measured
    def release_sd(
        self, values: Any, *, where: Where = None, title: str | None = None, name: str | None = None
    ) -> Entry:
        """Whole-cohort SD of delta in years (n − 1)."""
        return self._one(whole.sd, values, where=where, title=title, name=name)

    @measured
    def release_quantiles(
        self,
        values: Any,
        percents: Sequence[float] = quantiles.CUSTOMARY,
        *,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Quantiles of delta (linear interpolation), in years."""
        return self._one(quantiles.make, values, percents=percents, where=where, title=title, name=name)

    @measured
    def release_group_means(
        self,
        values: Any,
        by: Any | AgeBands,
        *,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
        structural_zeros: Sequence[str] = (),
    ) -> Entry:
        """Mean delta by group, with the people behind each mean.

        `by` is a column of labels of any dtype, `AgeBands`, or a list, mapping or DataFrame of columns to cross. A
        missing label is a group of its own; a category nobody has is a cell with no people unless named in
        `structural_zeros` (empty by definition: a declaration).
        """
        options = {"title": title, "name": name, "structural_zeros": structural_zeros}
        return self._one(group_tables.means, values, by, where=where, **options)

    @measured
    def release_group_sds(
        self,
        values: Any,
        by: Any | AgeBands,
        *,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
        structural_zeros: Sequence[str] = (),
    ) -> Entry:
        """SD of delta by group (n − 1); see `release_group_means`."""
        options = {"title": title, "name": name, "structural_zeros": structural_zeros}
        return self._one(group_tables.sds, values, by, where=where, **options)

    @measured
    def release_counts(
        self,
        by: Any | AgeBands,
        *,
        title: str | None = None,
        name: str | None = None,
        structural_zeros: Sequence[str] = (),
    ) -> Entry:
        """People by group; see `release_group_means`."""
        return self._one(group_tables.counts, by, title=title, name=name, structural_zeros=structural_zeros)

    @measured
    def release_feature_summary(
        self,
        X: Any,
        *,
        feature_names: Sequence[str] | None = None,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Mean and SD of every feature over the cohort."""
        return self._one(features.make, X, feature_names=feature_names, where=where, title=title, name=name)

    @measured
    def release_correlation(
        self,
        values: Any,
        others: Any,
        *,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
        p_values: bool = True,
    ) -> list[Entry]:
        """Pearson correlations of `values` with one column or the columns of a table, and their p-values."""
        return self._made(correlations.make, values, others, where=where, title=title, name=name, p_values=p_values)

    @measured
    def release_correlations(
        self, values: Any, others: Any, *, where: Where = None, title: str | None = None, name: str | None = None
    ) -> Entry:
        """Pearson's r of `values` with every column of a table as one output: n, r, 95 % interval, p, and p adjusted
        for their number (Benjamini-Hochberg)."""
        return self._one(correlations.table, values, others, where=where, title=title, name=name)

    @measured
    def release_regression(
        self,
        values: Any = None,
        predictors: Any = None,
        *,
        formula: str | None = None,
        data: Any = None,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Ordinary least squares: estimate, 95 % interval and p of each term, with N, degrees of freedom and R².

        Parameters
        ----------
        values, predictors
            The outcome and a table of predictors; text, categories and booleans become indicators.
        formula, data
            Or `"delta ~ age + C(sex) + C(site)"` over the columns of a table. Terms that others give are left out,
            and said.
        """
        data = self._core.rows.placed(data) if data is not None or formula is None else self._core.rows.table
        options = {"formula": formula, "data": data, "title": title, "name": name}
        return self._one(regressions.make, values, predictors, where=where, **options)

    @measured
    def release_contrast(
        self,
        values: Any,
        group: Any,
        *,
        covariates: Any = None,
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Each group against the largest one: difference with 95 % interval and p, and Cohen's d, adjusted for the
        columns of `covariates`."""
        return self._one(regressions.contrast, values, group, covariates, where=where, title=title, name=name)

    @measured
    def release_prediction_error(
        self,
        predicted: Any,
        age: Any,
        *,
        validated: str = "in-sample",
        where: Where = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """MAE, RMSE, R², correlation and age slope of predicted ages; `validated` says on whom, for example
        "10-fold cross-validation" or "held-out people" (errors on the training people flatter)."""
        return self._one(
            prediction_error.make, predicted, age, where=where, validated=validated, title=title, name=name
        )

    @measured
    def release_plot(self, of: str | Entry, *, title: str | None = None) -> Entry:
        """A PNG of an output already judged, drawn from the numbers that would leave and with their verdict."""
        entry = self._core.find(of.name if isinstance(of, Entry) else of)
        return self._record(plot_candidate(self._core, entry, title))

    @measured
    def release_private_mean(
        self,
        values: Any,
        *,
        epsilon: float,
        bound_years: float | None = None,
        model: Any | None = None,
        title: str = "Noised mean delta",
        name: str | None = None,
    ) -> Entry:
        """Mean delta with Laplace noise: each person's value clipped to ±`bound_years` (the rule set's by default).

        Deltas count as a formal release's only when `session.deltas` of a formally private model gave exactly these;
        `model` names it (the deltas of another model cannot be passed off as its own).
        """
        return self.release_private(
            "mean", values, epsilon=epsilon, bound_years=bound_years, model=model, title=title, name=name
        )

    @measured
    def release_private(
        self,
        statistic: str,
        values: Any = None,
        *,
        epsilon: float,
        by: Any | AgeBands = None,
        groups: Sequence[str] = (),
        percents: Sequence[float] = quantiles.CUSTOMARY,
        features: Any = None,
        feature_names: Sequence[str] | None = None,
        basis: Basis | None = None,
        bound_years: float | None = None,
        model: Any | None = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """A noised statistic for one ε, committed before the noise is drawn; it can stand in a formal package.

        Parameters
        ----------
        statistic
            `mean`, `sd`, `quantiles`, `group_means`, `counts` or `features` (means and SDs of features).
        values
            Deltas (`session.deltas`), clipped to ±`bound_years`; `counts` and `features` have none.
        by, groups
            A column and the groups of it, named beforehand (which labels people have would tell of them); `AgeBands`
            with a width are those of the rule set's ages. One ε pays for all groups. Their people are noised too, and a
            group whose noised count does not show the minimum is marked.
        features, feature_names, basis
            Columns in the order of a registered basis, whose centre, scale and norms clip them.
        model
            The private model that gave `values`; see `release_private_mean`.
        """
        self._core.require_open()
        placed = self._core.rows.placed
        wanted = Wanted(
            statistic, epsilon, placed(values), placed(by), groups, percents, placed(features), feature_names, basis,
            bound_years, model, title, name,
        )  # fmt: skip
        return self._record(private_candidate(self._core, wanted))

    def _made(self, make: Make, *columns: Any, where: Where = None, **options: Any) -> Entries:
        """Record what a kind measures on some columns; an option that is None has the kind's own default.

        where: the first column counts for that part of the cohort only.
        """
        options = {name: value for name, value in options.items() if value is not None}
        placed = [self._core.rows.placed(column) for column in columns]
        part = None if where is None else part_of(self._core, where)
        if (
            self._core.visits is not None
            and (part is None or not part.visit)
            and make not in (whole.n, group_tables.counts)
        ):
            raise InputError("people have a value at each visit", next_step="Ask for one: where=(visit, 'baseline').")
        made = (
            make(self._core, *placed, **options) if part is None else part.measured(self._core, make, placed, options)
        )
        first, *rest = made
        entry = self._record(candidate_of(self._core, first))
        return Entries([entry, *(self._record(candidate_of(self._core, one, made_of=entry.name)) for one in rest)])

    def _one(self, make: Make, *columns: Any, where: Where = None, **options: Any) -> Entry:
        return self._made(make, *columns, where=where, **options)[0]

    def asking(self, method: object) -> Callable[..., Any] | None:
        """The method `release_METHOD`, or the release of a kind of that name; None for what spends budget."""
        if not isinstance(method, str) or method in ("private", "private_mean"):
            return None
        if method in KINDS and KINDS[method].make is not None:
            return partial(self.release, method)
        return getattr(self, f"release_{method}", None)


class Preview(Releases):
    """Judges and records nothing."""

    def __init__(self, core: SessionCore) -> None:
        self._session = core

    @property
    def _core(self) -> SessionCore:
        return self._session

    def _record(self, candidate: Candidate) -> Entry:
        self._core.require_open()
        candidate, entry = record(self._core, candidate, preview=True)
        if not entry.kept_inside or not (candidate.cells or candidate.moments) or not self._core.state.wanted:
            return entry
        return hypothetical(self._core, candidate, entry)


class Planned(Preview):
    """Records, and leaves it to a later step to settle all outputs together."""

    def _record(self, candidate: Candidate) -> Entry:
        self._core.require_open()
        return record(self._core, candidate)[1]
