"""The membership test that weights are said to have: in inside/, whole, and about weights of this session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..base.errors import SacroDeltabError
from ..base.findings import Effect, Finding, note
from ..base.schemas import fits
from ..base.strict import parse
from ..inert.snapshot import take

if TYPE_CHECKING:
    from .session_state import Session

ATTACK = "inside/attack.json"
_SACRO_ML = ("log_id", "attack_experiment_logger")  # such a report names no weights and is taken at its word
_ASK = ("Was a membership-inference test of exactly these weights made, and what did it find?",)


def attack_findings(session: Session, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """Weights that claim a report, whose report is gone, empty or another model's, go to a person."""
    claimed = entry["facts"]["facts"].get("evidence.attack_report", {}).get("value")
    if claimed is not True or not session.evidence:
        return
    known = {o.get("weights_sha256") for o in session.evidence["outputs"]} - {None}
    if not _about(session, known):
        yield note(
            "attack-report",
            Effect.REVIEW,
            "The weights are said to have a membership-inference report, and inside/ holds none about them.",
            next_step="Run `sacro-deltab attack`, attach its report and release the weights again.",
            asks=_ASK,
        )


def _about(session: Session, known: set[Any]) -> bool:
    try:
        data = parse(take(session.root / ATTACK, ATTACK, session.context.limits).data, path=ATTACK)
    except (SacroDeltabError, OSError):
        return False
    if not isinstance(data, dict):
        return False
    if data.get("schema") is None:
        return any(key in data for key in _SACRO_ML)
    return fits(data, "attack-report") and data["target"]["weights_sha256"] in known | {None}
