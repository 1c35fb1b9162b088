"""Pooling certified node files: what works, and everything that must be refused with its own message."""

from __future__ import annotations

import json
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_nodes import World, day, forge, order, refused, say

from sacro_deltab.base.errors import InputError, RefusedError, SacroDeltabError, UnreadableError
from sacro_deltab.federation.aggregate import aggregate
from sacro_deltab.federation.verify import verify_pooled


def test_two_nodes_become_one_model(world: World, tmp_path: Path) -> None:
    out = tmp_path / "pooled"
    done = aggregate(
        order(world, out, expect=2, disjoint="J. Doe", key=world.home / "aggregator.pem", passphrase=b"x",
              history=tmp_path / "rounds.jsonl"),
        say,
    )  # fmt: skip
    names = {p.name for p in out.iterdir()}
    assert {"pooled_model.csv", "pooled_model.json", "pooled_parameters.json", "report.txt", "forest.png",
            "forest.svg", "certificate.json", "certificate.dsse.json"} <= names  # fmt: skip
    assert done.way == "summed_moments"
    assert done.verdict == "review"
    assert done.round == 1
    assert done.totals.round_epsilon == 1.0
    text = (out / "report.txt").read_text()
    assert text.index("site-a |") < text.index("Pooled by sum")
    assert "I²" in text
    statement, problems = verify_pooled(out, world.trust, materials=world.both)
    assert all(problem.startswith("undecided at site-") for problem in problems)  # authentic; a person decides yet
    assert statement is not None
    assert {m["node"] for m in statement["predicate"]["materials"]} == {"site-a", "site-b"}
    minus = [o for o in statement["predicate"]["outputs"] if o["without"] is not None]
    assert {o["without"] for o in minus} == {"site-a", "site-b"}
    assert not any(o["written"] for o in minus)
    (out / "pooled_model.csv").write_text("changed")
    assert "pooled_model.csv was changed" in verify_pooled(out, world.trust)[1]


def test_pooled_weights_predict(world: World, tmp_path: Path) -> None:
    from sacro_deltab.cohort.simulate import smith_cohort

    aggregate(order(world, tmp_path / "pooled", disjoint="J. Doe"), say)
    rows = json.loads((tmp_path / "pooled" / "pooled_model.json").read_text())["rows"]
    table = np.array([r[1:] for r in rows if r[1] is not None], dtype=float)
    intercept = next(r[3] for r in rows if r[0] == "(intercept)")
    new = smith_cohort(800, 12, seed=77)
    predicted = intercept + ((new.X - table[:, 0]) / table[:, 1]) @ table[:, 2]
    assert np.corrcoef(predicted, new.age)[0, 1] > 0.9


def test_without_a_declaration_budgets_add_up(world: World, tmp_path: Path) -> None:
    done = aggregate(order(world, tmp_path / "pooled"), say)
    assert done.totals.round_epsilon == 2.0
    assert not done.totals.disjoint
    assert any("PL-06" in f.rules for o in done.outputs for f in o.judged.decision.findings)


def test_a_suppressed_cell_is_missing_and_never_zero(world: World, tmp_path: Path) -> None:
    done = aggregate(order(world, tmp_path / "pooled", disjoint="J. Doe"), say)
    table = next(t for t in done.tables if t.name == "mean_delta_by_group")
    rare = next(c for c in table.cells if c.group == "rare")
    assert rare.missing == ("site-a",)
    assert [e.node for e in rare.estimates] == ["site-b"]
    assert any(len(c.estimates) == 2 for c in table.cells)
    assert rare.pooled is not None
    assert rare.pooled.value == rare.estimates[0].value
    document = json.loads((tmp_path / "pooled" / "pooled_mean_delta_by_group.json").read_text())
    shown = next(r for r in document["rows"] if r[0] == "rare")
    assert shown[1] == 300


