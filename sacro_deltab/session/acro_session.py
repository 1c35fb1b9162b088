"""`DeltabSession`: a session around a live `acro.ACRO`, in which every output is judged before it is recorded.

It wraps and never forks ACRO: the researcher's own `acro.crosstab(...)` goes on working beside it, in the same
records, the same folder and the same viewer.
"""

from __future__ import annotations

import contextlib
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.collector import paused
from ..base.errors import InputError, RefusedError, SacroDeltabError
from ..judging.said import Said, read_said
from .entries import Candidate, Entry
from .guard import measured
from .journal import Journal

if TYPE_CHECKING:
    from ..cohort import Cohort
    from ..measure.grouping import AgeBands
    from ..privacy import PublicBounds
    from ..privacy.attack.membership import AttackReport
    from ..privacy.basis import Basis
    from ..privacy.training import PrivateModel
    from ..rules.facts import Fact
    from .training import TrainedHere

_OWN_KEY = "deltab"  # our entry in `acro.config`: the viewer shows it under "ACRO risk profile"


class DeltabSession:
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
        _resumed: Path | None = None,
    ) -> None:
        from ..rules import load_ruleset, load_waivers
        from .budget import Budget
        from .foreign import know_groups
        from .state import State, config_digest

        _refuse_foreign(acro)
        self.acro = acro
        self.ruleset = load_ruleset(rules, profile=profile)
        groups = getattr(cohort, "groups", None)
        if not isinstance(cohort, str):
            if not hasattr(cohort, "person_ids"):
                raise InputError(
                    "cohort= is the TRE's id of these people, or a Cohort", next_step="Give its id as text."
                )
            people = cohort.person_ids if people is None else people
            ages = cohort.age if ages is None else ages
            cohort = cohort_id or "cohort"
        self.cohort = _cohort_name(cohort)
        self.declared: Said = read_said(declare, "researcher", self.ruleset)
        self.attested: Said = _with_profile(read_said(attest, "tre_staff", self.ruleset), self.ruleset)
        self.waivers = () if waivers is None else tuple(load_waivers(waivers))
        self.id = str(uuid.uuid4())
        self.salt = secrets.token_hex(32)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.budget = Budget(
            ledger,
            partition=self.cohort,
            unit="person",
            ruleset=self.ruleset,
            pins=_pins(trust, self.ruleset),
            who=who,
        )
        self.state = State(self.ruleset, people=people, ages=ages)
        self.entries: list[Entry] = []
        self._origins: dict[bytes, str] = {}
        self._own_deltas: set[bytes] = set()
        self.models: dict[int, TrainedHere] = {}
        self.resumed = _resumed is not None
        self.n_least: int | None = None  # of a model under add_remove, trained before the session was taken up again
        self.attack_report: Path | None = None
        self.config_changes: list[str] = []
        self.not_checked: list[str] = []
        self.repairs: list[dict[str, Any]] = []  # of the input, counted: inside only
        self.remembered: set[str] = set()
        self._went_along: set[str] = set()  # outputs that were dropped with what they were made of
        self._config = config_digest(acro.config, _OWN_KEY)
        acro.config[_OWN_KEY] = {
            "rule_set": f"{self.ruleset.id} {self.ruleset.version}",
            "sha256": self.ruleset.sha256,
            "session": self.id,
        }
        self.orphans: list[int] = []
        self._finalised: Path | None = None
        if _resumed is None:
            self.journal = Journal.create(Path(journal) / self.id)
            self.journal.write("start", self._start_json())
        else:
            self.journal = Journal(_resumed)
        self._know_people()
        know_groups(self, groups)

    # -- private training -----------------------------------------------------------------------------------------

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
    ) -> PrivateModel:
        """Train once with formal noise; the spend is committed to the ledger before any noise is drawn.

        See `sacro_deltab.privacy.training.train_private` for the arguments. Bounds default to the rule set's public
        age range and clip, or to the basis's own where a basis is given. Then the weights are attacked with shadow
        models and the report is attached, as `sacro-deltab run` does; `membership_test=False` leaves that to
        `attach_attack_report` (without a report the weights go to a person). `expected_n` (under `add_remove`): the N
        that is expected, from a register or a protocol; a training whose noised N could not show the rule set's minimum
        at that N is refused before anything is spent.

        Raises
        ------
        BudgetError, PrivacyError
            Nothing was spent, or the spend was refused.
        """
        from .attacking import attack_trained
        from .training import train

        self._open()
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
        )
        if membership_test:
            attack_trained(self, model, X, age, confounds, feature_names, basis=basis, bounds=bounds)
        return model

    # -- releases -------------------------------------------------------------------------------------------------

    @paused()
    @measured
    def release_weights(
        self, model: Any, *, title: str = "Model weights", only: Sequence[str] | None = None
    ) -> list[Entry]:
        """One record for each parameter of a model: coefficients, components, means, N, folded weights.

        `model` is a `PrivateModel`, or a fitted `BrainAgeDelta` (without noise: judged as such). `only` names the
        output types wanted.
        """
        from .weights import weight_candidates

        return [self._record(c) for c in weight_candidates(self, model, title, only)]

    @measured
    def release_moments(self, model: PrivateModel, *, title: str = "Noised moments for pooling") -> Entry:
        """The noised second moments of a private training, for exact pooling over nodes."""
        from .weights import moments_candidate

        return self._record(moments_candidate(self, model, title))

    @measured
    def release_n(self, *, title: str = "Number of subjects") -> Entry:
        """N of the cohort."""
        from .statistics import n_candidate

        return self._record(n_candidate(self, title))

    @measured
    def release_mean(self, values: Any, *, title: str = "Mean brain-age delta", name: str | None = None) -> Entry:
        """Whole-cohort mean of delta in years."""
        from .statistics import scalar_candidate

        return self._record(scalar_candidate(self, "delta_mean", values, title, name))

    @measured
    def release_sd(self, values: Any, *, title: str = "SD of brain-age delta", name: str | None = None) -> Entry:
        """Whole-cohort SD of delta in years (n − 1)."""
        from .statistics import scalar_candidate

        return self._record(scalar_candidate(self, "delta_sd", values, title, name))

    @measured
    def release_quantiles(
        self,
        values: Any,
        percents: Sequence[float] = (5, 25, 50, 75, 95),
        *,
        title: str = "Quantiles of delta",
        name: str | None = None,
    ) -> Entry:
        """Quantiles of delta (linear interpolation), in years."""
        from .statistics import quantile_candidate

        return self._record(quantile_candidate(self, values, percents, title, name))

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
        from .tables import table_candidate

        return self._record(table_candidate(self, values, by, "mean", title, name, structural_zeros))

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
        from .tables import table_candidate

        return self._record(table_candidate(self, values, by, "sd", title, name, structural_zeros))

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
        from .tables import table_candidate

        return self._record(table_candidate(self, None, by, "count", title, name, structural_zeros))

    @measured
    def release_feature_summary(
        self,
        X: Any,
        *,
        feature_names: Sequence[str] | None = None,
        title: str = "Mean and SD per IDP",
        name: str | None = None,
    ) -> Entry:
        """Mean and SD of every feature over the cohort."""
        from .statistics import feature_candidate

        return self._record(feature_candidate(self, X, feature_names, title, name))

    @measured
    def release_correlation(
        self,
        values: Any,
        others: Any,
        *,
        title: str = "Correlations with delta",
        name: str | None = None,
        p_values: bool = True,
    ) -> list[Entry]:
        """Pearson correlations of `values` with one column or the columns of a table, and their p-values."""
        from .statistics import correlation_candidates

        first, *rest = correlation_candidates(self, values, others, title, name, p_values)
        entry = self._record(first)
        return [entry, *(self._record(replace(c, made_of=entry.name)) for c in rest)]

    @measured
    def release_regression(
        self, values: Any, predictors: Any, *, title: str = "Regression of delta", name: str | None = None
    ) -> Entry:
        """Ordinary least squares of `values` on numeric predictors: coefficients, standard errors, p-values."""
        from .statistics import regression_candidate

        return self._record(regression_candidate(self, values, predictors, title, name))

    @measured
    def release_plot(self, of: str | Entry, *, title: str | None = None) -> Entry:
        """A PNG of an output already judged, drawn from the numbers that would leave and with their verdict."""
        from .plots import plot_candidate

        entry = of if isinstance(of, Entry) else self._find(of)
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
        from .private_mean import private_mean_candidate

        self._open()
        return self._record(private_mean_candidate(self, values, epsilon, bound_years, model, title, name))

    # -- before and after -----------------------------------------------------------------------------------------

    @measured
    def preview(self, method: str, *args: Any, **kwargs: Any) -> Entry | list[Entry]:
        """Judge an output without recording it: `session.preview("group_means", deltas, by=site)`.

        Nothing that spends budget can be previewed.
        """
        release = getattr(self, f"release_{method}", None) if isinstance(method, str) else None
        if release is None or method == "private_mean":
            raise InputError("no such output can be previewed", next_step="For example preview('group_means', …).")
        self._previewing = True
        try:
            result: Entry | list[Entry] = release(*args, **kwargs)
            return result
        finally:
            self._previewing = False

    _previewing = False

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
        from .attacking import attach

        self._open()
        attach(self, report)

    @measured
    def drop(self, name: str) -> None:
        """Take an output back before `finalise`: its record goes, and later tables no longer count it as published.

        What was made of it goes with it: its plots, and the p-values of its correlations; naming these as well is no
        fault.
        """
        if name in self._went_along:
            return
        entry = self._find(name)
        self._open()
        for made in [other.name for other in self.entries if other.made_of == name]:
            self.drop(made)
            self._went_along.add(made)
        self.acro.results.results.pop(entry.uid, None)
        self.entries.remove(entry)
        self.state.linked.retract(name)
        self.state.traces = [trace for trace in self.state.traces if trace.output != name]
        self.journal.write("drop", {"name": name})

    def report(self) -> str:
        """What would pass, what would not, and what to change, in words for the researcher."""
        from .report import session_text

        return session_text(self)

    def __repr__(self) -> str:
        counts = {s: sum(e.status == s for e in self.entries) for s in ("pass", "review", "fail")}
        return (
            f"DeltabSession({self.cohort!r}: {counts['pass']} pass, {counts['review']} review, {counts['fail']} fail)"
        )

    def _repr_html_(self) -> str:
        from .report import session_html

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
        from .folder import write_folder

        if ext != "json":
            raise InputError(
                "the viewer cannot open an xlsx session, and ACRO leaves its text outputs out of it",
                next_step="Finalise as json; every table is also a CSV file that a spreadsheet opens.",
            )
        if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
            raise InputError("the output folder needs a name", next_step="For example finalise('outputs').")
        folder = write_folder(self, Path(path))
        self._finalised = folder
        self.journal.write("finalised", {"folder": folder.name})
        return folder

    def close(self) -> None:
        """Delete the working folder of a finalised session."""
        if self._finalised is None:
            raise InputError("the session is not finalised", next_step="Call finalise first; its journal is kept.")
        self.journal.remove()

    @classmethod
    def resume(cls, acro: Any, journal: str | Path, **kwargs: Any) -> DeltabSession:
        """Take a killed session up again from its working folder, with the same arguments as before.

        Recorded outputs come back as they were; the rule set must have the digest it had.
        """
        from .resume import resume

        return resume(cls, acro, Path(journal), kwargs)

    # -- inner ----------------------------------------------------------------------------------------------------

    def _know_people(self) -> None:
        """Compare the people with earlier cohorts and take up what was released of them before."""
        from .history import load_earlier

        ids = self.state.ids
        self.budget.register(ids)
        if ids is None:
            self.not_checked.append("whether these people are in another cohort: there are no person ids")
            self.not_checked.append("whether a person has several rows: rows were taken as people")
        load_earlier(self)

    def _record(self, candidate: Candidate) -> Entry:
        from .recording import record

        self._open()
        return record(self, candidate, preview=self._previewing)

    def model_origin(self, values: Any) -> dict[str, Fact]:
        """Where the model that gave these deltas comes from, as far as the session knows."""
        from ..measure.measure import computed

        return computed(model__origin=self._origins.get(_content_digest(values), "unprotected"))

    def refuse_other_than_deltas(self, values: Any, people: Any) -> None:
        """Refuse values that cannot be deltas in years; those that a model trained here gave its own people may be
        large."""
        from .plausible import refuse_other_than_deltas

        own = _content_digest(values) in self._own_deltas
        refuse_other_than_deltas(people, self.ruleset.parameters, self.state.ages(), own=own)

    @measured
    def deltas(
        self, model: Any, X: Any, age: Any, confounds: Any | None = None, *, kind: str = "unbiased_quadratic"
    ) -> Any:
        """Per-person deltas of a model (they stay inside), remembered as that model's."""
        from .training import deltas

        return deltas(self, model, X, age, confounds, kind)

    def remember_origin(self, values: Any, origin: str, *, own: bool = False) -> None:
        """Note where an array of deltas comes from, by its content: an array changed afterwards is another one."""
        self._origins[_content_digest(values)] = origin
        roster = self.state.people
        if roster is not None and roster.codes.size == len(values):
            self.state.known.append(roster.mean_by_person(values))
        if own:
            self._own_deltas.add(_content_digest(values))

    def _open(self) -> None:
        if self._finalised is not None:
            raise RefusedError("the session is finalised", next_step="Start a new session for more outputs.")

    def _find(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        called = f" called {name!r}" if isinstance(name, str) else ""
        raise InputError(f"the session has no such output{called}", next_step="See session.entries for their names.")

    def _start_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "cohort": self.cohort,
            "rule_set": {"id": self.ruleset.id, "version": self.ruleset.version, "sha256": self.ruleset.sha256},
            "started": self.started,
            "salt": self.salt,
        }


