"""`sacro-deltab aggregate`, `verify-pooled`, `job check` and `simulate-federation`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ..base.errors import InputError
from ..base.verdicts import exit_code
from ..base.writing import write_file
from .asking import day_of, prompt_passphrase
from .progress import say

HISTORY = "federation-history.jsonl"
_AGGREGATE = """Pool what two or more TREs released into one model, without a link between them.

NODE is what a node released: its session folder, or the zip SACRO-Viewer made. Every certificate is verified before a
number is read. A refusal says why and leaves no folder.

Ways to pool: noised moments are summed (default; exact), weights in one shared basis or folded weights are averaged by
released N. Averaging components that each node made for itself is refused.

Exit code: 0 pooled, and nobody has to look; 3 pooled, and a person must decide; 1 refused; 2 usage or unreadable input.

Example:

    sacro-deltab aggregate site-a site-b --basis basis.json --trust trust.json --expect 2
    --declare-disjoint "J. Doe, both data controllers asked" --out pooled
"""
_VERIFY = """Verify a pooled folder that was signed with --key, and optionally the node folders it was made of.

Exit code: 0 authentic and complete, 1 not, 2 unreadable.

Example:

    sacro-deltab verify-pooled pooled --trust trust.json --node site-a --node site-b
"""
_SIMULATE = """Plan a federation: K nodes, every way to pool and every budget side by side.

It runs on simulated people, or on a table you may use freely: nothing is spent or released. Without --data two nodes
of 500 and 1,500
simulated people are compared; it ends within a minute.

