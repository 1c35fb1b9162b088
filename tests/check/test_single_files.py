"""Single files: judged with attested facts, failed without, recognised by what they hold."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import PLAIN, check, codes, group_document, group_facts, mean_document, only, texts, write

from sacro_deltab.base.errors import InputError
from sacro_deltab.outputs import Column, OutputDocument

MEAN = {"output_type": "delta_mean", "facts": PLAIN}


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_rounded_mean_with_attested_facts_passes(tmp_path: Path, suffix: str) -> None:
    report = check(write(tmp_path / f"delta_mean.{suffix}", mean_document()), facts=MEAN)
    assert report.exit_code == 0, texts(report)
    assert only(report).type == "delta_mean"
    assert ("n", "attested") in only(report).facts


@pytest.mark.parametrize(
    "form",
    [
        MEAN,
        {"output_type": "delta_mean", **PLAIN},
        {"files": {"delta_mean.json": MEAN}},
        {"files": {"delta_mean": MEAN}},
        {
            "output_name": "delta_mean",
            "output_type": "delta_mean",
            "parts": [],
            "facts": {k: {"value": v, "by": "computed"} for k, v in PLAIN.items()},
        },
    ],
)
def test_forms_of_the_facts_file(tmp_path: Path, form: dict[str, Any]) -> None:
    report = check(write(tmp_path / "delta_mean.json", mean_document()), facts=form)
    assert report.exit_code == 0, texts(report)
    assert {by for _, by in only(report).facts} <= {"attested", "computed"}


def test_without_facts_it_is_not_judged_and_exit_is_1_never_3(tmp_path: Path) -> None:
    name = "a very long name of a file that a terminal of eighty columns would wrap " * 2 + ".json"
    report = check(write(tmp_path / name, mean_document()))
    assert report.exit_code == 1
    assert "not judged: missing" in texts(report)
    assert "largest_share" in texts(report)
    from sacro_deltab.check.text import render

    assert str(tmp_path / name) in render(report)


@pytest.mark.parametrize(
    "change",
    [{"n": 19}, {"n": None}, {"egress.route": "direct"}, {"cohort.unit": "row"}, {"package.recoverable_cells": 1}],
)
def test_facts_decide(tmp_path: Path, change: dict[str, Any]) -> None:
    facts = {k: v for k, v in {**PLAIN, **change}.items() if v is not None}
    report = check(
        write(tmp_path / "delta_mean.json", mean_document()), facts={"output_type": "delta_mean", "facts": facts}
    )
    assert report.exit_code == 1, texts(report)


@pytest.mark.parametrize("value", [0.34, 0.30000001, 12.25])
def test_what_is_not_rounded_fails(tmp_path: Path, value: float) -> None:
    report = check(write(tmp_path / "delta_mean.json", mean_document(value)), facts=MEAN)
    assert "check/not-transformed" in codes(report)
    assert report.exit_code == 1


def test_groups(tmp_path: Path) -> None:
    good = group_document({"F": (240, 0.5), "M": (172, -0.3)})
    assert check(write(tmp_path / "by_sex.json", good), facts=group_facts({"F": 240, "M": 172})).exit_code == 0
    report = check(write(tmp_path / "by_sex.json", good), facts=group_facts({"F": 240, "M": 12}))
    assert report.exit_code == 1
    assert "not marked" in texts(report) or "must be marked" in texts(report)
    report = check(write(tmp_path / "by_sex.json", good), facts={**group_facts({"F": 240}), "parts": {}})
    assert "facts of 2 of its 2 rows" in texts(report)


def test_noise_on_a_statement_alone_is_never_more_than_review(tmp_path: Path) -> None:
    noise = {
        "dp.applied": True,
        "dp.label": "heuristic",
        "dp.mechanism": "laplace",
        "dp.adjacency": "zero_out_N_public",
        "dp.epsilon": 0.5,
        "dp.delta": 0.0,
        "dp.sensitivity": 0.04854368932,
        "dp.scale": 0.2,
        "dp.sigma": 0.3,
        "dp.value_range": 40.0,
        "dp.value_max_abs": 20.0,
        "dp.noise_inside_tre": True,
        "dp.noise_before_rounding": True,
        "dp.rng": "secure",
        "dp.sampler": "exact_discrete",
        "dp.sensitivity_basis": "clipped_bound",
        "ledger.entry": True,
        "ledger.epsilon_total": 0.5,
        "ledger.delta_total": 0.0,
        "ledger.accountant": "sum",
        "training.iterative": False,
        "model.origin": "fixed_beforehand",
        "bounds.provenance": "ruleset",
    }
    report = check(
        write(tmp_path / "delta_mean.json", mean_document()),
        facts={"output_type": "delta_mean", "facts": {**PLAIN, **noise}},
    )
    assert report.exit_code == 3, texts(report)
    assert "check/noise-unproved" in codes(report)


def test_csv_beside_json_are_both_judged(tmp_path: Path) -> None:
    pair = [write(tmp_path / f"delta_mean.{s}", mean_document()) for s in ("csv", "json")]
    assert check(*pair, facts=MEAN).exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not a JSON object"),
        ('{"facts": [1]}', "`facts` must map"),
        ('{"facts": {"n": [1]}}', "a fact must be"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"output_type": 3}', "must be a word"),
        ('{"facts": {}, "surprise": 1}', "unknown key"),
        ('{"parts": [{"key": 1}]}', "a part needs"),
    ],
)
def test_a_bad_facts_file_is_a_usage_error(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "delta_mean.json", mean_document())
    with pytest.raises(InputError, match=message):
        check(path, facts_file=write(tmp_path / "facts.json", text))


def test_missing_paths_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="holds no files"):
        check(tmp_path)


# --- recognised by content --------------------------------------------------------------------------------------------

RNG = np.random.default_rng(11)
AGES = RNG.integers(45, 80, 217).astype(float)
DELTAS = RNG.normal(0, 5, 217)
X = RNG.normal(size=(217, 12)) * 3 + 40

DISGUISES = {
    "ages": (AGES, "ytrain"),
    "ages in months": (AGES * 12 + RNG.integers(0, 12, 217), "ytrain"),
    "ages in days": (AGES * 365.25 + RNG.integers(0, 365, 217), "ytrain"),
    "demeaned ages": (AGES - AGES.mean(), "y_demean"),
    "ages minus a constant": (AGES - 63, "y_demean"),
    "ages scaled": (AGES / 80, "y_demean"),
    "standardised ages": ((AGES - AGES.mean()) / AGES.std(), "y_demean"),
    "ages upside down": (100 - AGES, "ytrain"),
    "deltas": (DELTAS, "delta_vector"),
    "rounded deltas": (np.round(DELTAS, 2), "delta_vector"),
    "sorted ages": (np.sort(AGES), "ytrain"),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", ["weights.txt", "b1.csv", "notes"])
def test_a_renamed_vector_is_recognised(tmp_path: Path, disguise: str, name: str) -> None:
    values, expected = DISGUISES[disguise]
    report = check(write(tmp_path / name, "\n".join(repr(float(v)) for v in values) + "\n"))
    assert report.exit_code == 1
    found = {c.removeprefix("check/type-") for c in codes(report) if c.startswith("check/type-")}
    if expected == "delta_vector" and "y_demean" in found:
        return  # rounded deltas stand on a grid too: still one value per subject
    assert expected in found, texts(report)


@pytest.mark.parametrize("make", ["json", "npy", "npz", "row", "pickle", "transposed"])
def test_in_every_container(tmp_path: Path, make: str) -> None:
    buffer = io.BytesIO()
    if make == "json":
        data: Any = json.dumps({"coefficients": AGES.tolist()})
    elif make == "row":
        data = ",".join(str(v) for v in AGES) + "\n"
    elif make == "transposed":
        data = "\n".join(",".join(str(v) for v in row) for row in (AGES, DELTAS)) + "\n"
    elif make == "pickle":
        import pickle

        data = pickle.dumps({"coefficients": AGES})
    else:
        (np.save if make == "npy" else np.savez)(buffer, AGES)
        data = buffer.getvalue()
    report = check(write(tmp_path / "coefficients", data))
    assert report.exit_code == 1
    assert any(code.startswith("check/type-ytrain") for code in codes(report)), texts(report)


@pytest.mark.parametrize(
    ("values", "kind"), [(X, "xtrain"), ((X - X.mean(0)) / X.std(0), "x_norm"), (X - X.mean(0), "x_reduced")]
)
def test_matrices_of_people(tmp_path: Path, values: np.ndarray, kind: str) -> None:
    text = "\n".join(" ".join(repr(float(v)) for v in row) for row in values)
    report = check(write(tmp_path / "components.txt", text))
    assert f"check/type-{kind}" in codes(report), texts(report)


def test_files_together_unmask_each_other(tmp_path: Path) -> None:
    """Upstream's predictions: neither file alone states N, two of the same length do."""
    first = write(tmp_path / "brain_age.txt", "\n".join(repr(float(v) + 1e3) for v in AGES * 1.3 + DELTAS))
    second = write(tmp_path / "y2.txt", "\n".join(repr(float(v)) for v in X[:, 0] * 1e5))
    assert "check/dimension-n" in codes(check(first, second))


