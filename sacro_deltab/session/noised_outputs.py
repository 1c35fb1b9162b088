"""Statistics with noise: clipped to public bounds, integers, exact sampler, spend committed first.

Under `zero_out_N_public` a mean is over the roster, and its N is public. Every other count of people is noised, and
what the rules see of it is a lower confidence limit. Beside a model trained under `add_remove`, here or in an earlier
session, the same relation holds and no exact N is used at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..kinds import documents
from ..kinds.features import FEATURES
from ..kinds.group_tables import COUNT_TABLE, site_facts, table_type
from ..kinds.quantiles import CUSTOMARY, QUANTILES
from ..kinds.whole import DELTA_MEAN, DELTA_SD
from ..measure.grouping import fixed_grouping
from ..measure.measure import cell_parts, computed, feature_facts, summary_facts, table_facts
from ..measure.people import Floats, Grouping, rows_of
from ..outputs.document import OutputDocument
from ..privacy import Basis, laplace_scale
from ..privacy.intervals import noised_error
from ..privacy.noised import noised_features, noised_quantiles, noised_sd, noised_table
from ..privacy.noisy_count import attempt_error, laplace_allowance, least
from ..privacy.spend import Receipt
from ..privacy.statistics import COUNT_SHARE, ModelSource, NoisyStatistic, Terms, release_mean
from ..privacy.stored import statistic_json, statistic_of
from ..rules.facts import Fact, FactValue, Part
from .common import ROWS_ARE_PEOPLE, build_facts, noised
from .entries import Candidate
from .paid_models import trained_here
from .recording import free_name
from .training import matrix_of, names_of

if TYPE_CHECKING:
    from .core import SessionCore

_SOURCES: dict[str, ModelSource] = {
    "formal_release": "formally_released",
    "fixed_beforehand": "fixed_beforehand",
    "unprotected": "other",
}
_TITLES = {
    "mean": "Noised mean delta", "sd": "Noised SD of delta", "quantiles": "Noised quantiles of delta",
    "group_means": "Noised mean delta", "counts": "People, noised", "features": "Noised mean and SD per IDP",
}  # fmt: skip
STATISTICS = tuple(_TITLES)


@dataclass(frozen=True)
class Wanted:
    """A noised statistic as it is asked for; see `Releases.release_private`."""

    statistic: str
    epsilon: float
    values: Any = None
    by: Any = None
    groups: Sequence[str] = ()
    percents: Sequence[float] = CUSTOMARY
    features: Any = None
    feature_names: Sequence[str] | None = None
    basis: Basis | None = None
    bound_years: float | None = None
    model: Any = None
    title: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class _Asked:
    """The same with what the session knows: public numbers, and the terms on which it is paid."""

    session: SessionCore
    wanted: Wanted
    people: Floats | None  # (people,) values
    bound: float
    origin: str
    least_n: int | None  # lower limit of N beside a release that protects it
    terms: Terms
    receipts: list[Receipt]

    @property
    def title(self) -> str:
        return self.wanted.title or _TITLES[self.wanted.statistic]

    @property
    def name(self) -> str:
        return self.terms.outputs[0]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.session.ruleset.parameters

    def least(self, noisy: float, sd: float, cells: int = 1) -> int:
        """Lower limit of a noised count, at a level that holds over all attempts and all cells."""
        attempt = self.receipts[-1].after.releases
        error = attempt_error(float(self.parameters["noisy_n_error"]), attempt) / cells
        return least(noisy, laplace_allowance(sd / math.sqrt(2), error))

    def n(self, found: NoisyStatistic) -> int:
        """N for the rules: public, or a lower limit."""
        own = None if found.counts is None else self.least(float(found.counts.sum()), found.count_sd)
        return next(int(n) for n in (self.terms.n_public, self.least_n, own) if n is not None)

    def about(self, found: NoisyStatistic, unit: str = "years", **more: Any) -> dict[str, Any]:
        said = {"privacy": found.statement.label, "mechanism": _mechanism(found), **more}
        if self.session.state.ids is None:
            said["unit"] = ROWS_ARE_PEOPLE
        return self.session.about(noised_error=noised_error(float(found.noise_sd.max()), unit), **said)


def private_candidate(session: SessionCore, wanted: Wanted) -> Candidate:
    """The noised statistic, with the facts that the rules ask of it."""
    make = _MAKERS.get(wanted.statistic)
    if make is None:
        raise InputError("no such noised statistic", place=str(wanted.statistic), next_step=", ".join(STATISTICS))
    return make(_asked(session, wanted))


def _asked(session: SessionCore, wanted: Wanted) -> _Asked:
    least_n = next((t.n_least for t in session.models.values() if t.n_is_secret), None)
    secret = least_n is not None or session.budget.n_is_secret()
    needs_values = wanted.statistic not in ("counts", "features")
    people = session.state.roster(rows_of(wanted.values)).mean_by_person(wanted.values) if needs_values else None
    if wanted.statistic == "mean":
        _refuse_beside_exact(session)
    given = next(x for x in (wanted.values, wanted.features, getattr(wanted.by, "ages", wanted.by)) if x is not None)
    n_public = None if secret else session.state.roster(rows_of(given)).n_people
    bound, provenance = _bound(session, wanted)
    origin = "fixed_beforehand" if people is None else _origin(session, wanted)
    of = f"_by_{getattr(wanted.by, 'name', None) or 'group'}" if wanted.by is not None else ""
    name = documents.safe_name(wanted.name or f"{_STEMS[wanted.statistic]}{of}_private")
    name = free_name(session, name)  # the ledger writes down what it pays for
    receipts: list[Receipt] = []
    body = sha256(wanted.statistic.encode() + (b"" if people is None else people.tobytes())).digest()
    terms = Terms(
        float(wanted.epsilon), session.orders.place(n_public, body, receipts),
        "add_remove" if secret else "zero_out_N_public", n_public, (name,), _SOURCES[origin], provenance,
        session.budget.people is not None, "person", session.orders.keep(receipts, statistic_json, statistic_of),
    )  # fmt: skip
    return _Asked(session, wanted, people, bound, origin, least_n, terms, receipts)


_STEMS = {
    "mean": DELTA_MEAN, "sd": DELTA_SD, "quantiles": QUANTILES, "group_means": "mean_delta", "counts": "count",
    "features": FEATURES,
}  # fmt: skip


def _refuse_beside_exact(session: SessionCore) -> None:
    leaving = (e for e in session.entries if e.type == DELTA_MEAN and not e.kept_inside)
    exact = next((e for e in leaving if e.privacy is None), None)
    if exact is not None:
        raise InputError(
            f"{exact.name} of this session is the exact mean: a noised one beside it would be paid for and buy nothing",
            next_step=f"Take it back first with session.drop({exact.name!r}).",
        )


def _bound(session: SessionCore, wanted: Wanted) -> tuple[float, Any]:
    """The public clip, and where it comes from."""
    if wanted.statistic == "features":
        if wanted.basis is None:
            raise InputError("feature summaries need a public centre and scale", next_step="Give basis=.")
        known = session.budget.registered(wanted.basis.digest)
        return float(wanted.basis.feature_z), "registered_file" if known else "unregistered"
    own = float(session.ruleset.parameters["delta_bound_years"])
    try:
        bound = own if wanted.bound_years is None else float(wanted.bound_years)
    except (TypeError, ValueError):
        bound = math.nan
    if not (math.isfinite(bound) and bound > 0):
        raise InputError("the clip must be above 0 years", next_step="Leave bound_years out for the rule set's own.")
    return bound, "ruleset" if bound == own else "unregistered"


def _origin(session: SessionCore, wanted: Wanted) -> str:
    origin = str(session.model_origin(wanted.values)["model.origin"].value)
    if wanted.model is not None and origin == "formal_release":
        trained = trained_here(session, wanted.model)
        return origin if trained is not None and trained.formal else "unprotected"
    return origin


def _mean(asked: _Asked) -> Candidate:
    """Mean over the roster (a missing value counts as 0, a null record), each value clipped to ±bound."""
    terms, bound, people = asked.terms, asked.bound, _known(asked)
    scale = laplace_scale(-bound, bound, terms.n_public, terms.epsilon, terms.adjacency)
    drawn_at = float(scale) / (1 - COUNT_SHARE) if terms.n_public is None else float(scale)
    found = release_mean(
        people, epsilon=terms.epsilon, spend=terms.spend, keep=terms.keep, lower=-bound, upper=bound,
        adjacency=terms.adjacency, model_source=terms.model_source, outputs=terms.outputs,
        bounds_provenance=terms.bounds_provenance, people_registered=terms.people_registered,
    )  # fmt: skip
    value = float(found.value[0])
    about = asked.about(found, noise_scale_years=drawn_at)
    document = documents.scalar(
        DELTA_MEAN, asked.name, asked.title, "mean delta with noise", value, unit="years", about=about
    )
    facts = summary_facts(people, asked.parameters) | computed(n=asked.n(found), value=value)
    return _candidate(asked, found, document, facts, scale=drawn_at, sensitivity=float(scale.sensitivity))


def _sd(asked: _Asked) -> Candidate:
    people = _known(asked)
    found = noised_sd(people, asked.bound, asked.terms)
    value = float(found.value[0])
    document = documents.scalar(
        DELTA_SD, asked.name, asked.title, "SD of delta with noise", value, unit="years", about=asked.about(found)
    )
    facts = summary_facts(people, asked.parameters, "sd") | computed(n=asked.n(found), value=value)
    return _candidate(asked, found, document, facts)


def _quantiles(asked: _Asked) -> Candidate:
    people, percents = _known(asked), sorted({float(p) for p in asked.wanted.percents})
    if not percents or not all(0 < p < 100 for p in percents):
        raise InputError("percentiles must lie between 0 and 100", next_step="For example (5, 25, 50, 75, 95).")
    found = noised_quantiles(people, percents, asked.bound, asked.terms)
    labels = [documents.percent_label(p) for p in percents]
    document = documents.vector(
        QUANTILES, asked.name, asked.title, labels, [float(v) for v in found.value], label_column="percentile",
        value_column="delta", unit="years", about=asked.about(found),
    )  # fmt: skip
    parts = tuple(
        Part("quantile", label, computed(quantile__percent=p), float(v))
        for label, p, v in zip(labels, percents, found.value, strict=True)
    )
    facts = summary_facts(people, asked.parameters) | computed(n=asked.n(found))
    return _candidate(asked, found, document, facts, parts)


def _table(asked: _Asked) -> Candidate:
    """People, and mean delta, of groups that are named beforehand; a group that is not named is nobody's."""
    roster, numbers = asked.session.roster(), asked.parameters
    ages = (float(numbers["age_min"]), float(numbers["age_max"]))
    grouping = fixed_grouping(asked.wanted.by, asked.wanted.groups, roster, ages)
    found = noised_table(asked.people, grouping.codes, len(grouping), asked.bound, asked.terms)
    assert found.counts is not None
    kind = COUNT_TABLE if asked.people is None else table_type(grouping)
    parts = _cells(asked, grouping, found)
    about = asked.about(
        found, "people" if asked.people is None else "years", statistic="count" if asked.people is None else "mean",
        groups=grouping.name,
    )  # fmt: skip
    document = documents.group_table(
        kind, asked.name, f"{asked.title} by {grouping.name.replace('_', ' ')}", grouping.labels,
        [round(max(0.0, float(n))) for n in found.counts],
        None if asked.people is None else [float(v) for v in found.value],
        group_column=f"{grouping.name} (group)" if grouping.name in ("n", "mean_delta") else grouping.name, about=about,
    )  # fmt: skip
    facts = table_facts(grouping, asked.people, parts, numbers) | computed(**site_facts(grouping))
    shown = max((round(float(n)) for n in found.counts), default=0)
    facts |= computed(table__any_n_rounded=shown < int(numbers["round_n_below"]))
    return _candidate(asked, found, document, facts, parts)