--json prints {"results": [{"way", "epsilon", "correlation", "mae"}], "advised": way}; epsilon null is without noise.
The ways public_only (the public people's model) and constant (their median age) use no private data at all.

Examples:

    sacro-deltab simulate-federation --plot plan.png

    sacro-deltab simulate-federation --nodes 3 --data openneuro.csv --by site --n-components 10
"""

_CHECK = """What each clause of the rules will say to a job before it is sent, and what only a node can know.

Exit code: 0 no clause stands against it, 1 an output will not leave, 2 the file cannot be used.

Example:

    sacro-deltab job check job.yaml
"""

_NEW = """Write a job file for a shared basis: features, units, digests and rule set filled in, to be read and changed.

The planner says what either way to train gives a node of --n people like the basis's, beside the public model alone and
a constant; the planner's choice is written, unless --method says otherwise.

Example:

    sacro-deltab job new --basis basis.json --id two-nodes --who "J. Doe" --group diagnosis --out job.yaml
"""


def register(app: typer.Typer) -> None:
    """Add the federation's commands to the command line."""
    app.command("aggregate", help=_AGGREGATE)(aggregate)
    app.command("verify-pooled", help=_VERIFY)(verify_pooled)
    app.command("simulate-federation", help=_SIMULATE)(simulate)
    jobs = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Job files: one file for every node.")
    jobs.command("check", help=_CHECK)(check_job)
    jobs.command("new", help=_NEW)(new_job)
    app.add_typer(jobs, name="job")


def aggregate(
    nodes: Annotated[list[Path], typer.Argument(metavar="NODE...", help="Folders or zips.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    trust: Annotated[Path, typer.Option("--trust", help="Trust file with every node's keys.")],
    expect: Annotated[int | None, typer.Option("--expect", help="How many nodes there must be.")] = None,
    job: Annotated[Path | None, typer.Option("--job", help="The job file: gives --expect, checks the rest.")] = None,
    declare_disjoint: Annotated[
        str | None, typer.Option("--declare-disjoint", help="Who declares that nobody is in two nodes.")
    ] = None,
    way: Annotated[str | None, typer.Option("--way", help="summed_moments, fedavg_shared or fedavg_folded.")] = None,
    noise_model: Annotated[str | None, typer.Option("--noise-model", help="local, distributed or central.")] = None,
    basis: Annotated[Path | None, typer.Option("--basis", help="The shared basis of the job.")] = None,
    bounds: Annotated[Path | None, typer.Option("--bounds", help="The bounds file of the job.")] = None,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
    profile: Annotated[str | None, typer.Option("--layer", "--profile", help="Top layer on the rules.")] = None,
    declare: Annotated[Path | None, typer.Option("--declare", help="What the researcher declares (JSON).")] = None,
    attest: Annotated[Path | None, typer.Option("--attest", help="What TRE staff attest (JSON).")] = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", help=f"Memory of earlier rounds; made if missing. Default: {HISTORY} by --trust."),
    ] = None,
    require_decided: Annotated[
        bool, typer.Option("--require-decided", help="Refuse files whose review nobody has decided.")
    ] = False,
    key: Annotated[Path | None, typer.Option("--key", help="Sign the pooled statement with this key.")] = None,
    passphrase_file: Annotated[Path | None, typer.Option("--passphrase-file", help="The key's passphrase.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Verify as of this day (YYYY-MM-DD); default now.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _AGGREGATE."""
    from ..federation.aggregate import aggregate as run  # late: a command loads what it needs
    from ..federation.order import Order
    from ..federation.report import report_json, report_lines  # late: a command loads what it needs

    order = Order(
        paths=tuple(nodes), out=out, trust=trust, expect=expect, job=job, disjoint=declare_disjoint, way=way,
        noise_model=noise_model, basis=basis, bounds=bounds, rules=rules, profile=profile, declare=declare,
        attest=attest, history=history or trust.absolute().parent / HISTORY, key=key,
        passphrase=_passphrase(key, passphrase_file), require_decided=require_decided,
        at=None if at is None else day_of(at),
    )  # fmt: skip
    pooling = run(order, say)
    if as_json:
        _print_json({**report_json(pooling), "folder": str(out)})
    else:
        typer.echo("\n".join([*report_lines(pooling), "", f"Folder: {out}"]))
    raise typer.Exit(exit_code(pooling.verdict))


def verify_pooled(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A pooled folder.", show_default=False)],
    trust: Annotated[Path, typer.Option("--trust", help="Trust file with the aggregator's key.")],
    node: Annotated[list[Path] | None, typer.Option("--node", help="A node's folder or zip; repeat.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Verify as of this day (YYYY-MM-DD); default now.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _VERIFY."""
    verify_pooled_folder(folder, trust, nodes=node or (), at=at, as_json=as_json)


def verify_pooled_folder(
    folder: Path, trust: Path, *, nodes: Sequence[Path] = (), at: str | None = None, as_json: bool = False
) -> NoReturn:
    """Verify, print, exit; also what `sacro-deltab verify` does with a pooled folder."""
    from ..federation.verify import verify_pooled as verify  # late: a command loads what it needs

    statement, problems = verify(folder, trust, materials=nodes, at=None if at is None else day_of(at))
    predicate = {} if statement is None else statement["predicate"]
    if as_json:
        _print_json({"schema": "sacro_deltab/verify-pooled/1", "ok": not problems, "problems": problems,
                     "pooled_id": predicate.get("pooled_id"), "verdict": predicate.get("verdict")})  # fmt: skip
    elif problems:
        typer.echo("\n".join([*(f"FAIL {p}" for p in problems), f"NOT authentic and complete: {problems[0]}"]))
    else:
        names = ", ".join(str(m["node"]) for m in predicate["materials"])
        typer.echo(f"authentic and complete; the verdict it carries is {predicate['verdict']}; pooled from {names}")
    raise typer.Exit(1 if problems else 0)


def check_job(
    file: Annotated[Path, typer.Argument(metavar="JOB", help="A job file (YAML).", show_default=False)],
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
    profile: Annotated[str | None, typer.Option("--layer", "--profile", help="Top layer of a node.")] = None,
    basis: Annotated[Path | None, typer.Option("--basis", help="The basis file that goes with the job.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _CHECK."""
    from ..federation.job import check_basis, check_rule_set, load_job  # late: a command loads what it needs
    from ..federation.job_check import forecast, lines_of
    from ..rules import load_ruleset  # late: a command loads what it needs

    job = load_job(file)
    ruleset = load_ruleset(rules, profile=profile)
    check_rule_set(job, ruleset)
    if basis is not None:
        from ..privacy.basis import Basis  # late: a command loads what it needs

        check_basis(job, Basis.load(basis))
    found = forecast(job, ruleset)
    failing = [f.output for f in found if f.verdict == "fail"]
    if as_json:
        _print_json({"schema": "sacro_deltab/job-check/1", "job": job.id, "sha256": job.sha256,
                     "epsilon_per_node": job.node_epsilon, "delta_dp_per_node": job.node_delta,
                     "will_not_leave": failing, "outputs": [f.to_json() for f in found]})  # fmt: skip
    else:
        typer.echo("\n".join(lines_of(job, ruleset, found)))
    raise typer.Exit(1 if failing else 0)


def new_job(
    basis: Annotated[Path, typer.Option("--basis", help="The shared basis.")],
    out: Annotated[Path, typer.Option("--out", help="File to write; must not exist.")],
    who: Annotated[str, typer.Option("--who", help="Who will declare what the job says.")],
    name: Annotated[str, typer.Option("--id", help="Id of the job: a-z, 0-9 and -.")] = "job",
    title: Annotated[str, typer.Option("--title", help="What it is for.")] = "Brain age over several TREs",
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε per node.")] = 1.0,
    expect: Annotated[int, typer.Option("--expect", help="How many nodes.", min=2)] = 2,
    group: Annotated[list[str] | None, typer.Option("--group", help="Column for a table of means; repeat.")] = None,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
    n: Annotated[int, typer.Option("--n", help="People that a node is expected to have.", min=20)] = 500,
    n_components: Annotated[int | None, typer.Option("--n-components", help="J. Default: the basis's.", min=1)] = None,
    method: Annotated[
        str, typer.Option("--method", help="moments (summed), gradient (averaged), or auto: what the plan advises.")
    ] = "auto",
) -> None:
    """See _NEW."""
    from ..federation.advice import advise  # late: a command loads what it needs
    from ..federation.job import load_job, template
    from ..privacy.basis import Basis
    from ..rules import load_ruleset  # late: a command loads what it needs

    if out.exists() or out.is_symlink():
        raise InputError("the file exists already", path=out, next_step="Choose another name with --out.")
    if method not in ("auto", "moments", "gradient"):
        raise InputError("the method is auto, moments or gradient", place="--method")
    shared = Basis.load(basis)
    say("planning: simulating both ways to train on people like the basis's")
    advice = advise(shared, n, epsilon=epsilon, n_components=n_components)
    method = advice.method if method == "auto" else method
    text = template(
        shared, load_ruleset(rules), name=name, title=title, by=who, epsilon=epsilon, expect=expect,
        groups=group or [], method=method, n_components=n_components,
    )  # fmt: skip
    write_file(out, text, new=True)
    try:
        load_job(out)
    except InputError:
        out.unlink()
        raise
    for line in advice.lines(method):
        typer.echo(line)
    typer.echo(f"{out}: read it, declare, then `sacro-deltab job check {out} --basis {basis}`")


def simulate(
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes.", min=2, max=50)] = 2,
    sizes: Annotated[str | None, typer.Option("--sizes", help="People of each node, e.g. 500,1500.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="A table (CSV) with a column 'age'.")] = None,
    by: Annotated[str | None, typer.Option("--by", help="Column that says where a person was scanned.")] = None,
    public: Annotated[
        str | None, typer.Option("--public", help="Value of that column set aside as public people.")
    ] = None,
    age_range: Annotated[
        str | None, typer.Option("--age-range", help="Age bounds LOW,HIGH for --data; default: the public people's.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", help="ε per node; repeat. Default 1 and 4.")
    ] = None,
    n_components: Annotated[int, typer.Option("--n-components", help="Components J.", min=1, max=200)] = 5,
    n_features: Annotated[int, typer.Option("--n-features", help="Simulated features.", min=5, max=2000)] = 100,
    repeats: Annotated[int, typer.Option("--repeats", help="Data sets and noise draws to average.", min=1)] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of the simulated people; noise has no seed.")] = 1,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a picture (PNG or SVG).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON on stdout.")] = False,
) -> None:
    """See _SIMULATE."""
    from ..federation import simulation as sim  # late: a command loads what it needs
    from ..federation import worlds as places

    if data is None:
        people = _sizes(sizes, nodes)
        worlds = [
            places.simulated_world(people, n_features=n_features, n_components=n_components, seed=seed + k)
            for k in range(repeats)
        ]
    else:
        X, ages, names, labels = places.read_table(data, by)
        from .basis import _range  # late: a command loads what it needs

        worlds = [places.table_world(X, ages, names, labels, public=public, nodes=nodes, n_components=n_components,
                                  age_range=_range(age_range), seed=seed + k) for k in range(repeats)]  # fmt: skip
    budgets: list[float | None] = [None, *(epsilon or [1.0, 4.0])]
    found = sim.simulate_federation(worlds, epsilons=budgets, say=say)
    if plot is not None:
        sim.plot(found, plot)
    if as_json:
        _print_json({"results": [r.to_json() for r in found], "advised": sim.advised(found)})
        return
    typer.echo("\n".join(sim.lines_of(found, worlds[0])))
    if plot is not None:
        typer.echo(f"Plot: {plot}")


def _sizes(text: str | None, nodes: int) -> list[int]:
    if text is None:
        return [500, 1500] if nodes == 2 else [700] * nodes
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError("--sizes is not a list of whole numbers", next_step="For example --sizes 500,1500.") from None
    if len(found) not in (1, nodes) or min(found) < 20:
        raise InputError("--sizes names one size for each node, each at least 20", place="--sizes")
    return found if len(found) == nodes else found * nodes


def _passphrase(key: Path | None, file: Path | None) -> bytes | None:
    if key is None:
        return None
    from ..certificate.keys import read_passphrase  # late: a command loads what it needs

    return read_passphrase(file, prompt_passphrase)


def _print_json(data: Any) -> None:

    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))
