"""The job file: one YAML that every node gets unchanged, checked against its schema with file, line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..base.digests import sha256_hex
from ..base.errors import InputError, RefusedError
from ..base.opening import read_file
from ..kinds.whole import DELTA_MEAN, DELTA_SD
from ..outputs.parameters import BETA1, FOLDED, MOMENTS, N_SUBJECTS, Y_MEAN
from ..privacy.basis import Basis
from ..rules import RuleSet
from ..rules.marked_yaml import Problem, read_marked
from ..rules.schema_check import check
from .noise import share_epsilon

_NAMED = re.compile(r"job ([a-z0-9-]{1,60}), round \d+, sha256 ([0-9a-f]{64})\Z")


@dataclass(frozen=True)
class Table:
    """A table by group that the job asks for. width: years, for age bands."""

    by: str
    statistic: str
    width: float | None = None


@dataclass(frozen=True)
class Job:
    """A job as read. `sha256` is the digest of the file's bytes: the same at every node."""

    path: Path
    sha256: str
    id: str
    title: str
    round: int
    rule_set: str
    rule_set_sha256: str
    id_column: str | None
    age_column: str
    features: tuple[str, ...]
    units: tuple[str, ...]
    confounds: tuple[str, ...]
    groups: tuple[str, ...]
    minimum_n: int
    n_components: int
    method: str
    delta_model: str
    basis_digest: str | None
    bounds_digest: str | None
    epsilon: float
    delta_dp: float | None
    adjacency: str
    noise_model: str
    outputs: tuple[str, ...]
    tables: tuple[Table, ...]
    expect: int
    declare: Mapping[str, Any] = field(default_factory=dict)

    @property
    def node_epsilon(self) -> float:
        """ε that each node's ledger pays: the nominal one, or more where the noise is shared (colluding nodes)."""
        if self.noise_model == "local":
            return self.epsilon

        return share_epsilon(self.epsilon, self.expect, self.node_delta)

    @property
    def node_delta(self) -> float:
        """δ as given, else the smaller of 1e-6 and 1/N² at the smallest N allowed."""
        return self.delta_dp if self.delta_dp is not None else min(1e-6, 1.0 / self.minimum_n**2)

    @property
    def line(self) -> str:
        """How a node's record names the job; `named_jobs` reads it back."""
        return f"job {self.id}, round {self.round}, sha256 {self.sha256}"

    @property
    def said(self) -> dict[str, Any]:
        """The researcher's declaration, in the form of a --declare file."""
        facts = {"dp.trust_model": "distributed" if self.noise_model == "distributed" else "central_at_node"}
        return {
            "schema": "sacro_deltab/declare/1",
            "role": "researcher",
            "by": self.declare["by"],
            "simulated": bool(self.declare.get("simulated", False)),
            "note": f"said in job {self.id}, sha256 {self.sha256}",
            "facts": {**self.declare["facts"], **facts},
        }


