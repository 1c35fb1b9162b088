"""What the outputs of a private training still wait for: asked before any ε is spent, of the rules themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..base.errors import BudgetError, InputError
from ..base.findings import Effect
from ..model.parameters import BETA1, BETA2, BETA2SQ, FOLDED, X_MEAN, X_STD, Y_MEAN, YSQ_MEAN, YSQ_SLOPE
from ..rules import decide
from ..rules.facts import Fact, Facts, Provider
from .common import noised, stated

if TYPE_CHECKING:
    from .core import SessionCore

WEIGHTS = (
    BETA1, BETA2, BETA2SQ, FOLDED, YSQ_MEAN, YSQ_SLOPE, X_MEAN, X_STD, Y_MEAN,
)  # fmt: skip
_WHO = {"declared": "declared by the researcher (declare)", "attested": "said by TRE staff (attest)"}


def waiting(
    session: SessionCore, kinds: Sequence[str] = WEIGHTS, adjacency: str = "zero_out_N_public"
) -> dict[str, str]:
    """Kinds of output that cannot leave whatever the noise will be, each with why.

    The rules judge what is known beforehand: what was said, and what every noised release here has. Facts that are
    measured later are unknown and count neither way.
    """
    statement = {
        "mechanism": "discrete_gaussian", "label": "formal", "epsilon": 1.0, "delta_dp": 0.0, "adjacency": adjacency,
        "bounds": {"provenance": "registered_file"}, "sigma_unit": None,
    }  # fmt: skip
    noise = noised(statement, sensitivity=1.0, post_processing=True)
    noise |= {"evidence.attack_report": True, "pca.origin": "shared_normative"}  # this session's to say, later
    measured = {name: Fact(name, value, Provider.COMPUTED) for name, value in noise.items()}
    out: dict[str, str] = {}
    for kind in kinds:
        if kind not in session.ruleset.outputs:
            continue
        said = stated(session, kind, kind)
        known = {**said, **measured, **session.budget.facts()}
        decision = decide(session.ruleset, Facts(kind, kind, known, ()))
        lacks = [name for name in decision.missing if session.ruleset.facts[name].by in _WHO]
        said_so = [
            finding.outside
            for finding in decision.findings
            if finding.effect is Effect.BLOCK and _rests_on(session, finding.rules, said)
        ]
        if lacks:
            out[kind] = ", ".join(f"{name}, {_WHO[session.ruleset.facts[name].by]}" for name in lacks)
        elif said_so:
            out[kind] = said_so[0]
    return out


def _rests_on(session: SessionCore, rules: Sequence[str], said: Mapping[str, object]) -> bool:
    """Whether people's own words alone decided these rules."""
    found = [rule for rule in session.ruleset.rules if rule.id in rules]
    return bool(found) and all(condition.fact in said for rule in found for condition in rule.require)


def ready(session: SessionCore, kinds: Sequence[str] = WEIGHTS, adjacency: str = "zero_out_N_public") -> list[str]:
    """One line a reason: how many outputs wait for what."""
    reasons: dict[str, int] = {}
    for reason in waiting(session, kinds, adjacency).values():
        reasons[reason] = reasons.get(reason, 0) + 1
    return [
        f"{n} kind{'s' if n > 1 else ''} of output wait{'' if n > 1 else 's'} for {why}" for why, n in reasons.items()
    ]


def refuse_in_vain(session: SessionCore, adjacency: str) -> None:
    """Refuse a training of which nothing could leave; nothing is spent then.

    Raises
    ------
    InputError
        Every weight waits for something that somebody must say first.
    """
    stuck = waiting(session, WEIGHTS, adjacency)
    if len(stuck) < sum(kind in session.ruleset.outputs for kind in WEIGHTS):
        return
    raise InputError(
        "nothing of this training could leave, so no ε was spent: " + "; ".join(ready(session, WEIGHTS, adjacency)),
        next_step="Give the statements first (declare=, attest=; --declare, --attest), or spend all the same with "
        "spend_anyway=True (--spend-anyway).",
    )


def refuse_beyond(session: SessionCore, epsilons: Sequence[float | None]) -> None:
    """Refuse several spends of which one would be refused: before the first of them.

    Raises
    ------
    BudgetError
        One is above the limit of a release, or they are more than is left together.
    """
    wanted = [float(e) for e in epsilons if e is not None]
    p, spent = session.ruleset.parameters, session.budget.totals_json()["epsilon_sum"]
    most, total = float(p["epsilon_per_release"]), float(p["epsilon_total"])
    if any(e > most for e in wanted) or sum(wanted) > (total - spent) * (1 + 1e-12):
        raise BudgetError(
            f"the budget does not cover all that is asked: ε {' and '.join(f'{e:g}' for e in wanted)}, of at most "
            f"{most:g} a release and {total - spent:g} left. Nothing was spent",
            next_step="Ask for less ε.",
        )
