"""What an attacker of the printed numbers achieved: counts that the rules judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableAudit:
    """What a reader of every published number can work out. Counts only, inside the TRE.

    recoverable: suppressed cells of this table, and groups of 1 to the minimum N less one, that can be worked out
    with this table in hand. package: the same over every output of the session and earlier releases.
    pairs: sentences naming the outputs involved.
    """

    recoverable: int
    package: int
    pairs: tuple[str, ...] = ()
