"""A private model of a session, as the session knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..privacy.spend import Receipt
from ..rules.facts import Fact, Provider


@dataclass(frozen=True)
class Training:
    """What a session measured of a training: facts, a digest of its rows, who took part.

    `n` people of the roster took part; `where` names the part of the cohort, empty for everybody. `plain`: the model's
    deltas of its own people may be large for the noise alone. `n_basis`: people of a registered public basis.
    `with_values`: how many have an age and a feature, exactly; for inside/ alone.
    """

    facts: Mapping[str, Fact]
    people: bytes
    n: int
    where: tuple[str, ...] = ()
    n_basis: int | None = None
    plain: bool = False
    with_values: int | None = None

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        facts = {name: [fact.value, fact.by.value] for name, fact in self.facts.items()}
        return {**vars(self), "facts": facts, "people": self.people.hex(), "where": list(self.where)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Training:
        """Back from the journal."""
        facts = {name: Fact(name, value, Provider(by)) for name, (value, by) in data["facts"].items()}
        return cls(
            facts,
            bytes.fromhex(data["people"]),
            data["n"],
            tuple(data["where"]),
            data["n_basis"],
            data["plain"],
            data["with_values"],
        )


@dataclass(frozen=True)
class TrainedHere:
    """A private model of this session with the receipt that paid for it and what was measured on its people."""

    model: Any
    receipt: Receipt
    training: Training
    statement: Mapping[str, Any]
    digest: bytes
    n_least: int | None  # lower confidence limit of the noised count of people (with values); None: none was noised
    n_most: int = 0  # upper limit, likewise
    intervals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # from noised and public numbers

    @property
    def n_is_secret(self) -> bool:
        """Whether the training protects N itself."""
        return bool(self.statement["adjacency"] == "add_remove")

    @property
    def formal(self) -> bool:
        """What the training said, whatever the model object says by now."""
        return bool(self.statement["label"] == "formal")