def test_the_other_ways(world: World, tmp_path: Path) -> None:
    shared = aggregate(order(world, tmp_path / "one", way="fedavg_shared", disjoint="J. Doe"), say)
    folded = aggregate(order(world, tmp_path / "two", way="fedavg_folded", disjoint="J. Doe"), say)
    assert shared.model is not None
    assert folded.model is not None
    assert shared.model.shares == pytest.approx((0.25, 0.75))
    a, b = shared.model.weights.folded("simple"), folded.model.weights.folded("simple")
    assert a.coef == pytest.approx(b.coef, abs=0.02)  # three figures of b1 against three of the folded weights
    assert a.intercept == pytest.approx(b.intercept, abs=0.1)


@pytest.mark.parametrize("way", ["naive_fedavg", "node_components"])
def test_averaged_components_are_refused_with_the_reason(world: World, tmp_path: Path, way: str) -> None:
    assert "another axis at each node" in refused(world, tmp_path, way=way)


def test_fewer_nodes_than_expected(world: World, tmp_path: Path) -> None:
    assert "3 were expected" in refused(world, tmp_path, expect=3)
    assert "one node is no federation" in refused(world, tmp_path, world.nodes["site-a"])


def test_a_certificate_twice_is_a_replay(world: World, tmp_path: Path) -> None:
    copy = tmp_path / "other-name"
    shutil.copytree(world.nodes["site-a"], copy)
    assert "replay" in refused(world, tmp_path, world.nodes["site-a"], copy)


def test_one_node_under_two_certificates(world: World, tmp_path: Path) -> None:
    def renamed(content: dict[str, Any]) -> None:
        content["predicate"]["certificate_id"] = "00000000-0000-4000-8000-000000000000"

    again = forge(world, "site-a", tmp_path, statement=renamed)
    assert "came twice" in refused(world, tmp_path, world.nodes["site-a"], again)


def test_one_tre_under_two_names(world: World, tmp_path: Path) -> None:
    def as_b(content: dict[str, Any]) -> None:
        content["predicate"]["certificate_id"] = "00000000-0000-4000-8000-000000000000"
        content["predicate"]["made"]["node"] = "site-b"
        content["predicate"]["made"]["time"] = datetime.now(UTC).replace(microsecond=0).isoformat()

    twin = forge(world, "site-a", tmp_path, statement=as_b, key_of="site-b")
    # its ledger is pinned for site-a only, so its certificate does not hold as site-b's
    assert "ledger pin" in refused(world, tmp_path, world.nodes["site-a"], twin)


