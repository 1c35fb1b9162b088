"""Node files in, one pooled model out: verify, compare, pool, judge, account, write. A refusal writes nothing."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.errors import InputError, RefusedError
from ..certificate.law import committee
from ..judging.said import read_said
from ..ledger.trust import Trust, load_trust
from ..outputs.parameters import BETA1, FOLDED, MOMENTS
from ..privacy.basis import Basis
from ..rules import RuleSet, load_ruleset
from ..rules.judging import judging_ruleset
from . import account, history, noise, results
from .bundle import Node, read_node
from .compare import check_model, check_noise, check_policy, check_set, released_n
from .folder import write
from .job import check_basis, check_rule_set, load_job, named_jobs
from .meta import MetaTable, meta_tables
from .models import PooledModel, pool_model
from .order import Order, PooledOutput, Pooling, Say
from .pooling import choose_way
from .public import find_public

_POOLABLE = (MOMENTS, FOLDED, BETA1)
_TABLES_ONLY = "meta_analysis"


def aggregate(order: Order, say: Say) -> Pooling:
    """Verify, compare, pool, judge and write.

    Raises
    ------
    RefusedError
        Exit 1: something does not hold or may not be pooled. No output folder is left.
    InputError
        Exit 2: a file cannot be used. No output folder is left.
    """

    _check_order(order)
    trust = load_trust(order.trust)
    if order.job is not None:
        order = _with_job(order)
    with tempfile.TemporaryDirectory(prefix="sacro-deltab-nodes-") as scratch:
        say("verifying every node's certificate before a number is read")
        nodes = _read(order, trust, Path(scratch))
        _check_job(order, nodes)
        pooling = pool(order, nodes, say)
    say("writing the pooled folder")
    write(pooling, trust)
    return pooling


def _with_job(order: Order) -> Order:
    """The job's own number of nodes and rule set; what the nodes used must be what it names."""

    assert order.job is not None
    job = load_job(order.job)
    check_rule_set(job, load_ruleset(order.rules, profile=order.profile, seals=committee(order.trust)))
    if order.basis is not None and job.basis_digest is not None:
        check_basis(job, Basis.load(order.basis))
    if order.expect not in (None, job.expect):
        raise InputError(f"--expect {order.expect} is not what job {job.id} says ({job.expect})", path=order.job)
    return replace(order, expect=job.expect, noise_model=order.noise_model or job.noise_model)


def _check_job(order: Order, nodes: Sequence[Node]) -> None:
    """A node that ran a job ran the one given here."""
    if order.job is None:
        return

    job = load_job(order.job)
    for node in nodes:
        other = [name for name, digest in named_jobs(node.predicate["not_checked"]) if digest != job.sha256]
        if other:
            raise RefusedError(
                f"node {node.name} ran another job file ({other[0]}) than the one given here",
                path=node.path,
                next_step="give the job file that was sent to the nodes, byte for byte.",
            )


def _check_order(order: Order) -> None:
    if order.out.exists() or order.out.is_symlink():
        raise InputError("the output folder exists", path=order.out, next_step="Choose another name with --out.")
    if not order.out.absolute().parent.is_dir():
        raise InputError("there is no such place", path=order.out.absolute().parent, next_step="Make it first.")
    if not order.paths:
        raise InputError("no node was named", next_step="Name the folders or zips the nodes released.")
    for path in order.paths:
        if path.exists() and order.trust.resolve().is_relative_to(path.resolve()):
            raise InputError("the trust file lies in a node's folder; one that came with the files proves nothing",
                             path=order.trust)  # fmt: skip
        if order.out.resolve().is_relative_to(path.resolve()):
            raise InputError("the output folder lies in a node's folder", path=order.out)
    if order.expect is not None and order.expect < 2:
        raise InputError("--expect counts nodes and is at least 2", place="--expect")


def _read(order: Order, trust: Trust, scratch: Path) -> tuple[Node, ...]:
    nodes = tuple(read_node(path, trust, scratch, at=order.at) for path in order.paths)
    check_set(nodes, order.expect)
    if len(nodes) < 2:
        raise RefusedError("one node is no federation: its own weights are what it released",
                           next_step="name every node's files.")  # fmt: skip
    return nodes


