"""The rule language and its engine: load a rule set, judge facts, explain, compare. No numpy, pandas or acro."""

from ..base.findings import Effect, Finding
from .engine import decide, facts_required
from .explain import explain
from .findings import collect_findings
from .layers import load_ruleset
from .loader import load_base
from .model import Layer, Rule, RuleSet
from .types import Action, Decision
from .views import decision_to_json, outside_findings
from .waivers import Waiver, load_waivers

__all__ = [
    "Action",
    "Decision",
    "Effect",
    "Finding",
    "Layer",
    "Rule",
    "RuleSet",
    "Waiver",
    "collect_findings",
    "decide",
    "decision_to_json",
    "explain",
    "facts_required",
    "load_base",
    "load_ruleset",
    "load_waivers",
    "outside_findings",
]