def test_n_in_file_names_means_and_logs(tmp_path: Path) -> None:
    report = check(write(tmp_path / "model_SAIL_0093_dementia_N217.json", {"b1": [0.1, 0.2]}))
    assert "N = 217 can be read from the file name" in texts(report)
    report = check(write(tmp_path / "w.json", {"y_mean": 7334 / 217, "b1": [0.1, 0.2]}))
    assert "N = 217 can be read from the fraction that y_mean is" in texts(report)
    log = "INFO removed 2 NaN rows: [17, 143]\nINFO reading /data/study/ages.txt\nshape (217, 72)\n"
    report = check(write(tmp_path / "debug.log", log))
    assert {"check/row-numbers", "check/paths", "check/counts", "check/not-judged"} <= codes(report)


def test_identities_show_that_no_noise_was_added(tmp_path: Path) -> None:
    b1, gamma, ev = np.array([0.4, -0.2]), np.array([0.9, -0.7]), np.array([3.0, 1.5])
    data = {"b1": b1.tolist(), "gamma": gamma.tolist(), "b2": float(-(1 - b1 @ gamma))}
    assert "check/no-noise" in codes(check(write(tmp_path / "w.json", data)))
    gamma = b1 * ev / 330.5
    data = {"b1": b1.tolist(), "gamma": gamma.tolist(), "explained_variance_": ev.tolist(), "b2": 0.1}
    assert "check/no-noise" in codes(check(write(tmp_path / "w.json", data)))
    noisy = {"b1": [0.41, -0.19], "gamma": [0.93, -0.72], "b2": -0.5, "explained_variance_": ev.tolist()}
    assert "check/no-noise" not in codes(check(write(tmp_path / "w.json", noisy)))


