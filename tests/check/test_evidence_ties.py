"""Evidence is about what it speaks of: the cohort that paid, the weights that were attacked, the people who declared.

And honest sessions are not blocked for it: two trainings on one basis, a subset of weights, no person ids.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sessions import Made, edit
from test_session_folder import codes, texts

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.judging.documents import free_text_of
from sacro_deltab.ledger import open_ledger
from sacro_deltab.privacy.attack.membership import not_run
from sacro_deltab.privacy.basis import Basis

SUBSET = ["beta1", "beta2", "folded_weights", "y_mean", "x_mean", "x_std"]  # no beta2sq, no ysq_*: fewer kinds of delta


@dataclass(frozen=True)
class Release:
    """A folder with what the TRE holds, and the verdicts of its outputs."""

    made: Made
    statuses: dict[str, str]

    def check(self, folder: Path | None = None, **more: Any) -> Any:
        made = self.made if folder is None else Made(folder, self.made.profile, self.made.ledger, self.made.cohort)
        return made.check(**more)


def release(where: Path, *, ids: bool = True, out: str = "outputs") -> Release:
    """Weights of a private model on a registered basis, and statistics of its deltas."""
    import acro

    from sacro_deltab import DeltabSession

    logging.disable(logging.CRITICAL)
    public, people = smith_cohort(600, 8, seed=1), smith_cohort(500, 8, seed=2)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")
    ledger = open_ledger(where / "budget.db")
    if not ledger.history():
        ledger.register_bounds(basis.digest, "TRE staff")
    pin, profile = ledger.pin(), where / "profile.yaml"
    profile.write_text(
        "profile: {id: test-site, title: Test, ruleset: deltab-disclosure, decided_by: null}\n"
        "attest: {egress.route: tre_airlock, dp.noise_inside_tre: true}\n"
        f'ledgers: [{{id: "{pin.id}", head_key: "{pin.head_key}"}}]\n'
    )
    declare = {
        "schema": "sacro_deltab/declare/1", "role": "researcher", "by": "A Researcher",
        "facts": {"output.declared": True, "dp.trust_model": "central_at_node"},
    }  # fmt: skip
    (where / "declare.json").write_text(json.dumps(declare))
    names = [f"P{i:03d}" for i in range(500)]
    session = DeltabSession(
        acro.ACRO(), cohort="test-cohort", profile=profile, ledger=where / "budget.db", declare=declare,
        ages=people.age, journal=where / f"journal-{out}", **({"people": names} if ids else {}),
    )  # fmt: skip
    frame = pd.DataFrame(people.X, columns=list(people.feature_names)).assign(age=people.age)
    model = session.train_private(
        people.X, people.age, feature_names=list(people.feature_names), basis=basis, epsilon=0.8,
        spend_anyway=True, membership_test=False,
    )  # fmt: skip
    report = where / f"attack-{out}.json"
    report.write_text(json.dumps(not_run(model.weights, model.statement.to_json(), 500, "not made in this test")))
    session.attach_attack_report(report)
    delta = session.deltas(model, people.X, people.age)
    entries = [
        *session.release_weights(model, only=SUBSET, title=f"Model {out}"),
        *(session.release_mean(delta), session.release_sd(delta), session.release_quantiles(delta)),
    ]
    frame["delta"] = delta
    frame.insert(0, "participant_id", names)
    frame.to_csv(where / "cohort.csv", index=False)
    folder = Path(session.finalise(where / out))
    made = Made(folder, profile, where / "budget.db", where / "cohort.csv")
    return Release(made, {entry.name: entry.status for entry in entries})


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return release(tmp_path_factory.mktemp("honest"))


def test_an_honest_session_is_untouched(honest: Release) -> None:
    report = honest.check()
    found = {o.output: o.verdict for o in report.outputs if o.output}
    assert {name: found[name] for name in honest.statuses} == honest.statuses, texts(report)
    assert "check/attack-report" not in codes(report)


def test_a_subset_of_weights_does_not_fail_honest_deltas(honest: Release) -> None:
    report = honest.check(cohort=honest.made.cohort)
    assert report.verdict != "fail", texts(report)
    assert "model.origin" in report.cohort["not_measured"]["delta_mean"]


TIES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "another cohort": (
        lambda f: edit(f / "inside" / "evidence.json", lambda d: d["session"].update(cohort="other-cohort")),
        "check/ledger-differs",
    ),
    "other units": (
        lambda f: edit(f / "inside" / "evidence.json", lambda d: d["session"].update(unit="row")),
        "check/ledger-differs",
    ),
    "report deleted": (lambda f: (f / "inside" / "attack.json").unlink(), "check/attack-report"),
    "report emptied": (lambda f: (f / "inside" / "attack.json").write_text("{}"), "check/attack-report"),
    "report of another model": (
        lambda f: edit(f / "inside" / "attack.json", lambda d: d["target"].update(weights_sha256="ab" * 32)),
        "check/attack-report",
    ),
    "a declared number with many digits": (
        lambda f: edit(
            f / "inside" / "evidence.json",
            lambda d: d["session"]["declared"]["facts"].update({"dp.noise_total_std": 0.12345678901234567}),
        ),
        "check/evidence",
    ),
    "a declared word of nobody's": (
        lambda f: edit(
            f / "inside" / "evidence.json",
            lambda d: d["session"]["declared"]["facts"].update({"dp.trust_model": "abcdefghij"}),
        ),
        "check/evidence",
    ),
    "a sentence of the author's": (
        lambda f: edit(f / "inside" / "evidence.json", lambda d: d["not_checked"].append("P1 70.1 P2 63.5")),
        "check/certificate",
    ),
    "a withheld note of nobody's": (
        lambda f: (f / "kept.csv").write_text("output,kept inside because\nabc,too few\n"),
        "check/unlisted",
    ),
}


@pytest.mark.parametrize("name", TIES)
def test_evidence_about_something_else_is_named(honest: Release, tmp_path: Path, name: str) -> None:
    change, expected = TIES[name]
    made = honest.made.copy(tmp_path)
    change(made.folder)
    report = made.check()
    assert expected in codes(report), f"{sorted(codes(report))}\n{texts(report)}"
    assert report.exit_code != 0


def test_whoever_declares_now_must_be_who_declared_then(honest: Release, tmp_path: Path) -> None:
    said = json.loads((honest.made.folder.parent / "declare.json").read_text())
    (tmp_path / "same.json").write_text(json.dumps(said))
    (tmp_path / "other.json").write_text(json.dumps({**said, "by": "P seven zero one"}))
    assert "check/declared-otherwise" not in codes(honest.check(declare=tmp_path / "same.json"))
    assert "check/declared-otherwise" in codes(honest.check(declare=tmp_path / "other.json"))


def test_two_trainings_on_one_basis_keep_their_labels(tmp_path: Path) -> None:
    """Both write the public centre: the same bytes, closed by two spends, whichever folder is looked at."""
    one = release(tmp_path, out="one")
    two = release(tmp_path, out="two")
    pair = [made.made.folder / "x_mean.csv" for made in (one, two)]
    assert pair[0].read_bytes() == pair[1].read_bytes()
    for made in (one, two):
        report = made.check()
        found = {o.output: o.verdict for o in report.outputs if o.output}
        assert {name: found[name] for name in made.statuses} == made.statuses, texts(report)
        assert not {"check/noise-unproved", "check/ledger-differs"} & codes(report), texts(report)


def test_without_ids_the_package_knows_its_own_words(tmp_path: Path) -> None:
    one = release(tmp_path, ids=False)
    report = one.check()
    assert "check/about" not in codes(report), texts(report)


def test_how_much_names_can_say_is_stated_and_worked_out_again(honest: Release, tmp_path: Path) -> None:
    evidence = json.loads((honest.made.folder / "inside" / "evidence.json").read_text())
    bits = {o["name"]: o["free_bits"] for o in evidence["outputs"]}
    assert evidence["free_bits"] == sum(bits.values()) and all(b > 0 for b in bits.values())
    made = honest.made.copy(tmp_path)
    edit(made.folder / "inside" / "evidence.json", lambda d: d.update(free_bits=1))
    assert "check/not-rebuilt" in codes(made.check())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Mean delta at 40-50 and 50-60", False),
        ("471 534 597 602 633", True),
        ("Region 12", False),
        ("a1b2c3d4e5", True),
    ],
)
def test_a_run_of_numbers_in_a_name_goes_to_a_person(text: str, asked: bool) -> None:
    found = [f for f in free_text_of([text], {"name_numbers": 4}) if f.rules == ("check/numbers-in-labels",)]
    assert bool(found) == asked and all(f.verdict == "review" for f in found)
    strict = {f.rules for f in free_text_of([text], {"name_numbers": 0})}
    assert ("check/numbers-in-labels",) in strict  # the number is the rule set's
