"""`sacro-deltab release DIR --out ZIP`: the zip that leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .asking import TRUST_VARIABLE, find_trust

_HELP = """Write the zip that leaves: the files of accepted outputs, their records and the certificate, in one form.

Where checkers have decided, what both accepted is packed (certify again after the review, so that their decisions
travel along); where nobody has, what passes. `verify ZIP` says that it is authentic and complete. A person releases it.

Exit code: 0 written, 1 nothing to release, a decision is awaited or the folder is not as certified, 2 unreadable.

Example: sacro-deltab release outputs --trust trust.json --out release.zip
"""


def register(app: typer.Typer) -> None:
    """Add `release`."""
    app.command("release", help=_HELP)(release)


def release(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A certified folder.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The zip; must not exist.")],
    trust: Annotated[Path | None, typer.Option("--trust", help=f"Trust file. Default: ${TRUST_VARIABLE}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Pack."""
    from ..certificate.release import write_release  # late: a command loads what it needs
    from ..ledger.trust import load_trust

    done = write_release(folder, load_trust(find_trust(trust, None, folder)), out)
    if as_json:
        told = {"release": str(out), "verdict": done.verdict, "outputs": list(done.outputs), "left": dict(done.left)}
        typer.echo(json.dumps(told, indent=1, ensure_ascii=False))
        return
    for name in done.outputs:
        typer.echo(f"packed {name}")
    for name, why in done.left.items():
        typer.echo(f"stays  {name}: {why}")
    typer.echo(f"{out}: {len(done.outputs)} outputs; a person releases them")
