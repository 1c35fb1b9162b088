"""The part of a rule set that a certificate states: who it is, the values in force, and what stays inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..rules import RuleSet


RECOVERY_FACTS = frozenset({"table.recoverable_cells", "package.recoverable_cells"})


@dataclass(frozen=True)
class Policy:
    """What of the rule set a statement needs.

    raw_rules: rules whose result answers a query on the raw data (largest share, extreme values, age range, attack
    success); stated inside only. cell_rules: rules that mark cells; outside they are named all together or not at all,
    so that nobody reads off which of two marked cells was small. recovery_rules: rules that test whether a suppressed
    cell can be worked out.
    """

    id: str
    version: str
    sha256: str
    language: str = ""
    state: str = "draft"
    profile: Mapping[str, str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    raw_rules: frozenset[str] = frozenset()
    cell_rules: frozenset[str] = frozenset()
    recovery_rules: frozenset[str] = frozenset()
    raw_facts: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """The `policy` block of a predicate, without waivers."""
        return {
            "id": self.id,
            "version": self.version,
            "sha256": self.sha256,
            "language": self.language,
            "state": self.state,
            "profile": dict(self.profile) if self.profile else None,
            "parameters": {k: _plain(v) for k, v in sorted(self.parameters.items())},
        }


def policy_of(ruleset: RuleSet) -> Policy:
    """Read a loaded rule set."""
    from ..rules import messages  # late: brings jsonschema_rs, yaml

    profile = ruleset.profile
    return Policy(
        id=ruleset.id,
        version=ruleset.version,
        sha256=ruleset.sha256,
        language=ruleset.language,
        state=ruleset.state,
        profile={"id": profile.id, "sha256": profile.sha256} if profile else None,
        parameters={**ruleset.parameters, "suppression_mark": ruleset.mark},
        raw_facts=frozenset(name for name, spec in ruleset.facts.items() if spec.raw),
        raw_rules=frozenset(rule.id for rule in ruleset.rules if messages.is_raw(ruleset, rule)),
        cell_rules=frozenset(rule.id for rule in ruleset.rules if messages.is_cell_rule(rule)),
        recovery_rules=frozenset(
            rule.id for rule in ruleset.rules if {c.fact for c in rule.conditions} & RECOVERY_FACTS
        ),
    )


def draft_mark(policy: Mapping[str, Any]) -> str:
    """What a reader is told after the version: DRAFT where the committee had not approved the rules."""
    return "" if policy.get("state", "approved") == "approved" else f" {str(policy['state']).upper()}"


def waiver_json(waiver: Any) -> dict[str, str]:
    """A waiver as a statement names it: who decided and until when; the reason stays inside."""
    if isinstance(waiver, Mapping):
        return {key: str(waiver.get(key, "")) for key in ("id", "rule", "decision", "ends")}
    return {
        "id": str(waiver.id),
        "rule": str(waiver.rule),
        "decision": f"{waiver.granted_by}, {waiver.reference}",
        "ends": waiver.expires_on.isoformat(),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return str(value)
