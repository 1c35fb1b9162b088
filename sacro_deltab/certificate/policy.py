"""The part of a rule set that a certificate states: who it is, the values in force, and what stays inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Facts that are queries on raw data: the answer of a rule on them tells something of one person's value, so it is
# stated inside only. Attack results ("attack.…") belong to them.
RAW_DATA_FACTS = frozenset(
    {
        "largest_share",
        "cell.largest_share",
        "top_two_share",
        "cell.top_two_share",
        "idp.largest_share",
        "row.largest_share",
        "y.range_years",
        "outlier.max_abs_z",
        "acro.dominance_check",
        "clipped.share",
    }
)


def is_raw_data_fact(name: str) -> bool:
    """Whether fact `name` answers a question about single people's values."""
    return name in RAW_DATA_FACTS or name.startswith("attack.")


@dataclass(frozen=True)
class Policy:
    """What of the rule set a statement needs; `raw_rules` are the rules that test a raw-data fact."""

    id: str
    version: str
    sha256: str
    language: str = ""
    profile: Mapping[str, str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    raw_rules: frozenset[str] = frozenset()
    pinned_ledgers: tuple[Mapping[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The `policy` block of a predicate, without waivers."""
        return {
            "id": self.id,
            "version": self.version,
            "sha256": self.sha256,
            "language": self.language,
            "profile": dict(self.profile) if self.profile else None,
            "parameters": {k: _plain(v) for k, v in sorted(self.parameters.items())},
        }


def policy_of(ruleset: Any) -> Policy:
    """Read a loaded rule set (`sacro_deltab.rules.RuleSet`)."""
    profile = getattr(ruleset, "profile", None)
    return Policy(
        id=str(ruleset.id),
        version=str(ruleset.version),
        sha256=str(ruleset.sha256),
        language=str(getattr(ruleset, "language", "")),
        profile={"id": str(profile.id), "sha256": str(profile.sha256)} if profile else None,
        parameters=dict(ruleset.parameters),
        raw_rules=raw_rules_of(ruleset),
        pinned_ledgers=tuple(dict(entry) for entry in getattr(profile, "ledgers", ()) or ()),
    )


def raw_rules_of(ruleset: Any) -> frozenset[str]:
    """Ids of the rules whose test or condition reads a raw-data fact."""
    rules = getattr(ruleset, "rules", ())
    items: Iterable[Any] = rules.values() if isinstance(rules, Mapping) else rules
    return frozenset(str(rule.id) for rule in items if any(is_raw_data_fact(n) for n in _facts_read(rule)))


def _facts_read(rule: Any) -> set[str]:
    named = getattr(rule, "facts", None)
    if named is not None and not callable(named):
        return {str(name) for name in named}
    found: set[str] = set()
    _collect(vars(rule) if hasattr(rule, "__dict__") else rule, found, 0)
    return found


def _collect(value: Any, found: set[str], depth: int) -> None:
    if depth > 8:
        return
    if isinstance(value, str):
        found.add(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _collect(key, found, depth + 1)
            _collect(item, found, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            _collect(item, found, depth + 1)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            _collect(getattr(value, name), found, depth + 1)


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return str(value)
