"""`sacro-deltab tables audit FILE` and `tables protect FILE`: the table engine on any table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import InputError

_AUDIT_HELP = """Attack every pattern that FILE lists with everything a reader would know.

FILE is a problem (schemas/table-problem.schema.json): atoms, cells, policy, attacker and `published_sets` of names
and suppressed cells. Other kinds (dominance, percentages, median, mean_sd) get their facts. A CSV file is
a printed table of exact counts: labels, marks (*, [REDACTED]) for what is withheld, rows and columns called Total.

Prints one JSON object. Exit code: 0 every pattern holds, 1 at least one can be undone, 2 unreadable.

Example: sacro-deltab tables audit my_table.json
"""
_PROTECT_HELP = """Choose the fewest further cells to withhold so that FILE's table cannot be undone.

Prints one JSON object: the audit of FILE's own patterns, and `protection`: the cells, whether the choice is proved
the smallest (else a bound), and the independent audit of the result. Exit code: 0 the result holds, 1 it does not
(or nothing can make it hold), 2 unreadable.

Example: sacro-deltab tables protect my_table.json --policy interval
"""


def _emit(report: dict[str, Any]) -> None:
    typer.echo(json.dumps(report, ensure_ascii=False, allow_nan=False))


def _read(file: Path) -> dict[str, Any]:
    if file.suffix.lower() in (".csv", ".tsv"):
        from ..tables.from_csv import read_csv  # late: a command loads what it needs

        return read_csv(file)
    from ..tables.table import load_case  # late: a command loads what it needs

    return load_case(file)


def register(app: typer.Typer) -> None:
    """Add the `tables` group."""
    group = typer.Typer(no_args_is_help=True, help="Attack or protect a table, any table.")

    @group.command("audit", help=_AUDIT_HELP)
    def audit(
        file: Annotated[Path, typer.Argument(help="A problem file (JSON) or a printed table of counts (CSV).")],
        as_json: Annotated[bool, typer.Option("--json", help="JSON is always what is printed.")] = True,  # noqa: ARG001
    ) -> None:
        from ..tables.answers import audit_answer  # late: a command loads what it needs

        report, safe = audit_answer(_read(file), path=file)
        _emit(report)
        raise typer.Exit(0 if safe else 1)

    @group.command("protect", help=_PROTECT_HELP)
    def protect(
        file: Annotated[Path, typer.Argument(help="A problem file (JSON) or a printed table of counts (CSV).")],
        policy: Annotated[str, typer.Option("--policy", help="exact | policy | interval: what must hold.")] = "policy",
        objective: Annotated[
            str, typer.Option("--objective", help="cells | people: what to withhold least of.")
        ] = "cells",
        as_json: Annotated[bool, typer.Option("--json", help="JSON is always what is printed.")] = True,  # noqa: ARG001
        list_sets: Annotated[
            bool, typer.Option("--list-sets", help="List every smallest set (up to 40 candidates; may take a minute).")
        ] = False,
    ) -> None:
        from ..tables.answers import protect_answer  # late: a command loads what it needs

        if policy not in ("exact", "policy", "interval"):
            raise InputError(f"--policy {policy!r} is unknown", next_step="use exact, policy or interval")
        if objective not in ("cells", "people"):
            raise InputError(f"--objective {objective!r} is unknown", next_step="use cells or people")
        report, safe = protect_answer(_read(file), policy=policy, objective=objective, path=file, list_sets=list_sets)
        _emit(report)
        raise typer.Exit(0 if safe else 1)

    app.add_typer(group, name="tables")
