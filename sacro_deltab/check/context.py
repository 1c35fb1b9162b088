"""Everything one check is run with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from ..inert.limits import DEFAULT, Limits
from ..rules import RuleSet
from .facts_file import FactsFile
from .known import Known

if TYPE_CHECKING:
    from .recompute.cohort_check import CohortFacts


@dataclass
class Context:
    """Rule set, what the TRE brought (facts, cohort, trust, ledger, waivers), and what is known so far."""

    ruleset: RuleSet
    waivers: Sequence[Any] = ()
    today: date | None = None
    facts: FactsFile | None = None
    declared: Any = None  # what the researcher declares now: `session.said.Said`
    cohort: CohortFacts | None = None
    trust: Any = None
    ledger: Any = None
    known: Known = field(default_factory=Known)
    limits: Limits = DEFAULT

    @property
    def output_types(self) -> frozenset[str]:
        """Types the rule set knows."""
        return frozenset(self.ruleset.output_types)

    def min_n(self) -> int:
        """The rule set's minimum cell size."""
        return int(self.ruleset.parameters["min_n"])

    def rule_set_json(self) -> dict[str, Any]:
        """Identity of the rule set, as reports print it."""
        profile = self.ruleset.profile
        return {
            **self.ruleset.statement(),
            "profile": None if profile is None else {"id": profile.id, "sha256": profile.sha256},
        }
