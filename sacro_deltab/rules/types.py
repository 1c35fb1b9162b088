"""What the rules say about one output: effects, findings, actions, a decision. Frozen values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..base.findings import Effect, Finding


@dataclass(frozen=True)
class Advice:
    """What a rule on raw data says of an output that the noise protects: for whoever reads inside, and for nobody else.

    It is no `Finding`: it has no sentence for the outside and no place in a verdict, so that nothing that builds what
    leaves can take it.
    """

    rules: tuple[str, ...]
    inside: str
    asks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """A change the rules make for the researcher, in phase order.

    verb: suppress | suppress_complement | withhold | round | label
    part: key of the part, or None for the whole output
    args: e.g. {"decimal_places": 1}, {"significant_figures": 3}, {"to_nearest": 5, "part": "every_n"},
    {"text": "< 0.001"}
    """

    verb: str
    part: str | None
    args: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Everything the rules said about one output."""

    output_name: str
    output_type: str
    effect: Effect
    findings: tuple[Finding, ...]
    actions: tuple[Action, ...]
    met: tuple[str, ...]
    not_applicable: tuple[str, ...]
    missing: tuple[str, ...] = ()  # names of facts nobody supplied
    asked: tuple[str, ...] = ()  # of those, what TRE staff are asked instead of being waited for
    advice: tuple[Advice, ...] = ()  # of rules on raw data, where the noise protects; inside only

    @property
    def status(self) -> Literal["pass", "review", "fail"]:
        """ACRO's word for the decision."""
        return self.effect.status
