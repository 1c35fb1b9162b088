"""`sacro-deltab attack`: membership inference on deltab weights, inside the TRE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import InputError
from .progress import say

_HELP = """Membership inference on deltab weights: would they tell whether somebody was in the study?

Three attacks (residual threshold, likelihood ratio with shadow models, normalisation statistics alone) and the
reconstruction checks. Without --held-out-* people the training procedure is attacked: every half of the cohort in turn.
The report names no person, but it stays inside the TRE: attach it with `session.attach_attack_report`.

With --basis or --bounds the training attacked is the private one, else the one without noise.

Exit code: 0 report made, 1 the attack does better than the promised noise allows, 2 unusable input.

Examples:

    sacro-deltab attack --ages ages.csv --features idps.csv --n-components 10 --out attack.json

    sacro-deltab attack --ages ages.csv --features idps.csv --basis basis.json --epsilon 1 --weights outputs --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("attack", help=_HELP)(attack)


def attack(
    ages: Annotated[Path, typer.Option("--ages", help="Ages of the training people, one a row.")],
    features: Annotated[Path, typer.Option("--features", help="Their features, with a header row of names.")],
    confounds: Annotated[Path | None, typer.Option("--confounds", help="Their confounds.")] = None,
    held_out_ages: Annotated[Path | None, typer.Option("--held-out-ages", help="Ages of people not in it.")] = None,
    held_out_features: Annotated[Path | None, typer.Option("--held-out-features", help="Their features.")] = None,
    held_out_confounds: Annotated[Path | None, typer.Option("--held-out-confounds", help="Their confounds.")] = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", help="Session folder or JSON file with the weights.")
    ] = None,
    basis: Annotated[Path | None, typer.Option("--basis", help="Shared basis: attack the private training.")] = None,
    bounds: Annotated[Path | None, typer.Option("--bounds", help="Public bounds file, the same.")] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the private training.")] = 1.0,
    delta_dp: Annotated[float | None, typer.Option("--delta-dp", help="δ of the private training.")] = None,
    adjacency: Annotated[str, typer.Option("--adjacency", help="Neighbouring relation.")] = "zero_out_N_public",
    method: Annotated[str, typer.Option("--method", help="auto, moments or gradient.")] = "auto",
    n_components: Annotated[int | None, typer.Option("--n-components", help="Components J.")] = None,
    id_column: Annotated[str | None, typer.Option("--id-column", help="Column of person ids.")] = None,
    age_column: Annotated[str, typer.Option("--age-column", help="Column of ages in a combined table.")] = "age",
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Column to leave out; repeat.")] = None,
    shadows: Annotated[int, typer.Option("--shadows", help="Shadow models, an even number.")] = 32,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the choice of people.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="File to write the report to; must not exist.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The report on stdout.")] = False,
) -> None:
    """See _HELP."""
    if out is not None and out.exists():
        raise InputError("the file exists already", path=out, next_step="Choose another name.")
    if (held_out_ages is None) != (held_out_features is None):
        raise InputError("held-out people need ages and features", next_step="Give both, or none.")
    from ..privacy.attack.run import AttackPlan, run_attack  # late: a command loads what it needs

    plan = AttackPlan(
        ages=ages, features=features, confounds=confounds, held_out_ages=held_out_ages,
        held_out_features=held_out_features, held_out_confounds=held_out_confounds, weights=weights, basis=basis,
        bounds=bounds, epsilon=epsilon, delta_dp=delta_dp, adjacency=adjacency, method=method,
        n_components=n_components, id_column=id_column, age_column=age_column, ignore=tuple(ignore or ()),
        shadows=shadows, seed=seed,
    )  # fmt: skip
    report = run_attack(plan, say)
    if out is not None:
        report.save(out)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(report, out)
    raise typer.Exit(1 if report.verdict == "above_bound" else 0)


def _print(report: Any, out: Path | None) -> None:
    what = {
        "weights": "these weights, members against held-out people",
        "procedure": "the training procedure: every half of the people in turn (no held-out people were given)",
    }
    typer.echo(f"Attacked: {what[report.subject]}")
    for result in report.attacks:
        if result.success is None:
            typer.echo(f"  {result.name}: {result.note}")
            continue
        s = result.success
        typer.echo(
            f"  {result.name}: AUC {s.auc:.3f} ({s.auc_ci[0]:.3f} to {s.auc_ci[1]:.3f}), "
            f"found at 1 % false alarms {s.tpr:.1%} ({s.tpr_ci[0]:.1%} to {s.tpr_ci[1]:.1%})"
        )
    for check in report.checks:
        typer.echo(f"  {check.check}: {check.outcome}: {check.text}")
    for line in report.words[:3]:
        typer.echo(line)
    if out is not None:
        typer.echo(f"Report written: {out} (it stays inside the TRE)")
