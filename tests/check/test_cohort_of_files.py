"""`--cohort`: single files judged from the people themselves, and every recorded fact of a session measured again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from checking import check, codes, mean_document, only, ruleset, texts, write
from sessions import Made, make, people

from sacro_deltab.check.recompute.cohort_check import read_cohort_facts
from sacro_deltab.judging.report import Report
from sacro_deltab.outputs import Column, OutputDocument
from sacro_deltab.rules.facts import Fact, Facts, Provider

FRAME = people().assign(volume=lambda f: f.delta * 0.1 + np.random.default_rng(2).normal(5, 1, 600))
POLICY: dict[str, Any] = {
    "facts": {
        "egress.route": "tre_airlock",
        "ledger.pinned": True,
        "ledger.exhausted_before": False,
        "linked_release.any": False,
        "cohort.overlap_checked": True,
        "cohort.overlap_found": False,
        "cohort.registered": True,
        "output.declared": True,
        "training.iterative": False,
        "cohort.unit": "person",
    }
}


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "cohort.csv"
    FRAME.to_csv(path, index=False)
    return path


def groups(column: str, hidden: tuple[str, ...] = ()) -> str:
    return table(FRAME.groupby(column)["delta"], column, hidden)


def table(grouped: Any, column: str, hidden: tuple[str, ...] = ()) -> str:
    """Means to a tenth; Ns to the nearest 5 where one that is shown is below 100."""
    parts = dict(list(grouped))
    coarse = any(20 <= len(inside) < 100 for inside in parts.values())
    rows = [f"{column},n,mean_delta"]
    for label, inside in parts.items():
        n = 5 * round(len(inside) / 5) if coarse else len(inside)
        rows.append(f"{label},*,*" if label in hidden else f"{label},{n},{inside.mean():.1f}")
    return "\n".join(rows) + "\n"


def r3(value: float) -> float:
    return float(f"{value:.2e}")


FILES: dict[str, tuple[str, str]] = {
    "mean": ("delta_mean", f"statistic,value\nmean delta,{FRAME.delta.mean():.1f}\n"),
    "sd": ("delta_sd", f"statistic,value\nSD of delta,{FRAME.delta.std():.1f}\n"),
    "n": ("n_subjects", "statistic,value\nN,600\n"),
    "quantiles": (
        "delta_quantiles",
        "percentile,delta\n" + "".join(f"{p},{np.percentile(FRAME.delta, p):.1f}\n" for p in (25, 50, 75)),
    ),
    "by sex": ("delta_mean_by_sex", groups("sex")),
    "idp": ("idp_summary", f"feature,mean,sd\nvolume,{r3(FRAME.volume.mean())},{r3(FRAME.volume.std())}\n"),
    "correlation": ("correlation", f"variable,r\nvolume,{np.corrcoef(FRAME.delta, FRAME.volume)[0, 1]:.2f}\n"),
    "people by sex": (
        "count_table",
        "sex,n\n" + "".join(f"{k},{v}\n" for k, v in sorted(FRAME.sex.value_counts().items())),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_judged_by_the_cohort_alone(tmp_path: Path, cohort: Path, name: str) -> None:
    kind, text = FILES[name]
    report = check(write(tmp_path / "out.csv", text), cohort=cohort)
    assert only(report).type == kind
    assert report.exit_code == 3, texts(report)
    assert "not judged" not in texts(report)
    assert "Nobody said, and neither file nor cohort can tell" in texts(report)


@pytest.mark.parametrize("name", sorted(set(FILES) - {"n"}))
def test_with_the_rest_attested_it_passes(tmp_path: Path, cohort: Path, name: str) -> None:
    report = check(write(tmp_path / "out.csv", FILES[name][1]), cohort=cohort, facts=POLICY)
    assert report.exit_code == 0, texts(report)
    assert {"n", "n.origin"} <= set((report.cohort or {})["measured"]["out"])


@pytest.mark.parametrize("name", FILES)
def test_a_changed_number_is_named(tmp_path: Path, cohort: Path, name: str) -> None:
    head, *rows = FILES[name][1].splitlines()
    first, last = rows[0].rsplit(",", 1)
    text = "\n".join([head, f"{first},{float(last) + 7:g}", *rows[1:]]) + "\n"
    report = check(write(tmp_path / "out.csv", text), cohort=cohort, facts=POLICY)
    assert report.exit_code == 1
    assert "of the cohort's" in texts(report), texts(report)


def test_small_groups_fail_and_marked_ones_do_not(tmp_path: Path, cohort: Path) -> None:
    shown = check(write(tmp_path / "site.csv", groups("site")), cohort=cohort, facts=POLICY)
    assert "row 'Hill' is below the threshold but not marked" in texts(shown)
    marked = check(write(tmp_path / "site.csv", groups("site", ("Hill", "Vale"))), cohort=cohort, facts=POLICY)
    assert marked.exit_code == 0, texts(marked)


def test_files_named_together_are_attacked_together(tmp_path: Path, cohort: Path) -> None:
    """A table with one small group marked, and the same people once more with that group joined to another."""
    FRAME.assign(joined=FRAME.site.replace({"Hill": "Vale"})).to_csv(tmp_path / "wide.csv", index=False)
    joined = FRAME.assign(joined=FRAME.site.replace({"Hill": "Vale"})).groupby("joined")["delta"]
    text = table(joined, "joined")
    one = write(tmp_path / "site.csv", groups("site", ("Hill",)))
    two = write(tmp_path / "joined.csv", text)
    facts = {"files": dict.fromkeys(("site", "joined"), POLICY)}
    assert check(two, cohort=tmp_path / "wide.csv", facts=facts).exit_code == 0
    together = check(one, two, cohort=tmp_path / "wide.csv", facts=facts)
    assert together.exit_code == 1, texts(together)


def test_attested_facts_are_held_against_the_cohort(tmp_path: Path, cohort: Path) -> None:
    said = {"output_type": "delta_mean", "facts": {**POLICY["facts"], "n": 601, "largest_share": 0.001}}
    report = check(write(tmp_path / "delta_mean.csv", FILES["mean"][1]), cohort=cohort, facts=said)
    assert "n is attested as 601; the cohort gives 600" in texts(report)
    assert "largest_share is attested as 0.001; the cohort gives" in texts(report)


def test_a_document_about_other_people(tmp_path: Path, cohort: Path) -> None:
    report = check(write(tmp_path / "delta_mean.json", mean_document(3.1)), cohort=cohort)
    assert "check/cohort-differs" in codes(report)


# --- a session without a column of deltas: they are made again --------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A session whose deltas come from a model fitted without noise; the cohort file has features, no deltas."""
    from sacro_deltab.model import BrainAgeDelta

    rng = np.random.default_rng(3)
    frame = people()
    loading = rng.normal(size=6)
    x = np.outer((frame.age - 60) / 10, loading) + rng.normal(0, 1, (len(frame), 6))
    model = BrainAgeDelta(n_components=4).fit(x, frame.age.to_numpy())
    deltas = model.delta(x, frame.age.to_numpy(), None, model="unbiased")
    made = make(tmp_path_factory.mktemp("trained"), deltas=deltas)
    table = frame.drop(columns="delta").assign(**{f"f{i}": x[:, i] for i in range(6)})
    table.to_csv(made.cohort, index=False)
    return made


