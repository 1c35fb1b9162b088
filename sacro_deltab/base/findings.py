"""One finding: what it is about, how bad, what may be said of it inside and outside, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

View = Literal["inside", "outside"]
FORM = "check/"  # the ids of rules about form begin so


class Effect(StrEnum):
    """Effects, worst first (rule set: `order_of_effects`)."""

    BLOCK = "block"
    WITHHOLD = "withhold"
    REVIEW = "review"
    SUPPRESS = "suppress"
    ROUND = "round"
    LABEL = "label"
    PASS = "pass"

    @property
    def rank(self) -> int:
        """0 for the worst effect."""
        return list(Effect).index(self)

    @property
    def status(self) -> Literal["pass", "review", "fail"]:
        """The ACRO status it maps to: block, withhold → fail; review → review; the rest → pass."""
        if self in (Effect.BLOCK, Effect.WITHHOLD):
            return "fail"
        return "review" if self is Effect.REVIEW else "pass"


@dataclass(frozen=True)
class Finding:
    """One result on one target; several rules that say the same of one target share one finding (D-82).

    `inside` carries numbers and cell labels; `outside` says "below 20", never "7", and never which of two
    marked cells was small (D-79, D-28). Without an outside sentence nothing of it is said there.
    """

    rules: tuple[str, ...]
    target: str  # "output", or the key of a part; inside only
    effect: Effect
    inside: str
    outside: str = ""
    clauses: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()  # questions a person must answer
    next_step: str | None = None
    waived_by: str | None = None  # id of the waiver that lowered block to review
    provisional: bool = False

    @property
    def verdict(self) -> Literal["pass", "review", "fail"]:
        """ACRO's word for its effect."""
        return self.effect.status

    @property
    def code(self) -> str:
        """Which rule about form speaks, without its `check/`; empty for a rule about facts."""
        return self.rules[0].removeprefix(FORM) if self.rules[0].startswith(FORM) else ""

    def text(self, view: View) -> str:
        """The finding's sentence for one view."""
        return self.inside if view == "inside" else self.outside

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """A finding as a report or a session's evidence holds it; what is no effect blocks."""
        effect, step, waiver = data.get("effect"), data.get("next_step"), data.get("waived_by")
        return cls(
            rules=_texts(data.get("rules")),
            target=str(data.get("target", "output")),
            effect=Effect(effect) if effect in set(Effect) else Effect.BLOCK,
            inside=str(data.get("text", "")),
            outside=outside if isinstance(outside := data.get("outside"), str) else "",
            clauses=_texts(data.get("clauses")),
            asks=_texts(data.get("asks")),
            next_step=str(step) if step else None,
            waived_by=str(waiver) if waiver else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Fields of `schemas/report.schema.json`."""
        return {
            "rules": list(self.rules),
            "effect": self.effect.value,
            "target": self.target,
            "text": self.inside,
            "outside": self.outside or None,
            "asks": list(self.asks),
            "clauses": list(self.clauses),
            "next_step": self.next_step,
            "waived_by": self.waived_by,
        }


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def note(
    code: str,
    effect: Effect,
    inside: str,
    *,
    next_step: str | None = None,
    target: str = "output",
    asks: tuple[str, ...] = (),
    outside: str = "",
) -> Finding:
    """What a rule about form, `check/CODE`, finds."""
    return Finding((FORM + code,), target, effect, inside, outside, (), asks, next_step)