def test_a_swapped_file(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "swapped"
    shutil.copytree(world.nodes["site-a"], folder)
    shutil.copy(world.nodes["site-b"] / "noised_moments.json", folder / "noised_moments.json")
    assert "noised_moments.json was changed" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_an_extra_or_missing_file(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "extra"
    shutil.copytree(world.nodes["site-a"], folder)
    (folder / "notes.txt").write_text("hello")
    assert "not in the record" in refused(world, tmp_path, folder, world.nodes["site-b"])
    (folder / "notes.txt").unlink()
    (folder / "beta1.json").unlink()
    assert "missing" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_no_certificate_and_no_folder(world: World, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "noised_moments.json").write_text("{}")
    assert "no certificate" in refused(world, tmp_path, bare, world.nodes["site-b"], error=UnreadableError)
    refused(world, tmp_path, tmp_path / "nowhere", world.nodes["site-b"], error=InputError)


def test_expired_and_unknown_keys(world: World, tmp_path: Path) -> None:
    assert "counts from" in refused(world, tmp_path, at=day("2031-01-01"))
    trust = json.loads(world.trust.read_text())
    trust["keys"] = {k: v for k, v in trust["keys"].items() if v["node"] != "site-a"}
    other = tmp_path / "trust.json"
    other.write_text(json.dumps(trust))
    assert "does not know" in refused(world, tmp_path, trust=other)


def test_a_fail_is_not_pooled(world: World, tmp_path: Path) -> None:
    failed = forge(world, "site-a", tmp_path, statement=lambda c: c["predicate"].update(verdict="fail"))
    assert "as fail" in refused(world, tmp_path, failed, world.nodes["site-b"])


def test_a_withheld_file_is_not_pooled(world: World, tmp_path: Path) -> None:
    def withheld(content: dict[str, Any]) -> None:
        for entry in content["predicate"]["files"]:
            if entry["output"] == "noised_moments":
                entry["verdict"], entry["kept_inside"] = "fail", True

    folder = forge(world, "site-a", tmp_path, statement=withheld)
    assert "withheld a file" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_other_policy_or_version(world: World, tmp_path: Path) -> None:
    def other(content: dict[str, Any]) -> None:
        content["predicate"]["policy"]["sha256"] = "ab" * 32

    folder = forge(world, "site-a", tmp_path, statement=other)
    assert "differ in policy" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_other_schema_version(world: World, tmp_path: Path) -> None:
    newer = forge(
        world, "site-a", tmp_path, statement=lambda c: c["predicate"]["versions"].update(sacro_deltab="9.0.0")
    )
    assert "schema version" in refused(world, tmp_path, newer, world.nodes["site-b"])
    shutil.rmtree(newer)

    def type_9(content: dict[str, Any]) -> None:
        content["predicateType"] = content["predicateType"].rpartition("/")[0] + "/v9"

    folder = forge(world, "site-a", tmp_path, statement=type_9)
    assert "version" in refused(world, tmp_path, folder, world.nodes["site-b"], error=UnreadableError)


_ABOUT = ("noised_moments", "folded_weights", "beta1", "y_mean")


def _about(key: str, value: Any) -> dict[str, Any]:
    return {stem: lambda d: d["about"].update({key: value}) for stem in _ABOUT}


def _rename(data: dict[str, Any]) -> None:
    data["rows"][0][0] = "thickness_unknown"


def _reorder(data: dict[str, Any]) -> None:
    data["rows"][0], data["rows"][1] = data["rows"][1], data["rows"][0]


def _unit(data: dict[str, Any]) -> None:
    data["columns"][-1]["unit"] = "months"


def _centre(data: dict[str, Any]) -> None:
    data["rows"][0][1] += 5.0


def _digits(data: dict[str, Any]) -> None:
    data["rows"][0][-1] = 0.123456


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (_about("basis", "cd" * 32), "basis digest"),
        (_about("basis", None), "basis digest"),
        (_about("n_components", 3), "model variant"),
        (_about("bounds", "cd" * 32), "public bounds"),
        ({"folded_weights": _rename}, "different features"),
        ({"folded_weights": _reorder}, "another order"),
        ({"folded_weights": _unit}, "units"),
        ({"folded_weights": _centre}, "centre or scale"),
        ({"folded_weights": _digits}, "not rounded"),
        ({"beta1": lambda d: d["about"].update(basis="cd" * 32)}, "disagree about their basis"),
        ({"n_subjects": lambda d: d["rows"][0].__setitem__(1, 5000)}, "two different numbers of people"),
    ],
)
def test_differences_between_nodes(world: World, tmp_path: Path, documents: Any, words: str) -> None:
    folder = forge(world, "site-a", tmp_path, documents=documents)
    assert words in refused(world, tmp_path, folder, world.nodes["site-b"])


def _set(place: int, value: Any) -> Any:
    return {"noised_moments": lambda d: d["rows"][place].__setitem__(1, value)}


def _nested(block: str, key: str, value: Any) -> Any:
    return {"noised_moments": lambda d: d["about"][block].update({key: value})}


def _n(value: int) -> Any:
    def moments(data: dict[str, Any]) -> None:
        data["about"]["n_public"] = value

    return {"noised_moments": moments, "n_subjects": lambda d: d["rows"][0].__setitem__(1, value)}


