"""Moments: reference case, agreement with the direct fit, files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import SacroDeltabError, UnreadableError
from sacro_deltab.model import MODELS, BrainAgeDelta, ModelInputError, Moments

CASES = Path(__file__).parents[2] / "fixtures" / "cases" / "dp"
PARAMETERS = ("b1", "b2", "b2sq", "gamma", "gammasq", "components", "x_mean", "x_std", "y_mean", "ysq_mean",
              "ysq_slope", "conf_beta", "explained_variance", "score_mean")  # fmt: skip


def names(f: int) -> tuple[str, ...]:
    return tuple(f"feature_{i + 1}" for i in range(f))


def people(seed: int, n: int, f: int, k: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng(seed)
    age = rng.uniform(45, 75, n)
    x = rng.normal(size=(n, f)) @ rng.normal(size=(f, f)) + np.outer(age - 60, rng.normal(size=f)) / 5
    x = 3.0 + x * rng.uniform(0.5, 20, f)
    return x, age, (rng.normal(1, 1, size=(n, k)) if k else None)


def same(a: object, b: object, rtol: float = 1e-9) -> None:
    for name in PARAMETERS:
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        if left is not None:
            size = np.abs(right).max()
            np.testing.assert_allclose(left, right, rtol=0, atol=rtol * max(size, 1e-300), err_msg=name)


def test_reference_case_and_sum_of_nodes() -> None:
    case = json.loads((CASES / "moments_federated.json").read_text())
    i, want = case["inputs"], case["expected"]
    x, age = np.array(i["X"]), np.array(i["ages"])
    blank = Moments(names(4), age_centre=i["age_centre"], age_scale=i["age_scale"])
    a = blank.empty().update(x[: i["split"]], age[: i["split"]])
    b = blank.empty().update(x[i["split"] :], age[i["split"] :])
    np.testing.assert_allclose(a.matrix, want["M_node_a"], atol=1e-9)
    np.testing.assert_allclose(b.matrix, want["M_node_b"], atol=1e-9)
    np.testing.assert_allclose((a + b).matrix, want["M"], atol=1e-9)
    small = json.loads((CASES / "deltab_small_2.json").read_text())
    got = (a + b).fit()
    for key in ("b1", "b2", "b2sq", "gamma", "gammasq", "ysq_mean", "ysq_slope", "x_std", "y_mean"):
        np.testing.assert_allclose(getattr(got, key), small["expected"]["parameters"][key], atol=1e-9, err_msg=key)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(30, 200), f=st.integers(2, 9), k=st.integers(0, 2),
    reduce=st.booleans(), cut=st.integers(1, 29),
)  # fmt: skip
def test_weights_from_moments_equal_the_direct_fit(seed: int, n: int, f: int, k: int, reduce: bool, cut: int) -> None:
    x, age, c = people(seed, n, f, k)
    j = max(1, f // 2) if reduce else None
    direct = BrainAgeDelta(n_components=j).fit(x, age, c)
    if direct.condition_number_ > 1e3 or (reduce and not _separated(x, age, c, j)):
        return
    blank = Moments(names(f), tuple(f"c{i}" for i in range(k)), x_centre=x.mean(0).round(0))
    cut_c = (None, None) if c is None else (c[:cut], c[cut:])
    pooled = (
        blank.empty().update(x[:cut], age[:cut], cut_c[0]).merge(blank.empty().update(x[cut:], age[cut:], cut_c[1]))
    )
    got = pooled.fit(n_components=j)
    same(got, direct.weights_)
    for model in MODELS:
        d = direct.delta(x, age, c, model=model)
        np.testing.assert_allclose(got.delta(x, age, c, model=model), d, atol=1e-9 * max(1.0, np.abs(d).max()))


def _separated(x: np.ndarray, age: np.ndarray, c: np.ndarray | None, j: int) -> bool:
    """Eigenvectors are only determined to rounding / gap: compare where the gaps are not tiny."""
    ev = BrainAgeDelta(n_components=min(x.shape)).fit(x, age, c).explained_variance_
    return bool((-np.diff(ev[: j + 1]) > 1e-4 * ev[0]).all())


def test_any_cut_into_blocks_and_any_order_give_the_same_sums() -> None:
    x, age, c = people(1, 5000, 6, 1)
    blank = Moments(names(6), ("c",), x_centre=x.mean(0))
    whole = blank.empty().update(x, age, c)
    parts = [blank.empty().update(x[s], age[s], c[s]) for s in np.array_split(np.arange(5000), 7)]  # type: ignore[index]
    merged = blank.empty()
    for part in reversed(parts):
        merged.merge(part)
    np.testing.assert_allclose(merged.matrix, whole.matrix, rtol=1e-12, atol=1e-9)
    assert merged.n == whole.n == 5000


def test_constant_and_dependent_columns() -> None:
    x, age, _ = people(3, 100, 4)
    x = np.column_stack([x, np.full(100, 2.5), x[:, 0] + x[:, 1]])
    moments = Moments(names(6), x_centre=x.mean(0).round(1)).update(x, age)
    direct = BrainAgeDelta().fit(x, age)
    assert len(direct.repairs_) == 2 and direct.conditioning_ == "refuse" and direct.rank_ == 4
    same(moments.fit(), direct.weights_, 1e-8)
    assert direct.b1_[4] == 0 and np.abs(direct.b1_).max() < 100
    same(moments.fit(n_components=3), BrainAgeDelta(n_components=3).fit(x, age).weights_, 1e-8)
    nearly = np.column_stack([x[:, :4], x[:, 0] * (1 + 1e-6 * np.sin(np.arange(100)))])
    with pytest.raises(ModelInputError, match="nearly dependent"):
        Moments(names(5), x_centre=nearly.mean(0)).update(nearly, age).fit()


def test_subtraction_gives_the_training_set_of_a_fold() -> None:
    x, age, _ = people(4, 300, 5)
    blank = Moments(names(5), x_centre=x.mean(0))
    everybody, fold = blank.empty().update(x, age), blank.empty().update(x[:60], age[:60])
    same((everybody - fold).fit(2), BrainAgeDelta(2).fit(x[60:], age[60:]).weights_)


def test_selection_rules_agree_with_the_estimator() -> None:
    x, age, _ = people(5, 200, 8)
    moments = Moments(names(8), x_centre=x.mean(0)).update(x, age)
    for choice in (0.8, 1.0, "kaiser_guttman"):
        same(moments.fit(choice), BrainAgeDelta(choice).fit(x, age).weights_)


def test_save_and_load(tmp_path: Path) -> None:
    x, age, c = people(6, 80, 3, 2)
    moments = Moments(names(3), ("a", "b"), x_centre=1.0, age_centre=65, age_scale=20).update(x, age, c)
    moments.save(tmp_path / "m.npz")
    again = Moments.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.matrix, moments.matrix)
    again.merge(moments)
    assert again.n == 160
    with np.load(tmp_path / "m.npz", allow_pickle=False) as data:
        assert set(data) == {"header", "matrix", "x_centre", "x_scale", "conf_centre", "conf_scale"}


def test_refuses_blocks_that_do_not_fit() -> None:
    x, age, _ = people(7, 30, 3)
    moments = Moments(names(3))
    bad = x.copy()
    bad[17, 1] = np.nan
    for block, ages, conf in ((x[:, :2], age, None), (x, age[:5], None), (bad, age, None), (x, age, np.ones((30, 1)))):
        with pytest.raises(ModelInputError):
            moments.update(block, ages, conf)
        assert moments.n == 0
    other = Moments(("feature_1", "feature_3", "feature_2"))
    with pytest.raises(ModelInputError, match="order"):
        moments.merge(other)
    with pytest.raises(ModelInputError, match="x_centre"):
        moments.merge(Moments(names(3), x_centre=1.0))
    with pytest.raises(ModelInputError, match="fewer than two"):
        moments.fit()
    with pytest.raises(ModelInputError, match="ages are equal"):
        Moments(names(3)).update(x, np.full(30, 61.3)).fit()


def test_large_block_is_added_whole_or_not_at_all() -> None:
    x, age, _ = people(8, 3000, 3)
    x[2500, 0] = np.inf
    moments = Moments(names(3))
    with pytest.raises(ModelInputError):
        moments.update(x, age)
    assert moments.n == 0


@pytest.mark.parametrize(("n", "f", "k"), [(1, 1, 0), (1023, 61, 0), (1024, 59, 2), (1025, 60, 1), (600, 300, 0)])
def test_sums_are_those_of_the_plain_product(n: int, f: int, k: int) -> None:
    x, age, c = people(10, n, f, k)
    moments = Moments(names(f), tuple(f"c{i}" for i in range(k)), x_centre=2.0).update(x, age, c)
    moments.update(x[:1], age[:1], None if c is None else c[:1])
    u = (age - 60) / 15
    z = np.column_stack([np.ones(n), *([] if c is None else [c]), x - 2.0, u, u * u])
    z = np.vstack([z, z[:1]])
    want, size = z.T @ z, np.sqrt((z * z).sum(axis=0))
    np.testing.assert_allclose(moments.matrix / np.outer(size, size), want / np.outer(size, size), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(moments._sums, moments._sums.T)


def test_float32_integers_and_column_order_blocks_are_taken_as_they_are() -> None:
    x, age, _ = people(11, 600, 4)
    x = x.round()
    want = Moments(names(4)).update(x, age).matrix
    for block in (x.astype(np.float32), x.astype(np.int16), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
        np.testing.assert_array_equal(Moments(names(4)).update(block, age).matrix, want)


def _file(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["empty", "text", "zip", "pickle", "truncated", "header", "asymmetric", "huge"])
def test_hostile_files_are_unreadable(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.npz"
    x, age, _ = people(9, 50, 3)
    moments = Moments(names(3)).update(x, age)
    moments.save(path)
    good = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if kind == "pickle":
        buffer = io.BytesIO()
        np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        members["header.npy"] = buffer.getvalue()
    elif kind in ("header", "asymmetric"):
        buffer = io.BytesIO()
        if kind == "header":
            np.save(buffer, np.frombuffer(b'{"schema": "other"}', dtype=np.uint8))
            members["header.npy"] = buffer.getvalue()
        else:
            m = moments.matrix
            m[0, 1] += 1
            np.save(buffer, m)
            members["matrix.npy"] = buffer.getvalue()
    elif kind == "huge":
        members["matrix.npy"] += b"\0" * 10_000
    raw = {"empty": b"", "text": b"age\n1\n", "zip": _file({"a": b""}), "truncated": good[:-40]}.get(kind)
    path.write_bytes(_file(members) if raw is None else raw)
    with pytest.raises(UnreadableError):
        Moments.load(path)


def test_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SacroDeltabError, match="cannot be read"):
        Moments.load(tmp_path / "none.npz")
