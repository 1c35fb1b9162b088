"""The ledger as a table for governance: one line an entry."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from ..base.strict import parse
from .handle import Handle
from .values import Entry

COLUMNS = (
    "entry", "at", "who", "kind", "cohort", "unit", "of_entry", "mechanism", "epsilon", "delta_dp", "mu", "sigma",
    "adjacency", "label", "outputs", "epsilon_sum_after", "delta_dp_sum_after", "epsilon_limit", "delta_dp_limit",
    "released_sha256", "rule_set_sha256", "remark", "digest",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_csv(ledger: Handle) -> str:
    """CSV text with a header line. Holds no count of people and no fingerprint."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for entry in ledger.history():
        writer.writerow({name: _cell(value) for name, value in summary(entry).items() if name in COLUMNS})
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Texts that a spreadsheet would run as a formula get an apostrophe."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def summary(entry: Entry) -> dict[str, Any]:
    """One entry in the words of `COLUMNS`: what governance reads, nothing about people."""
    body = parse(entry.body)
    cohort, _, unit = (entry.partition or "").partition("/")
    line: dict[str, Any] = {
        "entry": entry.seq,
        "at": entry.at,
        "who": entry.who,
        "kind": entry.kind,
        "cohort": cohort,
        "unit": unit,
        "of_entry": entry.ref,
        "digest": entry.digest,
        "remark": _remark(entry.kind, body),
    }
    if entry.kind in ("spend", "refused"):
        after = body.get("after", body["before"])
        line |= {name: body[name] for name in ("mechanism", "epsilon", "delta_dp", "mu", "sigma", "adjacency", "label")}
        line |= {
            "outputs": "; ".join(body["outputs"]),
            "epsilon_sum_after": after["epsilon"],
            "delta_dp_sum_after": after["delta_dp"],
            "epsilon_limit": body["limits"]["epsilon_total"],
            "delta_dp_limit": body["limits"]["delta_total"],
            "rule_set_sha256": body["ruleset_sha256"],
        }
    if entry.kind in ("close", "release", "bounds"):
        line["released_sha256"] = body["sha256"]
    if entry.kind == "release":
        line["outputs"] = body["output"]
    return line


def _remark(kind: str, body: dict[str, Any]) -> str:
    if kind == "refused":
        return str(body["refused"])
    if kind == "cohort":
        shared = [o["partition"].partition("/")[0] for o in body["overlaps"]]
        staff = [f"registered by TRE staff, version {body['register']['version']}"] if "register" in body else []
        return "; ".join([*staff, f"people: {body['status']}", *(f"overlaps {name}" for name in shared)])
    if kind == "disjoint":
        return f"{' and '.join(body['cohorts'])} declared disjoint by {body['by']}: {body['reason']}"
    if kind == "forget":
        return f"tokens and column sums erased: version {', '.join(map(str, body['versions']))}"
    if kind == "spend" and body["draws"] == "later":
        return "to be drawn later"
    return str(body.get("note") or "")


def entries_json(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Entries as `schemas/ledger-entry.schema.json` has them."""
    return [entry.to_json() for entry in entries]
