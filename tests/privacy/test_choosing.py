"""Which path a training takes: by simulation from public quantities, in the plan and in a session alike."""

from __future__ import annotations

from typing import Any

import pytest

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis
from sacro_deltab.privacy.plan import choosing, planning
from sacro_deltab.privacy.plan.simulation import Figures


@pytest.fixture(scope="module")
def basis() -> Basis:
    public = smith_cohort(400, 8, seed=1)
    return Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="simulated people")


def figures(with_no_noise: float, slope: float) -> Figures:
    return Figures(0.8, 5.0, 0.01, with_no_noise, (0.7, 1.0), (4.0, 6.0), (-0.01, slope))


@pytest.mark.parametrize(
    ("descent", "moments", "slope", "path"),
    [(0.92, 0.95, 0.04, "moments"), (0.92, 0.925, 0.0, "gradient"), (0.92, 0.99, 0.06, "gradient")],
)
def test_moments_where_they_gain_and_stay_unbiased(
    basis: Basis, monkeypatch: pytest.MonkeyPatch, descent: float, moments: float, slope: float, path: str
) -> None:
    found = {"gradient": figures(descent, 0.0), "moments": figures(moments, slope)}
    monkeypatch.setattr(choosing, "studies", lambda *args: found)
    monkeypatch.setattr(choosing, "_known", {})
    assert choosing.best_path(basis, 5000, 3, 1.0, 1e-9, "zero_out_N_public")[0] == path
    assert choosing.best_path(basis, 999, 3, 1.0, 1e-9, "zero_out_N_public")[0] == "gradient"  # not simulated


def test_plan_and_simulation_agree(basis: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "GRID", (400,))
    plan = planning.plan_training(2000, basis=basis, epsilon=1.0, use_cache=False)
    assert (plan.choice, plan.why) == choosing.best_path(basis, 2000, 3, 1.0, 2.5e-7, "zero_out_N_public")
    by = {p.path: p for p in plan.paths}
    assert by[plan.choice].with_no_noise > max(p.with_no_noise for p in plan.paths) - 0.02


def test_a_session_asks_the_same(basis: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacro_deltab.session import training

    asked: list[Any] = []

    def moments(*args: Any) -> Any:
        asked.append(args)
        return "moments", "told so"

    monkeypatch.setattr(training, "best_path", moments)
    assert training._path(basis, 500, None, 1.0, 1e-6, "replace_one") == "moments"
    assert asked == [(basis, 500, 3, 1.0, 1e-6, "replace_one")]
    for odd in ((None, 500, None), (basis, None, None), (basis, 500, 9), (basis, 500, "3")):
        assert training._path(*odd, 1.0, 1e-6, "add_remove") == "auto"
