"""A private model of a session, as the session knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..privacy.spend import Receipt
from ..rules.facts import Fact


@dataclass(frozen=True)
class TrainedHere:
    """A private model of this session with the receipt that paid for it and the facts measured on its people."""

    model: Any
    receipt: Receipt
    n_basis: int | None
    facts: Mapping[str, Fact]
    statement: Mapping[str, Any]
    digest: bytes
    people: bytes
    n_least: int | None  # lower confidence limit of a noised N; None where N is public
    intervals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # from noised and public numbers
    plain: bool = False  # its deltas of its own people may be large for the noise alone

    @property
    def formal(self) -> bool:
        """What the training said, whatever the model object says by now."""
        return bool(self.statement["label"] == "formal")
