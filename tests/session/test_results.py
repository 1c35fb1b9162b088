"""A results section: what a paper prints is there, right, judged, and measured again from the cohort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.kinds.correlations import correlate, false_discovery
from sacro_deltab.kinds.prediction_error import prediction_errors
from sacro_deltab.kinds.regressions import least_squares
from sacro_deltab.measure.terms import level_of, read_formula, terms_of

RNG = np.random.default_rng(11)
N = 400
AGE = RNG.uniform(45, 85, N).round(1)
SEX = pd.Series(RNG.choice(["F", "M"], N), name="sex")
SITE = pd.Series(["north"] * 200 + ["south"] * 160 + ["island"] * 40, name="site")
DELTA = RNG.normal(0, 4, N) + np.where(SEX == "M", 1.5, 0) + 0.05 * (AGE - 65)
TABLE = pd.DataFrame({"delta": DELTA, "age": AGE, "sex": SEX, "site": SITE, "hours": RNG.normal(7, 1, N).round(1)})


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("results")
    write_profile(place)
    return new_session(place)


@pytest.fixture
def session(live: Any) -> Iterator[Any]:
    yield live
    for entry in list(live.entries):
        live.drop(entry.name)


def _rows(entry: Any) -> dict[str, tuple[Any, ...]]:
    return {str(row[0]): row[1:] for row in entry.document.rows}


def test_a_formula_gives_what_a_paper_prints(session: Any) -> None:
    entry = session.release_regression(formula="delta ~ age + C(sex) + C(site)", data=TABLE)
    assert entry.status == "review", entry
    assert [c.name for c in entry.document.columns] == ["term", "n", "df", "estimate", "low_95", "high_95", "p"]
    design = np.column_stack([np.ones(N), AGE, SEX == "M" if (SEX == "F").sum() >= N / 2 else SEX == "F",
                              SITE == "island", SITE == "south"]).astype(float)  # fmt: skip
    b, left, *_ = np.linalg.lstsq(design, DELTA, rcond=None)
    se = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * left[0] / (N - 5))
    half = stats.t.ppf(0.975, N - 5) * se
    rows = _rows(entry)
    assert list(rows) == ["(intercept)", "age", f"sex[{'M' if (SEX == 'F').sum() >= N / 2 else 'F'}]", "site[island]",
                          "site[south]", "R squared"]  # fmt: skip
    for row, estimate, around in zip(list(rows.values())[:-1], b, half, strict=True):
        assert row[:2] == (N, N - 5)
        np.testing.assert_allclose(row[2:5], [estimate, estimate - around, estimate + around], rtol=6e-3)
        assert row[5] == "below 0.001" or 0 <= row[5] <= 1
    assert entry.document.about["against"]["site"] == "north"
    assert entry.document.about["formula"] == "delta ~ age + C(sex) + C(site)"


def test_categories_by_name_and_terms_that_others_give(session: Any) -> None:
    twice = TABLE[["age", "sex"]].assign(months=TABLE["age"] * 12, one=1.0)
    entry = session.release_regression(DELTA, twice)
    assert entry.document is not None and list(entry.document.about["omitted"]) == ["months", "one"]
    assert "months" not in _rows(entry)


def test_a_small_category_is_named_with_the_way_out(session: Any) -> None:
    site = SITE.mask(SITE.index < 3, "Pittsburgh")
    entry = session.release_regression(DELTA, pd.DataFrame({"site": site}))
    assert entry.status == "fail" and entry.document is None
    assert any("site[Pittsburgh]" in advice and "merge" in advice for advice in entry.merges)
    assert not any("Pittsburgh" in reason or " 3 " in reason for reason in entry.reasons)


def test_an_indicator_of_few_more_people_than_a_table_is_attacked_with_it(session: Any) -> None:
    """A coefficient of a category is a group's mean: it does not leave beside a table one person apart that prints the
    two groups; where cells were chosen again together, the table has lost them."""
    assert session.release_group_means(DELTA, SITE).document is not None
    moved = SITE.mask(SITE.index == 0, "south")
    entry = session.release_regression(DELTA, pd.DataFrame({"where": moved}))
    table = next(e for e in session.entries if e.name == "mean_delta_by_site")
    assert entry.document is None or table.document is None or {"north", "south"} <= set(table.suppressed)


def test_contrasts_are_adjusted_and_have_cohens_d(session: Any) -> None:
    plain = session.release_contrast(DELTA, SEX)
    adjusted = session.release_contrast(DELTA, SEX, covariates=TABLE[["age", "site"]], name="adjusted")
    assert plain.status == adjusted.status == "review"
    rows = _rows(plain)
    term = next(iter(rows))
    one, other = (DELTA[SEX == "M"], DELTA[SEX == "F"]) if "[M]" in term else (DELTA[SEX == "F"], DELTA[SEX == "M"])
    pooled = np.sqrt((one.var(ddof=1) * (one.size - 1) + other.var(ddof=1) * (other.size - 1)) / (N - 2))
    assert rows[term][2] == pytest.approx(one.mean() - other.mean(), rel=6e-3)
    assert rows[f"{term}: Cohen's d"][2] == pytest.approx((one.mean() - other.mean()) / pooled, rel=6e-3)
    assert list(adjusted.document.about["adjusted_for"]) == ["age", "site"]


def test_many_correlations_are_one_output(session: Any) -> None:
    others = pd.DataFrame(RNG.normal(size=(N, 60)), columns=[f"idp_{j:02d}" for j in range(60)])
    others["idp_00"] += DELTA
    entry = session.release_correlations(DELTA, others)
    assert entry.status == "pass", entry
    assert len(session.entries) == 1 and len(entry.document.rows) == 60
    rows = _rows(entry)
    n, r, low, high, p, q = rows["idp_00"]
    assert n == N and low <= r <= high and p == q == "below 0.001"
    expected = stats.pearsonr(DELTA, others["idp_01"])
    assert rows["idp_01"][1] == pytest.approx(expected.statistic, abs=0.0051)
    ends = expected.confidence_interval(0.95)
    np.testing.assert_allclose(rows["idp_01"][2:4], [ends.low, ends.high], atol=0.0051)
    assert all(row[4] == "below 0.001" or row[5] == "below 0.001" or row[5] >= row[4] for row in rows.values())


def test_the_error_of_a_model_says_on_whom(session: Any) -> None:
    predicted = AGE + RNG.normal(0, 5, N) - 0.2 * (AGE - 65)
    entry = session.release_prediction_error(predicted, AGE, validated="10-fold cross-validation")
    assert entry.status == "pass", entry
    rows = _rows(entry)
    error = predicted - AGE
    assert rows["MAE"][1] == pytest.approx(np.abs(error).mean(), rel=6e-3)
    assert rows["RMSE"][1] == pytest.approx(np.sqrt((error**2).mean()), rel=6e-3)
    assert rows["age slope"][1] == pytest.approx(np.polyfit(AGE, error, 1)[0], rel=6e-3)
    assert entry.document.about["validated"] == "10-fold cross-validation"
    few = np.where(np.arange(N) < 12, predicted, np.nan)
    assert session.release_prediction_error(few, AGE, name="few").status == "fail"


@pytest.mark.parametrize(
    "formula", ["delta", "delta ~", "delta ~ age * sex", "delta ~ nobody", "delta ~ log(age)", "x ~ age"]
)
def test_formulas_that_are_not_understood(formula: str) -> None:
    with pytest.raises(InputError):
        read_formula(formula, TABLE)


def test_columns_that_are_categories() -> None:
    kinds = {name: category for name, _, category in terms_of(TABLE.assign(patient=TABLE["age"] > 60))}
    assert kinds == {"delta": False, "age": False, "sex": True, "site": True, "hours": False, "patient": True}
    assert level_of("site[south west]") == ("site", "south west") and level_of("age") is None


@given(st.integers(0, 10_000))
def test_least_squares_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(3, 1e3, 40), rng.normal(size=40)
    fit, known = least_squares(y, x[:, None], ["x"]), stats.linregress(x, y)
    assert fit.estimates[1] == pytest.approx(known.slope) and fit.p[1] == pytest.approx(known.pvalue)
    assert fit.estimates[0] == pytest.approx(known.intercept, rel=1e-6, abs=1e-9)
    assert fit.r_squared == pytest.approx(known.rvalue**2, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_p_values_are_those_of_scipy(p: list[float]) -> None:
    np.testing.assert_allclose(false_discovery(np.array(p)), stats.false_discovery_control(p), atol=1e-12)


def test_what_is_not_defined_is_not_made_up() -> None:
    assert correlate(np.arange(9.0), np.ones(9)) is None
    assert prediction_errors(np.arange(9.0), np.ones(9)) is None
    for y, x in ((np.ones(9), np.arange(9.0)), (np.arange(9.0), 2 * np.arange(9.0) + 1), (np.arange(2.0), np.ones(2))):
        with pytest.raises(InputError):
            least_squares(y, x[:, None], ["x"])


def test_check_measures_them_again_from_the_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacro_deltab import check_paths, load_ruleset

    monkeypatch.chdir(tmp_path)
    profile = write_profile(tmp_path)
    session = new_session(tmp_path)
    session.release_regression(formula="delta ~ age + C(sex)", data=TABLE)
    session.release_correlations(DELTA, TABLE[["hours"]])
    session.finalise("outputs")
    TABLE.assign(participant_id=session.state.ids).to_csv("cohort.csv", index=False)
    for name, column, verdict in (("cohort.csv", DELTA, "review"), ("other.csv", DELTA[::-1], "fail")):
        TABLE.assign(participant_id=session.state.ids, delta=column).to_csv(name, index=False)
        report = check_paths(["outputs"], cohort=name, ruleset=load_ruleset(None, profile=str(profile)))
        own = {f.output: f.verdict for f in report.outputs if f.type in ("regression_table", "correlation_table")}
        assert own == {"regression": verdict, "correlations": own["correlations"]}, report.outputs
        assert (own["correlations"] == "fail") == (verdict == "fail")


@pytest.mark.parametrize("release", ["release_correlation", "release_correlations"])
def test_a_later_session_knows_what_correlations_left(release: str, tmp_path: Path) -> None:
    """The same column over one person fewer: the two sums of products differ by that person's."""
    write_profile(tmp_path)
    first = new_session(tmp_path)
    getattr(first, release)(DELTA, TABLE[["hours"]])
    first.finalise(tmp_path / "first")
    later = new_session(tmp_path, people=[f"P{i:04d}" for i in range(1, N)])
    (entry,) = later.release_correlation(DELTA[1:], TABLE[["hours"]].iloc[1:], p_values=False)
    assert entry.kept_inside
