"""What a pooling was asked for, and everything it found before it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ..base.verdicts import verdict_on
from ..judging.judge import Judged
from ..rules import RuleSet
from . import account, history
from .bundle import Node
from .meta import MetaTable
from .models import PooledModel

Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What `aggregate` was asked for.

    paths: node folders or zips. expect: how many nodes there must be. disjoint: who declares that no person is in two
    nodes. way, noise_model: None lets what the nodes sent decide. history: file of earlier rounds, None for none.
    """

    paths: tuple[Path, ...]
    out: Path
    trust: Path
    expect: int | None = None
    job: Path | None = None
    disjoint: str | None = None
    way: str | None = None
    noise_model: str | None = None
    basis: Path | None = None
    bounds: Path | None = None
    rules: str | None = None
    profile: str | None = None
    declare: Path | None = None
    attest: Path | None = None
    history: Path | None = None
    key: Path | None = None
    passphrase: bytes | None = None
    require_decided: bool = False
    at: datetime | None = None


@dataclass(frozen=True)
class PooledOutput:
    """One pooled document with its judgement. minus: the node that was left out, None for the pooled output itself."""

    judged: Judged
    name: str
    kind: str
    minus: str | None = None


@dataclass(frozen=True)
class Pooling:
    """Everything a pooling found, before it is written."""

    order: Order
    nodes: tuple[Node, ...]
    ruleset: RuleSet
    way: str
    noise_model: str
    model: PooledModel | None
    tables: tuple[MetaTable, ...]
    outputs: tuple[PooledOutput, ...]
    spends: tuple[account.NodeSpend, ...]
    totals: account.Totals
    history: history.History | None
    round: int | None
    repeated: bool
    pooled_id: str
    made: datetime
    notes: tuple[str, ...] = field(default=())
    undecided: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())

    @property
    def verdict(self) -> str:
        """`pass` or `review`, since what fails was refused; or that nothing is written."""
        written = [o.judged.status for o in self.outputs if o.minus is None]
        return verdict_on(written, [*(o.judged.status for o in self.outputs), *["review"] * bool(self.questions)])

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person has to answer before the pooled files leave."""
        asked = [text for o in self.outputs for f in o.judged.decision.findings for text in f.asks]
        return tuple(dict.fromkeys([*asked, *(_question(*item) for item in self.undecided)]))


def _question(node: str, outputs: Sequence[str]) -> str:
    return f"Who at {node} let {', '.join(outputs)} out? No person's decision on them is in its certificate."
