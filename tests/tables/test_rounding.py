from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import InputError
from sacro_deltab.tables.rounding import (
    round_value,
    rounded_n_interval,
    shown_n,
)


@pytest.mark.parametrize(
    ("value", "how", "want"),
    [
        (2.675, {"decimal_places": 2}, 2.68),  # binary rounding gives 2.67
        (0.25, {"decimal_places": 1}, 0.2),
        (0.35, {"decimal_places": 1}, 0.4),
        (-0.04, {"decimal_places": 1}, 0.0),
        (1234.5, {"significant_figures": 3}, 1230.0),
        (0.00012345, {"significant_figures": 3}, 0.000123),
        (9.996, {"significant_figures": 3}, 10.0),
        (-0.0, {"significant_figures": 3}, 0.0),
        (97, {"to_nearest": 5}, 95),
        (98, {"to_nearest": 5}, 100),
        (15, {"to_nearest": 10}, 20),
        (25, {"to_nearest": 10}, 20),
        (np.float64(1.25), {"decimal_places": 1}, 1.2),
        (1e300, {"decimal_places": 1}, 1e300),
        (Decimal("2.45"), {"decimal_places": 1}, 2.4),
    ],
)
def test_round_value(value: float, how: dict, want: float) -> None:
    got = round_value(value, **how)
    assert got == want
    assert str(got) != "-0.0"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), True])
def test_not_a_number(bad: float) -> None:
    with pytest.raises(InputError):
        round_value(bad, decimal_places=1)


def test_one_way_of_rounding() -> None:
    with pytest.raises(InputError):
        round_value(1.0)
    with pytest.raises(InputError):
        round_value(1.0, decimal_places=1, to_nearest=5)


def test_counts() -> None:
    assert [shown_n(n, base=5, below=100) for n in (97, 98, 99, 100, 103)] == [95, 100, 100, 100, 103]
    assert [shown_n(n, base=5, below=None) for n in (98, 103)] == [100, 105]
    assert rounded_n_interval(100, base=5, below=100) == (98, 100)
    assert rounded_n_interval(100, base=5, below=None) == (98, 102)
    assert rounded_n_interval(20, base=5, below=100) == (18, 22)
    with pytest.raises(InputError):
        rounded_n_interval(21, base=5, below=100)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 400), st.sampled_from([1, 5, 10]), st.sampled_from([0, 30, 100, None]))
def test_interval_holds_the_truth(n: int, base: int, below: int | None) -> None:
    shown = n if below is not None and n >= below else int(round_value(n, to_nearest=base))
    low, high = rounded_n_interval(shown, base=base, below=below)
    assert low <= n <= high