def pool(order: Order, nodes: tuple[Node, ...], say: Say) -> Pooling:
    """Everything between reading the nodes and writing: pure but for the files of basis, bounds and history."""

    ruleset = judging_ruleset(order.rules, profile=order.profile, seals=committee(order.trust))
    check_policy(nodes)
    _check_own_policy(ruleset, nodes[0])
    tables = tuple(meta_tables(nodes))
    model = None
    if _tables_only(nodes, order, tables):
        way = _TABLES_ONLY
    else:
        model = _model(order, nodes, say)
        way = model.way
        tables = tuple(meta_tables(nodes, model.noise))
    used = _used(nodes, model, tables)
    _check_decided(order, nodes, used)
    spends = tuple(account.spend_of(n, model.source(n)) for n in nodes) if model is not None else ()
    for spend, node in zip(spends, nodes, strict=False):
        account.check_cover(spend, node)
    declared_by = account.disjoint_by(nodes, order.disjoint)
    totals = account.totals(spends, declared_by)
    if spends:
        account.check_shared(totals, _limit(ruleset))
    words = [n.predicate["people"]["declared"]["facts"].get("dp.trust_model") for n in nodes]
    labels = [s.label for s in spends] or ["formal"] * len(nodes)
    noise_model = noise.noise_model([w if isinstance(w, str) else None for w in words], labels, order.noise_model)
    past = None if order.history is None or not spends else history.load_history(order.history)
    number = None
    if past is not None:
        number = history.check_round(past, nodes, spends, _limit(ruleset))
    say("judging what is pooled, and pooled minus each node")
    outputs = _judge(order, ruleset, nodes, used, model, tables, way, noise_model, declared_by is not None, labels)
    return Pooling(
        order=order, nodes=nodes, ruleset=ruleset, way=way, noise_model=noise_model, model=model, tables=tables,
        outputs=outputs, spends=spends, totals=totals, history=past, round=number,
        repeated=past is not None and past.same_round(nodes) is not None,
        pooled_id=str(uuid.uuid4()), made=datetime.now(UTC), notes=() if model is None else model.notes,
        undecided=_undecided(nodes, used),
    )  # fmt: skip


def _check_own_policy(ruleset: RuleSet, node: Node) -> None:
    policy = node.policy
    if (ruleset.id, ruleset.version, ruleset.sha256) != (policy["id"], policy["version"], policy["sha256"]):
        raise RefusedError(
            f"the nodes were judged by {policy['id']} {policy['version']} ({policy['sha256'][:12]}), the pooled output "
            f"would be by {ruleset.id} {ruleset.version} ({ruleset.sha256[:12]}): the nodes differ in policy from here",
            next_step="give the nodes' rule set with --rules.",
        )


def _tables_only(nodes: Sequence[Node], order: Order, tables: Sequence[MetaTable]) -> bool:
    some = any(n.of_type(kind) is not None for n in nodes for kind in _POOLABLE)
    return not some and bool(tables) and order.way in (None, _TABLES_ONLY)


def _model(order: Order, nodes: tuple[Node, ...], say: Say) -> PooledModel:
    lost = next((n for n in nodes for kind in (MOMENTS, FOLDED)
                 if kind in n.withheld and any(m.of_type(kind) is not None for m in nodes)), None)  # fmt: skip
    if lost is not None:
        raise RefusedError(f"node {lost.name} withheld a file that the others sent: {', '.join(lost.withheld)}",
                           path=lost.path, next_step="pool what every node released, with --way.")  # fmt: skip
    way = choose_way(nodes, order.way)
    check_model(nodes, mixed_basis=order.way == "fedavg_folded")
    check_noise(nodes)
    say(f"pooling: {way.replace('_', ' ')}")
    return pool_model(nodes, way, find_public(order, nodes, say))


def _used(nodes: Sequence[Node], model: PooledModel | None, tables: Sequence[MetaTable]) -> dict[str, list[str]]:
    """Outputs of each node that enter the pooled ones."""
    names = {n.name: [] if model is None else list(model.used(n)) for n in nodes}
    for table in tables:
        for node in nodes:
            document = node.documents.get(table.name)
            if document is not None and document.type == table.kind:
                names[node.name].append(table.name)
    return names


