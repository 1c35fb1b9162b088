"""What is claimed about the noise of one release, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .bounds import PublicBounds
from .spend import Adjacency, Receipt

Label = Literal["formal", "heuristic", "none"]

PROOF = (
    "discrete Gaussian on integer sums of clipped contributions; sensitivity by exact integer norms; "
    "analytic Gaussian calibration (Balle & Wang 2018), discrete Gaussian as post-processing of the continuous one"
)


UNREGISTERED = "who the people are is somebody's word: the TRE has not registered them"


@dataclass(frozen=True)
class PrivacyStatement:
    """The words and numbers a record may carry. Nothing in it depends on the data except through the noise.

    `epsilon_by_adjacency["add_remove"]` is None where an exact N was used: no ε holds for presence in N itself.
    `label` is `formal` only for a certified mechanism with public provenance; ε and δ are a guarantee only then.
    """

    label: Label
    reason: str
    mechanism: str
    epsilon: float
    delta_dp: float
    mu: float | None
    sigma_unit: float | None
    adjacency: Adjacency
    unit: Literal["person", "row"]
    epsilon_by_adjacency: Mapping[str, float | None]
    bounds: Mapping[str, Any]
    basis: Mapping[str, Any] | None
    sampler: str
    blocks: Mapping[str, Any] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None
    outside_budget: tuple[str, ...] = ()
    n_public: int | None = None
    proof: str | None = None
    method: str | None = None
    not_covered: tuple[str, ...] = (
        "selection and quality control of the cohort",
        "choices made by looking at the data outside this release",
        "per-person deltas, which never leave",
        "what can be inferred about a person from the population without them",
        "a refusal, and what a person decides after reading what stays inside",
    )

    def to_json(self) -> dict[str, Any]:
        """The JSON object records and certificates carry."""
        return {
            "label": self.label,
            "reason": self.reason,
            "mechanism": self.mechanism,
            "method": self.method,
            "epsilon": self.epsilon,
            "delta_dp": self.delta_dp,
            "mu": self.mu,
            "sigma_unit": self.sigma_unit,
            "adjacency": self.adjacency,
            "unit": self.unit,
            "epsilon_by_adjacency": dict(self.epsilon_by_adjacency),
            "bounds": dict(self.bounds),
            "basis": None if self.basis is None else dict(self.basis),
            "sampler": self.sampler,
            "blocks": dict(self.blocks),
            "ledger": None if self.ledger is None else dict(self.ledger),
            "outside_budget": list(self.outside_budget),
            "n_public": self.n_public,
            "proof": self.proof,
            "not_covered": list(self.not_covered),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PrivacyStatement:
        """Back from `to_json`."""
        lists = {name: tuple(data[name]) for name in ("outside_budget", "not_covered")}
        return cls(**{**data, **lists})

    def with_ledger(self, receipt: Receipt) -> PrivacyStatement:
        """The same statement, holding the ledger entry that paid for it."""
        entry = {"id": receipt.ledger_id, "entry": receipt.entry, "head": receipt.head, "pinned": receipt.pinned}
        return replace(self, ledger=entry)


def label_of(
    bounds: PublicBounds,
    basis_bounds: PublicBounds | None,
    *,
    registered: Callable[[str], bool] | None,
    ruleset_bounds: PublicBounds | None,
    basis_digest: str | None = None,
    people_registered: bool = True,
) -> tuple[Literal["formal", "heuristic"], str]:
    """Label that the provenance of basis and bounds allows, with the reason in plain words.

    A basis holds means, scales and loadings that a training leans on: made from the cohort it would print its people.
    It counts as public only where its digest was registered before the cohort (`registered`). Of people whom the TRE
    has not registered (`people_registered`) nobody knows that each is there once, and under one budget.
    The claim alone is not believed where it can be checked: `ruleset` bounds must equal the rule set's own and cannot
    carry per-feature numbers, `basis` bounds must be the basis's, and `registered_file` needs a ledger that knows them.
    """
    if not people_registered:
        return "heuristic", UNREGISTERED
    if basis_digest is not None and (registered is None or not registered(basis_digest)):
        return "heuristic", "the basis is nobody's public record: its digest was not registered before the data"
    if bounds.provenance == "unregistered":
        return "heuristic", "the bounds are nobody's public record: their digest was not registered before the data"
    if bounds.provenance == "basis":
        own = () if basis_bounds is None else (basis_bounds, replace(basis_bounds, confound_bounds=None))
        if bounds.digest in {other.digest for other in own}:
            return "formal", "every bound comes from the shared basis, which was registered before the data were opened"
        return "heuristic", "the bounds are said to come from the basis file but are not the ones in it"
    if bounds.provenance == "registered_file":
        if registered is not None and registered(bounds.digest):
            return "formal", "the bounds file was registered in the ledger before the data were opened"
        return "heuristic", "no ledger confirms that the bounds file was registered before the data were opened"
    if bounds.centre is not None or bounds.confound_bounds is not None or bounds.radius is not None:
        return "heuristic", "a rule set has no bounds for single features or confounds: these come from somewhere else"
    if ruleset_bounds is None:
        return "heuristic", "the bounds are said to come from a rule set, and no rule set is at hand to compare"
    if (bounds.age, bounds.feature_z) != (ruleset_bounds.age, ruleset_bounds.feature_z):
        return "heuristic", "the bounds are said to come from the rule set but are not the ones in it"
    return "formal", "age range and feature clip are the rule set's"