def _round_moments(data: dict[str, Any]) -> None:
    for row in data["rows"]:
        row[1] = float(f"{row[1]:.3g}")


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ({"noised_moments": _round_moments}, "off their public grid"),
        (_set(0, None), "an entry that is none"),
        (_set(0, "*"), "an entry that is none"),
        (_nested("scaling", "age_mid", 70.0), "different public numbers"),
        (_nested("scaling", "radius", 9.0), "smaller than its certificate"),
        (_nested("layout", "tau", 0.5), "off their public grid"),
        (_nested("layout", "width", 3), "no place"),
        (_nested("layout", "width", 90_000), "no place"),
        (_set(0, 10**200), "more than 18 digits"),
        (_set(0, float("inf")), "not JSON"),
        (_nested("layout", "count", True), "incomplete"),
        (_nested("sd", "ut", -1.0), "state no noise"),
        (_nested("sd", "ut", 0.0), "state no noise"),
        (_nested("sd", "ut", 1.0), "not that of its certificate"),
        ({"noised_moments": lambda d: d["rows"].pop()}, "incomplete"),
        (_n(60), "PL-09"),
        (_n(10_000_000), "do not fit together"),
    ],
)
def test_moments_that_cannot_be(world: World, tmp_path: Path, documents: Any, words: str) -> None:
    folder = forge(world, "site-a", tmp_path, documents=documents)
    assert words in refused(world, tmp_path, folder, world.nodes["site-b"], error=SacroDeltabError)


def test_a_moments_file_with_nan(world: World, tmp_path: Path) -> None:
    folder = forge(world, "site-a", tmp_path, documents=_set(0, float("nan")))
    assert "NaN" in refused(world, tmp_path, folder, world.nodes["site-b"], error=UnreadableError)


def test_noise_smaller_than_its_epsilon(world: World, tmp_path: Path) -> None:
    def cheap(content: dict[str, Any]) -> None:
        for release in content["predicate"]["privacy"]["releases"]:
            release["epsilon"] = 0.1

    folder = forge(world, "site-a", tmp_path, statement=cheap)
    assert "smaller than ε 0.1" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_identical_noise(world: World, tmp_path: Path) -> None:
    stolen = json.loads((world.nodes["site-b"] / "noised_moments.json").read_text())["rows"]

    def same_state(data: dict[str, Any]) -> None:
        data["rows"][3] = stolen[3]

    folder = forge(world, "site-a", tmp_path, documents={"noised_moments": same_state})
    assert "identical noise" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_another_basis_file(world: World, tmp_path: Path) -> None:
    data = json.loads(world.basis.read_text())
    data["made_on"] = "somebody else"
    bad = tmp_path / "basis.json"
    bad.write_text(json.dumps(data))
    refused(world, tmp_path, basis=bad, error=SacroDeltabError)


def test_noise_models(world: World, tmp_path: Path) -> None:
    done = aggregate(order(world, tmp_path / "pooled", noise_model="distributed", disjoint="J. Doe"), say)
    text = (tmp_path / "pooled" / "report.txt").read_text()
    assert "colluding" in text
    assert any("PL-05" in f.rules for o in done.outputs for f in o.judged.decision.findings)
    assert "PL-04" in refused(world, tmp_path / "pooled", noise_model="central")