def named_jobs(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(id, sha256) of the jobs that a node's record names."""
    return [(found[1], found[2]) for line in lines if (found := _NAMED.match(str(line))) is not None]


def load_job(path: Path) -> Job:
    """Read a job file.

    Raises
    ------
    InputError
        With every problem of the file, each at its line and column.
    """

    raw = read_file(path)
    marked = read_marked(path, path.name, raw=raw)
    if not marked.problems and check(marked, "job"):
        data: dict[str, Any] = marked.data
        for key, text in _contradictions(data):
            marked.problems.append(Problem(marked.place(*key), text))
        if not marked.problems:
            return _job(path, sha256_hex(raw), data)
    raise InputError("the job file cannot be used:\n  " + "\n  ".join(str(p) for p in marked.problems),
                     next_step="docs/federation.md shows a whole job file.")  # fmt: skip


def _contradictions(data: Mapping[str, Any]) -> list[tuple[tuple[Any, ...], str]]:
    found: list[tuple[tuple[Any, ...], str]] = []
    names = [f["name"] for f in data["inputs"]["features"]]
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        found.append((("inputs", "features", names.index(twice)), f"feature {twice!r} stands twice"))
    model = data["model"]
    if ("basis_digest" in model) == ("bounds_digest" in model):
        found.append((("model",), "names either a basis_digest (shared basis) or a bounds_digest (node basis)"))
    if model["method"] == "gradient" and "basis_digest" not in model:
        found.append((("model", "method"), "the gradient path needs a shared basis"))
    if model["method"] == "gradient" and MOMENTS in data["outputs"]:
        found.append((("outputs",), "the gradient path releases no moments: use method: moments, or leave them out"))
    roles = [data["inputs"]["age"]["column"], *data["inputs"].get("confounds", []), *data["inputs"].get("groups", [])]
    if shared := sorted(set(roles) & set(names)):
        found.append((("inputs", "features", names.index(shared[0])), f"{shared[0]!r} has two roles"))
    for i, table in enumerate(data.get("tables", [])):
        if table["by"] == "age_band":
            if "width_years" not in table:
                found.append((("tables", i), "an age band needs width_years"))
        elif table["by"] not in data["inputs"].get("groups", []):
            found.append((("tables", i, "by"), f"{table['by']!r} is no group of inputs"))
    return found


def _job(path: Path, sha256: str, data: Mapping[str, Any]) -> Job:
    inputs, model, privacy = data["inputs"], data["model"], data["privacy"]
    return Job(
        path=path,
        sha256=sha256,
        id=data["job"]["id"],
        title=data["job"]["title"],
        round=int(data["job"].get("round", 1)),
        rule_set=data["rule_set"]["id"],
        rule_set_sha256=data["rule_set"]["sha256"],
        id_column=inputs.get("id_column"),
        age_column=inputs["age"]["column"],
        features=tuple(f["name"] for f in inputs["features"]),
        units=tuple(f["unit"] for f in inputs["features"]),
        confounds=tuple(inputs.get("confounds", ())),
        groups=tuple(inputs.get("groups", ())),
        minimum_n=int(inputs.get("minimum_n", 100)),
        n_components=int(model["n_components"]),
        method=model["method"],
        delta_model=model.get("delta_model", "unbiased_quadratic"),
        basis_digest=model.get("basis_digest"),
        bounds_digest=model.get("bounds_digest"),
        epsilon=float(privacy["epsilon"]),
        delta_dp=None if privacy.get("delta_dp") is None else float(privacy["delta_dp"]),
        adjacency=privacy["adjacency"],
        noise_model=privacy.get("noise_model", "local"),
        outputs=tuple(data["outputs"]),
        tables=tuple(Table(t["by"], t["statistic"], t.get("width_years")) for t in data.get("tables", ())),
        expect=int(data["expect"]),
        declare=data["declare"],
    )


def template(
    basis: Basis,
    ruleset: RuleSet,
    *,
    name: str,
    title: str,
    by: str,
    epsilon: float,
    expect: int,
    groups: Sequence[str],
    method: str = "moments",
    n_components: int | None = None,
) -> str:
    """A job file for a shared basis, to be read and changed: what every node would send for all ways of pooling."""

    content = {
        "job": {"id": name, "title": title, "round": 1},
        "rule_set": {"id": ruleset.id, "sha256": ruleset.sha256},
        "inputs": {
            "id_column": "participant_id",
            "age": {"column": "age", "unit": "years"},
            "features": [{"name": n, "unit": u} for n, u in zip(basis.feature_names, basis.units, strict=True)],
            "groups": list(groups),
            "minimum_n": int(str(ruleset.parameters["n_min_dp"])),
        },
        "model": {"n_components": n_components or basis.n_components, "method": method, "basis_digest": basis.digest},
        "privacy": {"epsilon": epsilon, "adjacency": "zero_out_N_public", "noise_model": "local"},
        "outputs": [
            *([MOMENTS] if method == "moments" else []),
            FOLDED,
            BETA1,
            Y_MEAN,
            N_SUBJECTS,
            DELTA_MEAN,
            DELTA_SD,
        ],
        "tables": [{"by": group, "statistic": "mean"} for group in groups],
        "expect": expect,
        "declare": {"by": by, "facts": {}},
    }
    head = (
        "# Read and change this before it goes to a node. What you declare belongs under declare.facts, for example\n"
        "#   output.declared: true    the project's approval names these outputs\n"
        "#   nodes.disjoint: true     nobody is in two nodes\n"
    )
    return head + str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def check_rule_set(job: Job, ruleset: RuleSet) -> None:
    """The node's rule set is the one the job was written for.

    Raises
    ------
    RefusedError
    """
    if (ruleset.id, ruleset.sha256) != (job.rule_set, job.rule_set_sha256):
        raise RefusedError(
            f"job {job.id} asks for rule set {job.rule_set} ({job.rule_set_sha256[:12]}…), and this node judges by "
            f"{ruleset.id} {ruleset.version} ({ruleset.sha256[:12]}…)",
            path=job.path,
            next_step="agree on one rule set; `sacro-deltab rules diff` shows what changed.",
        )


def check_basis(job: Job, basis: Any) -> None:
    """The basis file is the job's, and its features, order and units are those of the inputs.

    Raises
    ------
    RefusedError
    """
    if basis.digest != job.basis_digest:
        raise RefusedError(f"this basis is not the one job {job.id} names: its digest differs", path=job.path,
                           next_step="use the basis file that came with the job.")  # fmt: skip
    if tuple(basis.feature_names) != job.features:
        raise RefusedError("the job's features are not those of its basis, in that order", path=job.path)
    if tuple(basis.units) != job.units:
        place = next(i for i, (a, b) in enumerate(zip(basis.units, job.units, strict=True)) if a != b)
        raise RefusedError(f"the unit of feature {job.features[place]!r} differs between job and basis", path=job.path)
    if job.n_components > basis.n_components:
        raise RefusedError(f"the basis has {basis.n_components} components, the job asks for {job.n_components}",
                           path=job.path)  # fmt: skip
