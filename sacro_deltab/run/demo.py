"""`sacro-deltab demo`: the main job on simulated people, told so that a newcomer understands the product."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..base.verdicts import VERDICTS
from ..cohort import Cohort
from ..cohort.simulate import demo_cohort, demo_public_reference
from ..judging.said import read_said
from ..kinds.correlations import CORRELATION
from ..model.filling import fitted_deltas
from ..outputs.parameters import BETA1
from ..privacy.basis import Basis
from ..rules import load_base
from ..rules.digests import semantic_digest
from .pipeline import Outcome, carried_out, quiet_acro
from .plan import Plan, Say, read
from .releasing import release_all
from .telling import account

if TYPE_CHECKING:
    from ..session.acro_session import DeltabSession

EPSILON = 1.0
EPSILON_MEAN = 0.5
COMPONENTS = 5
SMALL_SITES = ("Bangor", "Wrexham", "Oban")

DECLARE: dict[str, Any] = {
    "schema": "sacro_deltab/declare/1",
    "role": "researcher",
    "by": "SIMULATED researcher of the demonstration",
    "simulated": True,
    "note": "Nobody said this: the demonstration needs somebody's word for what cannot be computed.",
    "facts": {"output.declared": True, "dp.trust_model": "central_at_node"},
    "outputs": {CORRELATION: {"output.declared": False}},
}
ATTEST: dict[str, Any] = {
    "schema": "sacro_deltab/declare/1",
    "role": "tre_staff",
    "by": "SIMULATED TRE staff of the demonstration",
    "simulated": True,
    "note": "Nobody said this: in a real TRE its staff fill this in, or its layer pins it.",
    "facts": {"egress.route": "tre_airlock", "dp.noise_inside_tre": True},
}


def run_demo(out: Path, ledger: str, say: Say, *, declare: Path | None = None, attest: Path | None = None) -> Outcome:
    """Make the simulated inputs, then do what `run` does, with a few outputs that must not leave.

    Beside the folder `NAME-inputs/` holds what researcher and TRE would supply: cohort, basis, declaration,
    attestation, and a layer that pins the ledger of this demonstration. `declare` and `attest`: files to take in the
    place of the simulated ones.
    """
    inputs = out.with_name(f"{out.name}-inputs")
    for path in (out, inputs):
        if path.exists() or path.is_symlink():
            raise InputError("the output folder exists", path=path, next_step="Choose another name with --out.")
    if not out.absolute().parent.is_dir():
        raise InputError("there is no such place", path=out.absolute().parent, next_step="Make it first.")
    say("simulating 680 people in 7 sites, and 400 public people for a shared basis")
    try:
        plan, cohort = _inputs(Plan(out=out, ledger=ledger, declare=declare, attest=attest), inputs)
        return _run(plan, cohort, say)
    except BaseException:
        shutil.rmtree(inputs, ignore_errors=True)
        raise


def _inputs(plan: Plan, folder: Path) -> tuple[Plan, Cohort]:
    """Write what researcher and TRE would supply; ids are new each time, so every demonstration is a new cohort."""
    from ..ledger import open_ledger  # late: brings sqlalchemy
    from .registering import register_table

    tag = secrets.token_hex(4)
    study, public = demo_cohort(), demo_public_reference()
    table = study.table.copy()
    table["site_merged"] = table["site"].where(~table["site"].isin(SMALL_SITES), "small sites")
    table["participant_id"] = [f"{tag}-{name}" for name in table["participant_id"]]
    features = [n for n in study.feature_names if float(public.features[n].std()) > 0]
    folder.mkdir()
    keep = ["participant_id", "age", *study.group_names, "site_merged", *study.confound_names, *features]
    table[keep].to_csv(folder / "cohort.csv", index=False)
    basis = Basis.from_public(
        public.features[features].to_numpy(dtype=float),
        public.age,
        features,
        n_components=COMPONENTS,
        made_on="simulated public volunteers of the demonstration",
        age_range=(40.0, 90.0),
    )
    basis.save(folder / "basis.json")
    ledger = open_ledger(plan.ledger)
    staff = "SIMULATED TRE staff"
    ledger.register_bounds(basis.digest, staff)  # before the people: then it is public
    register_table(ledger, folder / "cohort.csv", f"demo-{tag}", id_column="participant_id", who=staff)
    pin = ledger.pin()
    _said(plan.declare, folder / "declare.json", DECLARE, "researcher")
    _said(plan.attest, folder / "attest.json", ATTEST, "tre_staff")
    law = load_base()
    layer = [
        "# Made by `sacro-deltab demo`: pins the ledger of this demonstration. A real layer is the TRE's own file.",
        "layer:",
        "  id: demonstration",
        "  level: tre",
        "  title: Layer of the demonstration, which pins its own ledger",
        '  version: "1"',
        f'  on: {{id: {law.id}, version: "{law.version}", sha256: "{semantic_digest(law)}"}}',
        "attest:",
        "  egress.route: tre_airlock",
        "  dp.noise_inside_tre: true",
        "ledgers:",
        f'  - id: "{pin.id}"',
        f'    head_key: "{pin.head_key}"',
    ]
    (folder / "profile.yaml").write_text("\n".join(layer) + "\n", encoding="utf-8")
    plan = replace(
        plan,
        ages=folder / "cohort.csv",
        features=folder / "cohort.csv",
        by=("sex", "diagnosis", "site", "site_merged"),
        age_bands=(10.0,),
        ignore=tuple(study.confound_names),
        id_column="participant_id",
        basis=folder / "basis.json",
        epsilon=EPSILON,
        epsilon_mean=EPSILON_MEAN,
        n_components=COMPONENTS,
        method="moments",
        profile=str(folder / "profile.yaml"),
        declare=folder / "declare.json",
        attest=folder / "attest.json",
        cohort=f"demo-{tag}",
    )
    return plan, read(plan)


def _said(given: Path | None, path: Path, simulated: dict[str, Any], role: str) -> None:
    """What somebody said, if anybody did, else the simulated words."""
    if given is None:
        _write(path, simulated)
        return
    read_said(given, role)
    shutil.copyfile(given, path)


def _run(plan: Plan, cohort: Cohort, say: Say) -> Outcome:
    def release(session: DeltabSession) -> Iterator[str]:
        yield from release_all(session, plan, cohort, say)
        say("asking for a few outputs that should not leave")
        _extra(session, cohort)

    return carried_out(plan, cohort, say, release)


def _extra(session: DeltabSession, cohort: Cohort) -> None:
    """What researchers also ask for: a crossed table, counts, a plot, an undeclared correlation, bare weights."""
    from ..model import BrainAgeDelta  # late: brings sklearn

    assert cohort.groups is not None
    deltas = fitted_deltas(cohort, {"n_components": COMPONENTS}, "unbiased_quadratic", "median", in_sample=True).deltas
    session.release_counts(cohort.groups["sex"], title="People by sex")
    session.release_quantiles(deltas, (0, 25, 50, 75, 100), title="Quantiles with minimum and maximum",
                              name="delta_quantiles_all")  # fmt: skip
    session.release_group_means(
        deltas, [cohort.groups["site"], cohort.groups["sex"]], title="Mean delta by site and sex"
    )
    session.release_plot("mean_delta_by_sex", title="Mean delta by sex")
    session.release_feature_summary(cohort.features_frame(), title="Mean and SD of every IDP")
    frame = cohort.features_frame().iloc[:, :3]
    session.release_correlation(deltas, frame, title="Correlation of delta with three IDPs", p_values=False)
    whole = cohort.filled("median")
    bare = BrainAgeDelta(n_components=COMPONENTS).fit(whole.X, whole.age)
    session.release_weights(bare, title="Weights without noise", only=[BETA1])


def story(outcome: Outcome) -> list[str]:
    """The account a newcomer reads."""
    session = outcome.session
    inputs = outcome.folder.with_name(f"{outcome.folder.name}-inputs")
    statuses = {s: sum(e.status == s for e in session.entries) for s in VERDICTS}
    agree = _agreement(outcome)
    return [
        "sacro_deltab: may this leave the Trusted Research Environment?",
        "",
        "A researcher trained a brain-age model on 680 SIMULATED people and asked for "
        f"{len(session.entries)} outputs. Each was judged by every clause of the policy that concerns it:",
        f"  {statuses['pass']} meet the rules, {statuses['review']} need a person's decision, "
        f"{statuses['fail']} stay inside.",
        "Declaration, attestation and layer are simulated too: they show where people's word would stand.",
        "",
        *account(outcome),
        "",
        "How to read it",
        "  pass    every rule is met; small groups are marked *, together with whatever would give them away",
        "  review  a rule asks a person a question; the question is in the record",
        "  fail    only a note that says why is in the folder; the numbers are not",
        "  inside/ holds the evidence for the checker and is listed in no record, so no approval can release it",
        "",
        "Next",
        f"  open {outcome.folder.name} in SACRO-Viewer",
        f"  sacro-deltab check {outcome.folder} --layer {inputs / 'profile.yaml'} --ledger {session.budget.url}",
        f"  {agree}",
    ]


def _agreement(outcome: Outcome) -> str:
    """Whether the checker, from the folder alone, comes to the session's verdicts."""
    said = {name: e.status for e in outcome.session.entries for name in e.files}
    found = {o.file: o.verdict for o in outcome.report.outputs}
    differ = sorted(name for name, status in said.items() if found.get(name) != status)
    if differ:
        return f"the checker differs on: {', '.join(differ)}"
    return "the checker, reading only the folder, comes to the same verdict on every output"


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


__all__ = ["quiet_acro", "run_demo", "story"]
