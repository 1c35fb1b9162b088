"""Facts that every output of a session has, and the public context printed with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..kinds.kind import Made
from ..outputs.document import OutputDocument
from ..rules.facts import Fact, Facts, FactValue, Part, Provider
from .entries import Candidate

if TYPE_CHECKING:
    from .core import SessionCore

_MECHANISMS = {
    "discrete_gaussian": "discrete_gaussian",
    "gaussian": "gaussian",
    "gaussian_analytic": "gaussian_analytic",
    "laplace": "laplace",
    "discrete_laplace": "discrete_laplace",
}


ROWS_ARE_PEOPLE = "rows taken as people (declared): there are no person ids"


def not_noised() -> dict[str, FactValue]:
    """Facts of an output without noise."""
    return {
        "dp.applied": False,
        "dp.label": "none",
        "dp.mechanism": "none",
        "dp.adjacency": "none",
        "n.origin": "exact",
    }


def noised(statement: Mapping[str, Any], *, sensitivity: float, post_processing: bool) -> dict[str, FactValue]:
    """Facts of an output that follows from one noisy release described by a privacy statement."""
    mechanism = str(statement["mechanism"])
    known = next((word for key, word in _MECHANISMS.items() if mechanism.startswith(key)), mechanism)
    adjacency = str(statement["adjacency"])
    facts: dict[str, FactValue] = {
        "dp.applied": statement["label"] != "none",
        "dp.label": str(statement["label"]),
        "dp.mechanism": known,
        "dp.epsilon": float(statement["epsilon"]),
        "dp.delta": float(statement["delta_dp"]),
        "dp.sensitivity": sensitivity,
        "dp.sensitivity_basis": "clipped_bound" if statement.get("method") != "documents" else "data_dependent",
        "dp.adjacency": adjacency,
        "bounds.provenance": str(statement["bounds"]["provenance"]),
        "dp.feature_bound_enforced": True,
        "dp.leak_warnings": 0,
        "dp.rng": "secure",
        "dp.sampler": "exact_discrete",
        "dp.post_processing": post_processing,
        "dp.noise_before_rounding": True,
        "n.origin": "noisy" if adjacency == "add_remove" else "exact",
    }
    if statement.get("sigma_unit") is not None:
        facts["dp.sigma"] = float(statement["sigma_unit"]) * sensitivity
    return facts


def stated(session: SessionCore, name: str, kind: str) -> dict[str, Fact]:
    """What people said about an output, and what is taken for said where they did not.

    A declaration that does not name an output says that the project did not declare it; where nobody declared
    anything, the fact is missing, and blocks (D-123).
    """
    by_default: dict[str, FactValue] = {"cohort.unit": "person", "training.iterative": False}
    if session.declared.by is not None:
        by_default["output.declared"] = False
    default = {key: Fact(key, value, Provider.DECLARED) for key, value in by_default.items()}
    return {**default, **session.declared.about(name, kind), **session.attested.about(name, kind)}


def build_facts(
    session: SessionCore,
    document: OutputDocument,
    facts: Mapping[str, Fact],
    parts: tuple[Part, ...] = (),
    *,
    noise: Mapping[str, FactValue] | None = None,
    receipt: Any = None,
    file_format: str = "csv",
) -> Facts:
    """All facts about one output: what people said first, then what was measured, which always wins.

    Nothing said can replace a measured fact; whether somebody may say a fact at all is for the rules.
    """
    name, kind = document.name, document.type
    people = session.state.people
    computed: dict[str, FactValue] = {
        "output.known": kind in session.ruleset.output_types,
        "output.format": file_format,
        "output.rows": len(document.rows),
        "evidence.attack_report": session.attack_report is not None,
        "dp.end_to_end_claim": False,
        **(noise if noise is not None else not_noised()),
    }
    if people is not None:
        computed["n_node"] = people.n_people
    measured = {key: Fact(key, value, Provider.COMPUTED) for key, value in computed.items()}
    merged = {**stated(session, name, kind), **measured, **session.budget.facts(receipt), **facts}
    return Facts(name, kind, merged, parts)


def candidate_of(session: SessionCore, made: Made, **more: Any) -> Candidate:
    """What a kind measured, with the facts that every output of a session has."""
    if made.grouping is not None:
        session.state.groupings[made.grouping.name] = made.grouping
    return Candidate(
        made.document, build_facts(session, made.document, made.facts, made.parts), made.cells, n=made.n,
        grouping=made.grouping, trace=made.trace, advice=made.advice, **more,
    )  # fmt: skip
