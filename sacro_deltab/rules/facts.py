"""Facts: named, typed values about one output. No type here can hold one value per subject.

The only things that cross from data to rules (see `docs/architecture.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

FactValue = bool | int | float | str


class Provider(Enum):
    """Who says so. Auditors ask first which facts are merely declared."""

    COMPUTED = "computed"  # measured by the package from the data, in this process
    RECORDED = "recorded"  # measured by a session and read back from its evidence: not re-derived
    DECLARED = "declared"  # said by the researcher
    ATTESTED = "attested"  # said by TRE staff or pinned by a layer
    LEDGER = "ledger"  # read from a privacy-budget ledger


@dataclass(frozen=True)
class Fact:
    """One fact. `value` is a scalar; NaN and infinity are refused.

    Raises
    ------
    TypeError
        For anything but bool, int, float or str (arrays and lists of subjects never fit).
    ValueError
        For NaN or infinity.
    """

    name: str
    value: FactValue
    by: Provider

    def __post_init__(self) -> None:
        if type(self.value) not in (bool, int, float, str):
            raise TypeError(f"fact {self.name!r} must be a plain bool, int, float or str")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"fact {self.name!r} is not finite")


@dataclass(frozen=True)
class Part:
    """One cell, quantile, feature row or coefficient of an output, with facts of its own.

    `key` is the row's label as published (unique within the output); `value` the raw, unrounded statistic
    (`None` where there is none). Parts live inside the TRE only.
    """

    kind: str  # "cell" | "quantile" | "row"
    key: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    value: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))


@dataclass(frozen=True)
class Facts:
    """Everything the rules may know about one output."""

    output_name: str
    output_type: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))

    def get(self, name: str, part: Part | None = None) -> Fact | None:
        """Fact `name` of `part`, else of the whole output, else None."""
        if part is not None and name in part.facts:
            return part.facts[name]
        return self.facts.get(name)

    def with_facts(self, *more: Fact) -> Facts:
        """A copy with `more` added; a later fact of the same name replaces the earlier one."""
        return Facts(self.output_name, self.output_type, {**self.facts, **{f.name: f for f in more}}, self.parts)

    def __iter__(self) -> Iterator[Fact]:
        yield from self.facts.values()
        for part in self.parts:
            yield from part.facts.values()


def facts_to_json(facts: Facts) -> dict[str, Any]:
    """The evidence form, for `inside/` only."""

    def block(mapping: Mapping[str, Fact]) -> dict[str, Any]:
        return {name: {"value": f.value, "by": f.by.value} for name, f in sorted(mapping.items())}

    return {
        "output_name": facts.output_name,
        "output_type": facts.output_type,
        "facts": block(facts.facts),
        "parts": [{"kind": p.kind, "key": p.key, "value": p.value, "facts": block(p.facts)} for p in facts.parts],
    }


def facts_from_json(data: Mapping[str, Any], *, recorded: bool = True) -> Facts:
    """Read evidence back. With `recorded` (the default) what a session computed counts only as recorded."""

    def block(mapping: Mapping[str, Any]) -> dict[str, Fact]:
        out: dict[str, Fact] = {}
        for name, entry in mapping.items():
            by = Provider(entry["by"])
            if recorded and by is Provider.COMPUTED:
                by = Provider.RECORDED
            out[name] = Fact(name, entry["value"], by)
        return out

    return Facts(
        output_name=str(data["output_name"]),
        output_type=str(data["output_type"]),
        facts=block(data["facts"]),
        parts=tuple(
            Part(kind=str(p["kind"]), key=str(p["key"]), value=p.get("value"), facts=block(p["facts"]))
            for p in data.get("parts", ())
        ),
    )
