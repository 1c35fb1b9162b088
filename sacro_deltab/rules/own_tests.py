"""What a rule set says of itself: examples, one-step changes that they must notice, the proof of its clauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .examples import ExampleResult, run_examples
from .model import RuleSet
from .mutations import NOTICED_AT_LEAST, MutationReport, mutate
from .prove import Gap, gaps
from .requirements import Requirements, load_requirements


@dataclass(frozen=True)
class OwnTests:
    """The rule set's own tests; `ok` is whether it may judge."""

    ruleset: RuleSet
    examples: int
    failed: tuple[ExampleResult, ...]
    mutations: MutationReport
    requirements: Requirements
    gaps: tuple[Gap, ...]

    @property
    def ok(self) -> bool:
        """Every example passes, enough changes are noticed, every requirement holds."""
        return not self.failed and not self.gaps and self.mutations.share >= NOTICED_AT_LEAST

    def lines(self) -> list[str]:
        """For people."""
        passed = self.examples - len(self.failed)
        out = [
            f"{len(self.ruleset.rules)} rules, {self.examples} examples: {passed} passed, {len(self.failed)} failed",
            *(f"FAIL {result}" for result in self.failed),
            f"{self.mutations.tried} one-step changes: {self.mutations.noticed} noticed by an example "
            f"({self.mutations.share:.1%}), {len(self.mutations.survivors)} not",
            *(f"  not noticed: {s} ({s.reason})" for s in self.mutations.survivors),
        ]
        if self.requirements.all or self.gaps:
            held = len(self.requirements.all) - len({g.requirement for g in self.gaps} & self._ids())
            out.append(f"{len(self.requirements.all)} requirements of clauses: {held} hold")
        return out + [f"OPEN {gap}" for gap in self.gaps]

    def _ids(self) -> set[str]:
        return {one.id for one in self.requirements.all}

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "ok": self.ok,
            "rules": len(self.ruleset.rules),
            "examples": self.examples,
            "failed": [str(r) for r in self.failed],
            "mutations": self.mutations.tried,
            "noticed": self.mutations.noticed,
            "survivors": [{"change": str(s), "reason": s.reason} for s in self.mutations.survivors],
            "requirements": len(self.requirements.all),
            "open": [str(gap) for gap in self.gaps],
        }


def test_ruleset(ruleset: RuleSet) -> OwnTests:
    """Run all of a rule set's own tests."""
    results = list(run_examples(ruleset))
    asked = load_requirements(ruleset)
    return OwnTests(
        ruleset=ruleset,
        examples=len(results),
        failed=tuple(r for r in results if not r.passed),
        mutations=mutate(ruleset),
        requirements=asked,
        gaps=tuple(gaps(ruleset, asked)),
    )


def looser_unsigned(ruleset: RuleSet) -> list[str]:
    """Decisions LOOSER than the documents' words on which a rule in force rests and which nobody signed."""
    used = {d for r in ruleset.rules if r.in_force for d in r.decision}
    return sorted(d.id for d in ruleset.decisions.values() if d.id in used and d.direction == "LOOSER" and not d.signed)


def faults(ruleset: RuleSet) -> list[str]:
    """Why a rule set must not judge: examples that fail, requirements that do not hold."""
    failed = [f"an example fails: {r}" for r in run_examples(ruleset) if not r.passed]
    return failed + [f"a requirement does not hold: {g}" for g in gaps(ruleset, load_requirements(ruleset))]
