"""What one reading of the cohort says about an output. Inside only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...rules.facts import Facts


@dataclass
class Measured:
    """Facts of the output, facts of each row, the raw numbers of each row, and the people behind each cell."""

    facts: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, tuple[float | None, ...]] = field(default_factory=dict)  # as in the document, after the label
    members: dict[str, Any] = field(default_factory=dict)  # row → (people,) bool
    statistic: str | None = None


def is_noised(facts: Facts | None) -> bool:
    """Whether noise was recorded."""
    applied = None if facts is None else facts.get("dp.applied")
    return applied is not None and applied.value is True
