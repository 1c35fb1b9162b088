"""`DeltabSession`: a session around a live `acro.ACRO`, in which every output is judged before it is recorded.

It wraps and never forks ACRO: the researcher's own `acro.crosstab(...)` goes on working beside it, in the same
records, the same folder and the same viewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..base.collector import paused
from ..base.errors import InputError, RefusedError
from ..base.verdicts import VERDICTS
from ..cohort import Cohort
from ..kinds.plots import PLOT
from ..measure.people import numbers
from ..privacy import PublicBounds
from ..privacy.attack.membership import AttackReport
from ..privacy.basis import Basis
from ..privacy.training import PrivateModel
from .attacking import attach, attack_trained
from .core import LiveRecords, SessionCore
from .entries import Candidate, Entry
from .folder import write_folder
from .foreign import know_groups
from .guard import measured
from .history import load_earlier
from .part import Where, part_of
from .ready import ready
from .recording import record
from .rejudging import rejudge
from .releases import Planned, Preview, Releases
from .report import session_html, session_text
from .resume import resume
from .settling import needs_plan, settle
from .training import matrix_of, names_of, one_row_each, train, train_documents
from .values import Values


class DeltabSession(Values, Releases):
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
        The top layer on the rules.
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
    visit
        The visit of each row, where people have several. Every statistic is then one of people at one visit,
        `where=(visit, 'baseline')`; a private training averages a person's rows.
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

    def _accepted(self, live: Any) -> LiveRecords:
        return _live(live)

    def _begun(self, cohort: str | Cohort) -> None:
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
        where: Where = None,
    ) -> PrivateModel:
        """Train once with formal noise; the spend is committed to the ledger before any noise is drawn.

        See `sacro_deltab.privacy.training.train_private` for the arguments. Bounds default to the rule set's public
        age range and clip, or to the basis's own where a basis is given. Then the weights are attacked with shadow
        models and the report is attached, as `sacro-deltab run` does; `membership_test=False` leaves that to
        `attach_attack_report` (without a report the weights go to a person). `expected_n` (under `add_remove`): the N
        that is expected, from a register or a protocol; a training whose noised N could not show the rule set's minimum
        at that N is refused before anything is spent. So is a training of which nothing could leave, because every
        weight waits for a statement (see `ready`); `spend_anyway=True` trains all the same.

        `where=(column, label)`, or several labels, trains on that part of the cohort: X and age have a row for
        everybody, N is that of the part, and the cohort's budget pays. The part must be one of a registered column for
        the label to be `formal`. `session.deltas(model, X, age)` then gives everybody's deltas.

        Raises
        ------
        BudgetError, PrivacyError
            Nothing was spent, or the spend was refused.
        """
        self.require_open()
        X, age, confounds = self.rows.placed(X), self.rows.placed(age), self.rows.placed(confounds)
        part = None if where is None else part_of(self, where)
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
            part=part,
        )
        if membership_test:
            if part is not None or self.visits is not None:
                feature_names = names_of(X, feature_names)
                X, age, confounds = one_row_each(self, part, matrix_of(X), numbers(age), confounds)
            attack_trained(self, model, X, age, confounds, feature_names, basis=basis, bounds=bounds)
        return model

    @measured
    def rejudge(self) -> list[Entry]:
        """Judge every output again with what is declared and attested now; nothing is measured, drawn or spent.

        After `resume(…, declare=…, attest=…)`: facts given later count, and a paid result is not asked for twice.
        """
        self.require_open()
        return rejudge(self)

    @property
    def private_models(self) -> list[PrivateModel]:
        """Private models of this session, those of before it was taken up again included."""
        return [trained.model for trained in self.models.values()]

    @measured
    def ready(self) -> list[str]:
        """What the outputs of a private training wait for, one line a reason; nothing is spent or recorded."""
        return ready(self)

    # -- before and after -----------------------------------------------------------------------------------------

    @measured
    def preview(self, method: str, *args: Any, **kwargs: Any) -> Entry | list[Entry]:
        """Judge an output without recording it: `session.preview("group_means", deltas, by=site)`.

        Nothing that spends budget can be previewed.
        """
        release = Preview(self).asking(method)
        if release is None:
            raise InputError("no such output can be previewed", next_step="For example preview('group_means', …).")
        result: Entry | list[Entry] = release(*args, **kwargs)
        return result

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
        planned = Planned(self)
        for method, _ in wanted:
            if planned.asking(method) is None or method in ("weights", "moments"):
                raise InputError(f"no such output can be planned: {method!r}", next_step="For example ('mean', {…}).")
        made: dict[int, list[str]] = {}
        plots = [i for i, (method, _) in enumerate(wanted) if method == PLOT]  # drawn from what leaves
        for places in ([i for i in range(len(wanted)) if i not in plots], plots):
            for place in places:
                method, arguments = wanted[place]
                found = cast("Callable[..., Any]", planned.asking(method))(**arguments)
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
    def attack_package(self, *, seed: int = 0) -> dict[str, Any]:
        """Membership test of everything that leaves so far, earlier releases included; it goes to `inside/`.

        What every printed number, rounded as it is, and all noised releases at the most that their μ allows tell an
        attacker together; each output alone; the most exposed person; values guessed. No verdict depends on it.
        """
        self.require_open()
        from .package_attack import attack_package  # late: brings scipy

        return attack_package(self, seed)

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
    def resume(cls, acro: Any, journal: str | Path, *, outputs: bool = True, **kwargs: Any) -> DeltabSession:
        """Take a killed session up again from its working folder, with the same arguments as before.

        Recorded outputs come back as they were, and what was paid for comes back too: models in `private_models`,
        anything else when it is asked for again as before. Nothing is spent or drawn a second time once it was seen.
        The rule set must have the digest it had. With `outputs=False` all outputs are to be asked for again.
        """
        return resume(cls, acro, Path(journal), kwargs, outputs=outputs)

    @property
    def _core(self) -> SessionCore:
        return self

    def _record(self, candidate: Candidate) -> Entry:
        self.require_open()
        candidate, entry = record(self, candidate)
        for spend in entry.spends:
            self.orders.answered(spend)
        if not entry.kept_inside or not (candidate.cells or candidate.moments):
            return entry
        if needs_plan(self):
            settle(self)
        return self.find(entry.name)


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
