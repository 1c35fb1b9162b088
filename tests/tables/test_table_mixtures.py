"""Random mixtures of columns that can only cancel give the same answers as the columns themselves."""

from __future__ import annotations

import itertools
import random

import pytest

from sacro_deltab.tables import circuits, span


def _answers() -> list[object]:
    out: list[object] = []
    for seed in range(25):
        rng = random.Random(seed)
        k = 90
        weight = [rng.choice([1, 2, 3, 40, 60, 80]) for _ in range(k)]
        rows = [tuple(sorted(rng.sample(range(k), rng.randint(2, 40)))) for _ in range(5)]
        rows += [tuple(sorted(set(a) - {c for c in a if weight[c] < 20})) or a for a in rows]
        rows += [tuple(sorted(set(a) ^ set(b))) for a, b in itertools.pairwise(rows)]
        rows = [row for row in rows if row]
        found = circuits.Circuits(rows, weight).small_unions(range(len(rows)), 20, [rows[0], rows[1]])
        out.append(sorted((d.classes, d.people) for d in found))
        union = span.Span(k, rows, weight).smallest(20)
        out.append(None if union is None else (union.n, union.atoms))
    return out


def test_mixtures_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _answers()
    monkeypatch.setattr(circuits, "MANY", 1)
    monkeypatch.setattr(span, "MIXED", 1)
    assert _answers() == plain
    assert any(plain)