def _cells(asked: _Asked, grouping: Grouping, found: NoisyStatistic) -> tuple[Part, ...]:
    """One part a group: what is raw of it stays raw, and its people are a lower limit of the noised count."""
    assert found.counts is not None
    statistic = "count" if asked.people is None else "mean"
    return tuple(
        Part("cell", part.key, {**part.facts, **computed(cell__n=asked.least(float(n), found.count_sd, len(grouping)))},
             float(value))
        for part, n, value in zip(
            cell_parts(grouping, asked.people, statistic), found.counts, found.value, strict=True
        )
    )  # fmt: skip


def _features(asked: _Asked) -> Candidate:
    wanted, basis = asked.wanted, asked.wanted.basis
    assert basis is not None
    names = names_of(wanted.features, wanted.feature_names)
    if tuple(names) != basis.feature_names:
        raise InputError("these features are not those of the basis", next_step="Give the same columns, in its order.")
    roster, matrix = asked.session.roster(), matrix_of(wanted.features)
    columns = np.column_stack([roster.mean_by_person(column) for column in matrix.T])
    found = noised_features(columns, basis.centre, basis.scale, basis.feature_radius, basis.feature_z, asked.terms)
    rows = [[float(a), float(b)] for a, b in zip(*np.split(found.value, 2), strict=True)]
    about = asked.about(found, "of the largest feature")
    document = documents.matrix(FEATURES, asked.name, asked.title, names, [("mean", ""), ("sd", "")], rows, about=about)
    facts = feature_facts(columns) | computed(n=asked.n(found))
    return _candidate(asked, found, document, facts)


