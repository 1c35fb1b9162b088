"""`sacro-deltab basis`: make a shared basis and public bounds from public people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import InputError

EXAMPLE = """\b
Example:
  sacro-deltab basis --ages public_ages.csv --features public_idps.csv --n-components 10 \\
    --made-on "IXI, 558 healthy volunteers, CC BY-SA" --out basis.json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("basis", epilog=EXAMPLE)(basis)


def basis(
    ages: Annotated[Path, typer.Option(help="Ages of the public people, one per row.")],
    features: Annotated[Path, typer.Option(help="Features of the public people, with a header row of names.")],
    made_on: Annotated[str, typer.Option(help="Who the public people are: data set, licence, selection.")],
    out: Annotated[Path, typer.Option(help="File to write the basis to; must not exist.")],
    n_components: Annotated[
        int | None, typer.Option(help="Number of components J (default: 10 or what is there).")
    ] = None,
    confounds: Annotated[Path | None, typer.Option(help="Confounds of the public people: sets their bounds.")] = None,
    age_range: Annotated[
        str | None, typer.Option(help="Age bounds LOW,HIGH in years; default: public ages, widened.")
    ] = None,
    feature_z: Annotated[float, typer.Option(help="Clip of a standardised feature.")] = 4.0,
    id_column: Annotated[str | None, typer.Option(help="Column of person ids, if the files have one.")] = None,
    unit: Annotated[
        list[str] | None, typer.Option(help="Unit of the features, or NAME=UNIT for one; repeat. Jobs compare units.")
    ] = None,
    bounds_out: Annotated[Path | None, typer.Option(help="Also write the bounds alone, as a bounds file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Make a shared basis (component axes, centre, scale, norms, bounds) from public people.

    The people must be other people than the cohort the basis will be used on: a basis made on the cohort itself is
    refused by the trainer. Nothing private is read here and nothing is spent.
    """
    from ..cohort import read_cohort  # late: a command loads what it needs
    from ..privacy.basis import Basis

    targets = [path for path in (out, bounds_out) if path is not None]
    for path in targets:
        if path.exists():
            raise InputError("the file exists already", path=path, next_step="choose another name")
    people = read_cohort(ages=ages, features=features, confounds=confounds, id_column=id_column)
    names = tuple(people.feature_names)
    made = Basis.from_public(
        people.X, people.age, names, _units(names, unit or []), n_components=n_components, made_on=made_on,
        age_range=_range(age_range), feature_z=feature_z, confounds=people.confounds,
        confound_names=people.confound_names,
    )  # fmt: skip
    made.save(out)
    if bounds_out is not None:
        made.bounds(tuple(made.confounds)).save(bounds_out)
    report = {
        "file": str(out), "digest": made.digest, "features": len(names), "components": made.n_components,
        "people": made.n_people, "made_on": made.made_on, "age": list(made.age), "feature_z": made.feature_z,
        "radius": float(made.radius[-1]), "confounds": sorted(made.confounds),
        "bounds_file": None if bounds_out is None else str(bounds_out),
    }  # fmt: skip
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(f"basis written: {out}")
    typer.echo(f"  made on: {made.made_on} ({made.n_people} people)")
    typer.echo(
        f"  {len(names)} features, {made.n_components} components, ages clipped to {made.age[0]:g}-{made.age[1]:g}"
    )
    typer.echo(f"  95 % of public people have a score norm below {made.radius[-1]:.3f}: the clip of the private path")
    typer.echo(f"  digest: {made.digest}")


def _units(names: Sequence[str], given: Sequence[str]) -> list[str]:
    """A unit per feature: the last one given without a name, or the feature's own."""
    units = dict.fromkeys(names, next((text for text in reversed(given) if "=" not in text), ""))
    for text in given:
        name, found, value = text.rpartition("=")
        if found and name not in units:
            raise InputError(f"there is no feature {name!r}", place="--unit", next_step="for example --unit mm")
        if found:
            units[name] = value
    return list(units.values())


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError("--age-range is not LOW,HIGH", next_step="for example --age-range 40,90") from error
    return low, high
