"""One attack on all that leaves: it finds members in what exact numbers tell, and nobody where there is nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.privacy.attack.package import Told, package_attack
from sacro_deltab.privacy.attack.stats import max_auc, max_tpr


def features(n: int, size: int, error: float = 0.0) -> list[Told]:
    X = np.random.default_rng(1).normal(size=(n, size))
    X -= X.mean(axis=0)
    return [Told("means", column, error, column) for column in X.T]


def test_exact_means_tell_more_the_fewer_people_and_the_more_of_them_there_are() -> None:
    few, many = package_attack(features(100, 60), 0.0), package_attack(features(1000, 60), 0.0)
    assert few["union"]["auc"] > 0.85 > many["union"]["auc"] > 0.58  # sqrt(60/50) and sqrt(60/500) of a person's own
    expected = [round(r["expected"]["auc"], 2) for r in (few, many)]
    assert expected == pytest.approx([max_auc(0.6**0.5), max_auc(0.06**0.5)], abs=0.06)  # d² = numbers over people
    assert few["union"]["auc"] > few["expected"]["auc"] < few["most_exposed"]["auc"]
    pair = package_attack(features(60, 2), 0.0)["attributes"]
    assert 0.5 > pair["right_with"] > pair["right_without"] > 0.3  # one person in sixty moves a mean by little
    logger = few["sacro_ml"]["attack_experiment_logger"]["attack_instance_logger"]
    assert logger["instance_0"]["AUC"] == few["union"]["auc"]
    coarse = package_attack(features(100, 60, error=1.0), 0.0)  # printed so coarsely that nothing is left
    assert coarse["union"]["auc"] < 0.6


def test_noise_counts_at_what_its_mu_allows_and_outputs_add_up() -> None:
    alone = package_attack(features(400, 1, error=50.0), 0.5)
    low, high = alone["union"]["auc_ci"]
    assert low - 0.01 <= max_auc(0.5) <= high + 0.01
    assert alone["most_exposed"]["tpr_at_fpr"]["tpr"] == pytest.approx(max_tpr(0.5), abs=0.01)
    told = features(200, 30)
    mixed = [Told(f"o{k % 3}", one.influence, 0.0) for k, one in enumerate(told)]
    report = package_attack(mixed, 0.0)
    assert len(report["outputs"]) == 3 and max(o["auc"] for o in report["outputs"].values()) < report["union"]["auc"]
    assert report["attributes"]["right_with"] is None
    with pytest.raises(InputError):
        package_attack(features(39, 3), 0.0)


def test_the_report_of_a_session_stays_inside(make_package_session: Any, tmp_path: Path) -> None:
    session, X = make_package_session
    session.release_n()
    session.release_feature_summary(X, feature_names=[f"f{i}" for i in range(12)])
    session.release_sd(X[:, 0] * 4)
    report = session.attack_package()
    assert report["numbers"] == 25 and set(report["outputs"]) == {"idp_summary", "delta_sd"}
    folder = session.finalise(tmp_path / "out")
    assert json.loads((folder / "inside" / "attack-package.json").read_text(encoding="utf-8"))["stays"] == "inside"
    assert not [p for p in folder.rglob("*package*") if "inside" not in p.parts]
    from sacro_deltab.check import check_paths

    found = check_paths([folder], ruleset=session.ruleset)
    assert "check/inside" not in {rule for f in found.folder_findings for rule in f.rules}


@pytest.fixture
def make_package_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import sys

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "session"))
    helpers = __import__("session_helpers")
    helpers.write_profile(tmp_path)
    sys.modules.setdefault("session_helpers", helpers)
    return helpers.new_session(tmp_path), np.random.default_rng(4).normal(size=(400, 12))
