"""A federation as its users type it: jobs at the nodes, aggregate, verify, plan."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from federation_nodes import World, job_content, make_basis, make_world, order, say
from typer.testing import CliRunner, Result

from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.cli import _register, app
from sacro_deltab.federation.aggregate import aggregate
from sacro_deltab.federation.simulation import NULL_WAYS, WAYS


def run(*args: object, code: int = 0) -> Result:
    """Run a command; errors that `main` would print become their exit code."""
    _register()
    result = CliRunner().invoke(app, [str(a) for a in args])
    found = result.exception.exit_code if isinstance(result.exception, SacroDeltabError) else result.exit_code
    assert found == code, (result.output, result.exception)
    return result


def test_aggregate_finds_the_basis_by_its_digest(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("aggregate", *world.both, "--out", "pooled", "--trust", world.trust, code=3)  # questions are open
    assert (world.home / "federation-history.jsonl").exists()  # beside the trust file, wherever the command is typed
    assert json.loads(Path("pooled/report.json").read_text())["way"] == "summed_moments"
    trust = tmp_path / "elsewhere" / "trust.json"
    trust.parent.mkdir()
    shutil.copy(world.trust, trust)
    run("aggregate", *world.both, "--out", "again", "--trust", trust, code=2)  # no basis beside anything
    assert not Path("again").exists()
    changed = {**json.loads(world.basis.read_text()), "made_on": "somebody else"}
    Path("basis.json").write_text(json.dumps(changed))  # its digest is the old one
    run("aggregate", *world.both, "--out", "again", "--trust", trust, code=2)
    assert not Path("again").exists()


def test_verify_takes_pooled_folders_too(world: World, tmp_path: Path) -> None:
    out = tmp_path / "pooled"
    signed = order(world, out, key=world.home / "aggregator.pem", passphrase=b"x")
    done = aggregate(signed, say)
    said = run("verify", out, "--trust", world.trust, code=1).stdout  # nobody decided on what the nodes sent
    assert "undecided at site-a: " in said and "undecided at site-b: " in said
    assert "was changed" not in said
    data = json.loads(run("verify", out, "--trust", world.trust, "--json", code=1).stdout)
    assert data["ok"] is False and all(p.startswith("undecided at ") for p in data["problems"])
    assert data["pooled_id"] == done.pooled_id
    run("verify-pooled", out, "--trust", world.trust, "--node", world.nodes["site-a"], code=1)
    run("verify", out, "--trust", world.trust, "--at", "2031-01-01", code=1)
    (out / "pooled_model.json").write_text("{}")
    assert "was changed" in run("verify", out, "--trust", world.trust, code=1).stdout


def test_what_nobody_decided_is_asked_and_signed(world: World, tmp_path: Path) -> None:
    aggregate(order(world, tmp_path / "pooled", key=world.home / "aggregator.pem", passphrase=b"x"), say)
    predicate = json.loads((tmp_path / "pooled" / "certificate.json").read_text())["predicate"]
    assert predicate["verdict"] == "review"
    assert any("Who at site-a let" in text for text in predicate["questions"])
    assert all("noised_moments" in material["undecided"] for material in predicate["materials"])


def test_nodes_without_a_shared_basis_and_with_a_confound(tmp_path: Path) -> None:
    """Axes come from the summed moments; each node's own number of them does not matter."""
    basis = make_basis(tmp_path / "public.json")
    bounds = replace(basis.bounds(), confound_bounds=((1200.0, 1800.0),), provenance="registered_file")
    bounds.save(tmp_path / "bounds.json")
    job = job_content(basis, n_components=5, bounds_digest=bounds.digest)
    job["inputs"]["confounds"] = ["head_size"]
    job["outputs"] = ["noised_moments", "folded_weights", "conf_beta", "n_subjects"]
    del job["tables"]
    nodes = make_world(tmp_path, bounds=tmp_path / "bounds.json", job=job)
    out = tmp_path / "pooled"
    done = aggregate(order(nodes, out, job=nodes.job, basis=None, disjoint="J. Doe"), say)
    assert done.way == "summed_moments"
    assert done.model is not None
    assert done.model.weights.conf_names == ("head_size",)
    labels = [row[0] for row in json.loads((out / "pooled_model.json").read_text())["rows"]]
    assert "confound head_size" in labels
    assert (out / "pooled_components.json").exists()
    assert {o.minus for o in done.outputs} == {None, "site-a", "site-b"}


def test_simulate_federation_prints_its_results_alone(tmp_path: Path) -> None:
    done = run("simulate-federation", "--sizes", "120,200", "--n-features", "12", "--n-components", "3", "--json",
               "--epsilon", "2", "--plot", tmp_path / "plan.png")  # fmt: skip
    data = json.loads(done.stdout)
    assert set(data) == {"results", "advised"}
    assert data["advised"] in {*WAYS, *NULL_WAYS} - {"direct", "naive_fedavg"}
    assert all(set(r) == {"way", "epsilon", "correlation", "mae"} for r in data["results"])
    assert [r["way"] for r in data["results"]] == [*WAYS, *WAYS, *NULL_WAYS]
    assert (tmp_path / "plan.png").stat().st_size > 1000


def test_a_job_that_can_be_honoured_is_said_to_be(world: World) -> None:
    done = json.loads(run("job", "check", world.job, "--basis", world.basis, "--json").stdout)
    assert done["will_not_leave"] == []
    data = {**yaml.safe_load(world.job.read_text())}
    data["privacy"]["epsilon"] = 3.0
    path = world.home / "too-much.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    assert "WILL NOT LEAVE" in run("job", "check", path, code=1).stdout


def test_a_new_job_is_filled_in_from_the_basis(world: World, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    told = run("job", "new", "--basis", world.basis, "--who", "J. Doe", "--group", "group", "--out", path).stdout
    data = yaml.safe_load(path.read_text())
    rows = {line.split()[0]: line.split()[1:3] for line in told.splitlines() if line.startswith("  ")}
    assert set(rows) == {"moments", "gradient", "public_only", "constant"}  # the null rows stand beside it always
    method = data["model"]["method"]
    assert method in rows and f"{method} " in told.split("<- the job's")[0].splitlines()[-1]
    assert ("noised_moments" in data["outputs"]) == (method == "moments")
    other = {"moments": "gradient", "gradient": "moments"}[method]
    made = tmp_path / "other.yaml"
    run("job", "new", "--basis", world.basis, "--who", "J. Doe", "--method", other, "--out", made)
    assert yaml.safe_load(made.read_text())["model"]["method"] == other
    run("job", "check", made, "--basis", world.basis)
    assert data["inputs"]["features"][0] == {"name": "feature_1", "unit": "mm"}
    data["declare"]["facts"] = {"output.declared": True}
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    run("job", "check", path, "--basis", world.basis)
    run("job", "new", "--basis", world.basis, "--who", "J. Doe", "--out", path, code=2)
    run("job", "new", "--basis", world.basis, "--who", "J. Doe", "--id", "No good", "--out", tmp_path / "x", code=2)
    assert not (tmp_path / "x").exists()


def test_shared_noise_within_the_rules_is_the_noise_of_one_node(world: World, tmp_path: Path) -> None:
    """At a price of ε 1 against the other node, each share is as large as the full noise of ε 1."""
    data = yaml.safe_load(world.job.read_text())
    data["privacy"] |= {"noise_model": "distributed", "epsilon": 0.68, "delta_dp": 1e-6}
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    done = json.loads(run("job", "check", path, "--json").stdout)
    assert 0.95 < done["epsilon_per_node"] <= 1.0
