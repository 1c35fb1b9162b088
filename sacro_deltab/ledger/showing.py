"""What `ledger show` and `ledger history` print."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, select

from ..base.strict import parse
from . import schema
from .book import Ledger
from .canonical import cohort_of
from .chain import count_entries, read_accounts, read_head, shared_total
from .export import summary
from .relations import epsilons, written_by_relation
from .tally import remaining
from .values import Entry


def show_json(ledger: Ledger) -> dict[str, Any]:
    """Totals of every partition: its own, and those counted against it (people shared with others)."""
    with ledger.store.read() as connection:
        head = read_head(connection, ledger.identity, ledger.where)
        accounts = read_accounts(connection, head, ledger.where)
        entries = count_entries(connection)
        exact = {name: _exact(connection, name) for name in accounts}
        totals = {name: shared_total(accounts, name) for name in accounts}
        spent = {n: written_by_relation(connection, {n, *a.links}, totals[n]) for n, a in accounts.items()}
    lines = []
    for name, account in sorted(accounts.items()):
        at_delta = None if account.limits is None else account.limits.delta_per_release
        counted = totals[name]
        left = None if account.limits is None else remaining(counted, account.limits)
        lines.append(
            {
                "partition": name,
                "cohort": cohort_of(name),
                "own": asdict(account.own.totals(at_delta, exact[name].get(account.own.mu_squared))),
                "counted": asdict(counted.totals(at_delta, exact[name].get(counted.mu_squared))),
                "epsilon_by_relation": epsilons(spent[name]),
                "shares_people_with": list(account.links),
                "limits": None if account.limits is None else asdict(account.limits),
                "remaining": None if left is None else {"epsilon": left[0], "delta_dp": left[1]},
            }
        )
    return {
        "schema": "sacro_deltab/ledger-show/1",
        "where": ledger.where,
        "ledger": ledger.id,
        "head_key": ledger.head_key,
        "head": head.digest,
        "entries": entries,
        "pinned": ledger.pinned,
        "partitions": lines,
        "orphans": [entry.seq for entry in ledger.orphans()],
    }


def _exact(connection: Connection, name: str) -> dict[Decimal, float]:
    """Exact ε of the partition's last spend, by the sum of μ² that it is of (at the limits that are shown)."""
    table = schema.entries
    query = select(table.c.body).where(table.c.partition == name, table.c.kind == "spend")
    text = connection.execute(query.order_by(table.c.seq.desc()).limit(1)).scalar()
    body = {} if text is None else parse(text)
    if body.get("epsilon_exact_after") is None:
        return {}
    return {Decimal(body["after"]["mu_squared"]): body["epsilon_exact_after"]}


def history_line(entry: Entry, *, orphan: bool) -> str:
    """One entry for a reader."""
    line = summary(entry)
    parts = [f"{entry.seq:>6}  {entry.at[:19]}Z  {entry.kind:<8}"]
    if line["cohort"]:
        parts.append(f"{line['cohort']}/{line['unit']}")
    if entry.ref is not None:
        parts.append(f"of entry {entry.ref}")
    if "epsilon" in line:
        parts.append(
            f"ε {line['epsilon']:g} δ {line['delta_dp']:g} {line['mechanism']} ({line['label']}): {line['outputs']}"
        )
        parts.append(f"sum ε {float(line['epsilon_sum_after']):g}")
    elif line.get("outputs"):
        parts.append(str(line["outputs"]))
    if line.get("released_sha256"):
        parts.append(f"sha256:{line['released_sha256'][:16]}…")
    if line["remark"]:
        parts.append(str(line["remark"]))
    parts.append(f"by {entry.who}")
    return "  ".join(parts) + ("  ORPHAN" if orphan else "")
