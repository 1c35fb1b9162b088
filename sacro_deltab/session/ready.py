"""What the outputs of a private training still wait for: asked before any ε is spent, of the rules themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.errors import BudgetError, InputError
from ..base.findings import Effect
from ..outputs.parameters import BETA1, BETA2, BETA2SQ, FOLDED, Y_MEAN, YSQ_MEAN, YSQ_SLOPE
from ..rules import RuleSet, decide
from ..rules.facts import Fact, Facts, Provider
from ..rules.types import Decision
from .common import noised, stated

if TYPE_CHECKING:
    from .core import SessionCore

WEIGHTS = (BETA1, BETA2, BETA2SQ, FOLDED, YSQ_MEAN, YSQ_SLOPE, Y_MEAN)  # what noise is paid for
_MODEL = (BETA1, FOLDED)
_WHO = {"declared": "declared by the researcher (declare)", "attested": "said by TRE staff (attest)"}
_PUBLIC = frozenset({"n", "n_node", "dp.adjacency"})  # known before any noise, where N is public


@dataclass(frozen=True)
class Wait:
    """A kind of output that waits: for a fact that somebody must say, or for ever, as the rules stand."""

    kind: str
    why: str
    stuck: bool  # else it goes to the checker with a question


def waits(session: SessionCore, kinds: Sequence[str] = WEIGHTS, adjacency: str = "zero_out_N_public") -> list[Wait]:
    """Kinds of output of a private training that would not pass whatever the noise will be, each with why.

    The rules judge what is known beforehand: what was said, what every noised release here has, and the roster's N
    where it is public (an exact N that is not would be a query). What is measured later counts neither way.
    """
    statement = {
        "mechanism": "discrete_gaussian", "label": "formal", "epsilon": 1.0, "delta_dp": 0.0, "adjacency": adjacency,
        "bounds": {"provenance": "registered_file"}, "sigma_unit": None,
    }  # fmt: skip
    noise = noised(statement, sensitivity=1.0, post_processing=True)
    noise |= {"evidence.attack_report": True, "pca.origin": "shared_normative"}  # this session's to say, later
    people = session.state.people
    if adjacency != "add_remove" and people is not None:
        noise |= {"n": people.n_people, "n_node": people.n_people}
    measured = {name: Fact(name, value, Provider.COMPUTED) for name, value in noise.items()}
    out: list[Wait] = []
    for kind in kinds:
        if kind in session.ruleset.outputs:
            said = stated(session, kind, kind)
            facts = Facts(kind, kind, {**said, **measured, **session.budget.facts()}, ())
            out += _waits(session.ruleset, decide(session.ruleset, facts), {*said, *_PUBLIC})
    return out


def _waits(ruleset: RuleSet, decision: Decision, known: Collection[str]) -> Iterator[Wait]:
    kind = decision.output_type
    specs = [ruleset.facts[name] for name in decision.missing]
    for spec in specs:
        if spec.by in _WHO:
            yield Wait(kind, f"{spec.name}, {_WHO[spec.by]}", stuck=not spec.ask)
    for finding in decision.findings:
        if finding.effect is Effect.BLOCK and _rests_on(ruleset, finding.rules, known):
            yield Wait(kind, finding.outside, stuck=True)


def _rests_on(ruleset: RuleSet, rules: Sequence[str], known: Collection[str]) -> bool:
    """Whether what is known beforehand alone decided these rules."""
    found = [rule for rule in ruleset.rules if rule.id in rules]
    return bool(found) and all(condition.fact in known for rule in found for condition in rule.require)


def ready(session: SessionCore, kinds: Sequence[str] = WEIGHTS, adjacency: str = "zero_out_N_public") -> list[str]:
    """One line a reason: how many outputs wait for what, and what becomes of them otherwise."""
    reasons: dict[tuple[str, bool], int] = {}
    for wait in waits(session, kinds, adjacency):
        reasons[wait.why, wait.stuck] = reasons.get((wait.why, wait.stuck), 0) + 1
    return [
        f"{n} output{'s' if n > 1 else ''} wait{'' if n > 1 else 's'} for: {why}"
        + ("" if stuck else "; otherwise the checker is asked, once for the whole request")
        for (why, stuck), n in reasons.items()
    ]


def refuse_in_vain(session: SessionCore, adjacency: str) -> None:
    """Refuse a training whose model could not leave; nothing is spent then (means of age alone are not worth it).

    Raises
    ------
    InputError
        Every form of the weights waits for something that somebody must say first, or that no noise will mend.
    """
    stuck = {wait.kind for wait in waits(session, _MODEL, adjacency) if wait.stuck}
    if len(stuck) < sum(kind in session.ruleset.outputs for kind in _MODEL):
        return
    raise InputError(
        "no weights of this training could leave, so no ε was spent: " + "; ".join(ready(session, WEIGHTS, adjacency)),
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
