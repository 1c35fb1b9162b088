"""A judgement completed by the form of what would leave: more values than so many people can stand behind."""

from __future__ import annotations

from dataclasses import replace

from ..base.findings import Effect
from ..rules import RuleSet
from .judge import Judged
from .plausible import shape_findings


def shaped(ruleset: RuleSet, judged: Judged) -> Judged:
    """The judgement with what `shape_findings` says of the document that would leave."""
    document = judged.document
    if document is None or document.type not in ruleset.output_types:
        return judged
    n = judged.facts.get("n")
    people = n.value if n is not None and type(n.value) is int else None
    found = [
        replace(
            finding,
            target="output",
            outside=finding.outside or f"{ruleset.titles(finding.rules)}; that is not so here.",
            next_step=finding.next_step or "Ask for fewer values.",
        )
        for finding in shape_findings(document, people, ruleset)
    ]
    if not found:
        return judged
    findings = (*found, *judged.decision.findings)
    worst = min((judged.decision.effect, *(f.effect for f in found)), key=lambda effect: effect.rank)
    decision = replace(judged.decision, effect=worst, findings=findings)
    return replace(judged, decision=decision, document=None if worst is Effect.BLOCK else document)