def _check_decided(order: Order, nodes: Sequence[Node], used: Mapping[str, Sequence[str]]) -> None:
    if not order.require_decided:
        return
    for name, waiting in _undecided(nodes, used):
        raise RefusedError(
            f"node {name} certified {', '.join(waiting)} for review, and nobody has decided",
            path=next(n.path for n in nodes if n.name == name),
            next_step="decide with `sacro-deltab review` and certify again, or let a checker sign (certify --add).",
        )


def _limit(ruleset: RuleSet) -> float | None:
    value = ruleset.parameters.get("epsilon_total")
    return float(value) if isinstance(value, int | float) else None


def _by_n(model: PooledModel | None, counts: Mapping[str, int]) -> bool | None:
    """Whether the nodes' shares are their released N over the sum of all; None where no model was averaged."""
    if model is None or not model.shares:
        return None
    total = sum(counts[node.name] for node in model.nodes)
    wanted = [counts[node.name] / total for node in model.nodes]
    return all(abs(share - part) <= 1e-9 for share, part in zip(model.shares, wanted, strict=True))


def _judge(
    order: Order,
    ruleset: RuleSet,
    nodes: tuple[Node, ...],
    used: Mapping[str, Sequence[str]],
    model: PooledModel | None,
    tables: Sequence[MetaTable],
    way: str,
    noise_model: str,
    disjoint: bool,
    labels: Sequence[str],
) -> tuple[PooledOutput, ...]:
    declared, route = _said(order, ruleset, nodes, used)
    counts = {n.name: released_n(n) or 0 for n in nodes}

    def setting(without: str | None = None, how: str = way) -> results.Setting:
        rest = [n.name for n in nodes if n.name != without]
        formal = [label == "formal" for n, label in zip(nodes, labels, strict=True) if n.name != without]
        return results.Setting(
            way=how, noise_model=noise_model, disjoint=disjoint, every_formal=all(formal), count=len(nodes),
            smallest_n=min(counts[name] for name in rest), n=sum(counts[name] for name in rest), declared=declared,
            route=route, weighted_by_n=_by_n(model, counts),
        )  # fmt: skip

    found: list[PooledOutput] = []
    for document in [] if model is None else model.documents():
        judged = results.judge_document(ruleset, setting(), document, {})
        found.append(PooledOutput(judged, document.name, document.type))
    for node in [] if model is None else nodes:
        for document in model.minus(node) if model is not None else []:
            judged = results.judge_document(ruleset, setting(node.name), document, {})
            found.append(PooledOutput(judged, document.name, document.type, node.name))
    for table in tables:
        document, people = results.table_document(table, {"rule_set": f"{ruleset.id} {ruleset.version}"})
        judged = results.judge_document(ruleset, setting(how=_TABLES_ONLY), document, people)
        found.append(PooledOutput(judged, document.name, document.type))
    _refuse_blocked(found)
    return tuple(found)


def _said(
    order: Order, ruleset: RuleSet, nodes: Sequence[Node], used: Mapping[str, Sequence[str]]
) -> tuple[bool, str | None]:
    """Declaration and way out: as the nodes' certificates have them, unless somebody says so here."""

    declared, route = results.said_by_nodes(ruleset, nodes, used)
    if order.declare is not None:
        declared = read_said(order.declare, "researcher", ruleset).facts.get("output.declared") is True or declared
    attested: Mapping[str, Any] = dict(ruleset.profile.attest) if ruleset.profile is not None else {}
    if order.attest is not None:
        attested = {**attested, **read_said(order.attest, "tre_staff", ruleset).facts}
    said = attested.get("egress.route")
    return declared, said if isinstance(said, str) else route


def _refuse_blocked(outputs: Sequence[PooledOutput]) -> None:
    blocked = next((o for o in outputs if o.judged.document is None), None)
    if blocked is None:
        return
    worst = blocked.judged.decision.findings[0]
    what = blocked.name if blocked.minus is None else f"pooled minus {blocked.minus}"
    raise RefusedError(f"the rules do not let {what} leave ({', '.join(worst.rules)}): {worst.outside}",
                       next_step=worst.next_step or "nothing was written.")  # fmt: skip


def _undecided(nodes: Sequence[Node], used: Mapping[str, Sequence[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Per node the pooled outputs that were certified for review and carry no person's decision."""
    found = [(node.name, tuple(sorted(set(node.undecided) & set(used[node.name])))) for node in nodes]
    return tuple((name, outputs) for name, outputs in found if outputs)
