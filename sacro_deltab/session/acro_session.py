"""`DeltabSession`: a session around a live `acro.ACRO`, in which every output is judged before it is recorded.

It wraps and never forks ACRO: the researcher's own `acro.crosstab(...)` goes on working beside it, in the same
records, the same folder and the same viewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..base.collector import paused
from ..base.errors import InputError, RefusedError
from ..base.verdicts import VERDICTS
from ..cohort import Cohort
from ..kinds import KINDS, correlations, features, group_tables, prediction_error, quantiles, regressions, whole
from ..kinds.kind import Make
from ..kinds.plots import PLOT
from ..measure.grouping import AgeBands
from ..privacy import PublicBounds
from ..privacy.basis import Basis
from .attacking import attach, attack_trained
from .common import candidate_of
from .core import LiveRecords, SessionCore
from .entries import Candidate, Entries, Entry
from .folder import write_folder
from .foreign import know_groups
from .guard import measured
from .history import load_earlier
from .plots import plot_candidate
from .private_mean import private_mean_candidate
from .ready import ready
from .recording import record
from .report import session_html, session_text
from .resume import resume
from .settling import hypothetical, needs_plan, settle
from .training import deltas, train, train_documents
from .weights import moments_candidate, weight_candidates

if TYPE_CHECKING:
    from ..privacy.attack.membership import AttackReport
    from ..privacy.training import PrivateModel


class DeltabSession(SessionCore):
    """A session whose outputs are judged by a rule set and recorded in ACRO.

    Parameters
    ----------
    acro
        A live `acro.ACRO`. Federated sessions are refused.
    cohort
        The TRE's id of these people: the partition of the privacy budget.
    rules
        Rule set: a name, a folder, or None for `deltab-disclosure`. Loaded, frozen and hashed now.
    profile
        A site profile, which may only tighten.
    ledger
        Path or URL of the privacy budget (default `./budget.db`).
    trust
        The TRE's trust file; a ledger that neither it nor the profile names counts as declared only.
    declare, attest
        Files (or their content) of what the researcher declares and TRE staff attest.
    people
        Ids of the people, one a row, in the order of every array given later. Without ids rows are taken as
        people, and that rests on a declaration. A `Cohort` brings its own.
    ages
        Ages of the rows in years, so that groups which are age bands under another name are recognised.
    who
        Name for the ledger; default: the account.
    journal
        Where the working folder is made (default `./.sacro_deltab`). It stays inside the TRE.
    waivers
        Folder or file of waivers.
    draft
        Judge by a rule set that fails its own tests all the same; every record then says DRAFT.

    Raises
    ------
    InputError, RuleSetError, LedgerError
        Nothing has been recorded then.
    RefusedError
        For a federated ACRO session, with the alternative.
    """

    @paused()
    @measured
    def __init__(
        self,
        acro: Any,
        *,
        cohort: str | Cohort,
        rules: str | Path | None = None,
        profile: str | Path | None = None,
        ledger: str | Path = "budget.db",
        trust: str | Path | None = None,
        declare: str | Path | Mapping[str, Any] | None = None,
        attest: str | Path | Mapping[str, Any] | None = None,
        people: Any | None = None,
        ages: Any | None = None,
        cohort_id: str | None = None,
        who: str | None = None,
        journal: str | Path = ".sacro_deltab",
        waivers: str | Path | None = None,
        draft: bool = False,
        _resumed: Path | None = None,
    ) -> None:
        super().__init__(
            _live(acro),
            cohort=cohort,
            rules=rules,
            profile=profile,
            ledger=ledger,
            trust=trust,
            declare=declare,
            attest=attest,
            people=people,
            ages=ages,
            cohort_id=cohort_id,
            who=who,
            journal=journal,
            waivers=waivers,
            draft=draft,
            resumed=_resumed,
        )
        load_earlier(self)
        know_groups(self, getattr(cohort, "groups", None))

    @property
    def acro(self) -> Any:
        """The live ACRO session; the researcher's own calls go on working on it."""
        return self.live

    # -- private training -----------------------------------------------------------------------------------------

    @paused()
    @measured
    def train_documents(
        self,
        X: Any,
        age: Any,
        *,
        feature_names: Sequence[str] | None = None,
        epsilon: float,
        delta_dp: float | None = None,
        n_components: int,
        pca: str = "exact",
    ) -> PrivateModel:
        """The governing documents' own recipe: noise on each fitted parameter, one ε and one spend for all of them.

        Never a guarantee: nothing in the fit bounds what one person can change. The label is `heuristic`, and the
        noised parameters go to a person; what the recipe leaves exact is judged as exact. See
        `privacy.heuristic.documents_recipe`; standardised features are clipped to ±1, as the documents say.
        """
        self.require_open()
        model: PrivateModel = train_documents(
            self, X, age, feature_names=feature_names, n_components=n_components, epsilon=epsilon, delta_dp=delta_dp,
            pca=pca,
        )  # fmt: skip
        return model

    @paused()
    @measured
    def train_private(
        self,
        X: Any,
        age: Any,
        *,
        confounds: Any | None = None,
        feature_names: Sequence[str] | None = None,
        bounds: PublicBounds | None = None,
        basis: Basis | None = None,
        epsilon: float,
        delta_dp: float | None = None,
        adjacency: str = "zero_out_N_public",
        n_components: int | None = None,
        method: str = "auto",
        membership_test: bool = True,
        expected_n: int | None = None,
        spend_anyway: bool = False,
    ) -> PrivateModel:
        """Train once with formal noise; the spend is committed to the ledger before any noise is drawn.

        See `sacro_deltab.privacy.training.train_private` for the arguments. Bounds default to the rule set's public
        age range and clip, or to the basis's own where a basis is given. Then the weights are attacked with shadow
        models and the report is attached, as `sacro-deltab run` does; `membership_test=False` leaves that to
        `attach_attack_report` (without a report the weights go to a person). `expected_n` (under `add_remove`): the N
        that is expected, from a register or a protocol; a training whose noised N could not show the rule set's minimum
        at that N is refused before anything is spent. So is a training of which nothing could leave, because every
        weight waits for a statement (see `ready`); `spend_anyway=True` trains all the same.

        Raises
        ------
        BudgetError, PrivacyError
            Nothing was spent, or the spend was refused.
        """

        self.require_open()
        X, age, confounds = self.rows.placed(X), self.rows.placed(age), self.rows.placed(confounds)
        model: PrivateModel = train(
            self,
            X,
            age,
            confounds=confounds,
            feature_names=feature_names,
            bounds=bounds,
            basis=basis,
            epsilon=epsilon,
            delta_dp=delta_dp,
            adjacency=adjacency,
            n_components=n_components,
            method=method,
            expected_n=expected_n,
            spend_anyway=spend_anyway,
        )
        if membership_test:
            attack_trained(self, model, X, age, confounds, feature_names, basis=basis, bounds=bounds)
        return model

    @measured
    def ready(self) -> list[str]:
        """What the outputs of a private training wait for, one line a reason; nothing is spent or recorded."""

        return ready(self)

    # -- releases -------------------------------------------------------------------------------------------------

    @measured
    def release(self, kind: str, *columns: Any, **options: Any) -> list[Entry]:
        """Any kind of output that is measured on people, by its key in the rule set's vocabulary.

        `session.release("prediction_error", predicted, age, validated="held-out people")`. The arguments are those of
        the kind (see `docs/kinds.md`); outputs after the first are made of it and go with it.
        """
        make = KINDS[kind].make if kind in KINDS else None
        if make is None:
            raise InputError("no such kind is measured on people", next_step="docs/kinds.md lists those that are.")
        options = {name: self.rows.placed(value) for name, value in options.items()}
        return self._made(make, *columns, **options)

    @paused()
    @measured
    def release_weights(
        self, model: Any, *, title: str = "Model weights", only: Sequence[str] | None = None
    ) -> list[Entry]:
        """One record for each parameter of a model: coefficients, components, means, N, folded weights.

        `model` is a `PrivateModel`, or a fitted `BrainAgeDelta` (without noise: judged as such). `only` names the
        output types wanted.
        """

        return Entries(self._record(c) for c in weight_candidates(self, model, title, only))

    @measured
    def release_moments(self, model: PrivateModel, *, title: str = "Noised moments for pooling") -> Entry:
        """The noised second moments of a private training, for exact pooling over nodes."""

        return self._record(moments_candidate(self, model, title))

    @measured
    def release_n(self, *, title: str | None = None) -> Entry:
        """N of the cohort."""
        return self._one(whole.n, title=title)

    @measured
    def release_mean(self, values: Any, *, title: str | None = None, name: str | None = None) -> Entry:
        """Whole-cohort mean of delta in years."""
        return self._one(whole.mean, values, title=title, name=name)

    @measured
    def release_sd(self, values: Any, *, title: str | None = None, name: str | None = None) -> Entry:
        """Whole-cohort SD of delta in years (n − 1)."""
        return self._one(whole.sd, values, title=title, name=name)

    @measured
    def release_quantiles(
        self,
        values: Any,
        percents: Sequence[float] = quantiles.CUSTOMARY,
        *,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Quantiles of delta (linear interpolation), in years."""
        return self._one(quantiles.make, values, percents=percents, title=title, name=name)

    @measured
    def release_group_means(
        self,
        values: Any,
        by: Any | AgeBands,
        *,
        title: str | None = None,
        name: str | None = None,
        structural_zeros: Sequence[str] = (),
    ) -> Entry:
        """Mean delta by group, with the people behind each mean.

        `by` is a column of labels of any dtype, `AgeBands`, or a list, mapping or DataFrame of columns to cross. A
        missing label is a group of its own; a category nobody has is a cell with no people unless named in
        `structural_zeros` (empty by definition: a declaration).
        """
        return self._one(group_tables.means, values, by, title=title, name=name, structural_zeros=structural_zeros)

    @measured
    def release_group_sds(
        self,
        values: Any,
        by: Any | AgeBands,
        *,
        title: str | None = None,
        name: str | None = None,
        structural_zeros: Sequence[str] = (),
    ) -> Entry:
        """SD of delta by group (n − 1); see `release_group_means`."""
        return self._one(group_tables.sds, values, by, title=title, name=name, structural_zeros=structural_zeros)

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
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Mean and SD of every feature over the cohort."""
        return self._one(features.make, X, feature_names=feature_names, title=title, name=name)

    @measured
    def release_correlation(
        self,
        values: Any,
        others: Any,
        *,
        title: str | None = None,
        name: str | None = None,
        p_values: bool = True,
    ) -> list[Entry]:
        """Pearson correlations of `values` with one column or the columns of a table, and their p-values."""
        return self._made(correlations.make, values, others, title=title, name=name, p_values=p_values)

    @measured
    def release_correlations(
        self, values: Any, others: Any, *, title: str | None = None, name: str | None = None
    ) -> Entry:
        """Pearson's r of `values` with every column of a table as one output: n, r, 95 % interval, p, and p adjusted
        for their number (Benjamini-Hochberg)."""
        return self._one(correlations.table, values, others, title=title, name=name)

    @measured
    def release_regression(
        self,
        values: Any = None,
        predictors: Any = None,
        *,
        formula: str | None = None,
        data: Any = None,
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
        data = self.rows.placed(data)
        return self._one(regressions.make, values, predictors, formula=formula, data=data, title=title, name=name)

    @measured
    def release_contrast(
        self,
        values: Any,
        group: Any,
        *,
        covariates: Any = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """Each group against the largest one: difference with 95 % interval and p, and Cohen's d, adjusted for the
        columns of `covariates`."""
        return self._one(regressions.contrast, values, group, covariates, title=title, name=name)

    @measured
    def release_prediction_error(
        self,
        predicted: Any,
        age: Any,
        *,
        validated: str = "in-sample",
        title: str | None = None,
        name: str | None = None,
    ) -> Entry:
        """MAE, RMSE, R², correlation and age slope of predicted ages; `validated` says on whom, for example
        "10-fold cross-validation" or "held-out people" (errors on the training people flatter)."""
        return self._one(prediction_error.make, predicted, age, validated=validated, title=title, name=name)

    @measured
    def release_plot(self, of: str | Entry, *, title: str | None = None) -> Entry:
        """A PNG of an output already judged, drawn from the numbers that would leave and with their verdict."""

        entry = self.find(of.name if isinstance(of, Entry) else of)
        return self._record(plot_candidate(self, entry, title))

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

        self.require_open()
        return self._record(
            private_mean_candidate(self, self.rows.placed(values), epsilon, bound_years, model, title, name)
        )

    # -- before and after -----------------------------------------------------------------------------------------

    @measured
    def preview(self, method: str, *args: Any, **kwargs: Any) -> Entry | list[Entry]:
        """Judge an output without recording it: `session.preview("group_means", deltas, by=site)`.

        Nothing that spends budget can be previewed.
        """
        release = self._asking(method)
        if release is None:
            raise InputError("no such output can be previewed", next_step="For example preview('group_means', …).")
        self._previewing = True
        try:
            result: Entry | list[Entry] = release(*args, **kwargs)
            return result
        finally:
            self._previewing = False

    _previewing = False
    _planning = False

    @measured
    def plan_outputs(self, wanted: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Entry]:
        """Ask for everything at once: `session.plan_outputs([("group_means", {"values": d, "by": site}), ("n", {})])`.

        Which cells are marked, and where not all can leave which outputs do, is found for all together, so the order
        of the list means nothing. Outputs asked for before and not yet finalised take part.

        Parameters
        ----------
        wanted
            The part of a method's name after `release_`, and its arguments by name. Nothing that spends budget.

        Returns
        -------
        The outputs, in the order of the list.

        Raises
        ------
        InputError
            For a name that is no such method. What came before it in the list is recorded.
        """
        for method, _ in wanted:
            if self._asking(method) is None or method in ("weights", "moments"):
                raise InputError(f"no such output can be planned: {method!r}", next_step="For example ('mean', {…}).")
        made: dict[int, list[str]] = {}
        plots = [i for i, (method, _) in enumerate(wanted) if method == PLOT]  # drawn from what leaves
        for places in ([i for i in range(len(wanted)) if i not in plots], plots):
            for place in places:
                method, arguments = wanted[place]
                self._planning = True
                try:
                    found = cast("Callable[..., Any]", self._asking(method))(**arguments)
                finally:
                    self._planning = False
                made[place] = [entry.name for entry in (found if isinstance(found, list) else [found])]
            if needs_plan(self):
                settle(self)
        return [self.find(name) for place in range(len(wanted)) for name in made[place]]

    @measured
    def attach_attack_report(self, report: AttackReport | str | Path) -> None:
        """Attach a membership-inference report on this session's weights: it goes to `inside/` and never leaves.

        Attach it before the weights are released: the rules ask whether there is one about them. `report` is an
        `AttackReport`, the file of one, or a SACRO-ML report.

        Raises
        ------
        InputError
            When it is no such report.
        """

        self.require_open()
        attach(self, report)

    @measured
    def drop(self, name: str) -> None:
        """Take an output back before `finalise`: its record goes, and later tables no longer count it as published.

        What was made of it goes with it: its plots, and the p-values of its correlations; naming these as well is no
        fault.
        """
        if name in self.went_along:
            return
        entry = self.find(name)
        self.require_open()
        for made in [other.name for other in self.entries if other.made_of == name]:
            self.drop(made)
            self.went_along.add(made)
        self.live.results.results.pop(entry.name, None)
        self.entries.remove(entry)
        self.state.linked.retract(name)
        self.state.traces = [trace for trace in self.state.traces if trace.output != name]
        self.state.wanted.pop(name, None)
        self.journal.write("drop", {"name": name})

    def report(self) -> str:
        """What would pass, what would not, and what to change, in words for the researcher."""

        return session_text(self)

    def __repr__(self) -> str:
        counts = {s: sum(e.status == s for e in self.entries) for s in VERDICTS}
        return (
            f"DeltabSession({self.cohort!r}: {counts['pass']} pass, {counts['review']} review, {counts['fail']} fail)"
        )

    def _repr_html_(self) -> str:

        return session_html(self)

    @paused()
    @measured
    def finalise(self, path: str | Path = "outputs", ext: str = "json") -> Path:
        """Write the folder the checker opens: into a temporary folder first, then renamed.

        A failed `finalise` leaves nothing behind and can be repeated.

        Returns
        -------
        Path of the folder.

        Raises
        ------
        InputError
            The folder exists, the disk is full, a record of the session would break the viewer.
        """

        if ext != "json":
            raise InputError(
                "the viewer cannot open an xlsx session, and ACRO leaves its text outputs out of it",
                next_step="Finalise as json; every table is also a CSV file that a spreadsheet opens.",
            )
        if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
            raise InputError("the output folder needs a name", next_step="For example finalise('outputs').")
        self.require_open()
        load_earlier(self)
        if needs_plan(self):
            settle(self)
        folder = write_folder(self, Path(path))
        self.finalised = folder
        self.journal.write("finalised", {"folder": folder.name})
        return folder

    def close(self) -> None:
        """Delete the working folder of a finalised session."""
        if self.finalised is None:
            raise InputError("the session is not finalised", next_step="Call finalise first; its journal is kept.")
        self.journal.remove()

    @classmethod
    def resume(cls, acro: Any, journal: str | Path, **kwargs: Any) -> DeltabSession:
        """Take a killed session up again from its working folder, with the same arguments as before.

        Recorded outputs come back as they were; the rule set must have the digest it had.
        """

        return resume(cls, acro, Path(journal), kwargs)

    # -- inner ----------------------------------------------------------------------------------------------------

    def _made(self, make: Make, *columns: Any, **options: Any) -> Entries:
        """Record what a kind measures on some columns; an option that is None has the kind's own default."""
        options = {name: value for name, value in options.items() if value is not None}
        first, *rest = make(self, *map(self.rows.placed, columns), **options)
        entry = self._record(candidate_of(self, first))
        return Entries([entry, *(self._record(candidate_of(self, one, made_of=entry.name)) for one in rest)])

    def _one(self, make: Make, *columns: Any, **options: Any) -> Entry:
        return self._made(make, *columns, **options)[0]

    def _asking(self, method: object) -> Callable[..., Any] | None:
        """The method `release_METHOD`, or the release of a kind of that name; None for what spends budget."""
        if not isinstance(method, str) or method == "private_mean":
            return None
        if method in KINDS and KINDS[method].make is not None:
            return partial(self.release, method)
        return getattr(self, f"release_{method}", None)

    def _record(self, candidate: Candidate) -> Entry:

        self.require_open()
        candidate, entry = record(self, candidate, preview=self._previewing)
        if not entry.kept_inside or self._planning or not (candidate.cells or candidate.moments):
            return entry
        if self._previewing:
            return hypothetical(self, candidate, entry) if self.state.wanted else entry
        if needs_plan(self):
            settle(self)
        return self.find(entry.name)

    @measured
    def deltas(
        self, model: Any, X: Any, age: Any, confounds: Any | None = None, *, kind: str = "unbiased_quadratic"
    ) -> Any:
        """Per-person deltas of a model (they stay inside), remembered as that model's."""

        rows = self.rows.of(age)
        return deltas(self, model, rows.placed(X), rows.placed(age), rows.placed(confounds), kind)


def _live(acro: Any) -> LiveRecords:
    """The researcher's own ACRO session; federated ones are refused."""
    if not hasattr(getattr(acro, "results", None), "add"):
        raise InputError(
            "the first argument must be a live acro.ACRO", next_step="DeltabSession(acro.ACRO(), cohort=…)"
        )
    if getattr(acro, "federated", False):
        raise RefusedError(
            "ACRO's federated mode drops every record but its own tables, and writes small cells unsuppressed",
            next_step="Use acro.ACRO() here and pool the certified files with `sacro-deltab aggregate`.",
        )
    return cast(LiveRecords, acro)
