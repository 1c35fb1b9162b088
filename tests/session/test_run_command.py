"""`sacro-deltab run` and `demo`: the whole job from the command line, and every way to feed it nonsense."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from declarations import ATTEST, DECLARE
from session_helpers import write_profile

from sacro_deltab.run.plan import Plan

Run = Callable[..., tuple[int, str, str]]


def write(path: Path, ages: Any, features: Any, groups: Any | None = None) -> tuple[Path, Path]:
    """ages.csv and idps.csv in `path`; with groups, groups.csv too."""
    names = ",".join(f"f{i + 1}" for i in range(np.shape(features)[1])) if len(features) else "f1"
    (path / "ages.csv").write_text("age\n" + "".join(f"{a}\n" for a in ages), encoding="utf-8")
    rows = "".join(",".join(f"{v:.6f}" for v in row) + "\n" for row in features)
    (path / "idps.csv").write_text(f"{names}\n{rows}", encoding="utf-8")
    if groups is not None:
        (path / "groups.csv").write_text("sex\n" + "".join(f"{g}\n" for g in groups), encoding="utf-8")
    return path / "ages.csv", path / "idps.csv"


def people(n: int, f: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    age = rng.uniform(45, 80, n).round(1)
    return age, age[:, None] * rng.normal(size=f) + rng.normal(size=(n, f)) * 20


def nothing_left(place: Path) -> None:
    """No output folder, no temporary folder, whole or partial."""
    assert [p.name for p in place.iterdir() if "out" in p.name or p.name.endswith((".partial", ".session"))] == []


def said(place: Path) -> list[str]:
    (place / "declare.json").write_text(json.dumps(DECLARE), encoding="utf-8")
    (place / "attest.json").write_text(json.dumps(ATTEST), encoding="utf-8")
    return ["--declare", "declare.json", "--attest", "attest.json"]


def test_run_alone_names_what_is_impossible(cli: Run, place: Path) -> None:
    age, x = people(150)
    write(place, age, x)
    code, out, err = cli("run", "--ages", "ages.csv", "--features", "idps.csv", "--out", "undeclared")
    assert code == 1 and "declared (--declare FILE): output.declared" in out  # the researcher can say it
    declare = said(place)[:2]
    code, out, err = cli("run", "--ages", "ages.csv", "--features", "idps.csv", "--out", "out", *declare)
    assert code == 3  # nobody attested the way out: the checker is asked
    assert "no ε was given" in out and "no groups were given" in out
    assert "egress.route" in out and "--attest" in out
    assert (place / "out" / "results.json").is_file()
    assert "Traceback" not in out + err
    again = ["run", "--ages", "ages.csv", "--features", "idps.csv", "--out", "out", *declare]
    first = (place / "out" / "results.json").read_bytes()
    code, out, err = cli(*again)
    assert code == 2 and "--overwrite" in err and (place / "out" / "results.json").read_bytes() == first
    code, out, err = cli(*again, "--overwrite")
    assert (
        code == 3
        and (place / "out.1" / "results.json").read_bytes() == first != (place / "out/results.json").read_bytes()
    )
    (place / "thesis").mkdir()
    (place / "thesis" / "chapter").write_text("mine")
    code, out, err = cli(*again[:5], "--out", "thesis", *declare, "--overwrite")
    assert code == 2 and "no session folder" in err and [p.name for p in (place / "thesis").iterdir()] == ["chapter"]


def test_run_with_upstream_names_and_everything_said(cli: Run, place: Path) -> None:
    age, x = people(240)
    write(place, age, x, ["F"] * 130 + ["M"] * 110)
    profile = write_profile(place)
    code, out, _ = cli(
        "run", "--train-ages", "ages.csv", "--train-features", "idps.csv", "--groups", "groups.csv",
        "--feature-num", "3", "--predict-model", "unbiased", "--age-bands", "10,20", "--profile", profile, "--plots",
        "--out", "out", "--json", *said(place),
    )  # fmt: skip
    data = json.loads(out)
    assert code in (0, 3)
    status = {o["name"]: o["status"] for o in data["outputs"]}
    assert status["mean_delta_by_sex"] == "review"  # without person ids overlap with other cohorts is not checked
    assert {"mean_delta_by_age_band_10", "mean_delta_by_age_band_20"} <= set(status)
    code, out, _ = cli("check", "out", "--profile", profile, "--ledger", "budget.db", "--format", "json")
    found = {o["file"]: o["verdict"] for o in json.loads(out)["outputs"]}
    assert {f: o["status"] for o in data["outputs"] for f in o["files"]} == {
        f: found[f] for o in data["outputs"] for f in o["files"]
    }
    assert (code == 0) == (data["verdict"] == "pass")


def test_run_with_a_basis_spends_and_closes(cli: Run, place: Path) -> None:
    from sacro_deltab.ledger import open_ledger

    age, x = people(240)
    write(place, age, x)
    (place / "public").mkdir()
    rng = np.random.default_rng(1)
    public_age = rng.uniform(45, 80, 120).round(1)
    mixing = np.random.default_rng(240)
    mixing.uniform(45, 80, 240)
    write(place / "public", public_age, public_age[:, None] * mixing.normal(size=4) + rng.normal(size=(120, 4)) * 20)
    code, *_ = cli("basis", "--ages", "public/ages.csv", "--features", "public/idps.csv", "--n-components", 2,
                   "--made-on", "simulated", "--out", "basis.json")  # fmt: skip
    assert code == 0
    profile = write_profile(place)
    assert cli("ledger", "register-basis", "basis.json", "--ledger", "budget.db")[0] == 0
    shutil.move("budget.db.key", "secure.key")
    job = ("run", "--ages", "ages.csv", "--features", "idps.csv", "--basis", "basis.json", "--epsilon", "1",
           "--n-components", "2", "--profile", profile, "--cohort", "site-a", "--out", "out", *said(place))  # fmt: skip
    code, _, err = cli(*job)
    assert code == 2 and "--key" in err
    code, out, err = cli(*job, "--key", "secure.key")
    assert code == 3  # no membership test was attached: a person decides
    assert "ε 1 of 4.0 spent" in out
    ledger = open_ledger("budget.db", key="secure.key")
    assert ledger.orphans() == [] and ledger.totals("site-a").epsilon_sum == 1.0
    assert (
        json.loads((place / "out" / "beta1.json").read_text(encoding="utf-8"))["about"]["privacy"] == "heuristic"
    )  # no ids, so nobody at the TRE can have registered these people


BAD: dict[str, Callable[[Path], list[str]]] = {}


def bad(function: Callable[[Path], list[str]]) -> Callable[[Path], list[str]]:
    BAD[function.__name__] = function
    return function


@bad
def empty_file(place: Path) -> list[str]:
    write(place, *people(50))
    (place / "idps.csv").write_text("", encoding="utf-8")
    return []


@bad
def missing_file(place: Path) -> list[str]:
    write(place, *people(50))
    (place / "ages.csv").unlink()
    return []


@bad
def one_row(place: Path) -> list[str]:
    write(place, *people(1))
    return []


@bad
def all_ages_equal(place: Path) -> list[str]:
    age, x = people(60)
    write(place, np.full_like(age, 60.0), x)
    return []


@bad
def another_row_count(place: Path) -> list[str]:
    age, x = people(60)
    write(place, age, x[:59])
    return []


@bad
def unreadable_encoding(place: Path) -> list[str]:
    write(place, *people(60))
    (place / "idps.csv").write_bytes(b"\xff\xfe\x00\xd8f1\n1\n")
    return []


@bad
def existing_folder(place: Path) -> list[str]:
    write(place, *people(60))
    (place / "there").mkdir()
    return ["--out", "there"]


@bad
def no_such_place(place: Path) -> list[str]:
    write(place, *people(60))
    return ["--out", "nowhere/deep"]


@bad
def ages_missing(place: Path) -> list[str]:
    write(place, *people(60))
    return ["--ages"]


@bad
def ages_out_of_range(place: Path) -> list[str]:
    age, x = people(60)
    write(place, [*age[:-1], 2000], x)
    return []


@bad
def no_such_group(place: Path) -> list[str]:
    write(place, *people(60))
    return ["--by", "scanner"]


@bad
def bad_bands(place: Path) -> list[str]:
    write(place, *people(60))
    return ["--age-bands", "five"]


@bad
def bad_rules(place: Path) -> list[str]:
    write(place, *people(60))
    return ["--rules", "no-such-rules"]


@bad
def bad_declaration(place: Path) -> list[str]:
    write(place, *people(60))
    (place / "declare.json").write_text("[]", encoding="utf-8")
    return ["--declare", "declare.json"]


@bad
def bad_ledger(place: Path) -> list[str]:
    write(place, *people(60))
    (place / "broken.db").write_bytes(b"this is no database at all" * 100)
    return ["--ledger", "broken.db"]


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_ends_in_exit_2_and_leaves_no_folder(cli: Run, place: Path, name: str) -> None:
    extra = BAD[name](place)
    before = {p.name for p in place.iterdir()}
    base = ["--ages", "ages.csv", "--features", "idps.csv", "--out", "out"]
    if extra == ["--ages"]:
        base, extra = ["--features", "idps.csv", "--out", "out"], []
    code, out, err = cli("run", *base, *extra)
    assert code == 2, out + err
    assert "Next step" in err and "Traceback" not in err
    assert out == ""
    nothing_left(place)
    left = {p.name for p in place.iterdir()} - before
    assert all(n.startswith("budget.db") for n in left)


def test_fewer_than_20_people_end_in_fail_records(cli: Run, place: Path) -> None:
    age, x = people(15, 3)
    write(place, age, x, ["F"] * 8 + ["M"] * 7)
    profile = write_profile(place)
    code, out, err = cli(
        "run", "--ages", "ages.csv", "--features", "idps.csv", "--groups", "groups.csv", "--n-components", "2",
        "--profile", profile, "--out", "out", "--json", *said(place),
    )  # fmt: skip
    assert code == 1, err
    assert {o["status"] for o in json.loads(out)["outputs"]} == {"fail"}
    leaving = "".join(p.read_text(encoding="utf-8") for p in (place / "out").glob("*.csv")
                      if not p.name.startswith("session_summary"))  # fmt: skip
    assert "15" not in leaving


def test_more_features_than_people_reduce_first(cli: Run, place: Path) -> None:
    age, x = people(40, 60)
    write(place, age, x)
    code, out, err = cli("run", "--ages", "ages.csv", "--features", "idps.csv", "--n-components", "39", "--out", "out")
    assert code in (1, 2, 3) and "Traceback" not in out + err


def test_more_components_than_people_are_refused_not_reduced(cli: Run, place: Path) -> None:
    write(place, *people(40, 60))
    code, out, err = cli("run", "--ages", "ages.csv", "--features", "idps.csv", "--n-components", "60", "--out", "out")
    assert code == 2 and out == ""
    assert "--n-components" in err and "fewer components" in err
    nothing_left(place)


def test_a_full_disk_leaves_nothing(cli: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sacro_deltab.session.folder as folder_module

    write(place, *people(60))

    def full(*args: Any, **kwargs: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, "dump_evidence", full)
    code, out, err = cli("run", "--ages", "ages.csv", "--features", "idps.csv", "--out", "out")
    assert (code, out) == (2, "")
    assert "No space left on device" in err and "out" in err
    nothing_left(place)


def test_an_interrupted_run_keeps_the_spend_and_leaves_no_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacro_deltab.cohort.simulate import smith_cohort
    from sacro_deltab.ledger import open_ledger
    from sacro_deltab.run import releasing
    from sacro_deltab.run.pipeline import run as run_plan

    study, public = smith_cohort(200, 6, seed=3), smith_cohort(200, 6, seed=4)
    write(place, study.age.round(1), study.X)
    from sacro_deltab.privacy.basis import Basis

    names = [f"f{i + 1}" for i in range(6)]
    Basis.from_public(public.X, public.age, names, n_components=2, made_on="simulated").save(place / "basis.json")

    def stop(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(releasing, "_tables", stop)
    plan = Plan(
        out=Path("out"), ages=Path("ages.csv"), features=Path("idps.csv"), basis=Path("basis.json"), epsilon=1.0,
        n_components=2, cohort="killed", spend_anyway=True,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, lambda text: None)
    kept = [p.name for p in place.iterdir() if "out" in p.name]
    assert len(kept) == 1 and kept[0].endswith(".session")  # what was paid for can be taken up
    ledger = open_ledger("budget.db")
    assert ledger.totals("killed").epsilon_sum == 1.0
    assert len(ledger.orphans()) == 1


def test_demo_shows_every_verdict_and_check_agrees(cli: Run, place: Path) -> None:
    from sacro_deltab.cli import main

    main_code = 0
    try:
        main(["demo", "--out", "outputs"])
    except SystemExit as stopped:
        main_code = int(stopped.code or 0)
    assert main_code == 0
    results = json.loads((place / "outputs" / "results.json").read_text(encoding="utf-8"))["results"]
    status = {f["name"]: r["status"] for r in results.values() for f in r["files"]}
    assert set(status.values()) == {"pass", "review", "fail"}
    code, out, _ = cli(
        "check", "outputs", "--profile", "outputs-inputs/profile.yaml", "--ledger", "budget.db", "--json"
    )
    found = {o["file"]: o["verdict"] for o in json.loads(out[out.index("{") :])["outputs"]}
    ours = {name for r in results.values() if str(r["properties"].get("method", "")).startswith("deltab_")
            for name in (f["name"] for f in r["files"]) if not name.startswith("certificate")}  # fmt: skip
    assert {n: found[n] for n in ours} == {n: status[n] for n in ours}
    assert code == 3
    code, _, err = cli("demo", "--out", "outputs")
    assert code == 2 and "exists" in err
    code, card, _ = cli("predict", "--weights", "outputs", "--card")  # of the released files alone
    shutil.rmtree(place / "outputs" / "inside")
    assert code == 0 and cli("predict", "--weights", "outputs", "--card")[1] == card
    assert "N 680 people" in card and "ε 1, δ 1e-06 (zero_out_N_public)" in card and "years per decade of age" in card
    (place / "outputs" / "certificate.json").unlink()
    (place / "outputs" / "n_subjects.json").unlink()
    card = cli("predict", "--weights", "outputs", "--card")[1]
    assert "ε" not in card and "680" not in card and "nothing is claimed" in card
    assert cli("predict", "--weights", "outputs", "--features", "x.csv")[0] == 2
