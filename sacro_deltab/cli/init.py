"""`sacro-deltab init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_HELP = """Write the files that people fill in, or with --try a whole simulated TRE to try everything on.

Without --try: declare.yaml (the researcher), attest.yaml (TRE staff) and profile.yaml (the TRE's layer), each with
every fact that the rules ask for as a comment. With --try: simulated people, a basis, a ledger that a trust file pins,
and both statements; every output made with them says that they are simulated. Nothing is ever overwritten.

Examples:

\b
    sacro-deltab init forms

\b
    sacro-deltab init --try
"""


def register(app: typer.Typer) -> None:
    """Add `init`."""
    app.command("init", help=_HELP)(init)


def init(
    folder: Annotated[Path, typer.Argument(help="Where; made if missing.")] = Path(),
    trial: Annotated[bool, typer.Option("--try", help="A simulated TRE in the place of empty forms.")] = False,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
) -> None:
    """See _HELP."""
    from ..run.starting import write_templates, write_trial  # numpy and the ledger, for this command only

    if trial:
        made = write_trial(folder)
        typer.echo(f"SIMULATED, nobody is real and nobody said it: {', '.join(made)}")
        return
    from ..rules import load_ruleset  # late: a command loads what it needs

    for path in write_templates(folder, load_ruleset(rules)):
        typer.echo(str(path))