def test_identifiers(tmp_path: Path) -> None:
    rows = "participant_id,score\n" + "".join(f"sub-{i:03d},{i * 0.37}\n" for i in range(30))
    assert "check/identifiers" in codes(check(write(tmp_path / "scores.csv", rows)))


@pytest.mark.parametrize("name", ["link", "folder link"])
def test_links_named_on_the_command_line(tmp_path: Path, name: str) -> None:
    target = tmp_path / "real"
    if name == "link":
        write(target, mean_document())
    else:
        target.mkdir()
        write(target / "a.csv", "a,b\n1,2\n")
    (tmp_path / "link.json").symlink_to(target)
    report = check(tmp_path / "link.json", facts=MEAN)
    assert report.exit_code == 1
    assert "symbolic link" in texts(report)


def test_archives_list_their_members_and_never_pass(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "outputs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("delta_mean.json", mean_document().to_json())
        archive.writestr("ages.txt", "\n".join(str(v) for v in AGES))
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as nested:
            nested.writestr("x.csv", "a")
        archive.writestr("inner.zip", inner.getvalue())
    report = check(path, facts={"files": {"delta_mean.json": MEAN}})
    verdicts = {o.file.rsplit("/", 1)[-1]: o.verdict for o in report.outputs}
    assert verdicts == {
        "outputs.zip": "fail",
        "outputs.zip!delta_mean.json": "pass",
        "outputs.zip!ages.txt": "fail",
        "outputs.zip!inner.zip": "fail",
    }
    assert "was not opened" in texts(report)


def test_facts_of_one_output_are_not_spread_over_several(tmp_path: Path) -> None:
    other = mean_document(0.7, name="other")
    with pytest.raises(InputError, match="several were named"):
        check(write(tmp_path / "delta_mean.json", mean_document()), write(tmp_path / "other.json", other), facts=MEAN)


def test_an_attestation_of_staff_serves_as_facts(tmp_path: Path) -> None:
    said = {"schema": "sacro_deltab/declare/1", "role": "tre_staff", "by": "A Member of Staff", "facts": PLAIN}
    path = write(tmp_path / "delta_mean.json", mean_document())
    assert check(path, facts=said).exit_code == 0
    with pytest.raises(InputError, match="only TRE staff"):
        check(path, facts={**said, "role": "researcher"})


VALUES = Column("value", "value", "years")
NOT_SUCH = {
    "an SD of nothing": ("delta_sd", (("SD of delta", 0.0),), (("SD of delta", 3.1),)),
    "a mean that is an age": ("delta_mean", (("mean", 62.3),), (("mean", -6.3),)),
    "quantiles of one value": ("delta_quantiles", (("25", 2.0), ("50", 2.0), ("75", 2.0)),
                               (("25", -1.0), ("50", 0.0), ("75", 1.0))),
}  # fmt: skip


@pytest.mark.parametrize("what", NOT_SUCH)
def test_what_a_session_refuses_is_refused_of_a_file(tmp_path: Path, what: str) -> None:
    kind, wrong, honest = NOT_SUCH[what]
    facts = {"output_type": kind, "facts": {**PLAIN, "mean.noised_beside": False}}
    for rows, blocked in ((wrong, True), (honest, False)):
        document = OutputDocument(kind, kind, "Delta", (Column("statistic", "label"), VALUES), rows, {})
        report = check(write(tmp_path / f"{kind}.json", document), facts=facts)
        assert ("check/impossible-value" in codes(report)) == blocked, texts(report)
