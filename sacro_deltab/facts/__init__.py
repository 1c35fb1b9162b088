"""Measured facts about outputs."""

from .types import Fact, Facts, FactValue, Part, Provider, facts_from_json, facts_to_json

__all__ = ["Fact", "FactValue", "Facts", "Part", "Provider", "facts_from_json", "facts_to_json"]
