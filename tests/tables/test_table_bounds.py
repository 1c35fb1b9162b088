"""Open-ended numbers and patterns that break the rule."""

from __future__ import annotations

from sacro_deltab.tables import audit_pattern, problem_from_json
from sacro_deltab.tables.answers import audit_answer


def test_no_upper_bound_through_a_network() -> None:
    """A group marked as "at least 20" and nothing else is open above, whatever its neighbours print."""
    data = {
        "attacker": {"n_published": "rounded", "knows_rule": True, "flags_primary": True},
        "atoms": {"g0": {"n": 44}, "g1": {"n": 100}, "g2": {"n": 130}},
        "cells": {
            "g0": {"atoms": ["g0"]},
            "g1": {"atoms": ["g1"]},
            "g2": {"atoms": ["g2"]},
            "All": {"role": "grand", "atoms": ["g0", "g1", "g2"]},
        },
    }
    found = audit_pattern(problem_from_json(data), frozenset({"All", "g1"}))
    assert found.n_interval == {"g1": (20, None), "All": (193, None)}


def test_pattern_that_breaks_the_rule_is_still_answered() -> None:
    """Two people printed as 0: a reader who believes the rule finds that nothing fits, and stops believing it."""
    data = {
        "attacker": {"n_published": "rounded", "knows_rule": True},
        "atoms": {"A": {"n": 120}, "B": {"n": 2}, "C": {"n": 130}},
        "cells": {
            "A": {"atoms": ["A"]},
            "B": {"atoms": ["B"]},
            "C": {"atoms": ["C"]},
            "All": {"role": "grand", "atoms": ["A", "B", "C"]},
        },
        "published_sets": [{"name": "naive", "suppressed": ["C"]}],
    }
    answer, _ = audit_answer(data)
    low, high = answer["published_sets"][0]["n_interval"]["C"]
    assert low <= 130 <= high


def test_mean_of_nobody() -> None:
    data = {
        "kind": "means",
        "attacker": {"value_bounds": [-40, 40]},
        "atoms": {"A": {"n": 120, "sum": 12.0}, "B": {"n": 0, "sum": 0.0}},
        "cells": {"A": {"atoms": ["A"]}, "All": {"role": "grand", "atoms": ["A", "B"]}},
        "derived_group": {"atoms": ["B"]},
        "published_sets": [{"name": "all", "suppressed": []}],
    }
    answer, _ = audit_answer(data)
    assert answer["derived_group"] == {"atoms": ["B"], "n_interval": [0, 0]}
