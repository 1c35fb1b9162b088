"""Values that are not deltas in years are refused before anything is printed."""

from __future__ import annotations

import numpy as np
import pytest

from sacro_deltab.base.errors import RefusedError
from sacro_deltab.rules import load_ruleset
from sacro_deltab.session.plausible import refuse_other_than_deltas

NUMBERS = load_ruleset().parameters
DELTAS = np.random.default_rng(5).normal(0.0, 6.0, 300)


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e300, np.inf])
def test_scaled_deltas_are_refused(factor: float) -> None:
    with pytest.raises(RefusedError, match="not brain-age deltas in years"):
        refuse_other_than_deltas(DELTAS * factor, NUMBERS)


@pytest.mark.parametrize("high", [1.0, 100.0])
def test_an_indicator_is_refused(high: float) -> None:
    with pytest.raises(RefusedError, match="indicator"):
        refuse_other_than_deltas(np.where(np.arange(300) < 15, high, 0.0), NUMBERS)


def test_deltas_are_accepted_with_missing_ones_and_at_the_limit() -> None:
    values = DELTAS.copy()
    values[:3] = (np.nan, 100.0, -100.0)
    refuse_other_than_deltas(values, NUMBERS)
    refuse_other_than_deltas(np.zeros(30), NUMBERS)
    with pytest.raises(RefusedError):
        refuse_other_than_deltas(np.append(values, 100.1), NUMBERS)
