"""`run --dry-run`: what can be judged without noise is, on a copy of the ledger; nothing is spent or written.

No noise is drawn: a status that rests on noise would be an answer that nobody paid for.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..session.ready import ready, refuse_beyond
from .pipeline import judged
from .plan import Plan, Say, epsilons, read
from .telling import heading, told

_FORMS = ("", "-wal", "-shm", ".key")  # a SQLite file and what may lie beside it


@dataclass(frozen=True)
class Rehearsal:
    """What a run would come to, as far as it needs no noise."""

    said: tuple[str, ...]
    outputs: tuple[Mapping[str, Any], ...]
    not_done: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "schema": "sacro_deltab/dry-run/1", "outputs": list(self.outputs), "not_done": list(self.not_done),
        }  # fmt: skip


def rehearse(plan: Plan, say: Say) -> Rehearsal:
    """Judge what a run would ask for without its noise.

    Raises
    ------
    SacroDeltabError
        What would end the run: an input that cannot be read, a rule set that does not load.
    """
    say("reading the cohort")
    cohort = read(plan)
    with tempfile.TemporaryDirectory() as place:
        ledger, known = _copied(plan.ledger, Path(place))
        without = replace(
            plan, epsilon=None, epsilon_mean=None, noised=(), ledger=str(ledger), plots=False, moments=False
        )
        session, impossible = judged(without, cohort, Path(place) / "journal", say)
        notes = [text for text in impossible if not (plan.epsilon is not None and text.startswith("no private"))]
        if plan.epsilon is not None:
            notes.insert(0, f"no private training: it would spend ε {plan.epsilon:g} before any noise is drawn")
            notes += ready(session, adjacency=plan.adjacency)
            refuse_beyond(session, epsilons(plan))
        for name, epsilon in (("mean", plan.epsilon_mean), *plan.noised):
            if epsilon is not None:
                notes.insert(0, f"no noised {name.replace('_', ' ')}: it would spend ε {epsilon:g}")
        if not known:
            notes.append(f"earlier releases in {plan.ledger} were not looked at")
        said = ["Dry run: nothing was spent, nothing was written, and no noise was drawn.", *heading(session)]
        lines = [line for line in told(session, notes) if not line.startswith("Privacy budget")]
        outputs = [
            {"name": e.name, "type": e.type, "status": e.status, "reasons": list(e.reasons)} for e in session.entries
        ]
        return Rehearsal((*said, *lines), tuple(outputs), tuple(notes))


def _copied(ledger: str, place: Path) -> tuple[Path, bool]:
    """A copy of a ledger in a file; a new one where there is none yet, or where it is a server's."""
    source = Path(ledger.removeprefix("sqlite:///"))
    target = place / "budget.db"
    if not source.is_file():
        return target, "://" not in ledger or ledger.startswith("sqlite:///")
    for form in _FORMS:
        beside = Path(f"{source}{form}")
        if beside.is_file():
            shutil.copy2(beside, f"{target}{form}")
    return target, True
