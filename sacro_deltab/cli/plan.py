"""`sacro-deltab plan`: what a privacy budget will buy, before any of it is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import InputError
from .progress import say

_HELP = """What ε buys at this N, F and J, before anything is spent; no person's data is read.

The trainer itself is run on simulated people, on every path; answers are kept in the user's cache folder. With --basis
the people are simulated from its age fit, else as in Smith et al. 2019.

Examples:

    sacro-deltab plan --n 500 --features 100 --n-components 10 --epsilon 1

    sacro-deltab plan --n 500 --basis basis.json --epsilon 1 --plot plan.png --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help=_HELP)(plan)


def plan(
    n: Annotated[int, typer.Option("--n", help="Number of people (public).")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the whole training.")],
    features: Annotated[int | None, typer.Option("--features", help="Number of features F; a basis gives it.")] = None,
    n_components: Annotated[
        int | None, typer.Option("--n-components", help="Components J (10, or what is there).")
    ] = None,
    delta_dp: Annotated[float | None, typer.Option("--delta-dp", help="δ; default min(1e-6, 1/N²).")] = None,
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="zero_out_N_public, add_remove or replace_one.")
    ] = "zero_out_N_public",
    basis: Annotated[Path | None, typer.Option("--basis", help="Shared basis file (sacro-deltab basis).")] = None,
    no_basis: Annotated[bool, typer.Option("--no-basis", help="There is no shared basis: node basis only.")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="PNG of share against N; must not exist.")] = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep and use earlier simulations.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """See _HELP."""
    if plot is not None and plot.exists():
        raise InputError("the file exists already", path=plot, next_step="Choose another name.")
    if basis is not None and no_basis:
        raise InputError("--basis and --no-basis exclude each other", next_step="Leave one out.")
    from ..privacy.basis import Basis  # late: a command loads what it needs
    from ..privacy.plan.planning import plan_training

    say("simulating (seconds; at once when this was asked before)")
    answer = plan_training(
        n, features, n_components, epsilon=epsilon, delta_dp=delta_dp, adjacency=adjacency,
        basis=None if basis is None else Basis.load(basis), shared_basis=not no_basis, use_cache=cache,
    )  # fmt: skip
    if plot is not None:
        from ..privacy.plan.plot import draw  # late: a command loads what it needs

        draw(answer, plot)
    if as_json:
        typer.echo(json.dumps(answer.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(answer, plot)


def _print(answer: Any, plot: Path | None) -> None:
    r, plain = answer.request, answer.without_noise
    typer.echo(
        f"N = {r['n']:,}, F = {r['n_features']}, J = {r['n_components']}, ε = {r['epsilon']:g}, "
        f"δ = {r['delta_dp']:.3g}, {r['adjacency']}"
    )
    typer.echo(f"People: {answer.people}")
    typer.echo(
        f"Without noise: correlation with the true delta {plain['correlation']:.2f}, error of predicted age "
        f"{plain['error_years']:.1f} years (saying the mean age: {plain['error_years_of_the_mean_age']:.1f})"
    )
    for name, row in answer.null_rows.items():
        typer.echo(
            f"  {name.replace('_', ' ')}: correlation {row['correlation']:.2f}, error {row['error_years']:.1f} years"
        )
    for p in answer.paths:
        mark = "  <- chosen" if p.path == answer.choice else ""
        typer.echo(
            f"  {p.path}: correlation {p.correlation:.2f} ({p.share:.0%} of no noise; {max(p.own_share, 0.0):.0%} "
            f"by the cohort's own data), error {p.error_years:.1f} "
            f"years, N for 50 %: {_number(p.n_50)}, for 90 %: {_number(p.n_90)}{mark}"
        )
        (low, high), (least, most), (down, up) = p.with_no_noise_interval, p.error_interval, p.age_slope
        typer.echo(
            f"      of ten studies nine have: correlation with the delta without noise {low:.2f} to {high:.2f}, error "
            f"{least:.1f} to {most:.1f} years, age slope of the unbiased delta {down:+.3f} to {up:+.3f} years a year"
        )
        table = ", ".join(f"{name} {sd:.3g}" for name, sd in p.noise_sd.items())
        typer.echo(f"      σ per block: {table}")
        for warning in p.warnings:
            typer.echo(f"      warning: {warning}")
    typer.echo(f"Chosen: {answer.choice}: {answer.why}")
    typer.echo(answer.advice)
    if plot is not None:
        typer.echo(f"Plot written: {plot}")


def _number(n: int | None) -> str:
    return "not found" if n is None else f"{n:,}"
