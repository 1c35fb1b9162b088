"""The aggregator's memory: which certificates were pooled in which round, and what each ledger held then.

One JSON line a round, each with the digest of the line before. It holds no number of any cohort beyond what nodes
released. A round is refused when a node's ledger does not cover all rounds so far: another ledger, an older state of
it, or a sum smaller than what was already spent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.errors import InputError, RefusedError, UnreadableError
from ..base.strict import parse
from .account import NodeSpend
from .bundle import Node

SCHEMA = "sacro_deltab/federation-round/1"
_FIRST = "0" * 64


@dataclass(frozen=True)
class History:
    """Rounds read from a file, oldest first."""

    path: Path
    rounds: tuple[Mapping[str, Any], ...]

    @property
    def head(self) -> str:
        """Digest of the newest line."""
        return str(self.rounds[-1]["sha256"]) if self.rounds else _FIRST

    def same_round(self, nodes: Sequence[Node]) -> Mapping[str, Any] | None:
        """An earlier round of exactly these certificates: pooling it again costs nothing and is no new round."""
        wanted = {n.certificate_id for n in nodes}
        return next((r for r in self.rounds if {e["certificate_id"] for e in r["nodes"]} == wanted), None)


def load_history(path: Path) -> History:
    """Read a history; a missing file is an empty one.

    Raises
    ------
    UnreadableError
        A line is not JSON of this kind, or the chain of digests does not hold.
    """
    if not path.exists():
        return History(path, ())
    rounds: list[Mapping[str, Any]] = []
    previous = _FIRST
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError("the history of rounds cannot be read", path=path) from error
    for number, line in enumerate(lines, start=1):
        try:
            entry = parse(line)
            good = entry["schema"] == SCHEMA and entry["previous"] == previous and entry["sha256"] == _digest(entry)
            well = all(
                {"node", "certificate_id", "ledger", "entries", "round_epsilon"} <= set(e) for e in entry["nodes"]
            )
        except (InputError, KeyError, TypeError):
            good = well = False
        if not (good and well):
            raise UnreadableError(
                "the history of rounds was changed, or a line of it is damaged",
                path=path,
                place=f"line {number}",
                next_step="restore it from a copy; without it no further round can be accounted for.",
            )
        rounds.append(entry)
        previous = str(entry["sha256"])
    return History(path, tuple(rounds))


def check_round(history: History, nodes: Sequence[Node], spends: Sequence[NodeSpend], limit: float | None) -> int:
    """Number of this round (from 1), after every ledger was found to cover it.

    Parameters
    ----------
    limit
        The rule set's largest total ε of a data partition.

    Raises
    ------
    RefusedError
        A certificate of an earlier round, a ledger that went back or was exchanged, or a spent budget.
    """
    again = history.same_round(nodes)
    if again is not None:
        return int(again["round"])
    used = {e["certificate_id"]: r["round"] for r in history.rounds for e in r["nodes"]}
    for node, spend in zip(nodes, spends, strict=True):
        if node.certificate_id in used:
            raise RefusedError(
                f"the certificate of node {node.name} was pooled in round {used[node.certificate_id]} (a replay)",
                path=node.path,
                next_step="ask the node for its release of this round.",
            )
        _check_node(node, spend, [e for r in history.rounds for e in r["nodes"] if e["node"] == node.name], limit)
    return len(history.rounds) + 1


def _check_node(node: Node, spend: NodeSpend, earlier: Sequence[Mapping[str, Any]], limit: float | None) -> None:
    total = spend.total_epsilon
    if limit is not None and total is not None and total > limit + 1e-9:
        raise RefusedError(f"the budget of node {node.name} is overspent: ε {total:g} of {limit:g}", path=node.path)
    if not earlier:
        return
    problem = None
    spent = sum(float(e["round_epsilon"]) for e in earlier) + spend.round_epsilon
    newest = max((int(e["entries"]) for e in earlier if e["entries"] is not None), default=None)
    entries = (node.ledger or {}).get("entries")
    if spend.ledger is None or any(e["ledger"] != spend.ledger for e in earlier):
        problem = "it names another ledger than in earlier rounds"
    elif newest is not None and (entries is None or int(entries) <= newest):
        problem = "its ledger is no further than in an earlier round"
    elif total is None or total < spent - 1e-9:
        problem = f"its ledger holds less than the ε {spent:g} of all rounds"
    if problem is not None:
        raise RefusedError(
            f"the ledger of node {node.name} does not cover this round: {problem}",
            path=node.path,
            next_step="repeated training composes in one ledger per TRE; ask the node which ledger it used.",
        )


def entry_for(
    history: History,
    number: int,
    nodes: Sequence[Node],
    spends: Sequence[NodeSpend],
    *,
    way: str,
    pooled: str,
    when: str,
) -> dict[str, Any]:
    """The line of a new round, sealed with its digest."""
    entry: dict[str, Any] = {
        "schema": SCHEMA,
        "round": number,
        "time": when,
        "way": way,
        "pooled_id": pooled,
        "nodes": [
            {
                "node": n.name,
                "certificate_id": n.certificate_id,
                "certificate_sha256": n.envelope_sha256,
                "ledger": s.ledger,
                "ledger_head": None if n.ledger is None else n.ledger["head"],
                "entries": None if n.ledger is None else n.ledger["entries"],
                "round_epsilon": s.round_epsilon,
                "total_epsilon": s.total_epsilon,
            }
            for n, s in zip(nodes, spends, strict=True)
        ],
        "previous": history.head,
    }
    entry["sha256"] = _digest(entry)
    return entry


def append(history: History, entry: Mapping[str, Any]) -> None:
    """Write one line and flush it to disk, alone with the file.

    Raises
    ------
    RefusedError
        Another pooling wrote a round since this one read the file: its nodes were checked against an older state.
    InputError
        The file cannot be written.
    """
    try:
        handle = history.path.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"the history of rounds cannot be written ({error.strerror})", path=history.path,
                         next_step="name a file that can be: --history FILE.") from error  # fmt: skip
    with handle:
        _lock(handle)
        if load_history(history.path).head != history.head:
            raise RefusedError(
                "another pooling wrote a round into this history meanwhile",
                path=history.path,
                next_step="run aggregate again: this round is checked against the new state.",
            )
        handle.write(json.dumps(entry, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")
        handle.flush()
        os.fsync(handle.fileno())


def _lock(handle: IO[str]) -> None:
    """Wait for the file; the lock ends with the handle. Where the system has none, the comparison of heads is left."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(handle, fcntl.LOCK_EX)


def _digest(entry: Mapping[str, Any]) -> str:
    rest = {k: v for k, v in entry.items() if k != "sha256"}
    return sha256_hex(canonical_line(rest))