def test_heuristic_noise_may_not_be_subtracted(world: World, tmp_path: Path) -> None:
    def weak(content: dict[str, Any]) -> None:
        for release in content["predicate"]["privacy"]["releases"]:
            release["label"] = "heuristic"
        content["predicate"]["privacy"]["label"] = "heuristic"

    folder = forge(world, "site-a", tmp_path, statement=weak)
    assert "pooled minus site-b" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_rounds(world: World, tmp_path: Path) -> None:
    history = tmp_path / "rounds.jsonl"
    assert aggregate(order(world, tmp_path / "one", history=history, disjoint="J. Doe"), say).round == 1
    assert aggregate(order(world, tmp_path / "two", history=history, disjoint="J. Doe"), say).round == 1
    assert len(history.read_text().splitlines()) == 1, "the same certificates again are no new round"

    def later(epsilon: float, entries: int, ledger: str | None = None) -> Any:
        def change(content: dict[str, Any]) -> None:
            predicate = content["predicate"]
            predicate["certificate_id"] = "00000000-0000-4000-8000-000000000001"
            predicate["privacy"]["ledger"]["after"]["epsilon_sum"] = epsilon
            predicate["privacy"]["ledger"]["entries"] += entries

        return change

    places = iter(range(9))

    def second(**kind: Any) -> Path:
        where = tmp_path / f"round-{next(places)}"
        where.mkdir()
        return forge(world, "site-a", where, statement=later(**kind))

    other = world.nodes["site-b"]
    short = refused(world, tmp_path, second(epsilon=1.0, entries=5), other, history=history)
    assert "holds less than the ε 2 of all rounds" in short
    assert "no further than" in refused(world, tmp_path, second(epsilon=2.0, entries=0), other, history=history)
    overspent = second(epsilon=4.5, entries=5)
    assert "overspent" in refused(world, tmp_path, overspent, other, history=history, disjoint="J. Doe")
    stale = refused(world, tmp_path, second(epsilon=2.0, entries=5), other, history=history)
    assert "round 1 (a replay)" in stale, "node b sent the certificate of round 1 again"
    where = tmp_path / "b"
    where.mkdir()

    def b(content: dict[str, Any]) -> None:
        later(2.0, 5)(content)
        content["predicate"]["certificate_id"] = "00000000-0000-4000-8000-000000000002"

    fresh = forge(world, "site-b", where, statement=b)
    done = aggregate(order(world, tmp_path / "three", second(epsilon=2.0, entries=5), fresh, history=history), say)
    assert done.round == 2
    history.write_text(history.read_text().replace('"round_epsilon": 1.0', '"round_epsilon": 0.1', 1))
    assert "was changed" in refused(world, tmp_path, history=history, error=UnreadableError)


def test_the_zip_that_leaves(world: World, tmp_path: Path) -> None:
    """A release is flat: results.json, then the files that it lists, stored."""
    paths = []
    for name, folder in world.nodes.items():
        listed = json.loads((folder / "results.json").read_text())["results"].values()
        paths.append(tmp_path / f"{name}.zip")
        with zipfile.ZipFile(paths[-1], "w") as archive:
            for file in ["results.json", *(one["name"] for record in listed for one in record["files"])]:
                archive.write(folder / file, file)
    done = aggregate(order(world, tmp_path / "pooled", *paths, disjoint="J. Doe"), say)
    assert done.way == "summed_moments"


def test_undecided_reviews(world: World, tmp_path: Path) -> None:
    assert "nobody has decided" in refused(world, tmp_path, require_decided=True)
    done = aggregate(order(world, tmp_path / "pooled"), say)
    assert any("No person's decision" in text for text in done.questions)


def test_out_is_never_overwritten(world: World, tmp_path: Path) -> None:
    (tmp_path / "pooled").mkdir()
    with pytest.raises(InputError, match="exists"):
        aggregate(order(world, tmp_path / "pooled"), say)
    with pytest.raises(InputError, match="node's folder"):
        aggregate(order(world, world.nodes["site-a"] / "pooled"), say)


def test_from_the_command_line(world: World, tmp_path: Path) -> None:
    import typer
    from typer.testing import CliRunner

    from sacro_deltab.cli.aggregate import register

    app = typer.Typer()
    register(app)
    command = [
        "aggregate", *map(str, world.both), "--basis", str(world.basis), "--trust", str(world.trust), "--json",
        "--history", str(tmp_path / "h.jsonl"),
    ]  # fmt: skip
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "pooled"), "--expect", "2"])
    assert done.exit_code == 3, done.output  # pooled; nobody has decided on the nodes' files
    assert json.loads(done.stdout)["way"] == "summed_moments"
    again = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "x"), "--expect", "3"])
    assert isinstance(again.exception, RefusedError)
    assert again.stdout == ""
    assert not (tmp_path / "x").exists()
