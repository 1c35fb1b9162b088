"""Any argument gives right numbers or a refusal with a next step; never a traceback, never a value in a message."""

from __future__ import annotations

import array
import decimal
import fractions
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError, RefusedError, SacroDeltabError
from sacro_deltab.kinds.regressions import least_squares
from sacro_deltab.measure.grouping import AgeBands

N = 400
RNG = np.random.default_rng(17)
DELTAS = np.round(RNG.normal(0.6, 4.0, N), 3)
OTHER = RNG.normal(size=N)
HALVES = pd.Series(["A"] * 200 + ["B"] * 200, name="half")

RIGHT: dict[str, Any] = {
    "list": list(DELTAS),
    "float32": DELTAS.astype("float32"),
    "long double": DELTAS.astype(np.longdouble),
    "object": DELTAS.astype(object),
    "Decimal": [decimal.Decimal(str(x)) for x in DELTAS],
    "Fraction": [fractions.Fraction(str(x)) for x in DELTAS],
    "Float64": pd.Series(DELTAS, dtype="Float64"),
    "pyarrow": pd.Series(DELTAS, dtype="double[pyarrow]"),
    "category": pd.Series(DELTAS).astype("category"),
    "sparse": pd.arrays.SparseArray(DELTAS),
    "index": pd.Index(DELTAS),
    "array": array.array("d", DELTAS),
    "memoryview": memoryview(DELTAS),
    "inf is missing": np.r_[np.inf, DELTAS[1:]],
    "masked": np.ma.array(np.r_[1e6, DELTAS[1:]], mask=[True] + [False] * (N - 1)),
    "None is missing": [None, *DELTAS[1:]],
    "NA is missing": pd.array([pd.NA, *DELTAS[1:]], dtype="Float64"),
}
REFUSED: dict[str, Any] = {
    "an index of other rows": pd.Series(DELTAS, index=pd.MultiIndex.from_product([range(20), range(20)])),
    "complex": DELTAS + 0j,
    "complex objects": [complex(x) for x in DELTAS],
    "dates": pd.date_range("2020", periods=N),
    "durations": pd.to_timedelta(DELTAS, unit="D"),
    "text": [str(x) for x in DELTAS],
    "bool": DELTAS > 0,
    "boolean": pd.Series(DELTAS > 0, dtype="boolean"),
    "huge": DELTAS * 1e300,
    "1e9": DELTAS * 1e9,
    "one value": np.full(N, 2.5),
    "all missing": [None] * N,
    "short": DELTAS[:9],
    "two dimensions": DELTAS[:, None],
    "a table": pd.DataFrame({"d": DELTAS}),
    "records": np.array([(x, x) for x in DELTAS], dtype=[("a", float), ("b", float)]),
    "no dimension": np.array(3.0),
    "a number": 3.0,
    "nothing": None,
    "a word": "deltas",
    "bytes": b"x" * N,
    "a dict": dict(enumerate(DELTAS)),
    "a set": set(DELTAS),
    "a generator": (x for x in DELTAS),
    "a function": lambda x: x,
    "lists": [[x] for x in DELTAS],
    "mixed": ["x", *DELTAS[1:]],
}
METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": lambda s, v: s.release_mean(v),
    "sd": lambda s, v: s.release_sd(v),
    "quantiles": lambda s, v: s.release_quantiles(v),
    "group means": lambda s, v: s.release_group_means(v, HALVES),
    "group SDs": lambda s, v: s.release_group_sds(v, HALVES),
    "private mean": lambda s, v: s.release_private_mean(v, epsilon=1e-5),
    "correlation": lambda s, v: s.release_correlation(v, pd.DataFrame({"x": OTHER})),
    "with columns": lambda s, v: s.release_correlation(OTHER, v),
    "regression": lambda s, v: s.release_regression(v, pd.DataFrame({"x": OTHER})),
    "predictors": lambda s, v: s.release_regression(OTHER, v),
    "features": lambda s, v: s.release_feature_summary(v),
}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("arguments")
    write_profile(place)
    return new_session(place, ages=np.linspace(45, 85, N), journal=place / "j", ledger=place / "budget.db")


@pytest.fixture
def session(live: Any) -> Any:
    yield live
    for entry in list(live.entries):
        live.drop(entry.name)


