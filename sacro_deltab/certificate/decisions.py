"""What checkers decided, output by output: a decision holds for an output with all its files.

A file that was accepted beside a twin that was refused is not accepted: both print the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..base.names import shown
from .layout import ENVELOPES, STATEMENT, Inventory
from .review import folder_states
from .votes import CHECKERS, FileStatus

if TYPE_CHECKING:
    from ..ledger.trust import Trust

ACCEPTED = "accepted"
OUTCOMES = ("refused", "returned", "awaited", ACCEPTED)  # worst first
WORDS = {"awaited": "undecided"}


@dataclass(frozen=True)
class Decisions:
    """Decisions on a release. begun: whether anybody decided anything; files: name → outcome."""

    begun: bool
    files: Mapping[str, str]

    def of(self, output: Mapping[str, Any]) -> str:
        """The worst outcome over all files of an output."""
        return min((self.files.get(name, "awaited") for name in output["files"]), key=OUTCOMES.index)

    def told(self, output: Mapping[str, Any]) -> str:
        """Its name, with its files where they were decided upon in different ways."""
        found = {name: self.files.get(name, "awaited") for name in output["files"]}
        name = shown(str(output["name"]))
        if len(set(found.values())) == 1:
            return name
        return f"{name} ({', '.join(f'{shown(f)} {WORDS.get(o, o)}' for f, o in found.items())})"


def decisions_of(predicate: Mapping[str, Any], states: Sequence[FileStatus] = ()) -> Decisions:
    """Decisions that a signed record carries, and those that lie in its folder."""
    carried: dict[str, dict[str, str]] = {}
    for answer in predicate["people"]["answers"]:
        carried.setdefault(str(answer["file"]), {})[str(answer["role"])] = str(answer["decision"])
    outcomes = [(file, FileStatus(file, "", 0, dict.fromkeys(CHECKERS, "awaited") | votes).outcome)
                for file, votes in carried.items()]  # fmt: skip
    here = any(vote != "awaited" for state in states for vote in state.votes.values())
    outcomes += [(state.file, state.outcome) for state in states if here]
    files: dict[str, str] = {}
    for file, outcome in outcomes:
        files[file] = min(outcome, files.get(file, outcome), key=OUTCOMES.index)
    return Decisions(bool(carried) or here, files)


def decisions_in(inventory: Inventory, predicate: Mapping[str, Any], trust: Trust, at: datetime) -> Decisions:
    """Decisions on a folder that holds as certified."""
    return decisions_of(predicate, folder_states(inventory, predicate, trust, at) if inventory.inside else ())


def asked(predicate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The outputs that are asked to leave: not those kept inside, and not the certificate's own files."""
    papers = {STATEMENT, *ENVELOPES}
    return [o for o in predicate["outputs"] if not o["kept_inside"] and not papers & set(o["files"])]


def not_accepted(outputs: Iterable[Mapping[str, Any]], decisions: Decisions) -> list[str]:
    """One sentence an outcome that is none of acceptance, with the outputs that it is of."""
    found: dict[str, list[str]] = {}
    for output in outputs:
        outcome = decisions.of(output)
        if outcome != ACCEPTED:
            found.setdefault(outcome, []).append(decisions.told(output))
    return [f"{WORDS.get(o, o)}: {', '.join(found[o])}" for o in OUTCOMES if o in found]
