"""The pooled folder: written beside its place, then renamed into it, with a statement that names its materials."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.canonical import canonical_json
from ..base.digests import digest_file
from ..base.errors import InputError, RefusedError
from ..certificate.envelope import sign
from ..certificate.keys import load_key
from ..certificate.layout import ENVELOPE, STATEMENT
from ..certificate.statement import STATEMENT_TYPE, utc_now, versions
from ..kinds.whole import DELTA_MEAN
from ..ledger.trust import Trust
from ..rules import RuleSet, decision_to_json
from . import history
from .forest import Panel, draw
from .order import PooledOutput, Pooling
from .report import report_json, report_lines
from .verify import POOLED_TYPE

REPORT = "report.json"
PAGE = "report.txt"
FOREST = "forest"


def write(pooling: Pooling, trust: Trust) -> Path:
    """Write everything or nothing.

    Raises
    ------
    RefusedError
        The signing key is not one the trust file knows today.
    InputError
        The place cannot be written.
    """
    order = pooling.order
    parent = order.out.absolute().parent
    try:
        work = Path(tempfile.mkdtemp(prefix=f".{order.out.name}.", suffix=".pooling", dir=parent))
    except OSError as error:
        raise InputError(f"cannot write here ({error.strerror})", path=parent) from error
    try:
        _files(pooling, work)
        entry = _history_entry(pooling)
        payload = canonical_json(statement(pooling, work, trust, entry))
        (work / STATEMENT).write_bytes(payload)
        if order.key is not None:
            (work / ENVELOPE).write_bytes(_signed(pooling, payload))
        work.chmod(0o755)
        if order.out.exists():
            raise InputError("the output folder exists", path=order.out)
        if entry is not None and pooling.history is not None:
            history.append(pooling.history, entry)  # first: a round that is pooled but not remembered could be repeated
        work.rename(order.out)
    except OSError as error:
        raise InputError(f"the pooled folder could not be written ({error.strerror})", path=order.out) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return order.out


def _files(pooling: Pooling, work: Path) -> None:
    for output in pooling.outputs:
        document = output.judged.document
        if output.minus is not None or document is None:
            continue
        (work / f"{document.name}.csv").write_text(document.to_csv(), encoding="utf-8")
        (work / f"{document.name}.json").write_text(document.to_json(), encoding="utf-8")
    text = json.dumps(report_json(pooling), indent=1, ensure_ascii=False, allow_nan=False)
    (work / REPORT).write_text(text + "\n", encoding="utf-8")
    (work / PAGE).write_text("\n".join(report_lines(pooling)) + "\n", encoding="utf-8")
    draw(panels_of(pooling), [work / f"{FOREST}.png", work / f"{FOREST}.svg"])


def panels_of(pooling: Pooling) -> list[Panel]:
    """Group means first, then the model's weights."""
    panels = [
        Panel(t.name if t.kind == DELTA_MEAN else f"{t.name}: {c.group}", t.unit, c.estimates, c.pooled)
        for t in pooling.tables
        for c in t.cells
        if c.pooled is not None
    ]
    if pooling.model is not None:
        panels += [Panel(title, "years", estimates, pooled) for title, estimates, pooled in pooling.model.heterogeneity]
    return panels


def statement(pooling: Pooling, work: Path, trust: Trust, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """The in-toto statement over the pooled files; node certificates are its materials."""
    subjects = [
        {"name": path.name, "digest": digest_file(path).to_json()}
        for path in sorted(work.iterdir())
        if path.name not in (STATEMENT, ENVELOPE)
    ]
    return {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": POOLED_TYPE,
        "predicate": {
            "pooled_id": pooling.pooled_id,
            "verdict": pooling.verdict,
            "made": {"node": _own_node(pooling, trust), "time": utc_now(pooling.made)},
            "versions": versions(),
            "policy": {
                "id": pooling.ruleset.id,
                "version": pooling.ruleset.version,
                "sha256": pooling.ruleset.sha256,
                "profile": None
                if pooling.ruleset.profile is None
                else {"id": pooling.ruleset.profile.id, "sha256": pooling.ruleset.profile.sha256},
            },
            "way": pooling.way,
            "noise_model": pooling.noise_model,
            "materials": [_material(n) for n in pooling.nodes],
            "outputs": [_output(o, pooling.ruleset) for o in pooling.outputs],
            "privacy": {
                "nodes": [s.to_json() for s in pooling.spends],
                "totals": pooling.totals.to_json(),
                "label": _label(pooling),
            },
            "round": pooling.round,
            "history": None
            if pooling.history is None
            else {
                "head_before": pooling.history.head,
                "head": pooling.history.head if entry is None else entry["sha256"],
            },
            "notes": list(pooling.notes),
            "questions": list(pooling.questions),
            "not_checked": [
                "whether nobody is in two nodes: that rests on the declaration named above",
                "what happened inside each TRE: it rests on the nodes' certificates, which are the materials",
            ],
        },
    }


def _own_node(pooling: Pooling, trust: Trust) -> str:
    order = pooling.order
    if order.key is None:
        return "aggregator"
    key = trust.key(_key(pooling).keyid)
    if key is None or not key.valid_at(pooling.made):
        raise RefusedError(
            "the trust file does not know the aggregator's key today, so nobody could verify what it signs",
            path=order.key,
            next_step="make one with `keygen --node aggregator --trust FILE`.",
        )
    return key.node


def _key(pooling: Pooling) -> Any:

    assert pooling.order.key is not None
    return load_key(pooling.order.key, pooling.order.passphrase or b"")


def _signed(pooling: Pooling, payload: bytes) -> bytes:

    return sign(payload, _key(pooling)).to_bytes()


def _material(node: Any) -> dict[str, Any]:
    return {
        "node": node.name,
        "certificate_id": node.certificate_id,
        "digest": {"sha256": node.envelope_sha256},
        "verdict": node.predicate["verdict"],
        "undecided": list(node.undecided),
        "made": node.predicate["made"]["time"],
        "signers": [{"keyid": k, "role": r} for k, r in node.signers],
        "ledger": None
        if node.ledger is None
        else {k: node.ledger[k] for k in ("id", "head_key", "head", "entries", "pinned")},
    }


def _output(output: PooledOutput, ruleset: RuleSet) -> dict[str, Any]:

    decision = decision_to_json(output.judged.decision, view="outside", ruleset=ruleset)
    return {
        "name": output.name,
        "type": output.kind,
        "without": output.minus,
        "written": output.minus is None,
        "verdict": output.judged.status,
        "findings": [{"rules": f["rules"], "effect": f["effect"]} for f in decision["findings"]],
        "met": decision.get("met", []),
        "questions": sorted({text for f in output.judged.decision.findings for text in f.asks}),
    }


def _label(pooling: Pooling) -> str:
    order = ("formal", "heuristic", "none")
    return max((s.label for s in pooling.spends), key=order.index, default="none")


def _history_entry(pooling: Pooling) -> dict[str, Any] | None:
    if pooling.history is None or pooling.round is None or pooling.repeated:
        return None
    return history.entry_for(
        pooling.history, pooling.round, pooling.nodes, pooling.spends, way=pooling.way, pooled=pooling.pooled_id,
        when=utc_now(pooling.made),
    )  # fmt: skip
