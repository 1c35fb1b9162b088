"""A refusal of the judge as a cut of the hitting set: which of the cells published have to go."""

from __future__ import annotations

from .engine import Engine, Impossible
from .hitting import Pool
from .judge import audit_pattern


def judge_cut(engine: Engine, pool: Pool, chosen: frozenset[int]) -> None:
    """Publishing more never makes a pattern safer: of the cells published here one must go. The more can be withheld
    as well without making it safe, the stronger that cut."""
    rest = sorted(set(range(pool.k)) - chosen)
    if not rest:
        raise Impossible("withholding everything is still not enough")
    everything = frozenset(range(pool.k))
    size, asked = len(rest) // 2, 0
    while size:
        start = 0
        while start < len(rest) and size < len(rest) and asked < engine.limits.judge_calls:
            kept = rest[:start] + rest[start + size :]
            asked += 1
            if engine.ok(audit_pattern(engine.problem, engine.pattern(everything - set(kept)))):
                start += size
            else:
                rest = kept
        size //= 2
    pool.add(rest)
