"""Documents and facts of model weights: one record for each parameter, one file for each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..kinds.moments import document as moments_document
from ..kinds.weights import PUBLIC_IN_A_BASIS, documents
from ..kinds.whole import n as n_of
from ..measure.measure import computed, dof_check
from ..outputs.document import OutputDocument
from ..outputs.parameters import MOMENTS, N_SUBJECTS, WEIGHTS
from ..rules.facts import Fact, FactValue, Provider
from .attacking import reported_weights
from .common import ROWS_ARE_PEOPLE, build_facts, candidate_of, noised, not_noised
from .entries import Candidate
from .paid_models import trained_here

if TYPE_CHECKING:
    from .core import SessionCore

ALL = (*WEIGHTS, N_SUBJECTS)


@dataclass(frozen=True)
class _Source:
    """Where weights come from: their numbers, what was noised, and how many people they rest on."""

    weights: Any
    statement: Mapping[str, Any] | None
    receipt: Any
    n: int
    shared: bool
    n_basis: int | None  # people of a registered public basis
    facts: Mapping[str, Fact]
    context: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def weight_candidates(session: SessionCore, model: Any, title: str, only: Sequence[str] | None) -> list[Candidate]:
    """Every parameter of a model as a candidate of its own."""
    if isinstance(only, str):
        only = (only,)
    if only is not None and not all(isinstance(kind, str) for kind in only):
        raise InputError("only= is a list of output types", next_step="For example only=['beta1', 'gamma'].")
    wanted = tuple(only) if only is not None else ALL
    unknown = sorted(set(wanted) - set(ALL))
    if unknown:
        raise InputError(f"{unknown[0]!r} is no parameter of a model", next_step=f"Use some of {', '.join(ALL)}.")
    source = _source(session, model)
    made = [d for d in documents(source.weights, title, session.about(**source.context)) if d.type in wanted]
    if only is None and _too_few_shown(session, source):  # a public file's constants stand for nobody here
        made = [document for document in made if document.type not in PUBLIC_IN_A_BASIS]
    out = [_candidate(session, source, document) for document in made]
    if N_SUBJECTS in wanted and (_n_is_secret(source) or session.budget.n_is_secret()):
        if only is not None:
            raise InputError(
                "under add_remove N is not public: printing it beside this model would void its ε",
                next_step="Leave n_subjects out, or train with adjacency='zero_out_N_public'.",
            )
    elif N_SUBJECTS in wanted and _too_few_shown(session, source):
        pass  # the weights stay inside, and no N stands for people who were not there
    elif N_SUBJECTS in wanted and "where" in source.context:
        if only is not None:
            raise InputError("N of a part is an output of its own", next_step="session.release_n(where=…) asks for it.")
    elif N_SUBJECTS in wanted and not any(e.type == N_SUBJECTS for e in session.entries):
        out += [candidate_of(session, made) for made in n_of(session)]
    return out


def _too_few_shown(session: SessionCore, source: _Source) -> bool:
    shown = source.facts.get("n.shown")
    return shown is not None and int(shown.value) < int(session.ruleset.parameters["n_min_dp"])


def _n_is_secret(source: _Source) -> bool:
    return source.statement is not None and source.statement["adjacency"] == "add_remove"


def moments_candidate(session: SessionCore, model: Any, title: str) -> Candidate:
    """The noisy moments as a flat table: one row an entry, at the precision of the public grid."""
    source = _source(session, model)
    moments = model.noisy_moments
    if moments is None:
        raise InputError("this training released no moments", next_step="Train with method='moments'.")
    document = moments_document(moments, title, session.about(**source.context))
    return _candidate(session, source, document)


def _source(session: SessionCore, model: Any) -> _Source:
    people = session.state.people
    n = people.n_people if people is not None else 0
    statement = getattr(model, "statement", None)
    if statement is not None or id(model) in session.models:
        record = trained_here(session, model)
        if record is None:
            raise InputError(
                "this private model was not trained in this session",
                next_step="Train it with session.train_private, so that its budget is known; those of a session that "
                "was taken up again are in session.private_models.",
            )
        data = record.statement
        training = record.training
        n = training.n
        facts = training.facts
        if record.n_least is not None:
            facts = {**facts, **computed(n__shown=record.n_least)}
            n = record.n_least if record.n_is_secret else min(n, record.n_most)
        known = training.with_values
        notes = (
            ()
            if known is None
            else (f"{known} of the {training.n} people of this training have an age and enough features",)
        )
        context = {
            "privacy": data["label"],
            "mechanism": data["mechanism"],
            "basis": None if data["basis"] is None else data["basis"]["digest"],
            "bounds": data["bounds"]["digest"],
            "n_components": int(model.weights.n_components),
            **({} if session.state.ids is not None else {"unit": ROWS_ARE_PEOPLE}),
            **record.intervals,
            **({"where": list(training.where)} if training.where else {}),
        }
        return _Source(
            model.weights, data, record.receipt, n, data["basis"] is not None, training.n_basis, facts, context, notes
        )
    weights = getattr(model, "weights_", None)
    if weights is None:
        raise InputError("this is no fitted model", next_step="Fit it first, or train with session.train_private.")
    context = {"privacy": "none", "n_components": int(weights.n_components)}
    origin = {"pca.origin": Fact("pca.origin", "node_specific", Provider.DECLARED)}
    return _Source(weights, None, None, n, False, None, origin, context)


def _candidate(session: SessionCore, source: _Source, document: OutputDocument) -> Candidate:
    kind = document.type
    public = source.n_basis is not None and kind in PUBLIC_IN_A_BASIS
    statement = source.statement
    if statement is not None and kind in statement["outside_budget"]:
        statement = None  # an exact number beside noised ones: judged as such
    noise: dict[str, FactValue] = (
        not_noised() if statement is None else noised(statement, sensitivity=1.0, post_processing=True)
    )
    if kind == MOMENTS:
        noise["moments.on_grid"] = True
    n = source.n if source.n_basis is None or not public else source.n_basis
    jn = int(source.weights.n_components)
    least = int(session.ruleset.parameters["min_residual_dof"])
    facts = {
        **source.facts,
        **computed(
            n=int(n),
            shape__length=sum(len(row) - 1 for row in document.rows),
            residual_dof=max(int(source.n) - jn, 0),
            acro__regression_check=dof_check(int(source.n) - jn, least),
        ),
    }
    facts |= computed(evidence__attack_report=reported_weights(session, source.weights) is not None)
    secret = _n_is_secret(source)
    if secret:
        facts |= computed(n_node=int(source.n))
    if public:  # constants of a public file: nobody in this cohort contributes to them
        facts |= computed(largest_share=0.0, idp__largest_share=0.0, n__origin="public_bound")
    if len(document.rows) == 1 and isinstance(document.rows[0][1], int | float):
        facts |= computed(value=document.rows[0][1])
    built = build_facts(session, document, facts, noise=noise, receipt=source.receipt)
    # Differences with earlier releases are asked of exact sets of people: not where N itself is protected.
    return Candidate(
        document,
        built,
        privacy=statement,
        receipt=source.receipt,
        n=None if secret else int(n),
        notes=source.notes,
        weights_sha256=reported_weights(session, source.weights),
    )
