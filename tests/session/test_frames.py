"""Frames in, frames out: columns by their names, values with the rows' own index, validation that is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.cohort.order import RowOrder
from sacro_deltab.model import BrainAgeDelta

N = 400
RNG = np.random.default_rng(11)
IDS = [f"P{i:04d}" for i in range(N)]
TABLE = pd.DataFrame(
    {
        "age": RNG.uniform(45, 85, N).round(1),
        "sex": RNG.choice(["F", "M"], N),
        "site": RNG.choice(["north", "south"], N),
        "dx": np.where(np.arange(N) % 3 == 0, "AD", "HC"),
    },
    index=pd.Index(IDS, name="participant_id"),
)
X = pd.DataFrame({f"idp_{j}": 0.05 * TABLE["age"] + RNG.normal(size=N) for j in range(12)})


@pytest.fixture
def session(tmp_path: Path) -> Any:
    write_profile(tmp_path)
    made = new_session(tmp_path, people=TABLE.index.to_series(), ages=TABLE["age"])
    made.use_table(TABLE.sample(frac=1, random_state=2))
    return made


def test_validated_values_come_back_with_the_index_of_the_rows(session: Any) -> None:
    found = session.cross_validated(X.sample(frac=1, random_state=3), "age", n_components=4)
    assert list(found.delta.index) == IDS and "inside only" in repr(found)
    fold = np.random.default_rng(0).permutation(N) % 10
    want = np.empty(N)
    for k in range(10):
        others = BrainAgeDelta(4).fit(X[fold != k], TABLE["age"][fold != k])
        want[fold == k] = others.delta(X[fold == k], TABLE["age"][fold == k])
    np.testing.assert_allclose(found.delta, want)
    for entry in (
        session.release_mean("delta"),
        session.release_group_means("delta", by=["site", "sex"], where="dx == 'HC'"),
        session.release_regression(formula="delta ~ age + C(sex)"),
        session.release_contrast("delta", "dx", covariates=["age", "sex"]),
    ):
        assert entry.raw.about["validated"] == "10-fold cross-validation", entry.name
    table = next(e for e in session.entries if e.type == "delta_mean_by_other")
    healthy = found.delta[TABLE["dx"] == "HC"]
    expected = healthy.groupby([TABLE["site"], TABLE["sex"]]).mean()
    for label, _, mean in table.raw.rows:
        assert mean == pytest.approx(expected[tuple(label.split(" × "))])


def test_deltas_of_a_model_fitted_to_these_people_say_so(session: Any) -> None:
    model = BrainAgeDelta(4).fit(X, TABLE["age"])
    delta = session.deltas(model, X, "age")
    assert isinstance(delta, pd.Series) and list(delta.index) == IDS and abs(delta.mean()) < 1e-9
    assert session.release_sd(delta).raw.about["validated"] == "in-sample"
    half = BrainAgeDelta(4).fit(X[:200], TABLE["age"][:200])
    assert "validated" not in session.release_sd(session.deltas(half, X, "age"), name="half").raw.about


def test_arrays_in_arrays_out(tmp_path: Path) -> None:
    write_profile(tmp_path)
    plain = new_session(tmp_path)
    model = BrainAgeDelta(4).fit(X.to_numpy(), TABLE["age"].to_numpy())
    assert isinstance(plain.deltas(model, X.to_numpy(), TABLE["age"].to_numpy()), np.ndarray)


@pytest.mark.parametrize(
    "where",
    ["dx", "dx != 'HC'", "nobody == 'HC'", "dx == HC", "__import__('os').system('x')", "dx == 'HC' or True", ""],
)
def test_what_where_does_not_understand(where: str) -> None:
    order = RowOrder()
    order.know(TABLE)
    with pytest.raises(InputError):
        order.where(where)


def test_names_without_a_table_or_a_column_are_refused(session: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'deltas'"):
        session.release_mean("deltas")
    with pytest.raises(InputError):
        session.use_table([1, 2])
    with pytest.raises(InputError, match="not that of the session's people"):
        session.use_table(TABLE.rename(index={"P0001": "X0001"}))