def _fact(output: str, name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(evidence: dict[str, Any]) -> None:
        next(o for o in evidence["outputs"] if o["name"] == output)["facts"]["facts"][name]["value"] = value

    return change


def test_deltas_that_cannot_be_made_again_are_a_question(trained: Made) -> None:
    """The session's model has four components, a fresh one ten: the numbers are those of no model made here."""
    report = trained.check(cohort=trained.cohort)
    assert report.exit_code == 3, texts(report)
    assert "could not be made again from the cohort" in texts(report)


def test_deltas_are_fitted_again(trained: Made, tmp_path: Path) -> None:
    copy = trained.copy(tmp_path)
    copy.evidence(lambda e: [o["raw"]["about"].update(n_components=4) for o in e["outputs"] if o["raw"]])
    report = copy.check(cohort=trained.cohort)
    assert "check/cohort-deltas" not in codes(report), texts(report)
    assert "check/cohort-differs" not in codes(report), texts(report)
    assert "largest_share" in (report.cohort or {})["measured"]["delta_mean"]


FORGED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "share": (_fact("delta_mean", "largest_share", 0.001), "largest_share is recorded as 0.001"),
    "outlier": (_fact("delta_sd", "outlier.max_abs_z", 1.0), "outlier.max_abs_z is recorded as 1"),
    "sites": (_fact("by_site", "site.count", 30), "site.count is recorded as 30"),
    "dominance": (_fact("by_site", "acro.dominance_check", "fail"), "acro.dominance_check is recorded as fail"),
    "table share": (_fact("by_site", "largest_share", 0.5), "largest_share is recorded as 0.5"),
    "rounded": (_fact("by_site", "table.any_n_rounded", False), "table.any_n_rounded is recorded as False"),
    "node": (_fact("delta_mean", "n_node", 9), "n_node is recorded as 9"),
    "unit": (_fact("delta_mean", "cohort.unit", "scan"), "cohort.unit is declared as scan"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("session"))


@pytest.mark.parametrize("name", FORGED)
def test_each_forged_fact_is_named(made: Made, tmp_path: Path, name: str) -> None:
    change, text = FORGED[name]
    copy = made.copy(tmp_path)
    copy.evidence(change)
    report = copy.check(cohort=made.cohort)
    assert text in texts(report), texts(report)
    assert report.exit_code == 1


@pytest.mark.parametrize("what", ["n", "sum"])
def test_linked_tables_are_counted_again(made: Made, tmp_path: Path, what: str) -> None:
    """Two people of one sex and site are exchanged in the evidence: every table alone still holds."""
    copy = made.copy(tmp_path)

    def change(evidence: dict[str, Any]) -> None:
        problem = evidence["tables"]
        cells = problem["cells"]

        def atom(sex: str, site: str) -> dict[str, Any]:
            both = set(cells[f"mean_delta_by_sex|{sex}"]["atoms"]) & set(cells[f"by_site|{site}"]["atoms"])
            return problem["atoms"][sorted(both)[0]]  # type: ignore[no-any-return]

        for sex, site, by in (("F", "North", 1), ("M", "North", -1), ("F", "South", -1), ("M", "South", 1)):
            atom(sex, site)[what] += by

    copy.evidence(change)
    report = copy.check(cohort=made.cohort)
    assert "Table problem of the evidence" in texts(report), texts(report)


def test_the_report_says_what_was_measured(made: Made) -> None:
    report: Report = made.check(cohort=made.cohort)
    data = json.loads(json.dumps(report.to_json()["cohort"]))
    assert set(data["not_measured"]["delta_mean"]) >= {"output.declared"}
    assert not {"n", "largest_share", "n_node", "value"} & set(data["not_measured"]["delta_mean"])


@pytest.mark.parametrize("kind", ["prediction_error", "cv_mae", "group_contrast"])
def test_what_nothing_measures_again_is_a_question(cohort: Path, kind: str) -> None:
    """Nothing to compare with is not agreement."""
    raw = OutputDocument(kind, kind, "T", (Column("statistic", "label"), Column("value", "value")), (("MAE", 0.1),))
    facts = Facts(kind, kind, {"n": Fact("n", 400, Provider.RECORDED)}, ())
    (found,) = read_cohort_facts(cohort, ruleset().parameters).compare(kind, facts, raw)
    assert found.verdict == "review" and found.asks and "nothing of it was measured again" in found.inside


def test_a_group_called_na(tmp_path: Path) -> None:
    frame = pd.DataFrame({"delta": np.random.default_rng(4).normal(0, 4, 400), "arm": ["NA", "EU"] * 200})
    frame.to_csv(tmp_path / "cohort.csv", index=False)
    text = "arm,n,mean_delta\n" + "".join(f"{k},{v.size},{v.mean():.1f}\n" for k, v in frame.groupby("arm").delta)
    report = check(write(tmp_path / "t.csv", text), cohort=tmp_path / "cohort.csv", facts=POLICY)
    assert report.exit_code == 0, texts(report)
