"""A document looked at as `check` looks at it: more values than people can stand behind never pass in the session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..judge import Judged
from ..rules.types import Effect, Finding

if TYPE_CHECKING:
    from ..acro_session import DeltabSession


def shaped(session: DeltabSession, judged: Judged) -> Judged:
    """The judgement with the findings of `screening.plausible.shape_findings` on what would leave."""
    from ..screening.plausible import shape_findings

    document = judged.document
    if document is None or document.type not in session.ruleset.output_types:
        return judged
    n = judged.facts.get("n")
    people = n.value if n is not None and type(n.value) is int else None
    least = int(session.ruleset.parameters["min_n"])
    found = [
        Finding(
            rules=finding.rules,
            target="output",
            effect=Effect.BLOCK if finding.effect == "block" else Effect.REVIEW,
            inside=finding.text,
            outside=finding.outside or "The output has more values than so many people can stand behind.",
            asks=finding.asks,
            next_step="Ask for fewer values.",
        )
        for finding in shape_findings(document, people, least, session.ruleset.cls(document.type))
    ]
    if not found:
        return judged
    findings = (*found, *judged.decision.findings)
    worst = min((judged.decision.effect, *(f.effect for f in found)), key=lambda effect: effect.rank)
    decision = replace(judged.decision, effect=worst, findings=findings)
    return replace(judged, decision=decision, document=None if worst is Effect.BLOCK else document)
