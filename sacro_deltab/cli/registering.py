"""`sacro-deltab ledger register-…`: what TRE staff enter before anybody's data are opened, and take out again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..base.opening import LARGE, read_file
from .asking import LEDGER, AsJson, Key, Url, Who, account_name, say_json
from .progress import say

_BASIS_HELP = """Register a public basis before the data are opened: only then does a training on it count as formal.

A basis counts as public because the TRE says so: its digest stands in the ledger before the first entry of any cohort
that it is used on. Registered later, or never, it is somebody's word, and the noise is called heuristic.

Example: sacro-deltab ledger register-basis basis.json --ledger budget.db
"""
_BOUNDS_HELP = """Register public bounds (any file) before the data are opened; its SHA-256 is written down.

Example: sacro-deltab ledger bounds bounds.json --ledger budget.db
"""
_COHORT_HELP = """Register who is in a cohort, from its source table: only then can noise on these people be formal.

Run by TRE staff, with the TRE's key, on the table that researchers get (CSV or Parquet, one row a person). The ledger
keeps keyed fingerprints of ids, keyed tokens of the measurements, and of each column its name, type, unit and one keyed
sum: no id and no value. People found in another cohort of the register share one budget with it, whatever their ids.
Withdrawn consent, new ids or a new data cut are a new version: run it again; what was spent still counts.

Example: sacro-deltab ledger register-cohort idps.parquet --cohort ukb-cut-3 --id-column eid --ledger budget.db
"""
_FORGET_HELP = """Erase a registered cohort's tokens and column sums; fingerprints stay and what was spent still counts.

Example: sacro-deltab ledger forget --cohort ukb-cut-2 --ledger budget.db
"""


def register(group: typer.Typer) -> None:
    """Add the commands to the `ledger` group."""
    group.command("register-basis", help=_BASIS_HELP)(_bounds)
    group.command("bounds", help=_BOUNDS_HELP)(_bounds)
    group.command("register-cohort", help=_COHORT_HELP)(_cohort)
    group.command("forget", help=_FORGET_HELP)(_forget)


def _digest_of(file: Path) -> str:
    """Digest by which a session asks for the file: of its numbers for a basis or bounds file, else of its bytes."""
    from ..privacy import Basis, PublicBounds  # NumPy, which no other ledger command needs

    data = read_file(file, limit=LARGE)
    for schema, kind in ((b'"sacro_deltab/basis/1"', Basis), (b'"sacro_deltab/bounds/1"', PublicBounds)):
        if schema in data:
            return kind.load(file).digest
    return sha256_hex(data)


def _bounds(
    file: Annotated[Path, typer.Argument(help="The public file: a basis, bounds, or any other.")],
    ledger: Url = LEDGER,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs

    digest = _digest_of(file)
    entry = open_ledger(ledger, create=False, key=key).register_bounds(digest, account_name(who))
    if as_json:
        say_json(entry.to_json())
    else:
        typer.echo(f"entry {entry.seq}: public file sha256:{digest} registered")


def _cohort(
    file: Annotated[Path, typer.Argument(help="The source table, one row a person.")],
    cohort: Annotated[str, typer.Option("--cohort", help="The id under which sessions name these people.")],
    id_column: Annotated[str, typer.Option("--id-column", help="The column that identifies a person.")],
    unit: Annotated[list[str] | None, typer.Option("--unit", help="COLUMN=UNIT, repeatable.")] = None,
    ledger: Url = LEDGER,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs
    from ..run.registering import register_table

    units = dict(_unit(text) for text in unit or ())
    book = open_ledger(ledger, create=False, key=key)
    check = register_table(book, file, cohort, id_column=id_column, who=account_name(who), units=units, say=say)
    if as_json:
        say_json({
            "schema": "sacro_deltab/ledger-register/1", "entry": check.entry, "partition": check.partition,
            "people": check.people, "shares_people_with": [o.partition for o in check.overlaps],
        })  # fmt: skip
        return
    typer.echo(f"entry {check.entry}: {cohort} registered, {check.people} people")
    for reason in check.reasons:
        typer.echo(f"note: {reason}")


def _unit(text: str) -> tuple[str, str]:
    column, equals, unit = text.partition("=")
    if not (column and equals and unit):
        raise InputError("a unit is given as COLUMN=UNIT", place="--unit")
    return column, unit


def _forget(
    cohort: Annotated[str, typer.Option("--cohort", help="The registered cohort.")],
    version: Annotated[int | None, typer.Option("--version", help="Only this version. Default: all.")] = None,
    ledger: Url = LEDGER,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    from ..ledger import open_ledger  # late: a command loads what it needs
    from ..ledger.register import forget

    book = open_ledger(ledger, create=False, key=key)
    entry = forget(book, cohort, who=account_name(who), version=version)
    if as_json:
        say_json(entry.to_json())
    else:
        typer.echo(f"entry {entry.seq}: tokens and column sums of {cohort} erased")
