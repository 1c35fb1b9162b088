"""A part of the cohort: trained on controls and applied to patients, tables and statistics of some, one budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE
from people_register import register_frame

from sacro_deltab import DeltabSession
from sacro_deltab.base.errors import BudgetError, InputError
from sacro_deltab.check import check_paths
from sacro_deltab.cli import main
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.ledger import open_ledger
from sacro_deltab.privacy import Basis
from sacro_deltab.run.pipeline import quiet_acro

N, FEATURES = 500, 8
CONTROLS = 320


def table(seed: int = 2) -> pd.DataFrame:
    people = smith_cohort(N, FEATURES, seed=seed)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(np.round(people.X, 4), columns=list(people.feature_names))
    frame.insert(0, "participant_id", [f"P{i:04d}" for i in range(N)])
    frame.insert(1, "age", np.round(people.age, 1))
    frame["dx"] = rng.permutation(["HC"] * CONTROLS + ["AD"] * 110 + ["MCI"] * (N - CONTROLS - 118) + ["FTD"] * 8)
    frame["sex"] = rng.choice(["F", "M"], N)
    return frame


class Place:
    """A TRE with a registered basis and cohort."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.table = folder, table()
        patch.chdir(folder)
        self.book = open_ledger("budget.db", create=True)
        pins = [{"id": self.book.id, "head_key": self.book.head_key}]
        patch.setattr("sacro_deltab.session.core.pins_of", lambda trust, ruleset: pins)
        public = smith_cohort(400, FEATURES, seed=1)
        self.basis = Basis.from_public(
            public.X, public.age, public.feature_names, n_components=3, made_on="public people"
        )
        self.book.register_bounds(self.basis.digest, "TRE staff")
        register_frame("budget.db", "site-a", self.table)
        self.table.to_csv("cohort.csv", index=False)

    @property
    def X(self) -> pd.DataFrame:
        return self.table[list(self.basis.feature_names)]

    def session(self) -> DeltabSession:
        return DeltabSession(
            quiet_acro(), cohort="site-a", people=self.table["participant_id"], ages=self.table["age"],
            ledger="budget.db", declare=DECLARE, attest=ATTEST,
        )  # fmt: skip

    def trained(self, session: DeltabSession, where: Any, **more: Any) -> Any:
        how = {"basis": self.basis, "epsilon": 1.0, "membership_test": False, "spend_anyway": True, **more}
        return session.train_private(self.X, self.table["age"], where=where, **how)

    def checked(self, folder: Path) -> dict[str, str]:
        """Findings that block, by file, with the cohort beside them."""
        report = check_paths([folder], ledger="budget.db", cohort="cohort.csv")
        found = {"": list(report.folder_findings), **{o.file: list(o.findings) for o in report.outputs}}
        return {file: f.inside for file, some in found.items() for f in some if f.verdict == "fail"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_trained_on_controls_and_applied_to_patients(place: Place) -> None:
    session, dx = place.session(), place.table["dx"]
    model = place.trained(session, (dx, "HC"))
    assert model.statement.label == "formal"
    weights = {entry.type: entry for entry in session.release_weights(model)}
    assert "n_subjects" not in weights and weights["beta1"].raw is not None
    assert weights["beta1"].raw.about["where"] == ["dx", "HC"] and weights["beta1"].n == CONTROLS
    delta = session.deltas(model, place.X, place.table["age"])
    controls = session.deltas(model, place.X, place.table["age"], where=(dx, "HC"))
    mine = (dx == "HC").to_numpy()
    assert np.isfinite(delta).all() and np.array_equal(np.isfinite(controls), mine)
    assert np.array_equal(delta[mine], controls[mine])
    assert session.model_origin(controls)["model.origin"].value == "formal_release"
    assert session.model_origin(delta)["model.origin"].value == "unprotected"
    patients = session.release_group_means(delta, by=place.table["sex"], where=(dx, ["AD", "MCI"]))
    assert patients.title == "Mean delta by sex, dx: AD, MCI" and patients.raw is not None
    assert sum(int(row[1]) for row in patients.raw.rows) == int(dx.isin(["AD", "MCI"]).sum())
    assert place.checked(session.finalise("outputs")) == {}


def test_parts_share_the_budget_of_the_cohort(place: Place) -> None:
    session, dx = place.session(), place.table["dx"]
    for label in ("HC", "AD", "HC"):
        place.trained(session, (dx, label))
    place.trained(session, None)
    with pytest.raises(BudgetError):
        place.trained(session, (dx, "AD"))
    assert session.budget.ledger.totals("site-a").epsilon_sum == pytest.approx(4.0)


def test_a_part_of_somebodys_own_making_is_no_formal_one_and_goes_to_a_person(place: Place) -> None:
    session, own = place.session(), place.table["dx"].where(place.table.index != 0, "AD").rename("dx")
    own = own if place.table["dx"][0] != "AD" else own.where(place.table.index != 0, "HC")
    assert place.trained(session, (own, "HC")).statement.label == "heuristic"
    delta = place.table["age"] - place.table["age"].mean()
    for entry in (session.release_sd(np.sin(delta), where=(own, "HC")), session.release_n(where=(own, "HC"))):
        assert entry.status == "review" and "FB-20" in entry.explain()


@pytest.mark.parametrize("few", ["AD, MCI and HC beside everybody", "FTD alone"])
def test_a_small_group_does_not_follow_from_its_complement(place: Place, few: str) -> None:
    session, dx = place.session(), place.table["dx"]
    model = place.trained(session, None)
    delta = session.deltas(model, place.X, place.table["age"])
    if few == "FTD alone":
        entries = [session.release_mean(delta, where=(dx, "FTD"))]
    else:
        entries = [
            session.release_mean(delta),
            session.release_mean(delta, where=(dx, ["HC", "AD", "MCI"]), name="most"),
        ]
    assert any(session.find(entry.name).kept_inside for entry in entries)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("dx == 'HC'", "where= is not understood"),
        (([["HC"]], "HC"), "1 rows, but the session's cohort has 500"),
        (("sick",), "one label, or several"),
    ],
)
def test_what_is_no_part_is_named(place: Place, where: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        place.session().release_sd(np.zeros(N), where=where)
    with pytest.raises(InputError, match="no group 'PSP'") as caught:
        place.session().release_sd(np.zeros(N), where=(place.table["dx"], "PSP"))
    assert "HC" in str(caught.value.next_step)


def test_every_statistic_of_a_part_is_that_of_its_people(place: Place) -> None:
    session, dx = place.session(), place.table["dx"]
    model = place.trained(session, None)
    delta = session.deltas(model, place.X, place.table["age"])
    mine = dx.isin(["HC", "AD"]).to_numpy()
    where, age, sex = (dx, ["HC", "AD"]), place.table["age"], place.table["sex"]
    data = place.table.assign(delta=delta)
    entries = [
        session.release_mean(delta, where=where),
        session.release_quantiles(delta, where=where),
        session.release_group_sds(delta, by=sex, where=where),
        session.release_feature_summary(place.X, where=where),
        session.release_correlations(delta, place.X, where=where),
        session.release_regression(formula="delta ~ age + C(sex)", data=data, where=where),
        session.release_contrast(delta, sex, where=where),
        session.release_prediction_error(session.cross_validated(place.X, age).predicted_age, age, where=where),
        session.release_n(where=where),
    ]
    raws = [entry.raw for entry in entries]
    assert all(raw is not None and raw.about["where"] == ["dx", "HC", "AD"] for raw in raws)
    assert raws[0] is not None and raws[0].rows[0][1] == pytest.approx(delta[mine].mean())
    assert raws[3] is not None and raws[3].rows[0][1] == pytest.approx(place.X.iloc[:, 0][mine].mean())
    assert raws[5] is not None and raws[5].rows[0][1] == mine.sum() == raws[8].rows[0][1]  # type: ignore[union-attr]
    assert not any("FB-20" in entry.explain() for entry in entries)
    with pytest.raises(InputError, match="not counted in a part"):
        session.release("count_table", sex, where=where)
    assert place.checked(session.finalise("outputs")) == {}


def test_run_trains_on_a_part_and_tabulates_everybody(place: Place) -> None:
    place.table.to_csv("cohort.csv", index=False)
    place.basis.save("basis.json")
    for name, said in (("declare.json", DECLARE), ("attest.json", ATTEST)):
        Path(name).write_text(json.dumps(said), encoding="utf-8")
    words = (
        "run --ages cohort.csv --features cohort.csv --id-column participant_id --by sex --train-where dx=HC "
        "--basis basis.json --epsilon 1 --cohort site-a --declare declare.json --attest attest.json --out outputs"
    )
    with pytest.raises(SystemExit) as stopped:
        main(words.split())
    assert stopped.value.code == 3  # γ
    assert json.loads(Path("outputs/beta1.json").read_text(encoding="utf-8"))["about"]["where"] == ["dx", "HC"]
    by_sex = json.loads(Path("outputs/mean_delta_by_sex.json").read_text(encoding="utf-8"))
    assert sum(row[1] for row in by_sex["rows"]) == pytest.approx(N, abs=10)
    assert place.checked(Path("outputs")) == {}
    with pytest.raises(SystemExit) as refused:
        main([*words.replace("dx=HC", "dx=").split()[:-1], "other"])
    assert refused.value.code == 2
