"""What each clause will say to a job before it is sent: the rules, asked with everything a job file already fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.verdicts import worst
from ..kinds.group_tables import DELTA_SD_BY_GROUP, kind_by
from ..kinds.papers import JOB
from ..outputs.parameters import MOMENTS, TRAINED
from ..privacy.mechanisms import mu_of
from ..rules import RuleSet, decide, facts_required
from ..rules.facts import Fact, Facts, FactValue, Part, Provider
from ..session.common import noised, not_noised
from .job import Job


@dataclass(frozen=True)
class Forecast:
    """What the rules will say to one output.

    says: (rule ids, effect, sentence) for what is decided already; asks: questions a person will have to answer;
    open_facts: what only the node can know, with the rules that wait for it.
    """

    output: str
    kind: str
    verdict: str  # "pass", "review", "fail", before what only the node knows
    met: tuple[str, ...]
    says: tuple[tuple[tuple[str, ...], str, str], ...]
    asks: tuple[str, ...]
    open_facts: Mapping[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        """For `job check --json`."""
        return {
            "output": self.output,
            "type": self.kind,
            "verdict": self.verdict,
            "met": list(self.met),
            "says": [{"rules": list(r), "effect": e, "text": t} for r, e, t in self.says],
            "asks": list(self.asks),
            "known_at_the_node_only": {k: list(v) for k, v in self.open_facts.items()},
        }


def forecast(job: Job, ruleset: RuleSet) -> list[Forecast]:
    """One forecast for the job file itself, for each output and for each table."""
    out = [_one(ruleset, "job file", JOB, _paper_facts())]
    for name in job.outputs:
        out.append(_one(ruleset, name, name, _facts(job, ruleset, name)))
    for table in job.tables:
        kind = table_kind(table.by, table.statistic)
        name = f"{table.statistic} of delta by {table.by}"
        out.append(_one(ruleset, name, kind, _facts(job, ruleset, kind), table.width))
    return out


def table_kind(by: str, statistic: str) -> str:
    """Output type of a table."""
    return DELTA_SD_BY_GROUP if statistic == "sd" else kind_by(by, bands=by == "age_band")


def _paper_facts() -> dict[str, Fact]:
    """A job file has no place for a number from anybody's data: its schema is closed."""
    values: dict[str, FactValue] = {"output.format": "yaml", "record.schema_valid": True, "job.data_free": True}
    facts = {name: Fact(name, value, Provider.COMPUTED) for name, value in values.items()}
    facts["output.declared"] = Fact("output.declared", True, Provider.DECLARED)
    facts["egress.route"] = Fact("egress.route", "tre_airlock", Provider.ATTESTED)  # it goes in, not out
    return facts


def _facts(job: Job, ruleset: RuleSet, kind: str) -> dict[str, Fact]:

    noise: dict[str, FactValue] = dict(not_noised())
    epsilon, small = job.node_epsilon, job.node_delta
    if kind in TRAINED:
        statement = {
            "label": "formal", "mechanism": "gaussian", "adjacency": job.adjacency, "epsilon": epsilon,
            "delta_dp": small, "sigma_unit": 1 / mu_of(epsilon, small),
            "bounds": {"provenance": "basis" if job.basis_digest else "registered_file"},
        }  # fmt: skip
        noise = dict(noised(statement, sensitivity=1.0, post_processing=True))
        if kind == MOMENTS:
            noise["moments.on_grid"] = True
    values: dict[str, FactValue] = {
        "output.known": kind in ruleset.output_types,
        "output.format": "csv",
        "n": job.minimum_n,
        "n_node": job.minimum_n,
        "n.shown": job.minimum_n,  # each node's training shows its own, or is refused before it is paid
        "residual_dof": job.minimum_n - job.n_components,
        "rounding.done": True,
        "dp.end_to_end_claim": False,
        **noise,
    }
    facts = {name: Fact(name, value, Provider.COMPUTED) for name, value in values.items()}
    ledger: dict[str, FactValue] = {"ledger.accountant": "sum", "ledger.entry": kind in TRAINED,
                                    "ledger.n_protected": job.adjacency == "add_remove"}  # fmt: skip
    facts |= {name: Fact(name, value, Provider.LEDGER) for name, value in ledger.items()}
    words: dict[str, FactValue] = {
        "cohort.unit": "person",
        "training.iterative": False,
        "pca.origin": "shared_normative" if job.basis_digest else "node_specific",
        **job.said["facts"],
    }
    return facts | {name: Fact(name, value, Provider.DECLARED) for name, value in words.items()}