def _content_digest(values: Any) -> bytes:
    """SHA-256 of a column of numbers; stays in memory."""
    from hashlib import sha256

    from ..measure.people import numbers

    return sha256(numbers(values).tobytes()).digest()


def _refuse_foreign(acro: Any) -> None:
    if not hasattr(getattr(acro, "results", None), "add"):
        raise InputError(
            "the first argument must be a live acro.ACRO", next_step="DeltabSession(acro.ACRO(), cohort=…)"
        )
    if getattr(acro, "federated", False):
        raise RefusedError(
            "ACRO's federated mode drops every record but its own tables, and writes small cells unsuppressed",
            next_step="Use acro.ACRO() here and pool the certified files with `sacro-deltab aggregate`.",
        )


def _cohort_name(cohort: str) -> str:
    from ..ledger import partition_key

    with contextlib.suppress(SacroDeltabError):
        partition_key(cohort)
        return cohort
    raise InputError(
        f"{cohort!r} cannot name a cohort", next_step="Use the TRE's id for these people: letters, digits, - and _."
    )


def _pins(trust: str | Path | None, ruleset: Any) -> list[Mapping[str, Any]]:
    pins: list[Mapping[str, Any]] = []
    if ruleset.profile is not None:
        pins += [dict(pin) for pin in ruleset.profile.ledgers]
    if trust is not None:
        from ..ledger.trust import load_trust

        pins += [{"id": ledger.id, "head_key": ledger.head_key} for ledger in load_trust(trust).ledgers]
    return pins


def _with_profile(said: Said, ruleset: Any) -> Said:
    """A site profile may pin attested values; a file cannot overrule them."""
    if ruleset.profile is None or not ruleset.profile.attest:
        return said
    by = said.by or f"site profile {ruleset.profile.id}"
    return replace(said, by=by, facts={**said.facts, **ruleset.profile.attest})