@pytest.mark.parametrize("kind", RIGHT)
def test_right_numbers(session: Any, kind: str) -> None:
    values = RIGHT[kind]
    whole = DELTAS if "miss" not in kind and kind != "masked" else DELTAS[1:]
    entry = session.release_mean(values)
    assert entry.raw.rows[0][1] == pytest.approx(whole.mean(), rel=1e-6)
    assert entry.n == whole.size
    table = session.release_feature_summary(values)
    assert table.raw.rows[0][1:] == pytest.approx((whole.mean(), whole.std(ddof=1)), rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_refused_or_judged_never_a_traceback(session: Any, kind: str) -> None:
    before = len(session.acro.results.results)
    with pytest.raises(SacroDeltabError):
        session.release_mean(REFUSED[kind])
    assert len(session.acro.results.results) == before
    for name, method in METHODS.items():
        if kind == "a generator" and name == "private mean":
            continue
        try:
            method(session, REFUSED[kind])
        except SacroDeltabError as error:
            assert error.next_step or "no correlation" in error.what
            assert str(DELTAS[5]) not in str(error)


LABELS: dict[str, tuple[Any, set[str] | None]] = {
    "dates with a zone": (pd.Series(pd.to_datetime(["2020-01-01", "2021-05-05"] * 200).tz_localize("Europe/London")),
                          {"2020-01-01T00:00:00+00:00", "2021-05-05T00:00:00+01:00"}),
    "periods": (pd.PeriodIndex(["2020", "2021"] * 200, freq="Y"), {"2020", "2021"}),
    "true and 1": (pd.Series([True, 1] * 200, dtype=object), {"true", "1"}),
    "round intervals": (pd.cut(np.tile([1, 7], 200), [0, 5, 10]), {"(0, 5]", "(5, 10]"}),
    "intervals of the data": (pd.cut(DELTAS, 2), None),
    "quantile intervals": (pd.qcut(DELTAS, 2), None),
    "nan as text": (["nan", "b"] * 200, None),
    "infinity": ([float("inf"), 1.0] * 200, None),
    "minus infinity": ([float("-inf"), 1.0] * 200, None),
    "bytes": ([b"a", b"b"] * 200, None),
    "markup": (["<65", "over"] * 200, None),
    "two columns": (np.zeros((N, 2)), None),
    "nothing": (None, None),
    "a number": (3, None),
    "a query": ("age > 50", None),
    "a generator": (("a" for _ in range(N)), None),
    "numbers in names": ([f"{x:.3f}" for x in np.repeat(DELTAS[:10], 40)], None),
    "width in words": (AgeBands(np.linspace(45, 85, N), "ten"), None),  # type: ignore[arg-type]
    "edges without end": (AgeBands(np.linspace(45, 85, N), edges=(45, 65, float("inf"))), None),
    "edges of somebody's age": (AgeBands(np.linspace(45, 85, N), edges=(45, 61.2345, 86)), None),
    "no ages": (AgeBands(None, 10), None),
}  # fmt: skip


@pytest.mark.parametrize("kind", LABELS)
def test_labels(session: Any, kind: str) -> None:
    by, expected = LABELS[kind]
    if expected is None:
        for release in (lambda: session.release_counts(by), lambda: session.release_group_means(DELTAS, by)):
            with pytest.raises(InputError):
                release()
    else:
        assert {row[0] for row in session.release_counts(by).raw.rows} == expected


def test_columns_called_as_the_numbers_are(session: Any) -> None:
    entry = session.release_group_means(DELTAS, HALVES.rename("n"))
    assert [column.name for column in entry.document.columns] == ["n (group)", "n", "mean_delta"]


def test_a_group_in_which_everybody_is_alike(session: Any) -> None:
    with pytest.raises(RefusedError, match="everybody in group 'A'"):
        session.release_group_means(np.where(HALVES == "A", 3.2, DELTAS), HALVES)


@pytest.mark.parametrize(
    "title",
    ["", "<b>", "a\x00b", "\ud800", "x" * 400, 3, "Ages 61.23, 64.55 and 70.12 years",
     "1 2 3 4 5 6 7 8 9 10 11 12", "Delta of P0007"],
)  # fmt: skip
def test_titles_that_carry_something(session: Any, title: Any) -> None:
    if title == "":
        with pytest.raises(InputError):
            session.release_mean(DELTAS, title=title)
        return
    for release in (session.release_mean, session.release_quantiles):
        with pytest.raises(InputError):
            release(DELTAS, title=title)


CALLS: dict[str, Callable[[Any], Any]] = {
    "percent": lambda s: s.release_quantiles(DELTAS, 50),
    "complex percents": lambda s: s.release_quantiles(DELTAS, [50 + 1j]),
    "nested percents": lambda s: s.release_quantiles(DELTAS, [[50]]),
    "structural word": lambda s: s.release_group_means(DELTAS, HALVES, structural_zeros="A"),
    "structural number": lambda s: s.release_group_means(DELTAS, HALVES, structural_zeros=3),
    "bound": lambda s: s.release_private_mean(DELTAS, epsilon=1e-5, bound_years="wide"),
    "epsilon": lambda s: s.release_private_mean(DELTAS, epsilon="x"),
    "name": lambda s: s.release_mean(DELTAS, name=3),
    "no name": lambda s: s.release_mean(DELTAS, name="日本"),
    "feature names": lambda s: s.release_feature_summary(OTHER, feature_names=3),
    "a name of letters": lambda s: s.release_feature_summary(np.ones((N, 2)), feature_names="ab"),
    "model": lambda s: s.release_weights(DELTAS),
    "only": lambda s: s.release_weights(DELTAS, only=3),
    "moments": lambda s: s.release_moments("model"),
    "deltas of nothing": lambda s: s.deltas(None, OTHER, DELTAS),
    "deltas of an array": lambda s: s.deltas(DELTAS, OTHER, DELTAS),
    "plot": lambda s: s.release_plot(DELTAS),
    "drop": lambda s: s.drop(DELTAS),
    "report": lambda s: s.attach_attack_report(DELTAS),
    "preview": lambda s: s.preview(DELTAS),
    "unknown argument": lambda s: s.release_mean(DELTAS, by=HALVES),
    "folder number": lambda s: s.finalise(3),
    "folder nowhere": lambda s: s.finalise("no/such/place"),
    "folder too long": lambda s: s.finalise("x" * 300),
    "folder with a zero": lambda s: s.finalise("a\0b"),
    "train": lambda s: s.train_private(OTHER, DELTAS, epsilon=1.0),
    "train on words": lambda s: s.train_private("X", "age", epsilon=1.0),
}


@pytest.mark.parametrize("call", CALLS)
def test_other_arguments(session: Any, call: str) -> None:
    with pytest.raises(SacroDeltabError) as found:
        CALLS[call](session)
    assert "array(" not in str(found.value) and str(DELTAS[0]) not in str(found.value)


def test_least_squares_whatever_the_units() -> None:
    x = np.column_stack([OTHER * 1e-9 + 5, np.arange(N) * 1e9])
    y = DELTAS + OTHER
    plain = np.column_stack([OTHER, np.arange(N)])
    fit, fit0 = least_squares(y, x, ["a", "b"]), least_squares(y, plain, ["a", "b"])
    b0, wide, wide0 = fit0.estimates, fit.high - fit.low, fit0.high - fit0.low
    assert fit.estimates[1:] * [1e-9, 1e9] == pytest.approx(b0[1:], rel=1e-6)
    assert wide[1:] * [1e-9, 1e9] == pytest.approx(wide0[1:], rel=1e-6)
    design = np.column_stack([np.ones(N), plain])
    expected, *_ = np.linalg.lstsq(design, y, rcond=None)
    assert b0 == pytest.approx(expected, rel=1e-9)
    variance = float(((y - design @ expected) ** 2).sum()) / (N - 3)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    assert wide0 == pytest.approx(2 * stats.t.ppf(0.975, N - 3) * errors, rel=1e-9)
    assert least_squares(y, np.column_stack([plain, plain[:, 0]]), ["a", "b", "c"]).omitted == ("c",)
    with pytest.raises(InputError):
        least_squares(y, np.ones((N, 1)), ["one"])


def test_constructor_arguments(tmp_path: Path) -> None:
    write_profile(tmp_path)
    for wrong in ({"cohort": 3}, {"cohort": ""}, {"people": [1, None] * 200}, {"ages": "old"}, {"people": 7},
                  {"ages": [50.0]}, {"rules": 3}):  # fmt: skip
        with pytest.raises(SacroDeltabError):
            new_session(tmp_path, **wrong)