_MAKERS: dict[str, Callable[[_Asked], Candidate]] = {
    "mean": _mean, "sd": _sd, "quantiles": _quantiles, "group_means": _table, "counts": _table, "features": _features,
}  # fmt: skip


def _known(asked: _Asked) -> Floats:
    assert asked.people is not None
    return asked.people


def _mechanism(found: NoisyStatistic) -> str:
    return "discrete_laplace" if found.statement.mu is None else "discrete_gaussian"


def _candidate(
    asked: _Asked,
    found: NoisyStatistic,
    document: OutputDocument,
    facts: Mapping[str, Fact],
    parts: tuple[Part, ...] = (),
    *,
    scale: float | None = None,
    sensitivity: float = 1.0,
) -> Candidate:
    session, bound = asked.session, asked.bound
    statement = found.statement.to_json()
    statement["bounds"]["bound_years"] = bound
    if session.state.ids is None:
        statement["not_covered"].insert(0, ROWS_ARE_PEOPLE)
    noise = noised(statement, sensitivity=sensitivity, post_processing=False)
    more: dict[str, FactValue] = {
        "dp.mechanism": _mechanism(found), "dp.value_range": 2 * bound, "dp.value_max_abs": bound
    }  # fmt: skip
    if found.statement.mu is None:
        noise.pop("dp.sigma", None)
        more["dp.scale"] = 1 / asked.terms.epsilon if scale is None else scale
    facts = {**facts, **computed(model__origin=asked.origin)}
    if asked.terms.n_public is None:
        facts = {**facts, **computed(n_node=int(facts["n"].value))}
    built = build_facts(session, document, facts, parts, noise=noise | more, receipt=asked.receipts[-1])
    # Noise covers what the difference from an earlier release tells; an exact N would be asked of it otherwise.
    return Candidate(document, built, privacy=statement, receipt=asked.receipts[-1], n=None)
