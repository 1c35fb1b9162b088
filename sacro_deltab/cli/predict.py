"""`sacro-deltab predict`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import InputError

_PREDICT = """Apply a model to a table: brain age, and delta where ages are given, for each person.

The model is a session's folder, a pooled folder or a JSON file of weights. Features are found by name, also under
other names of FreeSurfer, ENIGMA and UK Biobank; a missing value becomes the model's public centre, and is counted.
What comes out is about single people and stays inside the TRE: it goes to a file of its own, readable by you alone,
never into an output folder. `sacro-deltab run --deltas FILE` then judges tables and statistics of it.

Examples:

\b
    sacro-deltab predict --weights outputs --features idps.csv --ages ages.csv --out deltas.csv

\b
    sacro-deltab predict --weights outputs --card

\b
    sacro-deltab predict --weights pooled --features cohort.csv --recalibrate --reference dx=HC --out deltas.csv
"""


def register(app: typer.Typer) -> None:
    """Add `predict` to the command line."""
    app.command("predict", help=_PREDICT)(predict)


def predict(
    weights: Annotated[Path, typer.Option("--weights", help="Session or pooled folder, or a JSON file of weights.")],
    features: Annotated[Path | None, typer.Option("--features", help="IDPs, one row a person, with a header.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="CSV file to write; stays inside; must not exist.")] = None,
    card: Annotated[bool, typer.Option("--card", help="Print the model's card instead: no person is read.")] = False,
    ages: Annotated[Path | None, typer.Option("--ages", help="Ages; default: the features' age column.")] = None,
    confounds: Annotated[Path | None, typer.Option("--confounds", help="Confounds of the model.")] = None,
    id_column: Annotated[str | None, typer.Option("--id-column", help="Column of person ids.")] = None,
    age_column: Annotated[str, typer.Option("--age-column", help="Column of ages.")] = "age",
    model: Annotated[str | None, typer.Option("--model", help="Delta model; default: the least biased.")] = None,
    exact_names: Annotated[bool, typer.Option("--exact-names", help="Accept no other name of a feature.")] = False,
    recalibrate: Annotated[bool, typer.Option("--recalibrate", help="Take mean and age slope of delta off.")] = False,
    reference: Annotated[
        str | None, typer.Option("--reference", help="People to recalibrate on, e.g. dx=HC; default: all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _PREDICT."""
    from ..run.card import model_card  # numpy, for this command only
    from ..run.predicting import PredictPlan, run_predict  # numpy and pandas, for this command only

    if card:
        typer.echo(model_card(weights), nl=False)
        return
    if features is None or out is None:
        missing = "--features" if features is None else "--out"
        raise InputError(f"{missing} was not given", next_step="Both are needed, or --card alone.")
    plan = PredictPlan(
        weights=weights, features=features, out=out, ages=ages, confounds=confounds, id_column=id_column,
        age_column=age_column, model=model, aliases=not exact_names, recalibrate=recalibrate or reference is not None,
        reference=reference,
    )  # fmt: skip
    done = run_predict(plan)
    if not as_json:
        typer.echo("\n".join(done.said))
        return
    data = {
        "schema": "sacro_deltab/predict/1",
        "out": str(done.out),
        "model": done.prediction.model,
        "filled": [name for name, _ in done.prediction.filled],
        "renamed": dict(done.prediction.renamed),
        "recalibrated": done.prediction.recalibration is not None,
    }
    typer.echo(json.dumps(data, ensure_ascii=False))