def _one(ruleset: RuleSet, name: str, kind: str, facts: Mapping[str, Fact], width: float | None = None) -> Forecast:

    needed = facts_required(ruleset, kind) if kind in ruleset.output_types else frozenset()
    relevant = {n: f for n, f in facts.items() if n in needed or n in ("output.known", "output.declared")}
    parts: tuple[Part, ...] = ()
    if any(n.startswith("cell.") for n in needed):  # cells are the node's; one of the fewest people stands for them
        least = int(str(ruleset.parameters["min_n"]))
        cell = {
            "cell.n": Fact("cell.n", least, Provider.COMPUTED),
            "cell.structural_zero": Fact("cell.structural_zero", False, Provider.DECLARED),
        }
        if width is not None:
            cell["cell.age_band"] = Fact("cell.age_band", True, Provider.COMPUTED)
            cell["band.width_years"] = Fact("band.width_years", float(width), Provider.COMPUTED)
        parts = (Part("cell", "a group", cell),)
    decision = decide(ruleset, Facts(kind, kind, relevant, parts))
    open_facts: dict[str, tuple[str, ...]] = {}
    completeness = ruleset.ids_about("evidence.complete")
    says, asks, found = [], [], []
    for finding in decision.findings:
        missing = next((m for m in decision.missing if f" {m} " in finding.inside or f" {m} " in finding.outside), None)
        if missing is not None:
            open_facts[missing] = tuple(r for r in finding.rules if r not in completeness)
            continue
        says.append((finding.rules, finding.effect.name.lower(), finding.outside))
        asks += [a for a in finding.asks if a not in asks]
        found.append(finding.verdict)
    return Forecast(name, kind, worst(found), tuple(decision.met), tuple(says), tuple(asks), open_facts)


def lines_of(job: Job, ruleset: RuleSet, found: list[Forecast]) -> list[str]:
    """The forecast in words."""
    lines = [
        f"Job {job.id}, round {job.round}, for {job.expect} nodes: {job.title}",
        f"sha256 {job.sha256}",
        f"Rules: {ruleset.name}, sha256 {ruleset.sha256[:16]}…",
        f"Each node pays ε {job.node_epsilon:.3g} and δ {job.node_delta:.3g} per person, of "
        f"ε {ruleset.parameters['epsilon_total']} in all",
    ]
    if job.noise_model == "distributed":
        lines.append(f"  shared noise: nominal ε {job.epsilon:g} for who sees the sum; the ledger counts what "
                     f"{job.expect - 1} colluding node(s) could see")  # fmt: skip
    names = {rule.id: rule.title for rule in ruleset.rules}
    words = {"pass": "nothing stands against it", "review": "a person will be asked", "fail": "WILL NOT LEAVE"}
    for one in found:
        lines += ["", f"{one.output}: {words[one.verdict]}"]
        lines += [f"  met: {rule} {names.get(rule, '')}" for rule in one.met]
        lines += [f"  {effect}: {', '.join(rules)} {text}" for rules, effect, text in one.says]
        lines += [f"  asks: {text}" for text in one.asks]
        for fact, rules in one.open_facts.items():
            spec = ruleset.facts.get(fact)
            reads = fact if spec is None else f"{spec.reads} ({fact})"
            lines.append(f"  known at the node only: {reads}, for {', '.join(rules) or 'the rules'}")
    return lines
