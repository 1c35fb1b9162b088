"""Which rule sets may judge: those that are not retired and pass their own tests and proofs, others as drafts only."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..base.errors import RuleSetError
from ..base.resources import rules_dir
from .layers import load_ruleset
from .model import RuleSet
from .own_tests import faults
from .seals import NOBODY, Seals


def judging_ruleset(
    source: str | Path | None = None,
    *,
    profile: str | Path | None = None,
    draft: bool = False,
    seals: Seals = NOBODY,
) -> RuleSet:
    """Load a rule set to judge outputs by it.

    Parameters
    ----------
    draft
        Judge by a set that fails its own tests all the same; its name then says DRAFT wherever it is printed.

    Raises
    ------
    RuleSetError
        It does not load, is retired (it serves `verify` only), or fails its own tests or proofs without `draft`.
    """
    ruleset = load_ruleset(source, profile=profile, seals=seals)
    if ruleset.state == "retired":
        raise RuleSetError(
            f"{ruleset.id} {ruleset.version} is retired: it serves `verify` of old certificates only",
            path=ruleset.folder,
            next_step="Judge by the rule set that replaced it.",
        )
    found = () if _is_packaged(ruleset) else _faults(ruleset.folder, ruleset.sha256)
    if found and not draft:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise RuleSetError(
            f"{ruleset.id} {ruleset.version} fails its own tests: {found[0]}{more}",
            path=ruleset.folder,
            next_step="`rules test` lists them. With --draft it judges all the same, and every record says DRAFT.",
        )
    return replace(ruleset, state="draft") if found else ruleset


def _is_packaged(ruleset: RuleSet) -> bool:
    """The packaged set is held to its tests where it is made."""
    return Path(ruleset.folder).resolve() == rules_dir(ruleset.id).resolve()


@lru_cache(maxsize=16)
def _faults(folder: str, sha256: str) -> tuple[str, ...]:
    del sha256  # part of what is remembered: other content is tested again
    return tuple(faults(load_ruleset(Path(folder))))
